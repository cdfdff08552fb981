package main

import (
	"strconv"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/paging"
)

// maxRows bounds the sessions that are told one by one.
const maxRows = 10_000

// callTokens are the tokens of requests before and after, in input tokens of the model.
type callTokens struct {
	Reported int     `json:"reported"` // requests whose size the provider reported; others are estimated
	Before   float64 `json:"before"`   // the mean of the requests as they were recorded
	After    float64 `json:"after"`    // less the estimate of what is out
	Last     int64   `json:"last"`     // of the last request, before
	LastOut  int64   `json:"last_after"`
}

// sessionTotals are what a policy did to one session.
type sessionTotals struct {
	Session string `json:"session"`
	paging.Totals
	Tokens callTokens `json:"tokens"`
}

// meter counts the tokens of a session by one policy.
type meter struct {
	session     paging.Session
	requests    int
	tokens      callTokens
	before, out tidemark.Tokens
}

// add takes a request. What the provider reported is taken to be of the request as it was recorded.
func (t *meter) add(d *paging.Decision) {
	before := tidemark.EstimateChars(t.session.Fixed) + d.All
	if u := t.session.Steps[t.requests].Usage; u != nil && u.Context() > u.Output {
		before = u.Context() - u.Output
		t.tokens.Reported++
	}
	after := max(before-d.Freed, 0)
	t.requests++
	t.before, t.out = t.before+before, t.out+after
	t.tokens.Last, t.tokens.LastOut = int64(before), int64(after)
}

// total is what all of it came to.
func (t *meter) total() callTokens {
	if t.requests > 0 {
		t.tokens.Before, t.tokens.After = cents(float64(t.before)/float64(t.requests)), cents(float64(t.out)/float64(t.requests))
	}
	return t.tokens
}

// printSessions prints a row for each session and policy.
func printSessions(m *cli.Main, r *replay) {
	rows := [][]string{{"SESSION", "POLICY", "REQUESTS", "REPORTED", "TOKENS", "AFTER", "LAST", "AFTER", "EVICTED", "CLEARED", "INPUTS", "IMAGES", "FAULTS", "RATE", "RATIO"}}
	for _, s := range r.rows {
		k := s.Tokens
		rows = append(rows, []string{cli.TitleOf(s.Session), s.Policy, strconv.Itoa(s.Requests), strconv.Itoa(k.Reported),
			cli.FixedPoint(k.Before, 0), cli.FixedPoint(k.After, 0), strconv.FormatInt(k.Last, 10), strconv.FormatInt(k.LastOut, 10),
			strconv.Itoa(s.Evictions), strconv.Itoa(s.GC), strconv.Itoa(s.Inputs), strconv.Itoa(s.Images), strconv.Itoa(s.Faults),
			cli.InPercent(s.FaultRate), cli.FixedPoint(s.Ratio, 3)})
	}
	cli.PrintTable(m.Out, rows)
	if r.unlisted > 0 {
		m.Out.Printf("and %s; the first %d are listed\n", cli.Plural(r.unlisted, "more session"), maxRows)
	}
	m.Out.Line()
}
