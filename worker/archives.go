package worker

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/agent"
	"github.com/tidemark-ai/tidemark/archive"
)

// archiveKey accepts the key of an archive of the agent, or its name in the agent's folder.
func archiveKey(owner, name string) (string, error) {
	key := name
	if !strings.Contains(name, "/") {
		key = archive.Folder(owner) + name
	}
	if err := tidemark.CheckKey(key); err != nil {
		return "", err
	}
	of, _, _, ok := archive.ParseKey(key)
	if !ok {
		return "", fmt.Errorf("archive %q: want {sessionId}.jsonl.gz or {sessionId}-part{ms}.jsonl.gz: %w", clip(name, 200), tidemark.ErrInvalid)
	}
	if of != owner {
		return "", fmt.Errorf("archive %q belongs to agent %s: %w", clip(name, 200), of, tidemark.ErrForbidden)
	}
	return key, nil
}

// listArchives lists archives, newest first.
func (c *call) listArchives() error {
	limit, err := c.limit()
	if err != nil {
		return err
	}
	a, _, err := c.agentOf()
	if err != nil {
		return err
	}
	q := c.r.URL.Query()
	page, next, err := a.Archives(c.r.Context(), archive.ListOptions{Session: q.Get("session"), Cursor: q.Get("cursor"), Limit: limit})
	if err != nil {
		return err
	}
	return c.reply(http.StatusOK, struct {
		Archives []archive.Info `json:"archives"`
		Next     string         `json:"next,omitempty"`
	}{listed(page), next})
}

// getArchive sends an archive as it is stored, or its lines.
func (c *call) getArchive() error {
	format, err := c.one("format", "gz", "jsonl")
	if err != nil {
		return err
	}
	_, name, err := c.agentOf()
	if err != nil {
		return err
	}
	key, err := archiveKey(name, c.r.PathValue("name"))
	if err != nil {
		return err
	}
	o, body, err := c.Blobs.Get(c.r.Context(), key)
	if err != nil {
		return fmt.Errorf("read archive %s: %w", key, err)
	}
	defer body.Close()
	if format == "jsonl" {
		return c.lines(body)
	}
	h := c.w.Header()
	h.Set("Content-Type", "application/gzip")
	h.Set("Content-Disposition", `attachment; filename="`+key[strings.LastIndexByte(key, '/')+1:]+`"`)
	if o.Size > 0 {
		h.Set("Content-Length", strconv.FormatInt(o.Size, 10))
	}
	if _, err := io.Copy(c.w, body); err != nil {
		return fmt.Errorf("send archive %s: %w", key, err)
	}
	return nil
}

// lines sends the messages of an archive, one a line, in our own form.
func (c *call) lines(body io.Reader) error {
	c.w.Header().Set("Content-Type", "application/x-ndjson")
	var buf []byte
	for l, err := range archive.Decode(body, archive.Limits{}) {
		if err == nil {
			buf, err = archive.AppendLine(buf[:0], l.Entry())
		}
		if err == nil {
			_, err = c.w.Write(buf)
		}
		if err != nil {
			return fmt.Errorf("read archive: %w", err)
		}
	}
	return nil
}

// searchArchives finds messages in archives.
func (c *call) searchArchives() error {
	q, err := c.query()
	if err != nil {
		return err
	}
	limit, err := c.limit()
	if err != nil {
		return err
	}
	_, name, err := c.agentOf()
	if err != nil {
		return err
	}
	found, err := archive.Search(c.r.Context(), c.Blobs, name, q, archive.SearchOptions{Session: c.r.URL.Query().Get("session"), Limit: limit})
	if err != nil {
		return err
	}
	found.Hits = listed(found.Hits)
	return c.reply(http.StatusOK, found)
}

// verdicts is what a verification came to.
type verdicts struct {
	Type     string            `json:"type"` // done
	Verdicts []archive.Verdict `json:"verdicts"`
	OK       int               `json:"ok"`
	Bad      int               `json:"bad"`
}

func (v *verdicts) add(one archive.Verdict) {
	v.Verdicts = append(v.Verdicts, one)
	if one.OK {
		v.OK++
	} else {
		v.Bad++
	}
}

// verifyArchives reads one archive or all to their end.
func (c *call) verifyArchives() error {
	raw, err := readBody(c.w, c.r, c.MaxBody)
	if err != nil {
		return err
	}
	var key string
	if err := decodeBody(raw, field{"archive", "the key or the name of an archive", &key}); err != nil {
		return err
	}
	events, err := c.streaming()
	if err != nil {
		return err
	}
	a, name, err := c.agentOf()
	if err != nil {
		return err
	}
	out := verdicts{Type: "done", Verdicts: []archive.Verdict{}}
	if key != "" {
		if key, err = archiveKey(name, key); err != nil {
			return err
		}
		one, err := archive.Verify(c.r.Context(), c.Blobs, archive.Info{Key: key})
		if err != nil {
			return err
		}
		out.add(one)
		return c.reply(http.StatusOK, out)
	}
	if !events {
		if err := c.verifyAll(a, &out, func(wireProgress) error { return nil }); err != nil {
			return err
		}
		return c.reply(http.StatusOK, out)
	}
	to := c.begin()
	defer to.end()
	err = c.verifyAll(a, &out, func(p wireProgress) error { return to.event(p.Type, p) })
	switch {
	case err == nil:
		return to.event(out.Type, out)
	case errors.Is(err, errLeft):
		return err
	}
	return to.fail(err)
}

// verifyAll reads every archive that the agent knows of, newest first. It stops when nobody wants
// to know how far it is.
func (c *call) verifyAll(a *agent.Agent, out *verdicts, progress func(wireProgress) error) error {
	p := wireProgress{Type: "progress"}
	for cursor := ""; ; {
		page, next, err := a.Archives(c.r.Context(), archive.ListOptions{Cursor: cursor, Limit: maxLimit})
		if err != nil {
			return err
		}
		for _, i := range page {
			p.Key = i.Key
			if err := progress(p); err != nil {
				return err
			}
			one, err := archive.Verify(c.r.Context(), c.Blobs, i)
			if err != nil {
				return err
			}
			out.add(one)
			p.Done, p.Bytes = p.Done+1, p.Bytes+one.Bytes
		}
		if cursor = next; next == "" {
			return nil
		}
	}
}
