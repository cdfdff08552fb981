package worker

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/room/snapshots"
	"github.com/tidemark-ai/tidemark/session"
	"github.com/tidemark-ai/tidemark/snapshot"
)

// bounded notes a text of a body that is too long.
func bounded(c *request, name, text string, most int) {
	if n := utf8.RuneCountInString(text); n > most {
		c.note(fmt.Errorf("body: %q has %d characters, at most %d: %w", name, n, most, tidemark.ErrTooLarge))
	}
}

// ofSnapshot are the fields that describe a snapshot which is to be taken.
func ofSnapshot(o *snapshots.Options) []field {
	const text = "a string"
	return []field{{"name", text, &o.Name}, {"description", text, &o.Description}, {"tags", "a list of strings", &o.Tags}, {"at", "the id of a message", &o.At}}
}

// postSnapshot takes a snapshot.
func postSnapshot(c *request) (any, error) {
	var o snapshots.Options
	c.decode(ofSnapshot(&o)...)
	r, err := entered[*snapshots.Room](c)
	if err != nil {
		return nil, err
	}
	n, err := r.Take(c.r.Context(), o)
	return response{http.StatusCreated, n}, err
}

// wireNodes is a list of snapshots and branches.
type wireNodes struct {
	Nodes []snapshot.Node `json:"nodes"`
	Next  string          `json:"next,omitempty"`
}

// wireTree is the same of all conversations: nodes as they are stored.
type wireTree struct {
	Nodes []json.RawMessage `json:"nodes"`
	Next  string            `json:"next,omitempty"`
}

// Orders of lists of nodes.
const (
	oldestFirst = "oldest"
	newestFirst = "newest"
)

// nodePage reads what page of a list of nodes is asked for.
func (c *request) nodePage() (cursor string, limit int, newest bool) {
	return c.r.URL.Query().Get("cursor"), c.limit(), c.one("order", oldestFirst, newestFirst) == newestFirst
}

// listSnapshots lists those of a conversation, whichever of its branches they are of, page by page.
func listSnapshots(c *request) (any, error) {
	cursor, limit, newest := c.nodePage()
	r, err := entered[*snapshots.Room](c)
	if err != nil {
		return nil, err
	}
	page, next, err := r.List(c.r.Context(), cursor, limit, newest)
	return wireNodes{listed(page), next}, err
}

// deleteSnapshot removes one from all lists.
func deleteSnapshot(c *request, s *session.Session) (any, error) {
	r, err := roomOf[*snapshots.Room](s, "snapshots")
	if err != nil {
		return nil, err
	}
	return r.Remove(c.r.Context(), c.r.PathValue("id"))
}

func getSnapshot(c *request, s *session.Session) (any, error) {
	r, err := roomOf[*snapshots.Room](s, "snapshots")
	if err != nil {
		return nil, err
	}
	return r.Node(c.r.Context(), c.r.PathValue("id"))
}

// getTree lists the snapshots and branches of all sessions of an agent, page by page.
func getTree(c *request) (any, error) {
	cursor, limit, newest := c.nodePage()
	a, err := c.owner(cmp.Or(c.r.URL.Query().Get("agent"), "main"))
	if err != nil {
		return nil, err
	}
	page, next, err := a.Tree(c.r.Context(), cursor, limit, newest)
	return wireTree{page, next}, err
}

// findSnapshot tells what an agent knows of a snapshot: the session it is of, above all.
func findSnapshot(c *request) (any, error) {
	return knownSnapshot(c, c.r.PathValue("id"))
}

// postBranch makes a branch, trimmed unless the body says otherwise.
func postBranch(c *request) (any, error) { return branch(c, true) }

// postTrim is the primitive: a snapshot of the session as it is, and a trimmed branch of it.
func postTrim(c *request) (any, error) { return branch(c, false) }

