package worker

import (
	"fmt"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/session"
)

// Types of what a client says on a socket.
const (
	framePost   = "post"
	frameAbort  = "abort"
	frameTyping = "typing"
	framePing   = "ping"
	frameSeen   = "seen"
)

var frameTypes = []string{framePost, frameAbort, frameTyping, framePing, frameSeen}

// maxRef bounds what a client has its answers marked with.
const maxRef = 64

// frame is what a client said.
type frame struct {
	kind  string
	ref   string // the client's name for this frame, which the answer repeats
	on    bool   // of typing
	seen  int64  // how many bytes the client has taken
	input session.Input
}

// decodeFrame reads one text message. With an error it returns what is known of the frame, so that
// the client is told which one it was.
func decodeFrame(raw []byte) (frame, error) {
	var f frame
	if err := checkJSON(raw); err != nil {
		return f, frameError(err)
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(raw, &object); err != nil || object == nil {
		return f, fmt.Errorf("frame: want a JSON object: %w", tidemark.ErrInvalid)
	}
	if err := (field{"ref", "", &f.ref}).decode(orNone(object["ref"])); err != nil || len(f.ref) > maxRef {
		f.ref = ""
		return f, fmt.Errorf("frame: \"ref\" must be a string of up to %d bytes: %w", maxRef, tidemark.ErrInvalid)
	}
	if err := (field{"type", "", &f.kind}).decode(orNone(object["type"])); err != nil {
		return f, fmt.Errorf("frame: \"type\" must be a string: %w", tidemark.ErrInvalid)
	}
	head := []field{{"type", "a string", &f.kind}, {"ref", "a string", &f.ref}}
	var err error
	switch f.kind {
	case framePost:
		f.input, err = decodeMessage(raw, head...)
		if err == nil {
			err = f.input.Validate()
		}
	case frameTyping:
		f.on = true
		err = decodeBody(raw, append(head, field{"on", "true or false", &f.on})...)
	case frameSeen:
		err = decodeBody(raw, append(head, field{"n", "a number", &f.seen})...)
	case frameAbort, framePing:
		err = decodeBody(raw, head...)
	default:
		return f, fmt.Errorf("frame: unknown type %s: %w", suggest(f.kind, frameTypes), tidemark.ErrInvalid)
	}
	return f, frameError(err)
}

// orNone is a string that was not given.
func orNone(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return json.RawMessage(`""`)
	}
	return raw
}

// frameError says of what the words of a body are true here.
func frameError(err error) error {
	if err == nil {
		return nil
	}
	if text, ok := strings.CutPrefix(err.Error(), "body: "); ok {
		return &reworded{"frame: " + text, err}
	}
	return err
}

// reworded is an error in other words.
type reworded struct {
	text string
	err  error
}

func (e *reworded) Error() string { return e.text }
func (e *reworded) Unwrap() error { return e.err }

// What a server says on a socket, beside the notices of the session.
type (
	// wireHello is the first, and comes again when the client may have missed something.
	wireHello struct {
		Type     string   `json:"type"` // hello
		Version  int      `json:"version"`
		ID       string   `json:"id"` // of this socket, among people
		Again    bool     `json:"again,omitempty"`
		Session  string   `json:"sessionId"`
		Messages int      `json:"messages"`       // in the log, from the last reset
		Run      string   `json:"run,omitempty"`  // in work
		Text     string   `json:"text,omitempty"` // of its answer so far
		Count    int      `json:"count"`
		People   []person `json:"people,omitempty"`
	}
	// wirePresence says who listens. Beyond manyPeople they are only counted.
	wirePresence struct {
		Type   string   `json:"type"` // presence
		Count  int      `json:"count"`
		People []person `json:"people,omitempty"`
	}
	person struct {
		ID   string `json:"id"`
		Name string `json:"name,omitempty"`
	}
	wireTyping struct {
		Type string `json:"type"` // typing
		person
		On bool `json:"on"`
	}
	wireTaken struct {
		Type string `json:"type"` // receipt
		Ref  string `json:"ref,omitempty"`
		session.Receipt
	}
	wireAborted struct {
		Type    string `json:"type"` // aborted
		Ref     string `json:"ref,omitempty"`
		Aborted bool   `json:"aborted"` // there was a turn in work
	}
	wirePong struct {
		Type string `json:"type"` // pong
		Ref  string `json:"ref,omitempty"`
	}
	// wireMark is to be answered by seen with the same number.
	wireMark struct {
		Type string `json:"type"` // mark
		N    int64  `json:"n"`
	}
	wireRefused struct {
		Type  string    `json:"type"` // error
		Ref   string    `json:"ref,omitempty"`
		Error wireFault `json:"error"`
	}
)
