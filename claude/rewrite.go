package claude

import (
	"bytes"
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/internal/jsonscan"
	"github.com/tidemark-ai/tidemark/transcript"
)

// writePatched writes a line with the patches that were made. Everything else stays byte for byte.
func (r *rewriter) writePatched(w io.Writer, l transcript.Line) error {
	slices.SortFunc(r.patches, func(a, b jsonscan.Edit) int { return a.From - b.From })
	_, err := w.Write(jsonscan.Splice(nil, l.Raw, r.patches...))
	return err
}

// outline is what a first reading of a log finds out for the second.
type outline struct {
	boundary     int64  // number of the line that ends what the model read before; 0 for none
	boundaryUUID string // "" for one of the old form
	messages     int    // of the main chain, in the whole log
	version      string
	branch       string
}

func outlineOf(ctx context.Context, log io.Reader) (outline, error) {
	var o outline
	var m meter
	for l, err := range transcript.Lines(log, transcript.Options{}) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return o, err
		}
		if l.EndsContext() {
			o.boundary, o.boundaryUUID = l.Number, l.Get("uuid")
		}
		last(&o.version, l.Get("version"))
		last(&o.branch, l.Get("gitBranch"))
		m.add(l)
	}
	o.messages = m.messages
	return o, nil
}

// rewriter makes the log of a new session of an old one: each line belongs to the new session, the user's orientation
// is its first message, and its title is its name.
type rewriter struct {
	session string // the new id
	title   string
	from    string // the folder of the project in the old log, and in the new one
	to      string
	now     time.Time
	orient  string
	outline outline
	meter   meter
	orphans map[string]bool // parents that the orientation takes the place of

	uuid    string // of the orientation, "" before it is written
	patches []jsonscan.Edit
	ended   bool // the line before has a line break
}

// log writes the new log.
func (r *rewriter) log(ctx context.Context, w io.Writer, log io.Reader) error {
	r.ended = true
	for l, err := range transcript.Lines(log, transcript.Options{}) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		r.patches = r.patches[:0]
		if l.Err == nil && !l.Blank() {
			if err := r.parent(w, l); err != nil {
				return err
			}
			r.identity(l)
			r.meter.add(l)
		}
		if err := r.writePatched(w, l); err != nil {
			return err
		}
		r.ended = l.Ended()
	}
	if r.orient != "" && r.uuid == "" {
		if err := r.writeOrientation(w, r.outline.boundaryUUID, r.now); err != nil {
			return err
		}
	}
	return r.writeLine(w, titleLine{"custom-title", r.title, r.session})
}

// side writes a file that lies beside the log: a log of a subagent with the new session's id, anything else as it is.
func (r *rewriter) side(ctx context.Context, w io.Writer, file io.Reader, path string) error {
	if !strings.HasSuffix(path, logSuffix) {
		_, err := io.Copy(w, file)
		return err
	}
	for l, err := range transcript.Lines(file, transcript.Options{}) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		r.patches = r.patches[:0]
		if l.Err == nil && !l.Blank() {
			r.identity(l)
		}
		if err := r.writePatched(w, l); err != nil {
			return err
		}
	}
	return nil
}

// identity patches whose line it is: each sessionId, and the folder when the project lies elsewhere now.
func (r *rewriter) identity(l transcript.Line) {
	for _, f := range l.Fields {
		if f.Kind != transcript.String {
			continue
		}
		switch {
		case f.Name == "sessionId":
			r.patch(f, quoted(r.session))
		case f.Name == "cwd" && r.from != "" && r.from != r.to:
			old := l.Text(f)
			if rest, ok := strings.CutPrefix(old, r.from); ok && (rest == "" || rest[0] == '/' || rest[0] == '\\') {
				r.patch(f, quoted(r.to+rest))
			}
		}
	}
}

// patch puts bytes in the place of a field.
func (r *rewriter) patch(f transcript.Field, with []byte) {
	r.patches = append(r.patches, put(int(f.Start), int(f.End), with))
}

// parent writes the orientation before the first line of the chain that the model reads, and makes it the parent of
// every line that has none there: the chain has one beginning.
func (r *rewriter) parent(w io.Writer, l transcript.Line) error {
	own := l.Get("uuid")
	if r.orient == "" || l.Number <= r.outline.boundary || own == "" || l.Flag("isSidechain") {
		return nil
	}
	f, has := l.Field("parentUuid")
	if r.uuid == "" {
		parent := r.outline.boundaryUUID
		if parent == "" && has {
			parent = l.Text(f)
		}
		at := l.Time()
		if at.IsZero() {
			at = r.now
		}
		r.orphans = map[string]bool{parent: true, r.outline.boundaryUUID: true, l.Text(f): true}
		if err := r.writeOrientation(w, parent, at); err != nil {
			return err
		}
	}
	if has && (f.Kind == transcript.Null || f.Kind == transcript.String && r.orphans[l.Text(f)]) {
		r.patch(f, quoted(r.uuid))
	}
	return nil
}

func (r *rewriter) writeOrientation(w io.Writer, parent string, at time.Time) error {
	r.uuid = uuid.NewString()
	line := orientation{Type: "user", UserType: "external", CWD: r.to, Session: r.session, Version: r.outline.version,
		Branch: r.outline.branch, UUID: r.uuid, Time: at.UTC().Format("2006-01-02T15:04:05.000Z")}
	if parent != "" {
		line.Parent = &parent
	}
	line.Message.Role, line.Message.Content = string(tidemark.User), r.orient
	r.meter.messages++
	return r.writeLine(w, line)
}

// titleLine names a session, as its user does in Claude Code; the list of sessions is filled from the last one.
type titleLine struct {
	Type    string `json:"type"` // first, since versions look for a line that begins so
	Title   string `json:"customTitle"`
	Session string `json:"sessionId"`
}

// orientation is a line of the user as Claude Code writes it.
type orientation struct {
	Parent   *string `json:"parentUuid"`
	Side     bool    `json:"isSidechain"`
	UserType string  `json:"userType"`
	CWD      string  `json:"cwd"`
	Session  string  `json:"sessionId"`
	Version  string  `json:"version,omitempty"`
	Branch   string  `json:"gitBranch,omitempty"`
	Type     string  `json:"type"`
	Message  struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	} `json:"message"`
	UUID string `json:"uuid"`
	Time string `json:"timestamp"`
}

// writeLine writes a line of ours, on a line of its own.
func (r *rewriter) writeLine(w io.Writer, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if !r.ended {
		raw = append([]byte("\n"), raw...)
	}
	r.ended = true
	_, err = w.Write(append(bytes.TrimRight(raw, "\n"), '\n'))
	return err
}

func quoted(s string) []byte { return json.AppendString(nil, s) }
