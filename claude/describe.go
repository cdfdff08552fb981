package claude

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/transcript"
)

// How much of a log is read to list it. Claude Code reads as much to fill its own list of sessions.
const (
	pieceBytes = 64 << 10
	mostHead   = 512 << 10 // when the first line is longer than a piece
	maxPrompt  = 120       // characters
)

// describe reads the beginning and the end of a log and says how many bytes that were.
func describe(s *Session, log io.ReaderAt, size int64) (int64, error) {
	head, err := section(log, 0, min(pieceBytes, size))
	if err != nil {
		return 0, err
	}
	read := int64(len(head))
	d := description{s: s, side: true}
	d.head(head)
	if size > pieceBytes && (s.Project == "" || s.Prompt == "") {
		more, err := section(log, read, min(mostHead, size)-read)
		if err != nil {
			return read, err
		}
		read += int64(len(more))
		if head = append(head, more...); len(more) > 0 {
			d = description{s: s, side: true}
			d.head(head)
		}
	}
	tail := head
	if size > int64(len(head)) {
		from := max(0, size-pieceBytes)
		if tail, err = section(log, from, size-from); err != nil {
			return read, err
		}
		read += int64(len(tail))
		_, tail, _ = bytes.Cut(tail, []byte("\n")) // the line that the piece begins in
	}
	d.tail(tail)
	s.Side = d.messages > 0 && d.side || strings.HasPrefix(s.ID, "agent-")
	return read, nil
}

// section reads a piece of a log, which may be shorter by now.
func section(log io.ReaderAt, from, size int64) ([]byte, error) {
	b := make([]byte, max(size, 0))
	n, err := log.ReadAt(b, from)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return b[:n], nil
}

// description gathers what is said of a session. Of titles, one that the user gave beats one that was made.
type description struct {
	s               *Session
	custom, ai, old string
	messages        int
	side            bool // all messages so far are of subagents
}

func (d *description) head(piece []byte) {
	for l, err := range transcript.Lines(bytes.NewReader(piece), transcript.Options{}) {
		if err != nil || l.Err != nil || l.Blank() {
			continue
		}
		d.line(l)
		first(&d.s.Project, l.Get("cwd"))
		if d.s.Created.IsZero() {
			d.s.Created = l.Time()
		}
		if role, ok := l.Role(); ok {
			d.messages++
			d.side = d.side && l.Flag("isSidechain")
			if role == "user" && d.s.Prompt == "" && !l.Flag("isMeta") && !l.Flag("isCompactSummary") {
				d.s.Prompt = prompt(l)
			}
		}
	}
}

func (d *description) tail(piece []byte) {
	for l, err := range transcript.Lines(bytes.NewReader(piece), transcript.Options{}) {
		if err != nil || l.Err != nil || l.Blank() {
			continue
		}
		d.line(l)
	}
	d.s.Title = ""
	for _, title := range []string{d.custom, d.ai, d.old} {
		first(&d.s.Title, clip(title, maxPrompt))
	}
}

// line takes what counts wherever it stands; the last one holds.
func (d *description) line(l transcript.Line) {
	last(&d.s.Branch, l.Get("gitBranch"))
	last(&d.s.Version, l.Get("version"))
	switch l.Type() {
	case "custom-title":
		last(&d.custom, l.Get("customTitle"))
	case "ai-title":
		last(&d.ai, l.Get("aiTitle"))
	case "summary":
		last(&d.old, l.Get("summary"))
	case "assistant":
		if f, ok := l.MessageField("model"); ok && l.Text(f) != "<synthetic>" {
			last(&d.s.Model, l.Text(f))
		}
	}
}

// prompt is the beginning of what a user's line says, "" for one that says nothing of the user's own: results of tools,
// notes of the program.
func prompt(l transcript.Line) string {
	f, ok := l.MessageField("content")
	if !ok {
		return ""
	}
	raw := l.Bytes(f)
	var text string
	if f.Kind != transcript.String {
		var blocks []struct{ Type, Text string }
		if json.Unmarshal(raw, &blocks) != nil {
			return ""
		}
		for _, b := range blocks {
			if b.Type == "text" && !strings.HasPrefix(b.Text, "<") {
				first(&text, b.Text)
			}
		}
	} else if json.Unmarshal(raw, &text) != nil {
		return ""
	}
	if text = strings.TrimSpace(text); strings.HasPrefix(text, "<") || strings.HasPrefix(text, "Caveat:") {
		return ""
	}
	return clip(text, maxPrompt)
}

// clip makes one short line of a text that others wrote: nothing in it moves a terminal's cursor.
func clip(text string, most int) string {
	const slack = 8 // bytes a character, and runs of spaces
	if len(text) > slack*most {
		text = text[:slack*most]
	}
	text = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, "?"), func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r)
	}), " ")
	if utf8.RuneCountInString(text) > most {
		text = string([]rune(text)[:most-1]) + "…"
	}
	return text
}

func first(to *string, value string) {
	if *to == "" {
		*to = value
	}
}

func last(to *string, value string) {
	if value != "" {
		*to = value
	}
}
