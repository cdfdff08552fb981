package worker

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/agent"
	"github.com/tidemark-ai/tidemark/memory"
)

// agent returns the agent that the path names.
func (c *request) agent() (*agent.Agent, error) { return c.owner(c.r.PathValue("agent")) }

// listing is what a list of an agent's begins with: whose it is, from where on, and how much.
func (c *request) listing() (a *agent.Agent, cursor string, limit int, err error) {
	limit = c.limit()
	a, err = c.agent()
	return a, c.r.URL.Query().Get("cursor"), limit, err
}

// listAgents lists the agents of a host that knows them.
func listAgents(c *request) (any, error) {
	all, ok := c.Actors.(Lister)
	if !ok {
		return nil, &refused{http.StatusNotImplemented, "not_implemented", "this host does not know which agents there are; name one"}
	}
	names, err := all.Agents(c.r.Context())
	if err != nil {
		return nil, fmt.Errorf("list agents: %w", err)
	}
	type item struct {
		ID string `json:"id"`
	}
	out := struct {
		Agents []item `json:"agents"`
	}{[]item{}}
	for _, name := range names {
		out.Agents = append(out.Agents, item{name})
	}
	return out, nil
}

// listMemory lists memory files.
func listMemory(c *request) (any, error) {
	a, cursor, limit, err := c.listing()
	if err != nil {
		return nil, err
	}
	page, next, err := a.Files(c.r.Context(), cursor, limit)
	return struct {
		Files []agent.File `json:"files"`
		Next  string       `json:"next,omitempty"`
	}{listed(page), next}, err
}

// getMemory gives a file, one of its earlier versions, or their list.
func getMemory(c *request) (any, error) {
	all := c.flag("versions", false)
	version := c.number("version", 0, 1, 1<<53)
	a, err := c.agent()
	if err != nil {
		return nil, err
	}
	path := c.r.PathValue("path")
	if all || version != 0 {
		return fileVersions(c, a, path, version)
	}
	return c.markdown(a.File(c.r.Context(), path))
}

func fileVersions(c *request, a *agent.Agent, path string, version int64) (any, error) {
	list, err := a.Versions(c.r.Context(), path)
	if err != nil || version == 0 {
		return struct {
			Versions []agent.Version `json:"versions"`
		}{listed(list)}, err
	}
	for _, v := range list {
		if v.ID == version {
			return c.markdown(agent.File{Path: path, Content: v.Content}, nil)
		}
	}
	return nil, fmt.Errorf("version %d of %s: %w", version, path, tidemark.ErrNotFound)
}

// markdown sends a file as it is.
func (c *request) markdown(f agent.File, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	h := c.w.Header()
	h.Set("Content-Type", "text/markdown; charset=utf-8")
	if f.ETag != "" {
		h.Set("ETag", `"`+f.ETag+`"`)
		if c.r.Header.Get("If-None-Match") == `"`+f.ETag+`"` {
			return response{status: http.StatusNotModified}, nil
		}
	}
	h.Set("Content-Length", strconv.Itoa(len(f.Content)))
	_, err = c.w.Write(f.Content)
	return nil, err
}

// putFile has a file written under a condition, if the client has one.
func (c *request) putFile(most int64, put func(raw []byte, match string) (agent.File, error)) (any, error) {
	match, held, err := condition(c.r.Header)
	if err != nil {
		return nil, err
	}
	raw, err := readBody(c.w, c.r, most)
	if err != nil {
		return nil, err
	}
	f, err := put(raw, match)
	if held && errors.Is(err, tidemark.ErrConflict) {
		return nil, &refused{http.StatusPreconditionFailed, "changed", "the file is not what the condition says: read it again"}
	}
	if err == nil {
		c.w.Header().Set("ETag", `"`+f.ETag+`"`)
	}
	return f, err
}

// putMemory writes a memory file.
func putMemory(c *request) (any, error) {
	return c.putFile(memory.MaxFile, func(raw []byte, match string) (f agent.File, err error) {
		a, err := c.agent()
		if err != nil {
			return f, err
		}
		return a.PutFile(c.r.Context(), c.r.PathValue("path"), raw, match)
	})
}

// condition reads If-Match and If-None-Match into what PutFile takes: an ETag, "*" for whatever is
// there, or empty for a file that must not exist. held says that the client asked for it.
func condition(h http.Header) (match string, held bool, err error) {
	want, none := h.Get("If-Match"), h.Get("If-None-Match")
	switch {
	case want != "" && none != "":
		return "", false, fmt.Errorf("header If-Match and If-None-Match: send one of them: %w", tidemark.ErrInvalid)
	case none == "*":
		return "", true, nil
	case none != "":
		return "", false, fmt.Errorf("header If-None-Match: only * is supported here: %w", tidemark.ErrInvalid)
	case want == "" || want == "*":
		return "*", want != "", nil
	}
	tag, ok := strings.CutPrefix(strings.TrimPrefix(want, "W/"), `"`)
	tag, ok2 := strings.CutSuffix(tag, `"`)
	if !ok || !ok2 || tag == "" || strings.Contains(tag, `"`) {
		return "", false, fmt.Errorf("header If-Match: want the ETag of one file in quotes: %w", tidemark.ErrInvalid)
	}
	return tag, true, nil
}

// undoMemory brings the last version of a file back.
func undoMemory(c *request) (any, error) {
	var path string
	c.decode(field{"path", "the path of a memory file", &path})
	a, err := c.agent()
	if err != nil {
		return nil, err
	}
	return a.Undo(c.r.Context(), path)
}

// searchMemory finds lines of memory, on behalf of the owner.
func searchMemory(c *request) (any, error) {
	q := c.query()
	limit := c.limit()
	a, err := c.agent()
	if err != nil {
		return nil, err
	}
	scope := tidemark.Key("agent:" + c.r.PathValue("agent") + ":main").Scope() // whoever holds the token is the owner
	found, err := a.Search(c.r.Context(), scope, q, limit)
	return struct {
		Found []agent.Found `json:"found"`
	}{listed(found)}, err
}
