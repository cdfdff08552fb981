package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/internal/place"
	"github.com/tidemark-ai/tidemark/trim"
)

// showOriginal prints one piece, or writes it to a file.
func showOriginal(ctx context.Context, m *cli.Main, u untrimming, cuts *trim.CutsFile) error {
	found, err := findCut(ctx, cuts, strings.ToLower(u.Show))
	if err != nil {
		return cli.Advise(err, "`tidemark untrim OUT --list` shows the handles there are, --all those of what no note stands for")
	}
	inside := found.picture != nil
	switch {
	case inside && u.Output == "":
		return cli.Usagef("--show %s: it is a picture (%s): want -o FILE, or -o - for standard output", u.Show, found.picture.Kind)
	case inside && u.Raw:
		return cli.Usagef("--raw: %s is a picture in a longer piece; want the handle of that", u.Show)
	}
	said := ""
	if u.toFile() && !inside && !u.Raw {
		if said, err = found.look(ctx, cuts); err != nil {
			return err
		}
	}
	write := func(w io.Writer) error {
		return found.read(ctx, cuts, func(o trim.Original) error {
			if found.picture != nil {
				return found.picture.Write(o.Body, w)
			}
			return u.print(w, o)
		})
	}
	if !u.toFile() {
		return write(m.Out)
	}
	if err := place.Write(u.Output, place.Options{Replace: u.Force, Not: []string{u.log, u.Cuts}}, write); err != nil {
		return u.fix(err)
	}
	if said != "" {
		m.Err.Printf("%s: %s\n", u.Output, said)
	}
	return nil
}

func (u *untrimming) toFile() bool { return u.Output != "" && u.Output != "-" }

// foundCut is what a handle names.
type foundCut struct {
	handle  string
	at      int64         // of the cut, in the log
	picture *trim.Picture // in the cut, when that is wanted and not the whole
}

// read gives the cut to use.
func (f *foundCut) read(ctx context.Context, cuts *trim.CutsFile, use func(trim.Original) error) error {
	for o, err := range cuts.All() {
		if err = errors.Join(err, context.Cause(ctx)); err != nil {
			return err
		}
		if o.From == f.at {
			return use(o)
		}
	}
	return fmt.Errorf("cut %s: %w", f.handle, tidemark.ErrNotFound)
}

// look takes the picture where a cut is one and nothing else, and says so of one that has pictures and more.
func (f *foundCut) look(ctx context.Context, cuts *trim.CutsFile) (said string, err error) {
	err = f.read(ctx, cuts, func(o trim.Original) error {
		var first trim.Picture
		n := 0
		blocks, err := trim.Pictures(o.Body, func(p trim.Picture) {
			if n++; n == 1 {
				first = p
			}
		})
		switch {
		case err != nil || blocks == 0 || n == 0:
		case blocks == 1:
			f.picture = &first
		default:
			said = fmt.Sprintf("it is no picture but the JSON of %s, %s among them; --show %s is the first (%s)",
				cli.Plural(blocks, "block"), cli.Plural(n, "picture"), first.Handle, first.Kind)
		}
		return err
	})
	return said, err
}

// findCut finds the one piece whose handle begins so, and where it stood. Equal pieces are one. What no note names a
// piece by is looked at when no note has such a handle: first the pictures in results, then what has no note.
func findCut(ctx context.Context, cuts *trim.CutsFile, prefix string) (foundCut, error) {
	for _, handles := range []func(o trim.Original, visit func(string, *trim.Picture)) error{noted, pictured, unnoted} {
		var found []foundCut
		for o, err := range cuts.All() {
			if err = errors.Join(err, context.Cause(ctx)); err != nil {
				return foundCut{}, err
			}
			err := handles(o, func(h string, p *trim.Picture) {
				known := slices.ContainsFunc(found, func(f foundCut) bool { return f.handle == h })
				if strings.HasPrefix(h, prefix) && !known && len(found) <= maxAlike {
					found = append(found, foundCut{h, o.From, p})
				}
			})
			if err != nil {
				return foundCut{}, err
			}
			if len(found) > maxAlike {
				return foundCut{}, fmt.Errorf("handle %s: more than %d pieces begin so: %w", prefix, maxAlike, tidemark.ErrConflict)
			}
		}
		switch {
		case len(found) == 1:
			return found[0], nil
		case len(found) > 1:
			var all []string
			for _, f := range found {
				all = append(all, f.handle)
			}
			return foundCut{}, fmt.Errorf("handle %s: several pieces begin so: %s: %w", prefix, strings.Join(all, ", "), tidemark.ErrConflict)
		}
	}
	return foundCut{}, fmt.Errorf("handle %s: %w", prefix, tidemark.ErrNotFound)
}

func noted(o trim.Original, visit func(string, *trim.Picture)) error {
	if o.Handle != "" {
		visit(o.Handle, nil)
	}
	return nil
}

// pictured visits the pictures in the content of a result that was cut as a whole.
func pictured(o trim.Original, visit func(string, *trim.Picture)) error {
	if o.Handle == "" {
		return nil
	}
	_, err := trim.Pictures(o.Body, func(p trim.Picture) { visit(p.Handle, &p) })
	return err
}

func unnoted(o trim.Original, visit func(string, *trim.Picture)) error {
	if o.Handle != "" {
		return nil
	}
	h, err := handleOf(o)
	visit(h, nil)
	return err
}

// maxAlike bounds the handles that an error lists.
const maxAlike = 20

