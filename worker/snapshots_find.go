package worker

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/clip"
	"github.com/tidemark-ai/tidemark/session"
	"github.com/tidemark-ai/tidemark/snapshot"
)

// isSnapshotID reports whether a text is an id as room/snapshots gives one: what looks so is never a bare name of a
// session.
func isSnapshotID(s string) bool {
	const digits = "0123456789abcdefghjkmnpqrstvwxyz" // of a tidemark.NewID, in lower case
	id, ok := strings.CutPrefix(s, "snap-")
	return ok && len(id) == 26 && strings.Trim(id, digits) == ""
}

// homeOf says of a request about snapshots whose path names no session which one it is for: its root, or the id of a
// snapshot whose session the agent knows. id is that of the path; "" stands for a comparison, whose sides the query
// names. build/snapshots.mjs does the same, and testdata/snapshots.json holds both to the same rows.
func homeOf(method, id string, query url.Values) (root tidemark.Key, sought string, err error) {
	sides := []string{id}
	if id == "" {
		sides = []string{query.Get("a"), query.Get("b")}
	} else if !isSnapshotID(id) && (method == http.MethodPut || query.Get("session") == "") {
		return "", "", fmt.Errorf("snapshot %s: want an id of a snapshot, snap- and 26 letters and digits: %w", clip.To(id, 80), tidemark.ErrInvalid)
	}
	named := query.Get("session")
	for _, s := range sides {
		if named == "" && s != "" && (!isSnapshotID(s) || method == http.MethodPut) {
			named = s
		}
	}
	switch {
	case named != "":
		key, err := tidemark.ParseKey(named)
		return key.Root(), "", err
	case sides[0] == "":
		return "", "", fmt.Errorf("a and b: want the keys of two sessions, or ids of snapshots, of one conversation: %w", tidemark.ErrInvalid)
	}
	return "", sides[0], nil
}

// homeSession opens the session that a request about snapshots is for.
func homeSession(c *request) (*session.Session, error) {
	key, err := homeKey(c)
	if err != nil {
		return nil, err
	}
	return c.enter(key, false)
}

// archiveTarget is the session that an archive is to be read into, which may be new.
func archiveTarget(c *request) (tidemark.Key, error) {
	key, err := homeKey(c)
	if own := c.r.URL.Query().Get("session"); err == nil && own != "" { // as it was asked for, not its root
		key, err = tidemark.ParseKey(own)
	}
	if err != nil {
		return "", err
	}
	if key != key.Root() {
		return "", fmt.Errorf("session %s: an archive is read into no branch; name a session without #: %w", key, tidemark.ErrInvalid)
	}
	return key, writable(key)
}

// homeKey is the key of that session's conversation.
func homeKey(c *request) (tidemark.Key, error) {
	query := c.r.URL.Query()
	key, id, err := homeOf(c.r.Method, c.r.PathValue("id"), query)
	if err != nil || id == "" {
		return key, err
	}
	n, err := knownSnapshot(c, id)
	return tidemark.Key(n.Session).Root(), err
}

// knownSnapshot asks the agent for a snapshot.
func knownSnapshot(c *request, id string) (snapshot.Node, error) {
	if !isSnapshotID(id) {
		return snapshot.Node{}, fmt.Errorf("snapshot %s: want an id of a snapshot, snap- and 26 letters and digits: %w", clip.To(id, 80), tidemark.ErrInvalid)
	}
	a, err := c.owner(cmp.Or(c.r.URL.Query().Get("agent"), "main"))
	if err != nil {
		return snapshot.Node{}, err
	}
	n, err := a.Snapshot(c.r.Context(), id)
	if errors.Is(err, tidemark.ErrNotFound) { // sessions tell of a new one in a moment
		return n, fmt.Errorf("snapshot %s: the agent has not heard of it; name its session with session=KEY, or its agent with agent=: %w", id, err)
	}
	return n, err
}
