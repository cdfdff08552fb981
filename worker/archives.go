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
	"github.com/tidemark-ai/tidemark/internal/clip"
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
		return "", fmt.Errorf("archive %q: want {sessionId}.jsonl.gz or {sessionId}-part{ms}.jsonl.gz: %w", clip.To(name, 200), tidemark.ErrInvalid)
	}
	if of != owner {
		return "", fmt.Errorf("archive %q belongs to agent %s: %w", clip.To(name, 200), of, tidemark.ErrForbidden)
	}
	return key, nil
}

// mendBounds bound how far a listing or a search looks beside the index; a verification has none.
var mendBounds = archive.Bounds{Objects: 5000, Added: 500}

// listArchives lists archives, newest first. The first page holds the index against the bucket.
func listArchives(c *request) (any, error) {
	a, cursor, limit, err := c.listing()
	if err != nil {
		return nil, err
	}
	var beside archive.Survey
	if cursor == "" {
		if beside, err = a.Mend(c.r.Context(), mendBounds); err != nil {
			return nil, err
		}
	}
	page, next, err := a.Archives(c.r.Context(), archive.ListOptions{Session: c.r.URL.Query().Get("session"), Cursor: cursor, Limit: limit})
	return struct {
		Archives []archive.Info `json:"archives"`
		Next     string         `json:"next,omitempty"`
		archive.Survey
	}{listed(page), next, beside}, err
}

// getArchive sends an archive as it is stored, or its lines.
func getArchive(c *request) (any, error) {
	format := c.one("format", "gz", "jsonl")
	if _, err := c.agent(); err != nil {
		return nil, err
	}
	key, err := archiveKey(c.r.PathValue("agent"), c.r.PathValue("name"))
	if err != nil {
		return nil, err
	}
	o, body, err := c.Blobs.Get(c.r.Context(), key)
	if err != nil {
		return nil, fmt.Errorf("read archive %s: %w", key, err)
	}
	defer body.Close()
	if format == "jsonl" {
		return lines(c, key, body)
	}
	h := c.w.Header()
	h.Set("Content-Type", "application/gzip")
	h.Set("Content-Disposition", `attachment; filename="`+key[strings.LastIndexByte(key, '/')+1:]+`"`)
	if o.Size > 0 {
		h.Set("Content-Length", strconv.FormatInt(o.Size, 10))
	}
	if _, err := io.Copy(c.w, body); err != nil {
		return nil, fmt.Errorf("send archive %s: %w", key, err)
	}
	return nil, nil
}

// lines sends the messages of an archive, one a line, in our own form. It reads the archive twice: a
// damage far behind must be told in words, which a stream that has begun cannot do.
func lines(c *request, key string, body io.Reader) (any, error) {
	for _, err := range archive.Decode(body, archive.Limits{}) {
		if errors.Is(err, tidemark.ErrInvalid) || errors.Is(err, tidemark.ErrTooLarge) {
			return nil, damaged(key, err)
		}
		if err != nil {
			return nil, fmt.Errorf("read archive %s: %w", key, err)
		}
	}
	c.w.Header().Set("Content-Type", "application/x-ndjson")
	var buf []byte
	for l, err := range archive.Read(c.r.Context(), c.Blobs, key) {
		if err == nil {
			buf, err = archive.AppendLine(buf[:0], l.Entry())
		}
		if err == nil {
			_, err = c.w.Write(buf)
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// damaged is the error of an archive that cannot be read.
func damaged(key string, err error) error {
	text := strings.TrimSuffix(err.Error(), ": "+tidemark.ErrInvalid.Error())
	return &refused{http.StatusUnprocessableEntity, "damaged", fmt.Sprintf("archive %s is damaged: %s; format=gz sends it as it is stored", key, text)}
}

// searchArchives finds messages in archives.
func searchArchives(c *request) (any, error) {
	q := c.query()
	limit := c.limit()
	a, err := c.agent()
	if err != nil {
		return nil, err
	}
	if _, err := a.Mend(c.r.Context(), mendBounds); err != nil {
		return nil, err
	}
	found, err := archive.Search(c.r.Context(), c.Blobs, c.r.PathValue("agent"), q, archive.SearchOptions{Session: c.r.URL.Query().Get("session"), Limit: limit})
	if err != nil {
		return nil, err
	}
	found.Hits = listed(found.Hits)
	return found, nil
}

// verdicts is what a verification came to.
type verdicts struct {
	Type     string            `json:"type"` // done
	Verdicts []archive.Verdict `json:"verdicts"`
	OK       int               `json:"ok"`
	Bad      int               `json:"bad"`
	archive.Survey
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
func verifyArchives(c *request) (any, error) {
	var key string
	c.decode(field{"archive", "the key or the name of an archive", &key})
	events := c.streaming()
	a, err := c.agent()
	if err != nil {
		return nil, err
	}
	out := verdicts{Type: "done", Verdicts: []archive.Verdict{}}
	if key != "" {
		if key, err = archiveKey(c.r.PathValue("agent"), key); err != nil {
			return nil, err
		}
		one, err := archive.Verify(c.r.Context(), c.Blobs, archive.Info{Key: key})
		if err != nil {
			return nil, err
		}
		out.add(one)
		return out, nil
	}
	if !events {
		if err := verifyAll(c, a, &out, func(wireProgress) error { return nil }); err != nil {
			return nil, err
		}
		return out, nil
	}
	to := c.begin()
	defer to.end()
	err = verifyAll(c, a, &out, func(p wireProgress) error { return to.event(p.Type, p) })
	switch {
	case err == nil:
		return nil, to.event(out.Type, out)
	case errors.Is(err, errLeft):
		return nil, err
	}
	return nil, to.fail(native, err)
}

// verifyAll reads every archive that the index or the bucket has, newest first. What lies among them
// and is no archive counts as bad, since nobody can say what it holds. It stops when nobody wants to
// know how far it is.
func verifyAll(c *request, a *agent.Agent, out *verdicts, progress func(wireProgress) error) (err error) {
	p := wireProgress{Type: "progress"}
	if out.Survey, err = a.Mend(c.r.Context(), archive.Bounds{}); err != nil {
		return err
	}
	for _, key := range out.Stray {
		out.add(archive.Verdict{Key: key, Problems: []string{"a stray file: no archive has such a name; move it away"}})
	}
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
