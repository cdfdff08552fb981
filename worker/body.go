package worker

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/clip"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/internal/near"
)

// Bounds of bodies that are read whole.
const (
	maxDepth  = 100
	maxFields = 1000 // keys of an object of ours
)

// readBody reads a whole body within a bound.
func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &long) && r.ContentLength > limit:
		return nil, fmt.Errorf("body of %d bytes, at most %d: %w", r.ContentLength, limit, tidemark.ErrTooLarge)
	case errors.As(err, &long):
		return nil, fmt.Errorf("body of over %d bytes: %w", limit, tidemark.ErrTooLarge)
	case err != nil:
		return nil, fmt.Errorf("read body: %w", err)
	}
	return raw, nil
}

// freeBody is the size up to which a body is nothing to ask for.
const freeBody = 1 << 20

// body reads the whole body of a request that has one of ours.
func (c *request) body() ([]byte, error) {
	if err := c.unpack(); err != nil {
		return nil, err
	}
	return c.admitted(c.MaxBody, freeBody, c.Admit)
}

// decode reads the body of a request, an object whose keys are all known, and notes what is wrong with it.
func (c *request) decode(fields ...field) {
	raw, err := c.body()
	if err == nil {
		err = decodeBody(raw, fields...)
	}
	c.note(err)
}

// admitted reads a whole body within a bound. What is larger than is free is asked for, where somebody says
// who may come in; it is given back at the end of the request.
func (c *request) admitted(limit, free int64, admit func(int64) (func(), bool)) ([]byte, error) {
	size := c.r.ContentLength
	if admit == nil || size >= 0 && size <= free || size > limit {
		return readBody(c.w, c.r, limit)
	}
	var start []byte
	if size < 0 { // its length is not known before it is there
		var err error
		if start, err = io.ReadAll(io.LimitReader(c.r.Body, free)); err != nil {
			return nil, fmt.Errorf("read body: %w", err)
		}
		if int64(len(start)) < free {
			return start, nil
		}
		size = limit
	}
	release, ok := admit(size)
	if !ok {
		return nil, fmt.Errorf("other large requests are in work, and memory is bounded; try again in a moment: %w", tidemark.ErrBusy)
	}
	c.release = release
	if start == nil {
		return readBody(c.w, c.r, limit)
	}
	rest, err := readBody(c.w, c.r, limit-free)
	return append(start, rest...), err
}

// field is one key of a body of ours and where its value goes.
type field struct {
	name string
	want string // what it must be, for people
	into any
}

// decodeBody decodes an object whose keys are all known. An empty body is an empty object.
func decodeBody(raw []byte, fields ...field) error {
	raw = json.Unmarked(raw)
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil
	}
	if err := checkJSON(raw); err != nil {
		return err
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(raw, &object); err != nil || object == nil {
		return fmt.Errorf("body: want a JSON object: %w", tidemark.ErrInvalid)
	}
	if len(object) > maxFields {
		return fmt.Errorf("body: %d fields, at most %d: %w", len(object), maxFields, tidemark.ErrTooLarge)
	}
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
	}
	unknown := make([]string, 0, len(object))
	for name := range object {
		if !slices.Contains(names, name) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 {
		return fmt.Errorf("body: unknown field %s: %w", suggest(slices.Min(unknown), names), tidemark.ErrInvalid)
	}
	for _, f := range fields {
		value, ok := object[f.name]
		if !ok {
			continue
		}
		if err := f.decode(value); err != nil {
			return fmt.Errorf("body: %q must be %s: %w", f.name, f.want, tidemark.ErrInvalid)
		}
	}
	return nil
}

// decode leaves the choice to a target that has one; a JSON library would not ask it about null.
func (f field) decode(value json.RawMessage) error {
	if own, ok := f.into.(json.Unmarshaler); ok {
		return own.UnmarshalJSON(value)
	}
	return json.Unmarshal(value, f.into)
}

// suggest quotes an unknown name with the known one that is meant, or all of them.
func suggest(name string, known []string) string {
	best := near.Name(name, known)
	for _, k := range known { // of one letter, such as q, which somebody wrote out
		if best == "" && len(k) == 1 && strings.HasPrefix(strings.ToLower(name), k) {
			best = k
		}
	}
	if best != "" {
		return fmt.Sprintf("%q; did you mean %q?", clip.To(name, 64), best)
	}
	if len(known) == 0 {
		known = []string{"none"}
	}
	return fmt.Sprintf("%q; known are %s", clip.To(name, 64), strings.Join(known, ", "))
}

// checkJSON reports what decoders accept and later steps choke on, by its byte: text that is not
// UTF-8, NUL, nesting beyond the bound. A decoder recurses, so depth is checked before it runs.
func checkJSON(raw []byte) error {
	if at := invalidUTF8(raw); at >= 0 {
		return fmt.Errorf("body: invalid UTF-8 at byte %d: %w", at, tidemark.ErrInvalid)
	}
	if i := slices.Index(raw, 0); i >= 0 {
		return fmt.Errorf("body: NUL at byte %d; write it as \\u0000 within a string: %w", i, tidemark.ErrInvalid)
	}
	depth, quoted := 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return fmt.Errorf("body: nested more than %d deep at byte %d: %w", maxDepth, i, tidemark.ErrInvalid)
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	if !json.Valid(raw) {
		_, err := json.DecodeAny(raw) // says what is wrong
		return fmt.Errorf("body: no JSON: %w: %w", err, tidemark.ErrInvalid)
	}
	return nil
}

// invalidUTF8 returns the offset of the first byte that is no UTF-8, or -1.
func invalidUTF8(raw []byte) int {
	if utf8.Valid(raw) {
		return -1
	}
	for i := 0; i < len(raw); {
		r, n := utf8.DecodeRune(raw[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}
