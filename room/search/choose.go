package search

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/memory"
	"github.com/tidemark-ai/tidemark/recall"
)

// taskHits is how many hits are judged by the task; those behind stay behind.
const taskHits = 64

// choose fills in the results: by the task, where there is one, and where a budget is given different ones first
// that fit into it.
func (f *finding) choose(ctx context.Context, q recall.Query, out *Recalled) error {
	k := min(cmp.Or(max(f.w.K, 0), DefaultK), MaxK)
	plain := slices.Clone(f.hits[:min(len(f.hits), k)])
	superseded, err := f.judge(ctx)
	if err != nil {
		return err
	}
	chained := false
	if f.hopped {
		if f.hits, chained = f.index.Chain(f.hits, f.stats); chained {
			out.Verdict = recall.Confident
		}
	}
	if !chained {
		f.sourcesFirst()
	}
	ranked := slices.Clone(f.hits[:min(len(f.hits), k)])
	chosen, over := f.hits[:min(len(f.hits), k)], []recall.Hit(nil)
	var texts []Recollection
	if f.w.Budget > 0 {
		order := f.index.Diverse(f.hits)
		sizes := make([]int, min(len(order), 2*MaxK))
		for i, h := range order[:len(sizes)] {
			texts = append(texts, f.recollection(h, q.Terms))
			if sizes[i] = recall.Cost(texts[i].Text); f.w.told {
				sizes[i] = f.s.toldCost(texts[i])
			}
		}
		budget := f.w.Budget
		if f.w.told {
			budget -= headTokens
		}
		taken, passed := recall.Pack(sizes, int(budget), k)
		chosen = nil
		for _, i := range taken {
			chosen = append(chosen, order[i])
			out.Results = append(out.Results, texts[i])
		}
		for _, i := range passed {
			over = append(over, order[i])
		}
	} else {
		if !f.w.All {
			chosen = f.distinct(k)
		}
		for _, h := range chosen {
			out.Results = append(out.Results, f.recollection(h, q.Terms))
		}
	}
	if len(out.Results) == 0 && len(over) > 0 {
		out.Hint = fmt.Sprintf("the shortest text that was found does not fit into a budget of %d tokens: raise it", f.w.Budget)
	}
	if out.Verdict == recall.Confident { // it speaks of what is given, which the task or the budget has put in another order
		if out.Verdict = f.index.Judge(q, chosen); chained && len(chosen) > 0 && chosen[0].Doc == f.hits[0].Doc {
			out.Verdict = recall.Confident
		}
	}
	f.leftOut(out, chosen, []leaving{
		{filteredBudget, over[:min(len(over), k)]},
		{filteredSuperseded, slices.DeleteFunc(plain, func(h recall.Hit) bool { return !superseded[f.index.Docs()[h.Doc].ID] })},
		{filteredSimilar, ranked},
	})
	return f.elsewhere(ctx, q, out)
}

// sourcesFirst puts what a person said before what the assistant repeats of it: the repetition is no second source, and
// has more of the question's words often.
func (f *finding) sourcesFirst() {
	docs := f.index.Docs()
	of := func(i int) read { return f.known[f.docs[docs[f.hits[i].Doc].ID]] }
	for i := 0; i < min(len(f.hits), candidates); i++ {
		if of(i).role != tidemark.Assistant {
			continue
		}
		for j := i + 1; j < min(len(f.hits), candidates); j++ {
			if a, p := of(i), of(j); p.entry.Origin.From == tidemark.FromPerson && p.entry.Seq < a.entry.Seq && memory.Echoes(a.part, p.part) {
				h := f.hits[j]
				f.hits = slices.Insert(slices.Delete(f.hits, j, j+1), i, h)
				recall.Level(f.hits)
				break
			}
		}
	}
}

// distinct is the first k hits, each text once.
func (f *finding) distinct(k int) []recall.Hit {
	var out []recall.Hit
	seen, docs := map[string]bool{}, f.index.Docs()
	for _, h := range f.hits {
		if text := f.known[f.docs[docs[h.Doc].ID]].text; len(out) < k && !seen[text] {
			out, seen[text] = append(out, h), true
		}
	}
	return out
}

// leaving is hits that a reason took from the results.
type leaving struct {
	reason string
	hits   []recall.Hit
}

// leftOut tells which hits are not among the results, each once.
func (f *finding) leftOut(out *Recalled, chosen []recall.Hit, reasons []leaving) {
	told := map[int]bool{}
	for _, h := range chosen {
		told[h.Doc] = true
	}
	for _, r := range reasons {
		var ids []tidemark.EntryID
		for _, h := range r.hits {
			if !told[h.Doc] {
				told[h.Doc] = true
				ids = append(ids, tidemark.EntryID(f.index.Docs()[h.Doc].ID))
			}
		}
		if len(ids) > 0 {
			out.Filtered = append(out.Filtered, Filtered{Reason: r.reason, Count: len(ids), IDs: ids})
		}
	}
}

