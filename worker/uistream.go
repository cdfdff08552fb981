package worker

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/internal/sse"
	"github.com/tidemark-ai/tidemark/session"
)

// postUI is /api/chat: what useChat of the AI SDK asks. Who leaves stops nothing; the page comes back by
// getUI.
func postUI(c *request) (any, error) {
	raw, err := c.body()
	if err != nil {
		return nil, err
	}
	f, err := readUI(raw)
	if err != nil {
		return nil, err
	}
	in, err := f.input()
	if err != nil {
		return nil, err
	}
	s, err := c.chat(f.id, true)
	if err != nil {
		return nil, err
	}
	return nil, c.say(s, in, &uiStream{request: c})
}

// getUI goes on with the answer in work, also before its first piece: of the turn, or of what waits for
// one. 204 says that there is none.
func getUI(c *request) (any, error) {
	s, err := c.chat(c.r.PathValue("id"), false)
	if failureOf(err).status == http.StatusNotFound && err != nil {
		return nothing(c)
	}
	if err != nil {
		return nil, err
	}
	f := &follower{request: c, s: s, to: &uiStream{request: c}}
	if f.sub, err = s.Subscribe(); err != nil { // before it looks, so that nothing is missed
		return nil, err
	}
	defer func() { f.sub.Close() }()
	ctx, cancel := c.Runtime.WithTimeout(c.r.Context(), c.Wait)
	defer cancel()
	receipt, ok, err := s.InWork(ctx)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nothing(c)
	}
	if c.headOnly() {
		return nil, nil
	}
	return nil, f.follow(ctx, receipt)
}

func nothing(c *request) (any, error) {
	c.w.WriteHeader(http.StatusNoContent)
	return nil, nil
}

// chat returns the session of a chat: agent:main:web:dm:{its id, see keyOf}; ?agent= names another agent.
func (c *request) chat(id string, create bool) (*session.Session, error) {
	if id == "" || len(id) > maxChatID {
		return nil, fmt.Errorf("id of a chat: want up to %d bytes: %w", maxChatID, tidemark.ErrInvalid)
	}
	key, err := keyOf(c.r.URL.Query().Get("agent"), "web", id)
	if err != nil {
		return nil, err
	}
	c.w.Header().Set(headerSession, string(key))
	return c.enter(key, create)
}

// uiStream answers in the UI message stream of the AI SDK, version 1
// (https://ai-sdk.dev/docs/ai-sdk-ui/stream-protocol). Each call of the model is a step of one message, whose
// id follows from that of the input, so a page that resumes goes on with the same message.
type uiStream struct {
	*request
	id string // of the input

	speech
	stream  *stream
	part    int              // number of the part that is open
	step    bool             // a step has begun
	kind    string           // of the part that is open
	replied bool             // a reply was told whole
	tools   []tidemark.Block // calls that have not ended
}

var _ dialect = (*uiStream)(nil)

