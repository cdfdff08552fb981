//go:build !js

package fault

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/archive"
	"github.com/tidemark-ai/tidemark/host/native"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// estate is what a stopped server left on disk.
type estate struct {
	t           *testing.T
	inputs      map[tidemark.Key][]string // ids in the log, in order, over all resets
	stuck       []string                  // what did not come to its end
	compactions int
	resets      int
	failures    []string // texts of runs that ended in an error
	idle        int      // compactions that found nothing to do
	results     []string // of tools, that were errors

	count *tally                  // of its kind of server
	last  map[tidemark.Key]string // the message with which a session ends
}

// inspect reads the databases and the bucket of a home whose server has ended, and holds all of it
// that must be true at any such time.
func inspect(t *testing.T, f *fixture) *estate {
	t.Helper()
	e := &estate{t: t, inputs: map[tidemark.Key][]string{}, count: f.kind.tally(), last: map[tidemark.Key]string{}}
	paths, err := f.kind.databases(f.home)
	if err != nil || len(paths) == 0 {
		t.Fatalf("databases of %s: %q, %v", f.home, paths, err)
	}
	blobs, err := native.NewDir(f.bucket())
	if err != nil {
		t.Fatal(err)
	}
	defer blobs.Close()
	a := &inspection{estate: e, ctx: t.Context(), blobs: blobs, bucket: f.bucket(), parts: map[string][]string{}, begun: map[string]bool{}}
	for _, path := range paths {
		db, err := native.OpenDB(path)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		a.stores = append(a.stores, a.store(db, path))
	}
	a.states()
	for _, s := range a.stores {
		if s.tables["heads"] {
			a.sessions(s)
		}
	}
	for _, agent := range a.agents() {
		a.index(agent)
		a.memory(agent)
	}
	return e
}

// inspection is of all that the agents of a home have: sessions and their agent share a database, or
// each has its own.
type inspection struct {
	*estate
	ctx    context.Context
	stores []*store
	blobs  tidemark.Blobs
	bucket string
	parts  map[string][]string // by agent, keys of all archives that the databases know
	begun  map[string]bool     // parts that a kill left half written, by key
}

// store is one database.
type store struct {
	a      *inspection
	db     *native.DB
	path   string
	tables map[string]bool
}

func (a *inspection) store(db *native.DB, path string) *store {
	s := &store{a: a, db: db, path: path, tables: map[string]bool{}}
	for _, r := range s.query(`SELECT name FROM sqlite_master WHERE type = 'table' LIMIT 1000`) {
		s.tables[r.Text(0)] = true
	}
	return s
}

func (s *store) query(sql string, args ...any) []tidemark.Row {
	s.a.t.Helper()
	rows, err := s.db.Query(s.a.ctx, sql, args...)
	if err != nil {
		s.a.t.Fatalf("%s: %s: %v", s.path, sql, err)
	}
	return rows
}

// query reads a table from all databases that have it.
func (a *inspection) query(table, sql string, args ...any) []tidemark.Row {
	a.t.Helper()
	var out []tidemark.Row
	for _, s := range a.stores {
		if s.tables[table] {
			out = append(out, s.query(sql, args...)...)
		}
	}
	return out
}

// agents are those that have anything.
func (a *inspection) agents() []string {
	names := map[string]string{}
	for agent := range a.parts {
		names[agent] = ""
	}
	for _, table := range []string{"agent_facts", "agent_archives"} {
		for _, r := range a.query(table, `SELECT DISTINCT agent FROM `+table+` LIMIT 1000`) {
			names[r.Text(0)] = ""
		}
	}
	return keys(names)
}

// unfinished finds what is half done, by table.
var unfinished = map[string]string{
	"run":                `SELECT key || ' ' || id || ' ' || state FROM runs WHERE state NOT IN ('done', 'failed') LIMIT 100`,
	"input":              `SELECT key || ' ' || id || ' ' || state FROM inputs WHERE state <> 'done' LIMIT 100`,
	"reset":              `SELECT key || ' ' || old || ' ' || step FROM resets WHERE step <> 'done' LIMIT 100`,
	"plan":               `SELECT key || ' ' || id FROM plans WHERE state = 'open' LIMIT 100`,
	"item for an agent":  `SELECT key || ' ' || id FROM outbox LIMIT 100`,
	"memory section":     `SELECT path || ' ' || id FROM agent_sections WHERE done = 0 LIMIT 100`,
	"archive to index":   `SELECT key FROM agent_archives WHERE indexed = 0 LIMIT 100`,
	"answer to a person": `SELECT key || ' ' || n || ' ' || state FROM outbound WHERE open = 1 LIMIT 100`,
	"look at a run":      `SELECT key FROM due WHERE kind = 'run' LIMIT 100`,
}

