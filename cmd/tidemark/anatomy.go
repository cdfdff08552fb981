package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/room/reflection"
	"github.com/tidemark-ai/tidemark/session"
)

// anatomyFlags is what is to be shown of the records.
type anatomyFlags struct {
	limit        int
	turn, prompt int64
	svg, html    string
}

func (m *Main) anatomyCommand() *cobra.Command {
	var f anatomyFlags
	c := &cobra.Command{
		Use: "anatomy KEY", Short: "Show what each model call's context was made of, and what it cost", Args: oneKey,
		Long: `Show the record of each model call: what its context was made of, in tokens,
and what it cost. Calls are numbered; a turn may make several.

--svg and --html draw the same: a column for each call, its parts stacked, the
limit as a line, compactions and resets marked, what was read and written below.
The file needs nothing else and no script; the full text stands where the pointer
rests. --turn shows the calls of one turn with all fields of their records.

Of a conversation whose client keeps the history, see tidemark proxy, the table tells
what the proxy did with each request instead: treatment, messages, calls of the API,
zone, size, what is out, what left with it (of observe and trim: would have left), what
was asked for again, bytes that came and that were sent, and how much of what was read
came from the provider's cache.

--prompt N prints the request of call N, built again from the log: all that went to
the model, byte for byte as it was handed to the part that writes it in the format
of a provider. That body itself is not kept. There is no newline behind it, so that
"| sha256sum" gives the SHA-256 of the record; another one is an error.`,
		Example: `  tidemark anatomy main
  tidemark anatomy main --html anatomy.html --limit 300
  tidemark anatomy main --prompt 12 | jq .messages`,
		RunE: func(cmd *cobra.Command, args []string) error {
			for name, n := range map[string]int64{"prompt": f.prompt, "turn": f.turn} {
				if cmd.Flags().Changed(name) && n <= 0 {
					return usagef("--%s %d: want the number of a call, from 1", name, n)
				}
			}
			return m.with(cmd.Context(), func(c *client) error {
				if f.prompt != 0 {
					return m.showPrompt(cmd.Context(), c, args[0], f.prompt)
				}
				return m.showAnatomy(cmd.Context(), c, args[0], f)
			})
		},
	}
	c.Flags().IntVar(&f.limit, "limit", 20, "how many calls, up to 1000")
	c.Flags().Int64Var(&f.turn, "turn", 0, "all fields of the calls of one turn: that of the call with this number")
	c.Flags().Int64Var(&f.prompt, "prompt", 0, "print the request of the call with this number")
	c.Flags().StringVar(&f.svg, "svg", "", "draw a chart into this file")
	c.Flags().StringVar(&f.html, "html", "", "write a page with chart and table into this file")
	c.MarkFlagsMutuallyExclusive("prompt", "turn")
	return m.jsonFlag(c)
}

// anatomies reads records up to call n (0: the newest), oldest first.
func anatomies(ctx context.Context, c *client, key string, n int64, limit int) ([]session.Anatomy, []byte, error) {
	before := int64(0)
	if n > 0 {
		before = n + 1
	}
	var raw json.RawMessage
	if err := c.get(ctx, sessionPath(key, fmt.Sprintf("/anatomy?limit=%d&before=%d", limit, before)), &raw); err != nil {
		return nil, nil, err
	}
	var page struct {
		Calls []session.Anatomy `json:"calls"`
	}
	if err := json.Unmarshal(raw, &page); err != nil {
		return nil, nil, err
	}
	slices.Reverse(page.Calls)
	return page.Calls, raw, nil
}

