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

// agentOf returns the agent that the path names.
func (c *call) agentOf() (*agent.Agent, string, error) { return c.owner(c.r.PathValue("agent")) }

// listing is what a list of an agent's begins with: whose it is, from where on, and how much.
func (c *call) listing() (a *agent.Agent, cursor string, limit int, err error) {
	if limit, err = c.limit(); err != nil {
		return nil, "", 0, err
	}
	a, _, err = c.agentOf()
	return a, c.r.URL.Query().Get("cursor"), limit, err
}

// listAgents lists the agents of a host that knows them.
func (c *call) listAgents() error {
	all, ok := c.Actors.(Lister)
	if !ok {
		return &refused{http.StatusNotImplemented, "not_implemented", "this host does not know which agents there are; name one"}
	}
	names, err := all.Agents(c.r.Context())
	if err != nil {
		return fmt.Errorf("list agents: %w", err)
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
	return c.reply(http.StatusOK, out)
}

// listMemory lists memory files.
func (c *call) listMemory() error {
	a, cursor, limit, err := c.listing()
	if err != nil {
		return err
	}
	page, next, err := a.Files(c.r.Context(), cursor, limit)
	if err != nil {
		return err
	}
	return c.reply(http.StatusOK, struct {
		Files []agent.File `json:"files"`
		Next  string       `json:"next,omitempty"`
	}{listed(page), next})
}

// getMemory gives a file, one of its earlier versions, or their list.
func (c *call) getMemory() error {
	versions, err := c.flag("versions", false)
	if err != nil {
		return err
	}
	version, err := c.number("version", 0, 1, 1<<53)
	if err != nil {
		return err
	}
	a, _, err := c.agentOf()
	if err != nil {
		return err
	}
	path := c.r.PathValue("path")
	if versions || version != 0 {
		return c.versions(a, path, version)
	}
	f, err := a.File(c.r.Context(), path)
	if err != nil {
		return err
	}
	return c.markdown(f)
}

func (c *call) versions(a *agent.Agent, path string, version int64) error {
	list, err := a.Versions(c.r.Context(), path)
	if err != nil {
		return err
	}
	if version == 0 {
		return c.reply(http.StatusOK, struct {
			Versions []agent.Version `json:"versions"`
		}{listed(list)})
	}
	for _, v := range list {
		if v.ID == version {
			return c.markdown(agent.File{Path: path, Content: v.Content})
		}
	}
	return fmt.Errorf("version %d of %s: %w", version, path, tidemark.ErrNotFound)
}

// markdown sends a file as it is.
func (c *call) markdown(f agent.File) error {
	h := c.w.Header()
	h.Set("Content-Type", "text/markdown; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(len(f.Content)))
	if f.ETag != "" {
		h.Set("ETag", `"`+f.ETag+`"`)
		if c.r.Header.Get("If-None-Match") == `"`+f.ETag+`"` {
			h.Del("Content-Length")
			c.w.WriteHeader(http.StatusNotModified)
			return nil
		}
	}
	c.w.WriteHeader(http.StatusOK)
	_, err := c.w.Write(f.Content)
	return err
}

// putMemory writes a file under a condition, if the client has one.
func (c *call) putMemory() error {
	match, held, err := condition(c.r.Header)
	if err != nil {
		return err
	}
	raw, err := readBody(c.w, c.r, memory.MaxFile)
	if err != nil {
		return err
	}
	a, _, err := c.agentOf()
	if err != nil {
		return err
	}
	f, err := a.PutFile(c.r.Context(), c.r.PathValue("path"), raw, match)
	if held && errors.Is(err, tidemark.ErrConflict) {
		return &refused{http.StatusPreconditionFailed, "changed", "the file is not what the condition says: read it again"}
	}
	if err != nil {
		return err
	}
	c.w.Header().Set("ETag", `"`+f.ETag+`"`)
	return c.reply(http.StatusOK, f)
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
func (c *call) undoMemory() error {
	raw, err := c.body()
	if err != nil {
		return err
	}
	var path string
	if err := decodeBody(raw, field{"path", "the path of a memory file", &path}); err != nil {
		return err
	}
	a, _, err := c.agentOf()
	if err != nil {
		return err
	}
	f, err := a.Undo(c.r.Context(), path)
	if err != nil {
		return err
	}
	return c.reply(http.StatusOK, f)
}

// searchMemory finds lines of memory, on behalf of the owner.
func (c *call) searchMemory() error {
	q, err := c.query()
	if err != nil {
		return err
	}
	limit, err := c.limit()
	if err != nil {
		return err
	}
	a, name, err := c.agentOf()
	if err != nil {
		return err
	}
	scope := tidemark.Key("agent:" + name + ":main").Scope() // whoever holds the token is the owner
	found, err := a.Search(c.r.Context(), scope, q, limit)
	if err != nil {
		return err
	}
	return c.reply(http.StatusOK, struct {
		Found []agent.Found `json:"found"`
	}{listed(found)})
}
