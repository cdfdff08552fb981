package worker

import (
	"github.com/tidemark-ai/tidemark/agent"
	"github.com/tidemark-ai/tidemark/memory"
)

// getLedger lists what counts no more of what was remembered, and why.
func getLedger(c *request) (any, error) {
	a, cursor, limit, err := c.listing()
	if err != nil {
		return nil, err
	}
	page, next, err := a.Ledger(c.r.Context(), cursor, limit)
	if err != nil {
		return nil, err
	}
	night, err := a.LastNight(c.r.Context())
	return struct {
		Rows  []agent.Row `json:"rows"`
		Next  string      `json:"next,omitempty"`
		Night agent.Night `json:"night"`
	}{listed(page), next, night}, err
}

// undoLedger takes a row of the ledger back.
func undoLedger(c *request) (any, error) {
	var id int64
	c.decode(field{"id", "the number of a row of the ledger", &id})
	a, err := c.agent()
	if err != nil {
		return nil, err
	}
	if err := a.UndoDecision(c.r.Context(), id); err != nil {
		return nil, err
	}
	return struct {
		ID int64 `json:"id"`
	}{id}, nil
}

// getDigest gives the digest as it would be written now.
func getDigest(c *request, a *agent.Agent) (any, error) {
	d, err := a.Digest(c.r.Context())
	if err != nil {
		return nil, err
	}
	type detail struct {
		Path    string `json:"path"`
		Entries int    `json:"entries"`
	}
	out := struct {
		Path    string   `json:"path"`
		Text    string   `json:"text"`
		Entries int      `json:"entries"`
		Details []detail `json:"details"`
	}{memory.DigestFile, d.Text, d.Shown, []detail{}}
	for _, f := range d.Details {
		out.Details = append(out.Details, detail{memory.DetailFile(f.Slug), f.Lines})
	}
	return out, nil
}

// postDigest does now what belongs to the night: the sweep and the digest.
func postDigest(c *request, a *agent.Agent) (any, error) {
	return a.Consolidate(c.r.Context())
}