// uiEvent is one part of the stream. Fields that a type has not are left out.
type uiEvent struct {
	Type      string          `json:"type"`
	ID        string          `json:"id,omitempty"`
	MessageID string          `json:"messageId,omitempty"`
	Delta     string          `json:"delta,omitempty"`
	CallID    string          `json:"toolCallId,omitempty"`
	Tool      string          `json:"toolName,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	Output    json.RawMessage `json:"output,omitempty"`
	Dynamic   bool            `json:"dynamic,omitempty"`
	Here      bool            `json:"providerExecuted,omitempty"`
	Data      any             `json:"data,omitempty"`
	Transient bool            `json:"transient,omitempty"`
	Reason    string          `json:"finishReason,omitempty"`
	Metadata  any             `json:"messageMetadata,omitempty"`
	Error     string          `json:"errorText,omitempty"`
}

func (u *uiStream) send(e uiEvent) error { return u.stream.event("", e) }

// open implements dialect.
func (u *uiStream) open(r session.Receipt) error {
	u.id = r.ID
	h := u.w.Header()
	h.Set("X-Vercel-Ai-Ui-Message-Stream", "v1")
	if r.Duplicate {
		h.Set(headerDuplicate, "1")
	}
	u.stream = u.begin()
	if err := u.send(uiEvent{Type: "start", MessageID: "answer-" + r.ID}); err != nil {
		return err
	}
	if r.State != "new" {
		return nil
	}
	return u.send(uiEvent{Type: "data-queue", ID: "queue", Transient: true, Data: map[string]string{"state": "waiting", "input": r.ID}})
}

// tell implements dialect.
func (u *uiStream) tell(n session.Notice) error {
	switch n.Type {
	case session.NoticeTaken:
		return u.send(uiEvent{Type: "data-queue", ID: "queue", Transient: true, Data: map[string]string{"state": "taken", "input": u.id}})
	case session.NoticeText:
		return u.say(u.piece(n.Text))
	case session.NoticeThinking:
		return u.think(n.Text)
	case session.NoticeRestart:
		u.restart()
		return u.send(uiEvent{Type: "data-restart", Transient: true, Data: map[string]string{"text": n.Text}})
	case session.NoticeCompacting:
		return u.send(uiEvent{Type: "data-compacting", Transient: true, Data: map[string]string{"text": n.Text}})
	case session.NoticeEvent:
		return u.event(n.Event)
	case session.NoticeResult:
		return u.result(n.Text)
	case session.NoticeReply:
		return u.answered(n)
	case session.NoticeApproval:
		return u.say(u.whole(n.Text))
	}
	return nil
}

// event tells what people should see: data-compaction, data-reset and others by their type.
func (u *uiStream) event(e *tidemark.Event) error {
	if e == nil || !plainWord(e.Type) {
		return nil
	}
	return u.send(uiEvent{Type: "data-" + e.Type, Data: e})
}

// inStep begins a step, unless one has begun.
func (u *uiStream) inStep() error {
	if u.step {
		return nil
	}
	u.step = true
	return u.send(uiEvent{Type: "start-step"})
}

func (u *uiStream) say(text string) error { return u.delta("text", text) }

func (u *uiStream) think(text string) error { return u.delta("reasoning", text) }

// delta tells a piece of a part of that kind, which begins unless it is the one that is open.
func (u *uiStream) delta(kind, text string) error {
	if text == "" {
		return nil
	}
	if u.kind != kind {
		if err := errors.Join(u.onward(), u.inStep(), u.close()); err != nil {
			return err
		}
		u.kind = kind
		u.part++
		if err := u.send(uiEvent{Type: kind + "-start", ID: strconv.Itoa(u.part)}); err != nil {
			return err
		}
	}
	return u.send(uiEvent{Type: kind + "-delta", ID: strconv.Itoa(u.part), Delta: text})
}

// close ends the part that is open.
func (u *uiStream) close() error {
	kind := u.kind
	if u.kind = ""; kind == "" {
		return nil
	}
	return u.send(uiEvent{Type: kind + "-end", ID: strconv.Itoa(u.part)})
}

// answered ends a step: what was not told of its text, then its calls, which are run here.
func (u *uiStream) answered(n session.Notice) error {
	if err := errors.Join(u.onward(), u.say(u.whole(flat(n.Message))), u.inStep(), u.close()); err != nil {
		return err
	}
	u.replied, u.parts = true, 0 // the next one is a part of its own, and needs no space before it
	if n.Message != nil {
		for _, b := range n.Message.Content {
			if b.Type != tidemark.TypeToolUse {
				continue
			}
			u.tools = append(u.tools, b)
			if err := u.send(uiEvent{Type: "tool-input-available", CallID: b.ID, Tool: b.Name, Input: b.Input, Dynamic: true, Here: true}); err != nil {
				return err
			}
		}
	}
	if len(u.tools) > 0 {
		return nil // the step ends with their results
	}
	return u.stepped()
}

func (u *uiStream) stepped() error {
	u.step = false
	return u.send(uiEvent{Type: "finish-step"})
}

// result says that a call has ended. What came of it is in the log.
func (u *uiStream) result(tool string) error {
	i := slices.IndexFunc(u.tools, func(b tidemark.Block) bool { return b.Name == tool })
	if i < 0 {
		return nil
	}
	b := u.tools[i]
	u.tools = slices.Delete(u.tools, i, i+1)
	if err := u.send(uiEvent{Type: "tool-output-available", CallID: b.ID, Output: json.RawMessage(`{"ended":true}`), Dynamic: true, Here: true}); err != nil {
		return err
	}
	if len(u.tools) == 0 {
		return u.stepped()
	}
	return nil
}

// onward ends the calls whose end was missed: the model says more, so it has their results.
func (u *uiStream) onward() error {
	for len(u.tools) > 0 {
		if err := u.result(u.tools[0].Name); err != nil {
			return err
		}
	}
	return nil
}

// ping implements dialect.
func (u *uiStream) ping() error { return u.stream.ping() }

// end implements dialect.
func (u *uiStream) end(out outcome) error {
	defer u.stream.end()
	if !u.replied || u.missed(out) { // its notices were missed, or there is only a text of ours
		if err := errors.Join(u.onward(), u.say(u.whole(out.answer())), u.inStep(), u.close(), u.stepped()); err != nil {
			return err
		}
	}
	data := map[string]any{"usage": out.Usage, "contextTokens": out.Context}
	if err := u.send(uiEvent{Type: "data-usage", Data: data}); err != nil {
		return err
	}
	reason := "stop"
	if out.Stop == "max_tokens" {
		reason = "length"
	}
	meta := map[string]any{"entry": out.Entry, "input": out.ID, "sessionId": out.Session}
	if err := u.send(uiEvent{Type: "finish", Reason: reason, Metadata: meta}); err != nil {
		return err
	}
	return u.stream.write(sse.Append(nil, "", "[DONE]"))
}

// fail implements dialect. A turn that a person stopped is no error to the page.
func (u *uiStream) fail(err error) error {
	if u.stream == nil {
		return err
	}
	defer u.stream.end()
	e := uiEvent{Type: "error", Error: failureOf(err).text}
	if errors.Is(err, tidemark.ErrAborted) {
		e = uiEvent{Type: "abort"}
	}
	if failed := errors.Join(u.close(), u.send(e), u.stream.write(sse.Append(nil, "", "[DONE]"))); failed != nil {
		return failed
	}
	return errors.Join(err, errTold)
}
