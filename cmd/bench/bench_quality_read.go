package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/bench"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/paging"
	"github.com/tidemark-ai/tidemark/transcript"
)

// turnReader reads sessions twice: first as a replay does, without text, to choose turns, and then the
// messages of one turn at a time.
type turnReader struct {
	recorded
	starts map[bench.Turn]int64 // where the line of a session begins; keys without a request
}

// turns gives the sessions of a file and which of their requests end with words of a person.
func (r *turnReader) turns(ctx context.Context, name string, visit func(s paging.Session, typed []int, at func(int) bench.Turn) error) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	asLog := func([]byte) error { return r.turnsOfLog(name, f, visit) }
	return r.each(name, bufio.NewReaderSize(f, 1<<20), asLog, func(s paging.Session, number int, begin int64) error {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		at := bench.Turn{File: name, Line: number, Session: s.ID}
		if r.starts == nil {
			r.starts = map[bench.Turn]int64{}
		}
		r.starts[at] = begin
		var typed []int
		for n, st := range s.Steps {
			if k := len(st.Append); k > 0 && st.Append[k-1].Typed {
				typed = append(typed, n)
			}
		}
		return visit(s, typed, func(n int) bench.Turn { at.Request = n; return at })
	})
}

// turnsOfLog gives the one session of a log. What Claude Code itself wrote for the person is no turn.
func (r *turnReader) turnsOfLog(name string, f *os.File, visit func(paging.Session, []int, func(int) bench.Turn) error) error {
	last := map[int]bool{} // whether the newest message of a request so far is a person's
	s, err := r.logSession(name, f, func(it transcript.Item, step int) { last[step] = personal(it) })
	if err != nil {
		return err
	}
	var typed []int
	for n := range s.Steps {
		if last[n] {
			typed = append(typed, n)
		}
	}
	return visit(s, typed, func(n int) bench.Turn { return bench.Turn{File: name, Session: s.ID, Request: n} })
}

// personal reports whether a person typed a message of a log.
func personal(it transcript.Item) bool {
	if it.Message.Role != tidemark.User || it.Meta || it.Summary || len(it.Message.Results()) > 0 {
		return false
	}
	text := strings.TrimSpace(it.Message.PlainText())
	for _, made := range [...]string{"[Request interrupted", "<command-", "<local-command-", "<bash-", "Caveat: The messages below"} {
		if strings.HasPrefix(text, made) {
			return false
		}
	}
	return text != ""
}

// load reads the messages of one turn with their text.
func (r *turnReader) load(ctx context.Context, t bench.Turn) (out bench.Recorded, err error) {
	if err := ctx.Err(); err != nil {
		return out, context.Cause(ctx)
	}
	f, err := os.Open(t.File)
	if err != nil {
		return out, err
	}
	defer func() { _ = f.Close() }()
	if t.Line == 0 {
		out.Session, err = r.logSession(t.File, f, func(it transcript.Item, step int) {
			if step > t.Request {
				return
			}
			if it.Boundary {
				out.Messages = nil
			}
			out.Messages = append(out.Messages, it.Message)
		})
	} else {
		out, err = r.loadLine(f, t)
	}
	if err == nil && t.Request >= len(out.Session.Steps) {
		err = errors.New("the session ends before it")
	}
	if err != nil {
		return out, fmt.Errorf("%s: session %s request %d: %w", t.File, t.Session, t.Request, err)
	}
	out.Session.Steps = out.Session.Steps[:t.Request+1]
	return out, nil
}

// loadLine reads a turn of a session that is a line.
func (r *turnReader) loadLine(f *os.File, t bench.Turn) (out bench.Recorded, err error) {
	key := t
	key.Request = 0
	if _, err := f.Seek(r.starts[key], io.SeekStart); err != nil {
		return out, err
	}
	line, err := r.line(bufio.NewReaderSize(f, 1<<20))
	if err != nil {
		return out, err
	}
	if out.Session, err = r.Scanner.Session(bytes.TrimSpace(line)); err != nil {
		return out, err
	}
	if out.Session.ID != t.Session {
		return out, fmt.Errorf("the file has changed: its line %d is session %s", t.Line, out.Session.ID)
	}
	var raw struct {
		System json.RawMessage   `json:"system"`
		Tools  []json.RawMessage `json:"tools"`
		Steps  []struct {
			Keep   *int              `json:"keep"`
			Append []json.RawMessage `json:"append"`
		} `json:"steps"`
	}
	if err := json.Unmarshal(line, &raw); err != nil {
		return out, err
	}
	var messages []json.RawMessage
	for n, st := range raw.Steps {
		if n > t.Request {
			break
		}
		if st.Keep != nil {
			messages = messages[:min(*st.Keep, len(messages))]
		}
		messages = append(messages, st.Append...)
	}
	out.Messages = make([]tidemark.Message, len(messages))
	for i, m := range messages {
		if err := json.Unmarshal(m, &out.Messages[i]); err != nil {
			return out, fmt.Errorf("message %d: %w", i, err)
		}
	}
	out.System, out.Tools = systemText(raw.System), knownTools(raw.Tools)
	return out, nil
}

// systemText is a system prompt, which may be a string or a list of text blocks.
func systemText(raw json.RawMessage) string {
	var text string
	if len(raw) == 0 || json.Unmarshal(raw, &text) == nil {
		return text
	}
	var blocks []tidemark.Block
	if json.Unmarshal(raw, &blocks) != nil {
		return ""
	}
	return tidemark.Message{Content: blocks}.PlainText()
}

// knownTools are the tools that any provider takes: with a name and a schema. Tools that a server runs
// have none.
func knownTools(raw []json.RawMessage) (out []tidemark.Tool) {
	for _, one := range raw {
		var t tidemark.Tool
		if json.Unmarshal(one, &t) == nil && t.Name != "" && len(t.InputSchema) > 0 {
			out = append(out, t)
		}
	}
	return out
}