// showAnatomy prints the records, or draws them.
func (m *Main) showAnatomy(ctx context.Context, c *client, key string, f anatomyFlags) error {
	if f.turn != 0 {
		return m.showTurn(ctx, c, key, f.turn)
	}
	calls, raw, err := anatomies(ctx, c, key, 0, f.limit)
	if err != nil {
		return err
	}
	if f.svg == "" && f.html == "" {
		if m.json {
			return m.printJSON(json.RawMessage(raw))
		}
		if len(calls) == 0 {
			m.err.line(noCalls(key))
		} else {
			m.onTrack(ctx, c, key)
			table(m.out, anatomyRows(calls))
		}
		m.tellTracks(ctx, c, key)
		m.tuned(raw)
		return nil
	}
	if len(calls) == 0 {
		if isProxied(key) {
			return &fixed{errors.New(noCalls(key)), "send a request, then there is one to draw"}
		}
		return &fixed{errors.New(noCalls(key)), "say something with `tidemark chat " + plainKey(key) + "`, then there is one to draw"}
	}
	for _, file := range []struct {
		path string
		draw func(io.Writer) error
	}{
		{f.svg, func(w io.Writer) error { return drawAnatomy(w, key, calls) }},
		{f.html, func(w io.Writer) error { return pageAnatomy(w, key, calls) }},
	} {
		if file.path == "" {
			continue
		}
		if err := toFile(file.path, file.draw); err != nil {
			return err
		}
		m.err.line("wrote " + plural(len(calls), "call") + " to " + file.path)
	}
	return nil
}

// noCalls says why there is nothing to show.
func noCalls(key string) string {
	if isProxied(key) {
		return plainKey(key) + " had no answer yet: its client sent nothing, or the API refused it"
	}
	return plainKey(key) + " had no model call yet: importing makes none"
}

// tuned says what reflection set, and why.
func (m *Main) tuned(raw []byte) {
	var page struct {
		Tuning reflection.Tuning `json:"tuning"`
	}
	if json.Unmarshal(raw, &page) == nil && page.Tuning != (reflection.Tuning{}) {
		m.err.line("tuned by reflection " + tellTuning(page.Tuning))
	}
}

// tellTuning says what reflection set, and why.
func tellTuning(t reflection.Tuning) string {
	var set []string
	for _, p := range []struct {
		n    int64
		text string
	}{{int64(t.Tail), "the newest %d turns stay"}, {int64(t.Large), "results over %d tokens become pointers"}, {int64(t.Headroom), "a compaction frees %d tokens"}} {
		if p.n != 0 {
			set = append(set, fmt.Sprintf(p.text, p.n))
		}
	}
	return "(" + safe(t.Why) + "): " + strings.Join(set, ", ")
}

// anatomyRows is the table of records.
func anatomyRows(calls []session.Anatomy) [][]string {
	if calls[0].Proxy != nil {
		return proxiedRows(calls)
	}
	head := []string{"CALL", "AT", "SIZE", "FULL", "CYCLE"}
	for _, k := range append(slices.Clone(anatomyParts), anatomyCosts...) {
		head = append(head, strings.ToUpper(anatomyNames[k]))
	}
	rows := [][]string{append(head, "STOP", "TOPIC")}
	for _, a := range calls {
		row := []string{fmt.Sprint(a.N), when(time.UnixMilli(a.At)), count(a.Size), percent(a), fmt.Sprint(a.Cycle)}
		for _, k := range anatomyParts {
			row = append(row, count(portion(a, k)))
		}
		for _, k := range anatomyCosts {
			row = append(row, count(costOf(a, k)))
		}
		rows = append(rows, append(row, oneLine(a.Stop, 20), topicOf(a)))
	}
	return withoutEmpty(rows, "0", strings.ToUpper(anatomyNames["other"]))
}

// withoutEmpty leaves a column out that has one value only.
func withoutEmpty(rows [][]string, value, title string) [][]string {
	at := slices.Index(rows[0], title)
	if at < 0 || slices.ContainsFunc(rows[1:], func(row []string) bool { return row[at] != value }) {
		return rows
	}
	for i := range rows {
		rows[i] = slices.Delete(rows[i], at, at+1)
	}
	return rows
}

// percent is how full the context was.
func percent(a session.Anatomy) string { return fmt.Sprintf("%.0f%%", a.Full) }

// topicOf is what the turn was about, with a mark where that changed.
func topicOf(a session.Anatomy) string {
	if a.Topic == nil {
		return ""
	}
	if a.Transition {
		return "→ " + oneLine(*a.Topic, 60)
	}
	return oneLine(*a.Topic, 60)
}