func branch(c *request, choice bool) (any, error) {
	o := snapshots.BranchOptions{Trim: true}
	var of json.RawMessage
	fields := []field{{"snapshot", "the id of a snapshot", &o.Snapshot}, {"name", "a string", &o.Name}, {"orientation", "a string", &o.Orientation},
		{"threshold", "a whole number of characters", &o.Threshold}, {"of", "an object", &of}}
	if choice {
		fields = append(fields, field{"trim", "true or false", &o.Trim})
	}
	c.decode(fields...)
	if err := decodeBody(of, ofSnapshot(&o.Of)...); err != nil {
		c.note(fmt.Errorf("of: %w", err))
	}
	if len(of) > 0 && o.Snapshot != "" {
		wrong(c, "body: \"of\" describes the snapshot that is taken, and \"snapshot\" names one that is there; want one of them")
	}
	bounded(c, "orientation", o.Orientation, snapshots.MaxOrientation)
	r, err := entered[*snapshots.Room](c)
	if err != nil {
		return nil, err
	}
	b, err := r.Branch(c.r.Context(), o)
	return response{http.StatusCreated, b}, err
}

// postMerge brings the outcome of a branch back as a note.
func postMerge(c *request) (any, error) {
	var o snapshots.MergeOptions
	var from string
	c.decode(field{"from", "the key of a branch", &from}, field{"note", "a string", &o.Note})
	if from == "" {
		wrong(c, "body: \"from\" is missing; want the key of a branch")
	}
	var err error
	if o.From, err = tidemark.ParseKey(from); err != nil {
		c.note(fmt.Errorf("body: \"from\": want the key of a branch: %w", err))
	}
	bounded(c, "note", o.Note, snapshots.MaxNote)
	r, err := entered[*snapshots.Merges](c)
	if err != nil {
		return nil, err
	}
	m, err := r.Merge(c.r.Context(), o)
	return made(m, m.Again), err
}

// getSnapshotArchive sends a snapshot with its lineage, of the session that the path names.
func getSnapshotArchive(c *request, s *session.Session) (any, error) {
	return sendSnapshot(c, s)
}

// getArchiveByID is the same of the session that has the snapshot.
func getArchiveByID(c *request) (any, error) {
	s, err := homeSession(c)
	if err != nil {
		return nil, err
	}
	return sendSnapshot(c, s)
}

func sendSnapshot(c *request, s *session.Session) (any, error) {
	id := c.r.PathValue("id")
	r, err := roomOf[*snapshots.Carry](s, "snapshots")
	if err != nil {
		return nil, err
	}
	out := bufio.NewWriterSize(&headed{c: c, id: id}, 64<<10) // what fails before that much is there is told in words
	if err := r.Export(c.r.Context(), id, out); err != nil {
		return nil, err
	}
	return nil, out.Flush()
}

// headed sends the head of an archive with its first bytes.
type headed struct {
	c  *request
	id string
}

// Write implements io.Writer.
func (w *headed) Write(p []byte) (int, error) {
	if h := w.c.w.Header(); w.c.w.status == 0 {
		h.Set("Content-Type", "application/gzip")
		h.Set("Content-Disposition", `attachment; filename="`+w.id+`.tar.gz"`)
	}
	return w.c.w.Write(p)
}

// putArchiveByID reads an archive into a session of its own.
func putArchiveByID(c *request) (any, error) {
	key, err := archiveTarget(c)
	if err != nil {
		return nil, err
	}
	body, err := soundArchive(c, c.r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	s, err := c.enter(key, true)
	if err != nil {
		return nil, err
	}
	r, err := roomOf[*snapshots.Carry](s, "snapshots")
	if err != nil {
		return nil, err
	}
	in, err := r.Import(c.r.Context(), c.r.PathValue("id"), body)
	return made(in, in.Again), err
}

// soundArchive gives the body of a request, an archive of a snapshot, to be read when it is known to be whole: what is refused
// makes no session. Of one that is longer than may be held only what it is of is known, and only that is held.
func soundArchive(c *request, id string) (io.Reader, error) {
	most := int64(maxProbe)
	if c.MaxSpool > 0 {
		most = min(spoolProbe, c.MaxSpool)
	}
	var start bytes.Buffer
	if told := c.r.ContentLength; told > most {
		err := snapshots.CheckArchive(io.TeeReader(io.LimitReader(c.r.Body, most), &start), id, true)
		return io.MultiReader(&start, c.r.Body), err
	} else if told > 0 {
		start.Grow(int(told) + bytes.MinRead) // not doubled again and again
	}
	n, err := io.CopyN(&start, c.r.Body, most)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read archive: %w", err)
	}
	if err := snapshots.CheckArchive(bytes.NewReader(start.Bytes()), id, n == most); err != nil {
		return nil, err
	}
	return io.MultiReader(&start, c.r.Body), nil
}
