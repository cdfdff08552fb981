package session

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"iter"
	"strconv"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/room"
)

// Prompt is the request of a call that was made, built again from the log.
type Prompt struct {
	Record  Anatomy
	Request tidemark.Request
	SHA256  string // of Request, as WriteRequest writes it
}

// Same reports whether it is, byte for byte, what was sent.
func (p Prompt) Same() bool { return p.SHA256 == p.Record.SHA256 }

// Prompt builds the request of call n again and gives it to use. Compactions, undos, resets and changed
// settings since then make no difference. What cannot be built any more, because the record is older than
// what it would take or a part was removed, is [tidemark.ErrNotFound] and says what is missing; a part that
// reads otherwise than it did makes the result not [Prompt.Same].
func (s *Session) Prompt(ctx context.Context, n int64, use func(Prompt) error) error {
	page, err := s.Anatomies(ctx, n+1, 1)
	if err != nil {
		return err
	}
	if len(page) == 0 || page[0].N != n {
		return fmt.Errorf("call %d of %s: %w", n, s.Key, tidemark.ErrNotFound)
	}
	a := page[0]
	if a.SHA256 == "" {
		return fmt.Errorf("call %d was recorded by a version that did not keep what its prompt is built of: %w", n, tidemark.ErrNotFound)
	}
	p := Prompt{Record: a, Request: tidemark.Request{Model: a.Requested, MaxTokens: a.MaxTokens, Note: a.Note}}
	if err := s.fixedParts(ctx, a, &p.Request); err != nil {
		return fmt.Errorf("prompt of call %d: %w", n, err)
	}
	leave := func() {}
	defer func() { leave() }()
	view, err := s.viewAsOf(ctx, a.Session, a.Until, func(bytes int64) error {
		release, err := s.room(ctx, bytes)
		if release != nil {
			leave = release
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("prompt of call %d: %w", n, err)
	}
	p.Request.Messages = view.Messages()
	if p.SHA256, err = s.hashRequest(ctx, p.Request); err != nil {
		return err
	}
	return use(p)
}

// fixedParts brings back what stands under its hash: system text, tools, a long note.
func (s *Session) fixedParts(ctx context.Context, a Anatomy, req *tidemark.Request) error {
	read := func(what, hash string) (string, error) {
		if hash == "" {
			return "", nil
		}
		rows, err := s.DB.Query(ctx, `SELECT text FROM prompts WHERE hash = ? LIMIT 1`, hash)
		if err != nil {
			return "", fmt.Errorf("read %s: %w", what, err)
		}
		if len(rows) == 0 {
			return "", fmt.Errorf("the %s with hash %s is not kept any more: %w", what, hash, tidemark.ErrNotFound)
		}
		return rows[0].Text(0), nil
	}
	var err error
	if req.System, err = read("system text", a.Prompt); err != nil {
		return err
	}
	tools, err := read("list of tools", a.Schema)
	if err != nil {
		return err
	}
	if tools != "" {
		if err := json.Unmarshal([]byte(tools), &req.Tools); err != nil {
			return fmt.Errorf("read list of tools: %w", err)
		}
	}
	if a.NoteHash != "" {
		req.Note, err = read("note", a.NoteHash)
	}
	return err
}

// viewAsOf computes the view of a log as it was when its newest entry had a position: with the messages,
// overlays and lifts up to there.
func (s *Session) viewAsOf(ctx context.Context, log string, until int64, admit func(int64) error) (compaction.View, error) {
	marks, err := s.overlaysTo(ctx, log, until)
	if err != nil {
		return compaction.View{}, err
	}
	then, err := s.editsOf(ctx, marks)
	if err != nil {
		return compaction.View{}, err
	}
	shown, layout, err := s.layout(ctx, then.placed)
	if err != nil {
		return compaction.View{}, err
	}
	hideBehind(&layout, until)
	entries, err := s.visible(ctx, log, layout, admit)
	if err != nil {
		return compaction.View{}, err
	}
	v, err := compaction.Assemble(entries, shown)
	if err != nil {
		return v, fmt.Errorf("assemble view of %s: %w", log, err)
	}
	return v, nil
}

// WriteRequest writes a request as canonical JSON: the fields model, system, tools, messages, max_tokens,
// note and, where there are any, options, in this order and without spaces. It is what the hash of a record
// is of; a provider writes the same in its own dialect.
func WriteRequest(w io.Writer, req tidemark.Request) error {
	for piece := range pieces(req) {
		if _, err := w.Write(piece); err != nil {
			return err
		}
	}
	return nil
}

// hashRequest hashes a request piece by piece: whole it may not fit into memory a second time.
func (s *Session) hashRequest(ctx context.Context, req tidemark.Request) (string, error) {
	h := sha256.New()
	var pace room.Pace
	for piece := range pieces(req) {
		h.Write(piece)
		if err := pace.Did(ctx, s.Runtime, len(piece)); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// pieces yields the canonical JSON of a request. A piece is good until the next.
func pieces(req tidemark.Request) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		buf := json.AppendString([]byte(`{"model":`), req.Model)
		buf = json.AppendString(append(buf, `,"system":`...), req.System)
		buf = append(buf, `,"tools":[`...)
		for i, t := range req.Tools {
			if i > 0 {
				buf = append(buf, ',')
			}
			buf = append(buf, mustJSON(t)...)
		}
		if !yield(append(buf, `],"messages":[`...)) {
			return
		}
		for i, m := range req.Messages {
			buf = buf[:0]
			if i > 0 {
				buf = append(buf, ',')
			}
			if m.Bare() {
				if buf = m.AppendJSON(buf); !yield(buf) {
					return
				}
				continue
			}
			buf = append(json.AppendString(append(buf, `{"role":`...), string(m.Role)), `,"content":[`...)
			for n, b := range m.Content { // each by itself: a large one is not copied
				if n > 0 {
					buf = append(buf, ',')
				}
				if raw := b.Raw(); raw == nil {
					buf = b.AppendJSON(buf)
				} else if !yield(buf) || !yield(raw) {
					return
				} else {
					buf = buf[:0]
				}
			}
			if !yield(append(buf, "]}"...)) {
				return
			}
		}
		buf = strconv.AppendInt(append(buf[:0], `],"max_tokens":`...), int64(req.MaxTokens), 10)
		buf = json.AppendString(append(buf, `,"note":`...), req.Note)
		if len(req.Options) > 0 {
			buf = append(append(buf, `,"options":`...), mustJSON(req.Options)...)
		}
		yield(append(buf, '}'))
	}
}