// states holds that nothing is half done.
func (a *inspection) states() {
	for what, sql := range unfinished {
		for _, r := range a.query(tableOf(sql), sql) {
			a.stuck = append(a.stuck, what+" "+r.Text(0))
		}
	}
	for _, r := range a.query("runs", `SELECT error FROM runs WHERE state = 'failed' LIMIT 10000`) {
		a.failures = append(a.failures, r.Text(0))
	}
}

// tableOf is the table that a query reads.
func tableOf(sql string) string {
	_, after, _ := strings.Cut(sql, " FROM ")
	table, _, _ := strings.Cut(after, " ")
	return table
}

// sessions walks the conversations of a database, each from its first log to its newest.
func (a *inspection) sessions(s *store) {
	reached := 0
	for _, r := range s.query(`SELECT key, log FROM heads LIMIT 1000`) {
		key := tidemark.Key(r.Text(0))
		var logs []string
		for id := r.Text(1); id != ""; {
			logs = append(logs, id)
			info := s.query(`SELECT previous FROM logs WHERE id = ? LIMIT 1`, id)
			if len(info) == 0 {
				a.t.Errorf("session %s: its log %s is missing", key, id)
				break
			}
			id = info[0].Text(0)
		}
		slices.Reverse(logs)
		reached += len(logs)
		for i, log := range logs {
			a.log(s, key, log, i > 0, i == len(logs)-1)
		}
		if n := s.query(`SELECT resets, compactions FROM heads WHERE key = ? LIMIT 1`, string(key))[0]; int(n.Int(0)) != len(logs)-1 {
			a.t.Errorf("session %s counts %d resets and has %d logs", key, n.Int(0), len(logs))
		}
	}
	if n := s.query(`SELECT count(*) FROM logs LIMIT 1`)[0].Int(0); int(n) != reached {
		a.t.Errorf("%s: %d logs, of which %d belong to sessions: half a reset", s.path, n, reached)
	}
}

// log holds one log: calls have results, archives are the history.
func (a *inspection) log(s *store, key tidemark.Key, log string, after, current bool) {
	var messages []tidemark.Message
	var payloads []string
	seqs := map[int64]int{} // position to index in messages
	overlays, events := 0, map[string]int{}
	rows := s.query(`SELECT seq, kind, origin, payload FROM entries WHERE log = ? ORDER BY seq LIMIT 20000`, log)
	for _, r := range rows {
		switch tidemark.Kind(r.Text(1)) {
		case tidemark.KindOverlay:
			var o tidemark.Overlay
			if a.decode(r.Bytes(3), &o); o.Reason != "refused" {
				overlays++
			}
		case tidemark.KindEvent:
			var e tidemark.Event
			a.decode(r.Bytes(3), &e)
			if events[e.Type]++; e.Type == "compaction" && len(e.Data) == 0 {
				events[e.Type]--
				a.idle++
			}
		case tidemark.KindMessage:
			var o tidemark.Origin
			var m tidemark.Message
			a.decode(r.Bytes(2), &o)
			a.decode(r.Bytes(3), &m)
			if o.Input != "" {
				a.inputs[key] = append(a.inputs[key], o.Input)
			}
			seqs[r.Int(0)] = len(messages)
			messages, payloads = append(messages, m), append(payloads, string(m.AppendJSON(nil)))
		}
	}
	a.compactions += overlays
	if after {
		a.resets++
	}
	want := map[bool]int{true: 1}[after]
	if events["reset"] != want || events["compaction"] != overlays {
		a.t.Errorf("log %s of %s has %d overlays and events %v, want %d resets", log, key, overlays, events, want)
	}
	if len(payloads) > 0 {
		a.last[key] = payloads[len(payloads)-1]
	}
	a.answered(log, messages)
	agent := key.Agent()
	stored := a.archivedParts(s, agent, log, seqs, payloads)
	if whole := a.whole(agent, log); current {
		if whole {
			a.t.Errorf("log %s of %s is in work and archived as a whole", log, key)
		}
	} else if len(messages) > 0 {
		a.parts[agent] = append(a.parts[agent], archive.WholeKey(agent, log))
		if got := a.lines(archive.WholeKey(agent, log)); !slices.EqualFunc(got, payloads, archived) {
			a.t.Errorf("the archive of %s has %d messages which are not the %d of its log, from message %d on", log, len(got), len(payloads), common(got, payloads))
		}
	}
	if stored > len(payloads) {
		a.t.Errorf("the parts of %s hold %d messages, its log %d", log, stored, len(payloads))
	}
}

