package worker

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/tidemark-ai/tidemark"
)

// Memory files as resources: tidemark://agents/{agent}/memory/{path}, as the path of the route is.
const (
	resourceScheme = "tidemark://agents/"
	resourceFolder = "/memory/"
	markdownType   = "text/markdown"
)

// resourceURI names a memory file of an agent.
func resourceURI(agent, path string) string {
	parts := strings.Split(path, "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	return resourceScheme + agent + resourceFolder + strings.Join(parts, "/")
}

// resourceOf is the agent and the path of a memory file, both empty for what names none.
func resourceOf(uri string) (agent, path string) {
	rest, ok := strings.CutPrefix(uri, resourceScheme)
	agent, path, there := strings.Cut(rest, resourceFolder)
	path, err := url.PathUnescape(path)
	if !ok || !there || err != nil || strings.Contains(agent, "/") {
		return "", ""
	}
	return agent, path
}

func resourceTemplates() []any {
	return []any{map[string]any{"uriTemplate": resourceScheme + "{agent}" + resourceFolder + "{+path}", "name": "memory", "title": "Memory file",
		"description": "A memory file of an agent, such as MEMORY.md or memory/2026-01-31.md", "mimeType": markdownType}}
}

// listResources lists the memory files of the main agent, page by page.
func (c mcpDoor) listResources(m rpc) (map[string]any, *rpcError, error) {
	a, err := c.owner(defaultAgent)
	if err != nil {
		return nil, nil, err
	}
	page, next, err := a.Files(c.r.Context(), textOf(m.params["cursor"]), defaultLimit)
	if err != nil {
		return nil, nil, err
	}
	list := []any{}
	for _, f := range page {
		list = append(list, map[string]any{"uri": resourceURI(defaultAgent, f.Path), "name": f.Path, "mimeType": markdownType, "size": f.Size})
	}
	out := map[string]any{"resources": list}
	if next != "" {
		out["nextCursor"] = next
	}
	if m.stateless() {
		out["ttlMs"], out["cacheScope"] = 0, "private"
	}
	return out, nil, nil
}

// readResource gives a memory file whole.
func (c mcpDoor) readResource(m rpc) (map[string]any, *rpcError, error) {
	uri := textOf(m.params["uri"])
	name, path := resourceOf(uri)
	if name == "" {
		return nil, badRPC(rpcBadParams, "uri %s: want %s{agent}%s{path}", clip(uri, 80), resourceScheme, resourceFolder), nil
	}
	a, err := c.owner(name)
	if err == nil {
		f, failed := a.File(c.r.Context(), path)
		if err = failed; err == nil && len(f.Content) > maxToolResult {
			err = fmt.Errorf("%s has %d bytes, at most %d come as a resource; the tool memory_read reads it in pieces: %w", path, len(f.Content), maxToolResult, tidemark.ErrTooLarge)
		}
		if err == nil {
			out := map[string]any{"contents": []any{map[string]any{"uri": uri, "mimeType": markdownType, "text": string(f.Content)}}}
			if m.stateless() {
				out["ttlMs"], out["cacheScope"] = 0, "private"
			}
			return out, nil, nil
		}
	}
	switch f := failureOf(err); {
	case errors.Is(err, tidemark.ErrNotFound) && !m.stateless():
		return nil, badRPC(rpcNoResource, "%s", f.text), nil
	case f.status < http.StatusInternalServerError:
		return nil, badRPC(rpcBadParams, "%s", f.text), nil
	}
	return nil, nil, err
}