// elsewhere counts what the query would find outside its times and among what was skipped, up to postingMost.
func (f *finding) elsewhere(ctx context.Context, q recall.Query, out *Recalled) error {
	in := f.s.among(f.line, f.w, f.size)
	const most = 8 // terms
	terms := askedFirst(q.Terms)
	quoted := make([]string, min(len(terms), most))
	for i := range quoted {
		quoted[i] = recall.Quote(terms[i])
	}
	any := `(` + strings.Join(quoted, " OR ") + `)`
	count := func(in among, w Wanted, reason string) error {
		lists, err := f.s.listed(ctx, in, []string{any}, w, postingMost)
		if err == nil && reason != "" && len(lists[0]) > 0 {
			out.Filtered = append(out.Filtered, Filtered{Reason: reason, Count: len(lists[0]), IDs: []tidemark.EntryID{}})
		}
		return err
	}
	skips, err := f.s.Made.Has(ctx, skipTables)
	if err != nil {
		return err
	}
	if skips && !f.w.All && out.Verdict != recall.Confident { // a question that was answered need not know
		if err := count(among{line: in.line, found: in.skipped}, f.w, filteredSkipped); err != nil {
			return err
		}
	}
	if f.w.Since.IsZero() && f.w.Until.IsZero() {
		return nil
	}
	outside := f.w
	outside.outside = true
	return count(in, outside, filteredRange)
}

// judge scores hits for the task of the conversation, if there is one, and returns those that are superseded.
func (f *finding) judge(ctx context.Context) (superseded map[string]bool, err error) {
	t, err := f.s.Task(ctx)
	if err != nil || t.Zero() || len(f.hits) == 0 {
		return nil, err
	}
	n := min(len(f.hits), taskHits)
	docs := f.index.Docs()
	ids, seqs := make([]tidemark.EntryID, n), make([]int64, n)
	for i, h := range f.hits[:n] {
		ids[i] = tidemark.EntryID(docs[h.Doc].ID)
		seqs[i] = f.docs[docs[h.Doc].ID]
	}
	marks, err := f.s.MarksOf(ctx, ids)
	if err != nil {
		return nil, err
	}
	seen, err := f.s.repeated(ctx, seqs)
	if err != nil {
		return nil, err
	}
	known, superseded := map[string]recall.Known{}, map[string]bool{}
	for i, id := range ids {
		r, m := f.known[seqs[i]], marks[id]
		superseded[string(id)] = m.SupersededBy != "" || seen[seqs[i]].repeated
		known[string(id)] = recall.Known{Kind: seen[seqs[i]].kind, Premise: m.Premise, Task: m.Task, Superseded: superseded[string(id)],
			Constraint: m.Pinned || t.States(r.text[r.label:])}
	}
	f.index.Rescore(f.hits[:n], t, func(id string) recall.Known { return known[id] })
	return superseded, nil
}

// heldAs is what an entry is, and whether a newer result of the same call is among the others.
type heldAs struct {
	kind     recall.Kind
	repeated bool
}

// repeated tells of messages what they are, and finds results of tools that a newer one of the same tool with the
// same input stands for: a file that was read again.
func (s *Room) repeated(ctx context.Context, seqs []int64) (map[int64]heldAs, error) {
	raw, err := json.Marshal(seqs)
	if err != nil {
		return nil, fmt.Errorf("recall: %w", err)
	}
	rows, err := s.DB.Query(ctx, `SELECT e.seq, e.role, e.skel, CASE WHEN e.skel LIKE '%"r":%' THEN (SELECT payload FROM entries p WHERE p.log = e.log AND p.kind = 'message' AND p.seq < e.seq
			ORDER BY p.seq DESC LIMIT 1) ELSE '' END, instr(e.payload, '"is_error":true')
		FROM json_each(?) j CROSS JOIN entries e ON e.seq = j.value ORDER BY e.seq DESC LIMIT ?`, string(raw), len(seqs))
	if err != nil {
		return nil, fmt.Errorf("recall: what was called: %w", err)
	}
	out, newer := map[int64]heldAs{}, map[string]bool{}
	for _, r := range rows { // the newest first
		var skel struct {
			Calls   []string `json:"c"`
			Results []string `json:"r"`
		}
		if err := json.Unmarshal(r.Bytes(2), &skel); err != nil {
			return nil, fmt.Errorf("recall: what was called: %w", err)
		}
		h := heldAs{kind: kindOf(tidemark.Role(r.Text(1)), len(skel.Calls), len(skel.Results))}
		if calls := callsOf(r.Bytes(3), skel.Results); len(calls) > 0 {
			h.repeated = true
			for _, c := range calls {
				h.repeated = h.repeated && newer[c]
				newer[c] = newer[c] || r.Int(4) == 0 // a failure stands for nothing
			}
		}
		out[r.Int(0)] = h
	}
	return out, nil
}

func kindOf(role tidemark.Role, calls, results int) recall.Kind {
	switch {
	case results > 0:
		return recall.ToolResult
	case calls > 0:
		return recall.ToolCall
	case role == tidemark.Assistant:
		return recall.AgentMessage
	case role == tidemark.User:
		return recall.UserMessage
	}
	return recall.System
}

// callsOf names the calls of a message by tool and canonical input, those whose results are asked for.
func callsOf(payload []byte, ids []string) []string {
	var m tidemark.Message
	if len(payload) == 0 || json.Unmarshal(payload, &m) != nil {
		return nil
	}
	var out []string
	for _, b := range m.Content {
		if b.Type != tidemark.TypeToolUse || !slices.Contains(ids, b.ID) {
			continue
		}
		var input any // maps come out with their keys in order
		if json.Unmarshal(b.Input, &input) != nil {
			return nil
		}
		raw, err := json.Marshal(input)
		if err != nil {
			return nil
		}
		out = append(out, b.Name+" "+string(raw))
	}
	return out
}