func (a *inspection) decode(raw []byte, out any) {
	if err := json.Unmarshal(raw, out); err != nil {
		a.t.Errorf("%.200s: %v", raw, err)
	}
}

// answered holds that each call has its result in the next message and each result its call.
func (a *inspection) answered(log string, messages []tidemark.Message) {
	seen := map[string]bool{}
	for i, m := range messages {
		var asked, answers []string
		if i > 0 {
			asked = messages[i-1].Calls()
		}
		for _, b := range m.Content {
			if b.Type != tidemark.TypeToolResult {
				continue
			}
			answers = append(answers, b.ToolUseID)
			if b.IsError && len(b.Content) > 0 {
				a.results = append(a.results, b.Content[0].Text)
			}
		}
		if !slices.Equal(asked, answers) {
			a.t.Errorf("log %s, message %d: calls %q have the results %q", log, i, asked, answers)
		}
		for _, id := range m.Calls() {
			if seen[id] {
				a.t.Errorf("log %s: call %s is there twice", log, id)
			}
			seen[id] = true
		}
	}
	if n := len(messages); n > 0 && len(messages[n-1].Calls()) > 0 {
		a.t.Errorf("log %s ends with a call without a result", log)
	}
}

// archivedParts holds that the parts of a log are the beginning of it, each message in one of them,
// and returns how many messages they hold.
func (a *inspection) archivedParts(s *store, agent, log string, seqs map[int64]int, payloads []string) int {
	next := 0
	for _, r := range s.query(`SELECT first, last, key, info FROM parts WHERE log = ? ORDER BY first LIMIT 10000`, log) {
		if r.Text(3) == "" { // whoever stores the next one finishes it first
			a.begun[r.Text(2)] = true
			continue
		}
		last, ok := seqs[r.Int(1)]
		got := a.lines(r.Text(2))
		if !ok || last < next || !slices.EqualFunc(got, payloads[next:last+1], archived) {
			a.t.Errorf("part %s of %d messages is not messages %d to %d of its log", r.Text(2), len(got), next, last)
			return next
		}
		next = last + 1
		a.parts[agent] = append(a.parts[agent], r.Text(2))
	}
	return next
}

// whole reports whether a log is archived as a whole session.
func (a *inspection) whole(agent, log string) bool {
	_, body, err := a.blobs.Get(a.ctx, archive.WholeKey(agent, log))
	if err != nil {
		return false
	}
	body.Close()
	return true
}

// lines returns the messages of an archive.
func (a *inspection) lines(key string) []string {
	var out []string
	for l, err := range archive.Read(a.ctx, a.blobs, key) {
		if err != nil {
			a.t.Errorf("archive %s: %v", key, err)
			return out
		}
		out = append(out, string(l.Message.AppendJSON(nil)))
	}
	return out
}

// index holds that the index lists each archive that the sessions made, once, and that each is
// what was written.
func (a *inspection) index(agent string) {
	var listed []string
	for cursor := ""; ; {
		page, next, err := archive.List(a.ctx, a.blobs, agent, archive.ListOptions{Cursor: cursor, Limit: 1000})
		if err != nil {
			a.t.Errorf("list archives of %s: %v", agent, err)
			return
		}
		for _, i := range page {
			listed = append(listed, i.Key)
			if v, err := archive.Verify(a.ctx, a.blobs, i); err != nil || !v.OK {
				a.t.Errorf("archive %s: %q, %v", i.Key, v.Problems, err)
			}
		}
		if cursor = next; next == "" {
			break
		}
	}
	listed = slices.Sorted(slices.Values(slices.DeleteFunc(listed, func(key string) bool { return a.begun[key] })))
	parts := slices.Sorted(slices.Values(a.parts[agent]))
	if !slices.Equal(listed, parts) {
		a.t.Errorf("agent %s: the index has %d archives, the sessions made %d: %q", agent, len(listed), len(parts), differ(listed, parts))
	}
}

