package worker

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strconv"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/archive"
	"github.com/tidemark-ai/tidemark/internal/clip"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/room/replay"
	"github.com/tidemark-ai/tidemark/room/spool"
	"github.com/tidemark-ai/tidemark/session"
	"github.com/tidemark-ai/tidemark/transcript"
)

// export streams the history in order. The head is sent with the first message, so that a session
// that cannot be read is an error and not an empty file.
func export(c *request, s *session.Session, format string, all bool) (any, error) {
	if format == formatDecisions {
		return exportDecisions(c)
	}
	if format == formatSteps {
		return exportSteps(c, s, all)
	}
	kind, line := "application/x-ndjson", archive.AppendLine
	if format == "md" {
		kind, line = "text/markdown; charset=utf-8", appendMarkdown
	}
	c.w.Header().Set("Content-Type", kind)
	out := bufio.NewWriterSize(c.w, 64<<10)
	var buf []byte
	for e, err := range s.Reader.All(c.r.Context(), all) {
		if err == nil {
			buf, err = line(buf[:0], e)
		}
		if err == nil {
			_, err = out.Write(buf)
		}
		if err != nil {
			return nil, fmt.Errorf("export: %w", err)
		}
	}
	return nil, out.Flush()
}

func appendMarkdown(dst []byte, e tidemark.Entry) ([]byte, error) {
	m, err := e.Message()
	if err != nil {
		return dst, err
	}
	return archive.AppendMarkdown(dst, archive.Line{Message: m, At: e.At}), nil
}

// Bounds of an import.
const (
	maxWarnings   = 10
	maxWarning    = 200 // bytes of one
	maxProbe      = 32 << 20
	spoolProbe    = 4 << 20 // the same where memory is scarce
	progressEvery = 200     // messages between two progress events
	sniffBytes    = 64 << 10
)

// imported is what an import came to.
type imported struct {
	Type string `json:"type"` // done
	replay.Result
	BadLines int      `json:"badLines,omitempty"`
	Warnings []string `json:"warnings,omitempty"`

	read int // messages of the log, those that were there before too
}

// warn notes a line that is passed over.
func (m *imported) warn(err error) {
	m.BadLines++
	if len(m.Warnings) < maxWarnings {
		m.Warnings = append(m.Warnings, clip.To(err.Error(), maxWarning))
	}
}

// postImport replays the body through the session as it comes.
func postImport(c *request) (any, error) {
	format := c.one("format", "auto", "claude", "jsonl")
	window := c.number("window", 0, int64(session.MinWindow), int64(session.MaxWindow))
	if c.bad != nil {
		return nil, c.bad
	}
	body := bufio.NewReaderSize(c.r.Body, sniffBytes)
	if format == "auto" {
		start, _ := body.Peek(sniffBytes) // an error comes again with the first read
		format = sniff(start)
	}
	log, err := probeLog(c, body, importReader(c, format)) // before the session is made
	if err != nil {
		return nil, err
	}
	s, err := c.session(true)
	if err != nil {
		return nil, err
	}
	if err := narrow(c, s, tidemark.Tokens(window)); err != nil {
		return nil, err
	}
	if format == "claude" && c.MaxSpool > 0 { // the reader of such logs goes over them twice
		r, ok := session.Room[*spool.Room](s)
		if !ok {
			return nil, fmt.Errorf("import into %s: its host keeps no log while it is read: %w", s.Key, tidemark.ErrUnavailable)
		}
		kept, err := r.Keep(c.r.Context(), log, c.MaxSpool)
		if err != nil {
			return nil, err
		}
		defer unspool(c, kept)
		log = kept
	}
	return playLog(c, s, func(m *imported) iter.Seq2[replay.Message, error] { return importReader(c, format)(log, m) })
}

// lineExtra is what a line of a log may have beside its message.
const lineExtra = 64 << 10

