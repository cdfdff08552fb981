package anatomy

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/room"
)

// Prompt is the request of a call that was made, built again from the log.
type Prompt struct {
	Record  Record
	Request tidemark.Request
	SHA256  string // of Request, as WriteRequest writes it
}

// Same reports whether it is, byte for byte, what was sent.
func (p Prompt) Same() bool { return p.SHA256 == p.Record.SHA256 }

// Prompt builds the request of call n again and gives it to use. Compactions, undos, resets and changed
// settings since then make no difference. What cannot be built any more, because the record is older than
// what it would take or a part was removed, is [tidemark.ErrNotFound] and says what is missing; a part that
// reads otherwise than it did makes the result not [Prompt.Same].
func (s *Room) Prompt(ctx context.Context, n int64, use func(Prompt) error) error {
	page, err := s.All(ctx, n+1, 1)
	if err != nil {
		return err
	}
	if len(page) == 0 || page[0].N != n {
		return fmt.Errorf("call %d of %s: %w", n, s.Key, tidemark.ErrNotFound)
	}
	a, used := page[0], false
	if a.SHA256 == "" {
		return fmt.Errorf("call %d was recorded by a version that did not keep what its prompt is built of: %w", n, tidemark.ErrNotFound)
	}
	p := Prompt{Record: a, Request: tidemark.Request{Model: a.Requested, MaxTokens: a.MaxTokens, Note: a.Note}}
	if err := s.fixedParts(ctx, a, &p.Request); err != nil {
		return fmt.Errorf("prompt of call %d: %w", n, err)
	}
	err = s.AsOf(ctx, a.Session, a.Until, func(v compaction.View) (err error) {
		p.Request.Messages = v.Messages()
		if p.SHA256, err = s.hash(ctx, p.Request); err != nil {
			return err
		}
		used = true
		return use(p)
	})
	if err != nil && !used {
		return fmt.Errorf("prompt of call %d: %w", n, err)
	}
	return err
}

// fixedParts brings back what stands under its hash: system text, tools, a long note.
func (s *Room) fixedParts(ctx context.Context, a Record, req *tidemark.Request) error {
	read := func(what, hash string) (string, error) {
		if hash == "" {
			return "", nil
		}
		text, err := s.Kept(ctx, hash)
		if errors.Is(err, tidemark.ErrNotFound) {
			return "", fmt.Errorf("the %s with hash %s is not kept any more: %w", what, hash, tidemark.ErrNotFound)
		}
		return text, err
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

// hash hashes a request piece by piece: whole it may not fit into memory a second time.
func (s *Room) hash(ctx context.Context, req tidemark.Request) (string, error) {
	h := sha256.New()
	var yields host.Yielder
	for piece := range pieces(req) {
		h.Write(piece)
		if err := yields.Did(ctx, s.Runtime, len(piece)); err != nil {
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
			buf = append(buf, room.JSON(t)...)
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
			buf = append(append(buf, `,"options":`...), room.JSON(req.Options)...)
		}
		yield(append(buf, '}'))
	}
}
