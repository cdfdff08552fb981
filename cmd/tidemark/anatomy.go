package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/paging"
	"github.com/tidemark-ai/tidemark/room/anatomy"
	"github.com/tidemark-ai/tidemark/room/reflection"
)

// anatomyFlags is what is to be shown of the records.
type anatomyFlags struct {
	Limit        int
	Turn, Prompt int64
}

// anatomies reads records up to call n (0: the newest), oldest first.
func anatomies(ctx context.Context, c *client, key string, n int64, limit int) ([]anatomy.Record, []byte, error) {
	before := int64(0)
	if n > 0 {
		before = n + 1
	}
	var raw json.RawMessage
	if err := c.Get(ctx, cli.SessionPath(key, fmt.Sprintf("/anatomy?limit=%d&before=%d", limit, before)), &raw); err != nil {
		return nil, nil, err
	}
	var page struct {
		Calls []anatomy.Record `json:"calls"`
	}
	if err := json.Unmarshal(raw, &page); err != nil {
		return nil, nil, err
	}
	slices.Reverse(page.Calls)
	return page.Calls, raw, nil
}

// noCalls says why there is nothing to show.
func noCalls(key string) string {
	if isProxied(key) {
		return cli.PlainKey(key) + " had no answer yet: its client sent nothing, or the API refused it"
	}
	return cli.PlainKey(key) + " had no model call yet: importing makes none"
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
	return "(" + cli.Safe(t.Why) + "): " + strings.Join(set, ", ")
}