// importReader returns how the messages of a format are read.
func importReader(c *request, format string) func(io.Reader, *imported) iter.Seq2[replay.Message, error] {
	var lines archive.Limits
	logs := transcript.Options{MaxMessage: c.MaxMessage}
	if c.MaxMessage > 0 {
		lines.Line = int(c.MaxMessage + lineExtra)
		logs.MaxLine = 2*c.MaxMessage + lineExtra // a result stands there twice
	}
	if format == "jsonl" {
		return func(r io.Reader, m *imported) iter.Seq2[replay.Message, error] {
			return fromArchive(archive.Decode(r, lines), m)
		}
	}
	return func(r io.Reader, m *imported) iter.Seq2[replay.Message, error] {
		return fromTranscript(transcript.Messages(r, logs), m)
	}
}

// probeLog reads as much of a log as has a message in it, and gives the whole back to be read. A log
// without one is an error; behind maxProbe bytes nobody looks any more.
func probeLog(c *request, body io.Reader, read func(io.Reader, *imported) iter.Seq2[replay.Message, error]) (io.Reader, error) {
	most := int64(maxProbe)
	if c.MaxSpool > 0 {
		most = min(spoolProbe, c.MaxSpool)
	}
	var start bytes.Buffer
	for size := int64(sniffBytes); ; size *= 2 {
		n, err := io.CopyN(&start, body, min(size, most)-int64(start.Len()))
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("read log: %w", err)
		}
		var m imported
		for _, bad := range read(bytes.NewReader(start.Bytes()), &m) {
			if bad == nil {
				return io.MultiReader(&start, body), nil
			}
			m.warn(bad)
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil, noMessage(m)
		case n == 0 || size >= most:
			return io.MultiReader(&start, body), nil
		}
	}
}

// noMessage is the error of a log without a message.
func noMessage(m imported) error {
	why := ""
	if len(m.Warnings) > 0 {
		why = " The first of " + strconv.Itoa(m.BadLines) + " bad lines: " + strings.TrimSuffix(m.Warnings[0], ": "+tidemark.ErrInvalid.Error())
	}
	return fmt.Errorf("no message in this file; is it a log of Claude Code, or an export or archive of Tidemark (JSON lines)?%s: %w", why, tidemark.ErrInvalid)
}

// narrow sets the session's window.
func narrow(c *request, s *session.Session, window tidemark.Tokens) error {
	if window == 0 {
		return nil
	}
	own, err := s.Override(c.r.Context())
	if err != nil {
		return err
	}
	own.Window = window
	return s.Configure(c.r.Context(), own)
}

// unspool removes what a host without a disk kept of a log.
func unspool(c *request, kept *spool.Spool) {
	if err := kept.Close(); err != nil {
		c.Logger.Warn("import", "id", c.w.id, "err", err)
	}
}

// sniff tells an archive's lines, plain or gzipped, from a log of Claude Code by the first line.
func sniff(start []byte) string {
	if len(start) > 1 && start[0] == 0x1f && start[1] == 0x8b {
		return "jsonl"
	}
	first, _, whole := bytes.Cut(bytes.TrimLeft(start, "\xef\xbb\xbf \r\n\t"), []byte("\n"))
	var line struct {
		Role    string `json:"role"`
		Type    string `json:"type"`
		Session string `json:"sessionId"`
	}
	switch err := json.Unmarshal(first, &line); {
	case err != nil && !whole && bytes.HasPrefix(first, []byte(`{"role":`)): // longer than what was peeked
		return "jsonl"
	case err == nil && line.Role != "" && line.Type == "" && line.Session == "":
		return "jsonl"
	}
	return "claude"
}

// fromTranscript gives the messages of another tool's log; lines that are none are noted.
func fromTranscript(items iter.Seq2[transcript.Item, error], m *imported) iter.Seq2[replay.Message, error] {
	return func(yield func(replay.Message, error) bool) {
		for it, err := range items {
			var bad *transcript.LineError
			if errors.As(err, &bad) {
				m.warn(err)
				continue
			}
			in := replay.Message{Message: it.Message, At: it.At}
			if it.Message.Role == tidemark.Assistant {
				in.Call = &tidemark.Call{Model: it.Model, Stop: it.Stop, RequestID: it.Request}
				if it.Usage != nil {
					in.Call.Usage = *it.Usage
				}
			}
			if err == nil {
				m.read++
			}
			if !yield(in, err) || err != nil {
				return
			}
		}
	}
}