// handleOf returns the handle of a cut. What no note stands for has one of the same kind: the hash of its bytes.
func handleOf(o trim.Original) (string, error) {
	if o.Handle != "" {
		return o.Handle, nil
	}
	const short = 6
	h := sha256.New()
	if _, err := io.Copy(h, o.Body); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)[:short]), nil
}

// maxParsed bounds what is read as a whole to be shown well. Longer pieces are printed as they stood in the log.
const maxParsed = 64 << 20

// print writes a piece: a JSON string as its text, blocks as their texts.
func (u untrimming) print(w io.Writer, o trim.Original) error {
	if u.Raw || o.To-o.From > maxParsed {
		_, err := io.Copy(w, o.Body)
		return err
	}
	raw, err := io.ReadAll(o.Body)
	if err != nil {
		return err
	}
	text := shownPiece(raw)
	if u.Output == "" && !bytes.HasSuffix(text, []byte("\n")) {
		text = append(text, '\n')
	}
	_, err = w.Write(text)
	return err
}

// shownPiece turns a piece of a log into what a person wants to see of it.
func shownPiece(raw []byte) []byte {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return []byte(s)
	}
	var blocks []json.RawMessage
	if json.Unmarshal(raw, &blocks) != nil {
		blocks = []json.RawMessage{raw}
	}
	var parts [][]byte
	for _, b := range blocks {
		var block struct {
			Type, Text string
		}
		if json.Unmarshal(b, &block) != nil || block.Type != "text" {
			return raw
		}
		parts = append(parts, []byte(block.Text))
	}
	return bytes.Join(parts, []byte("\n"))
}

// cutShown is one line of the list.
type cutShown struct {
	Line   int64  `json:"line"`  // of the trimmed log
	Bytes  int64  `json:"bytes"` // that were cut
	Handle string `json:"handle"`
	Note   string `json:"note,omitempty"` // what stands there now
}

// listCuts lists what was cut.
func listCuts(ctx context.Context, m *cli.Main, u untrimming, log io.ReaderAt, size int64, cuts *trim.CutsFile) error {
	if err := cuts.Check(ctx, log, size); err != nil {
		return u.fix(err)
	}
	if facts := cuts.Facts(); !m.JSON {
		m.Err.Printf("%s of %s, %s\n", cli.Plural(int(facts.Cuts), "cut"), cli.Size(facts.Bytes), cli.When(facts.At))
		m.Out.Printf("%7s  %12s  %-12s  %s\n", "LINE", "BYTES", "HANDLE", "NOTE")
	}
	read := &lineReader{r: bufio.NewReaderSize(io.NewSectionReader(log, 0, size), 1<<16), line: 1}
	n := 0
	for o, err := range cuts.All() {
		if err = errors.Join(err, context.Cause(ctx)); err != nil {
			return err
		}
		if o.Handle == "" && !u.All {
			continue
		}
		shown := cutShown{Bytes: o.To - o.From}
		if shown.Handle, err = handleOf(o); err != nil {
			return err
		}
		if err := read.to(o.At); err != nil {
			return fmt.Errorf("read trimmed log: %w", err)
		}
		if shown.Line = read.line; o.Put > 0 {
			if shown.Note, err = read.note(o.Put); err != nil {
				return fmt.Errorf("read trimmed log: %w", err)
			}
		}
		listCut(m, shown, n)
		n++
	}
	listEnd(m, n)
	return nil
}

// listCut prints one cut, of which n were printed before: there may be too many to hold.
func listCut(m *cli.Main, c cutShown, n int) {
	if !m.JSON {
		m.Out.Printf("%7d  %12d  %-12s  %s\n", c.Line, c.Bytes, c.Handle, c.Note)
		return
	}
	before := ",\n  "
	if n == 0 {
		before = "[\n  "
	}
	raw, err := json.Marshal(c)
	if err != nil {
		raw = []byte("null") // of strings and numbers: it cannot fail
	}
	m.Out.Put(before, string(raw))
}

func listEnd(m *cli.Main, n int) {
	switch {
	case m.JSON && n == 0:
		m.Out.Line("[]")
	case m.JSON:
		m.Out.Line("\n]")
	default:
		cli.Nothing(m, n, "no note stands for a cut; --all lists the others")
	}
}

// lineReader reads a log from front to back, and knows in which line it is.
type lineReader struct {
	r    *bufio.Reader
	at   int64
	line int64
}

// to passes over what lies before a place.
func (l *lineReader) to(at int64) error {
	for l.at < at {
		p, err := l.r.Peek(int(min(at-l.at, 1<<15)))
		if len(p) == 0 {
			return err
		}
		l.pass(p)
	}
	return nil
}

func (l *lineReader) pass(p []byte) {
	l.line += int64(bytes.Count(p, []byte{'\n'}))
	l.at += int64(len(p))
	_, _ = l.r.Discard(len(p)) // it was peeked at
}

// note reads what stands for a cut, as far as it is shown.
func (l *lineReader) note(size int64) (string, error) {
	const most = 2 << 10
	p, err := l.r.Peek(int(min(size, most)))
	if int64(len(p)) < min(size, most) {
		return "", err
	}
	text := string(p)
	if a := strings.IndexByte(text, '['); a >= 0 {
		if b := strings.LastIndex(text, "]"); b > a { // of a note, whatever JSON is around it
			text = strings.TrimSuffix(strings.TrimPrefix(text[a:b+1], `[{"type":"text","text":"`), `"}]`)
		}
	}
	if head, _, ok := strings.Cut(text, "; tidemark untrim "); ok {
		text = head + "]" // the handle has its own column
	}
	return cli.OneLine(text, 200), nil
}