// memory holds that each fact stands in its file once, and that no line stands there twice.
func (a *inspection) memory(agent string) {
	files := map[string]string{}
	for _, r := range a.query("agent_facts", `SELECT path, text FROM agent_facts WHERE agent = ? LIMIT 20000`, agent) {
		path, fact := r.Text(0), r.Text(1)
		if _, ok := files[path]; !ok {
			raw, err := os.ReadFile(a.file(agent, path))
			if err != nil {
				a.t.Errorf("memory: %v", err)
			}
			files[path] = string(raw)
		}
		if n := strings.Count(files[path], fact); n != 1 {
			a.t.Errorf("%s has fact %q %d times", path, fact, n)
		}
	}
	for _, path := range append(keys(files), "MEMORY.md") {
		raw, err := os.ReadFile(a.file(agent, path))
		if err != nil {
			continue
		}
		seen := map[string]bool{}
		for line := range bytes.Lines(raw) {
			if s := string(line); strings.HasPrefix(s, "- ") {
				if seen[s] {
					a.t.Errorf("%s has %q twice", path, s)
				}
				seen[s] = true
			}
		}
	}
	// What a plan or a reset found is remembered.
	for _, r := range a.query("plans", `SELECT facts, key FROM plans WHERE state = 'done' LIMIT 20000`) {
		if tidemark.Key(r.Text(1)).Agent() != agent {
			continue
		}
		var xs []tidemark.Extraction
		a.decode(r.Bytes(0), &xs)
		for _, x := range xs {
			if n := len(a.query("agent_extractions", `SELECT id FROM agent_extractions WHERE id = ? LIMIT 2`, x.ID)); n != 1 {
				a.t.Errorf("extraction %s is remembered %d times", x.ID, n)
			}
		}
	}
}

// file is where the folder bucket keeps a file of the agent.
func (a *inspection) file(agent, path string) string {
	return filepath.Join(a.bucket, "agents", agent, path)
}

func keys(m map[string]string) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// archived reports that a message of an archive is the one of the log, whose large results of tools stand beside
// it: those must be there whole, by their size and the call that they answer.
func archived(got, stored string) bool {
	if got == stored {
		return true
	}
	var g, s tidemark.Message
	if json.Unmarshal([]byte(got), &g) != nil || json.Unmarshal([]byte(stored), &s) != nil || g.Role != s.Role || len(g.Content) != len(s.Content) {
		return false
	}
	for i, b := range s.Content {
		var ref struct {
			Blob *struct {
				Bytes int `json:"bytes"`
			} `json:"tidemark_blob"`
		}
		raw, whole := string(b.AppendJSON(nil)), string(g.Content[i].AppendJSON(nil))
		if json.Unmarshal([]byte(raw), &ref) != nil {
			return false
		}
		if ref.Blob == nil {
			if raw != whole {
				return false
			}
			continue
		}
		if len(whole) != ref.Blob.Bytes || g.Content[i].ToolUseID != b.ToolUseID || strings.Contains(whole, "tidemark_blob") {
			return false
		}
	}
	return true
}

// common is how many messages an archive and a log begin with alike.
func common(a, b []string) int {
	n := 0
	for n < min(len(a), len(b)) && archived(a[n], b[n]) {
		n++
	}
	return n
}

// differ returns what stands in only one of two sorted lists, a few of each.
func differ(a, b []string) []string {
	const few = 5
	var out []string
	for _, x := range a {
		if !slices.Contains(b, x) && len(out) < few {
			out = append(out, "+"+x)
		}
	}
	for _, x := range b {
		if !slices.Contains(a, x) && len(out) < 2*few {
			out = append(out, "-"+x)
		}
	}
	return out
}

// count is how often each id occurs.
func count(ids []string) map[string]int {
	out := map[string]int{}
	for _, id := range ids {
		out[id]++
	}
	return out
}

// String is a short account.
func (e *estate) String() string {
	return fmt.Sprintf("compactions=%d resets=%d failed=%d", e.compactions, e.resets, len(e.failures))
}
