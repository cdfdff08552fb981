package worker

import (
	"net/http"

	"github.com/tidemark-ai/tidemark/agent"
	"github.com/tidemark-ai/tidemark/memory"
)

// getLedger lists what counts no more of what was remembered, and why.
func (c *call) getLedger() error {
	a, cursor, limit, err := c.listing()
	if err != nil {
		return err
	}
	page, next, err := a.Ledger(c.r.Context(), cursor, limit)
	if err != nil {
		return err
	}
	night, err := a.LastNight(c.r.Context())
	if err != nil {
		return err
	}
	return c.reply(http.StatusOK, struct {
		Rows  []agent.Row `json:"rows"`
		Next  string      `json:"next,omitempty"`
		Night agent.Night `json:"night"`
	}{listed(page), next, night})
}

// undoLedger takes a row of the ledger back.
func (c *call) undoLedger() error {
	raw, err := c.body()
	if err != nil {
		return err
	}
	var id int64
	if err := decodeBody(raw, field{"id", "the number of a row of the ledger", &id}); err != nil {
		return err
	}
	a, _, err := c.agentOf()
	if err != nil {
		return err
	}
	if err := a.UndoDecision(c.r.Context(), id); err != nil {
		return err
	}
	return c.reply(http.StatusOK, struct {
		ID int64 `json:"id"`
	}{id})
}

// getDigest gives the digest as it would be written now.
func (c *call) getDigest() error {
	a, _, err := c.agentOf()
	if err != nil {
		return err
	}
	d, err := a.Digest(c.r.Context())
	if err != nil {
		return err
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
	return c.reply(http.StatusOK, out)
}

// postDigest does now what belongs to the night: the sweep and the digest.
func (c *call) postDigest() error {
	a, _, err := c.agentOf()
	if err != nil {
		return err
	}
	done, err := a.Consolidate(c.r.Context())
	if err != nil {
		return err
	}
	return c.reply(http.StatusOK, done)
}