// showTurn prints all fields of the calls of the turn that call n is of.
func (m *Main) showTurn(ctx context.Context, c *client, key string, n int64) error {
	const most = 200 // calls of one turn, before and behind
	calls, _, err := anatomies(ctx, c, key, n+most, 2*most)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(calls, func(a session.Anatomy) bool { return a.N == n })
	if i < 0 {
		return &fixed{fmt.Errorf("call %d of %s: %w", n, key, tidemark.ErrNotFound), numbersOfCalls(sessionPath(key, "/anatomy/"))}
	}
	turn := slices.DeleteFunc(slices.Clone(calls), func(a session.Anatomy) bool { return a.Run != calls[i].Run })
	if m.json {
		return m.printJSON(turn)
	}
	for i, a := range turn {
		if i > 0 {
			m.out.line()
		}
		m.showRecord(a)
	}
	return nil
}

// showRecord prints a record, a field a line, by the names of papers/total-recall, Annex A.4.
func (m *Main) showRecord(a session.Anatomy) {
	var parts []string
	for _, k := range anatomyParts {
		if p, ok := a.Parts[k]; ok {
			parts = append(parts, fmt.Sprintf("%s %d (%d tokens)", strings.ToLower(anatomyNames[k]), p.Items, p.Tokens))
		}
	}
	topic := "none"
	if a.Topic != nil {
		topic = *a.Topic
	}
	stop := a.Stop
	if a.Error != "" {
		stop += ": " + a.Error
	}
	if a.Proxy != nil {
		table(m.out, proxiedRecord(a, stop))
		return
	}
	table(m.out, [][]string{
		{"call", fmt.Sprintf("%d, attempt %d, %s, %s", a.N, a.Attempt, time.UnixMilli(a.At).UTC().Format(time.RFC3339), oneLine(a.Model, 80))},
		{"turnId", a.Run}, {"sessionId", a.Session}, {"compactionCycle", fmt.Sprint(a.Cycle)},
		{"contextUtilPct", fmt.Sprintf("%.1f, %d of %d tokens", a.Full, a.Size, a.Limit)},
		{"systemPromptBytes", fmt.Sprint(a.SystemText)}, {"workspaceFileBytes", fmt.Sprint(a.Workspace)}, {"skillBytes", fmt.Sprint(a.Skills)},
		{"toolSchemaBytes", fmt.Sprint(a.Schemas)}, {"historyEventCount", fmt.Sprint(a.Events)}, {"markerCount", fmt.Sprint(a.Markers)},
		{"userMessageBytes", fmt.Sprint(a.UserBytes)}, {"topicLabel", topic}, {"topicTransition", fmt.Sprint(a.Transition)},
		{"parts", strings.Join(parts, ", ")},
		{"usage", fmt.Sprintf("%d read, %d cached, %d written to the cache, %d out", a.Usage.Input, a.Usage.CacheRead, a.Usage.CacheCreation, a.Usage.Output)},
		{"stopReason", oneLine(stop, 200)}, {"sha256", a.SHA256},
	})
}

// errOtherPrompt is a prompt that could not be had as it was.
var errOtherPrompt = errors.New("what was rebuilt is not what was recorded: a part of the log or of the bucket reads otherwise than it did")

// showPrompt prints the request of a call. The hash is made here once more, of the bytes that are printed.
func (m *Main) showPrompt(ctx context.Context, c *client, key string, n int64) error {
	var out struct {
		SHA256  string          `json:"sha256"`
		Request json.RawMessage `json:"request"`
	}
	var raw bytes.Buffer
	if err := c.raw(ctx, sessionPath(key, fmt.Sprintf("/anatomy/%d/prompt", n)), &raw); err != nil {
		return err
	}
	if err := json.Unmarshal(raw.Bytes(), &out); err != nil {
		return fmt.Errorf("prompt of call %d: %w", n, err)
	}
	sum := sha256.Sum256(out.Request)
	m.out.put(string(out.Request))
	if m.Terminal {
		m.out.line()
	}
	if hex.EncodeToString(sum[:]) != out.SHA256 {
		return fmt.Errorf("call %d, SHA-256 %s: %w", n, out.SHA256, errOtherPrompt)
	}
	m.err.line("the request as it was recorded, before the format of the provider: SHA-256 " + out.SHA256)
	return nil
}