// anatomyRows is the table of records.
func anatomyRows(calls []anatomy.Record) [][]string {
	if calls[0].Proxy != nil {
		return proxiedRows(calls)
	}
	head := []string{"CALL", "AT", "SIZE", "FULL", "CYCLE"}
	for _, k := range append(slices.Clone(anatomyParts), anatomyCosts...) {
		head = append(head, strings.ToUpper(anatomyNames[k]))
	}
	rows := [][]string{append(head, "STOP", "TOPIC")}
	for _, a := range calls {
		row := []string{fmt.Sprint(a.N), cli.When(time.UnixMilli(a.At)), cli.Count(a.Size), percent(a), fmt.Sprint(a.Cycle)}
		for _, k := range anatomyParts {
			row = append(row, cli.Count(portion(a, k)))
		}
		for _, k := range anatomyCosts {
			row = append(row, cli.Count(costOf(a, k)))
		}
		rows = append(rows, append(row, cli.OneLine(a.Stop, 20), topicOf(a)))
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
func percent(a anatomy.Record) string { return fmt.Sprintf("%.0f%%", a.Full) }

// topicOf is what the turn was about, with a mark where that changed.
func topicOf(a anatomy.Record) string {
	if a.Topic == nil {
		return ""
	}
	if a.Transition {
		return "→ " + cli.OneLine(*a.Topic, 60)
	}
	return cli.OneLine(*a.Topic, 60)
}

// showTurn prints all fields of the calls of the turn that call n is of.
func showTurn(ctx context.Context, m *cli.Main, c *client, key string, n int64) error {
	const most = 200 // calls of one turn, before and behind
	calls, _, err := anatomies(ctx, c, key, n+most, 2*most)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(calls, func(a anatomy.Record) bool { return a.N == n })
	if i < 0 {
		return cli.Advise(fmt.Errorf("call %d of %s: %w", n, key, tidemark.ErrNotFound), cli.NumbersOfCalls(cli.SessionPath(key, "/anatomy/")))
	}
	turn := slices.DeleteFunc(slices.Clone(calls), func(a anatomy.Record) bool { return a.Run != calls[i].Run })
	return cli.Either(m, turn, func() {
		for i, a := range turn {
			if i > 0 {
				m.Out.Line()
			}
			showRecord(m, a)
		}
	})
}

// showRecord prints a record, a field a line, by the names of papers/total-recall, Annex A.4.
func showRecord(m *cli.Main, a anatomy.Record) {
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
		cli.PrintTable(m.Out, proxiedRecord(a, stop))
		return
	}
	cli.PrintTable(m.Out, [][]string{
		{"call", fmt.Sprintf("%d, attempt %d, %s, %s", a.N, a.Attempt, time.UnixMilli(a.At).UTC().Format(time.RFC3339), cli.OneLine(a.Model, 80))},
		{"turnId", a.Run}, {"sessionId", a.Session}, {"compactionCycle", fmt.Sprint(a.Cycle)},
		{"contextUtilPct", fmt.Sprintf("%.1f, %d of %d tokens", a.Full, a.Size, a.Limit)},
		{"systemPromptBytes", fmt.Sprint(a.SystemText)}, {"workspaceFileBytes", fmt.Sprint(a.Workspace)}, {"skillBytes", fmt.Sprint(a.Skills)},
		{"toolSchemaBytes", fmt.Sprint(a.Schemas)}, {"historyEventCount", fmt.Sprint(a.Events)}, {"markerCount", fmt.Sprint(a.Markers)},
		{"userMessageBytes", fmt.Sprint(a.UserBytes)}, {"topicLabel", topic}, {"topicTransition", fmt.Sprint(a.Transition)},
		{"parts", strings.Join(parts, ", ")},
		{"usage", fmt.Sprintf("%d read, %d cached, %d written to the cache, %d out", a.Usage.Input, a.Usage.CacheRead, a.Usage.CacheCreation, a.Usage.Output)},
		{"stopReason", cli.OneLine(stop, 200)}, {"sha256", a.SHA256},
	})
}

// errOtherPrompt is a prompt that could not be had as it was.
var errOtherPrompt = errors.New("what was rebuilt is not what was recorded: a part of the log or of the bucket reads otherwise than it did")

// showPrompt prints the request of a call. The hash is made here once more, of the bytes that are printed.
func showPrompt(ctx context.Context, m *cli.Main, c *client, key string, n int64) error {
	var out struct {
		SHA256  string          `json:"sha256"`
		Request json.RawMessage `json:"request"`
	}
	var raw bytes.Buffer
	if err := c.Raw(ctx, cli.SessionPath(key, fmt.Sprintf("/anatomy/%d/prompt", n)), &raw); err != nil {
		return err
	}
	if err := json.Unmarshal(raw.Bytes(), &out); err != nil {
		return fmt.Errorf("prompt of call %d: %w", n, err)
	}
	sum := sha256.Sum256(out.Request)
	m.Out.Put(string(out.Request))
	if m.Terminal {
		m.Out.Line()
	}
	if hex.EncodeToString(sum[:]) != out.SHA256 {
		return fmt.Errorf("call %d, SHA-256 %s: %w", n, out.SHA256, errOtherPrompt)
	}
	m.Err.Line("the request as it was recorded, before the format of the provider: SHA-256 " + out.SHA256)
	return nil
}

// anatomyParts is what a context is made of, from the bottom of a column up: what stays first.
var anatomyParts = []string{"system", "tools", "summary", "marker", "stub", "person", "model", "tool", "recall", "note", "other"}

// anatomyCosts is what a call was charged for, from the bottom of a column up.
var anatomyCosts = []string{"cached", "read", "out"}

// anatomyNames are the parts as people read them: in the chart, and in capitals in the table.
var anatomyNames = map[string]string{"system": "System", "tools": "Schemas", "summary": "Summary", "marker": "Marker", "stub": "Stub",
	"person": "Person", "model": "Model", "tool": "Tool", "recall": "Recall", "note": "Pushed", "other": "Other",
	"read": "Read", "cached": "Cached", "out": "Out"}

// portion returns the tokens of one part of a context.
func portion(a anatomy.Record, kind string) tidemark.Tokens {
	switch kind {
	case "system":
		return a.System
	case "tools":
		return a.Tools
	case "other":
		if a.Proxy != nil { // what it is made of is the client's
			return a.Size
		}
		n := tidemark.Tokens(0)
		for k, p := range a.Parts {
			if anatomyNames[k] == "" {
				n += p.Tokens
			}
		}
		return n
	}
	return a.Parts[kind].Tokens
}

func costOf(a anatomy.Record, kind string) tidemark.Tokens {
	switch kind {
	case "cached":
		return a.Usage.CacheRead
	case "read":
		return a.Usage.Input + a.Usage.CacheCreation
	}
	return a.Usage.Output
}

func anatomyOf(ctx context.Context, m *cli.Main, f *anatomyFlags) error {
	for name, n := range map[string]int64{"prompt": f.Prompt, "turn": f.Turn} {
		if m.Changed(name) && n <= 0 {
			return cli.Usagef("--%s %d: want the number of a call, from 1", name, n)
		}
	}
	if f.Prompt != 0 && f.Turn != 0 {
		return cli.Usagef("--prompt and --turn: want one of them")
	}
	return with(ctx, m, func(c *client) error {
		key := m.Args[0]
		switch {
		case f.Prompt != 0:
			return showPrompt(ctx, m, c, key, f.Prompt)
		case f.Turn != 0:
			return showTurn(ctx, m, c, key, f.Turn)
		}
		calls, raw, err := anatomies(ctx, c, key, 0, f.Limit)
		if err != nil {
			return err
		}
		return cli.Either(m, json.RawMessage(raw), func() {
			if len(calls) == 0 {
				m.Err.Line(noCalls(key))
			} else {
				onTrack(ctx, m, c, key)
				cli.PrintTable(m.Out, anatomyRows(calls))
			}
			tellTracks(ctx, m, c, key)
			if t := tuningOf(raw); t != (reflection.Tuning{}) {
				m.Err.Line("tuned by reflection " + tellTuning(t))
			}
		})
	})
}

// tuningOf is what reflection set, of an answer with records.
func tuningOf(raw []byte) reflection.Tuning {
	var page struct {
		Tuning reflection.Tuning `json:"tuning"`
	}
	if json.Unmarshal(raw, &page) != nil {
		return reflection.Tuning{}
	}
	return page.Tuning
}

// proxiedRows is the table of records of a conversation whose client keeps the history: what its context is made of is
// the client's, what became of it on the way is ours.
func proxiedRows(calls []anatomy.Record) [][]string {
	rows := [][]string{{"CALL", "AT", "TREATMENT", "MESSAGES", "LEGS", "ZONE", "SIZE", "FULL", "STUBS", "EVICTED", "FAULTS", "CAME", "SENT", "READ", "CACHED", "OUT", "STOP"}}
	for _, a := range calls {
		p, x := paged(a), ofProxy(a)
		treatment := x.Treatment
		if x.Untouched != "" {
			treatment += ", untouched"
		}
		in := a.Usage.Context() - a.Usage.Output
		stop := a.Stop
		if a.Error != "" {
			stop = strings.TrimPrefix(stop+": "+a.Error, ": ")
		}
		rows = append(rows, []string{fmt.Sprint(a.N), cli.When(time.UnixMilli(a.At)), treatment, fmt.Sprint(a.Events), fmt.Sprint(x.Legs), p.Zone, cli.Count(a.Size), percent(a),
			fmt.Sprint(p.Stubs), fmt.Sprint(left(p)), fmt.Sprint(len(p.Faults)), cli.Size(int64(p.In)), cli.Size(int64(p.Sent)), cli.Count(in), strings.Trim(part(a.Usage.CacheRead, in), " ()"), cli.Count(a.Usage.Output), cli.OneLine(stop, 40)})
	}
	return rows
}

// left is how much left with a request: results, garbage, inputs and images.
func left(p paging.Account) int { return p.Evicted + p.Collected + p.Inputs + p.Images }

func paged(a anatomy.Record) paging.Account {
	if a.Paging == nil {
		return paging.Account{}
	}
	return *a.Paging
}

func ofProxy(a anatomy.Record) anatomy.Proxied {
	if a.Proxy == nil {
		return anatomy.Proxied{}
	}
	return *a.Proxy
}

// proxiedRecord is one of them, a field a line.
func proxiedRecord(a anatomy.Record, stop string) [][]string {
	p, x := paged(a), ofProxy(a)
	treatment := x.Treatment
	if x.Untouched != "" {
		treatment += ", sent as it came: " + cli.OneLine(x.Untouched, 200)
	}
	rows := [][]string{
		{"call", fmt.Sprintf("%d, %s, %s", a.N, time.UnixMilli(a.At).UTC().Format(time.RFC3339), cli.OneLine(a.Model, 80))},
		{"entry", a.Run}, {"log", a.Session}, {"treatment", treatment}, {"messages", fmt.Sprint(a.Events)},
		{"legs", fmt.Sprintf("%d, with %d calls of the proxy's tools; the first read %d tokens", x.Legs, x.Phantom, x.First)},
		{"zone", fmt.Sprintf("%s, %d of %d tokens, %.1f %%, tau %d", p.Zone, a.Size, a.Limit, a.Full, p.Tau)},
		{"out", fmt.Sprintf("%d stubs for %d bytes", p.Stubs, p.Out)},
		{"left", fmt.Sprintf("%d results, %d of garbage, %d inputs, %d images; %d pinned", p.Evicted, p.Collected, p.Inputs, p.Images, p.Pins)},
		{"bytes", fmt.Sprintf("%d came, %d sent, %d by trimming less", p.In, p.Sent, x.Trimmed)},
		{"usage", fmt.Sprintf("%d read, %d cached, %d written to the cache, %d out, of all legs", a.Usage.Input, a.Usage.CacheRead, a.Usage.CacheCreation, a.Usage.Output)},
		{"stopReason", cli.OneLine(stop, 200)},
	}
	if e := x.Episodes; e != nil {
		say := fmt.Sprintf("%d left whole, %d in part, freed %d tokens; %d of %d tokens", e.Whole, e.Part, e.Freed, e.Size, e.Budget)
		if e.Short > 0 {
			say += fmt.Sprintf(", %d over the budget: nothing more may leave", e.Short)
		}
		rows = append(rows, []string{"episodes", say})
	}
	for _, f := range p.Faults {
		rows = append(rows, []string{"fault", cli.OneLine(f.Path, 200)})
	}
	return rows
}