// fromArchive gives the messages of an archive's lines; lines that are none are noted.
func fromArchive(lines iter.Seq2[archive.Line, error], m *imported) iter.Seq2[replay.Message, error] {
	return func(yield func(replay.Message, error) bool) {
		var held error // an error is the end if nothing follows it
		for l, err := range lines {
			if held != nil {
				m.warn(held)
				held = nil
			}
			if err != nil {
				if held = err; !errors.Is(err, tidemark.ErrInvalid) {
					break
				}
				continue
			}
			in := replay.Message{Message: l.Message, At: l.At}
			if l.Call != nil {
				call := *l.Call
				call.Reported = false // of another context than this one
				in.Call = &call
			}
			m.read++
			if !yield(in, nil) {
				return
			}
		}
		if held != nil {
			yield(replay.Message{}, held)
		}
	}
}

// playLog imports messages and answers with what came of it.
func playLog(c *request, s *session.Session, source func(*imported) iter.Seq2[replay.Message, error]) (any, error) {
	events := c.streaming()
	if c.bad != nil {
		return nil, c.bad
	}
	r, err := roomOf[*replay.Room](s, "imports")
	if err != nil {
		return nil, err
	}
	out := imported{Type: "done"}
	var progress func(int)
	var to *stream
	ctx, cancel := context.WithCancel(c.r.Context())
	defer cancel()
	if events {
		// The body is read while the answer is written, which HTTP/1 allows only when asked for.
		if err := http.NewResponseController(c.w).EnableFullDuplex(); err != nil && !errors.Is(err, http.ErrNotSupported) {
			return nil, fmt.Errorf("import: %w", err)
		}
		to = c.begin()
		defer to.end()
		progress = func(done int) {
			if done%progressEvery == 0 && to.event("progress", wireProgress{Type: "progress", Done: done}) != nil {
				cancel() // what is imported stays, and goes on when it is sent again
			}
		}
	}
	out.Result, err = r.Import(ctx, source(&out), progress)
	if out.read == 0 && (err == nil || errors.Is(err, tidemark.ErrInvalid)) {
		err = noMessage(out)
	}
	switch {
	case err != nil && to != nil:
		return nil, to.fail(native, err)
	case err != nil:
		return nil, err
	case to != nil:
		return nil, to.event(out.Type, out)
	}
	return out, nil
}

// wireProgress tells how far a long work is.
type wireProgress struct {
	Type  string `json:"type"` // progress
	Done  int    `json:"done"`
	Total int    `json:"total,omitempty"`
	Key   string `json:"key,omitempty"`
	Bytes int64  `json:"bytes,omitempty"`
}

// postRestore reads an archive into a new or empty session. One that was cut off goes on; a session
// that holds another conversation is a conflict.
func postRestore(c *request) (any, error) {
	var key string
	if c.decode(field{"archive", "the key or the name of an archive", &key}); key == "" {
		wrong(c, "body: \"archive\" is missing; want the key or the name of an archive")
	}
	if c.bad != nil {
		return nil, c.bad
	}
	named, err := tidemark.ParseKey(c.r.PathValue("key"))
	if err != nil {
		return nil, err
	}
	if key, err = archiveKey(named.Agent(), key); err != nil {
		return nil, err
	}
	_, body, err := c.Blobs.Get(c.r.Context(), key) // before the session is made
	if err != nil {
		return nil, fmt.Errorf("restore %s: %w", key, err)
	}
	defer body.Close()
	log, err := probeLog(c, body, importReader(c, "jsonl"))
	if errors.Is(err, tidemark.ErrInvalid) {
		return nil, damaged(key, err)
	}
	if err != nil {
		return nil, fmt.Errorf("restore %s: %w", key, err)
	}
	s, err := c.session(true)
	if err != nil {
		return nil, err
	}
	return playLog(c, s, func(m *imported) iter.Seq2[replay.Message, error] { return importReader(c, "jsonl")(log, m) })
}
