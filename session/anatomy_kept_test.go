package session

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/paging"
	"github.com/tidemark-ai/tidemark/room"
)

// pagerOf notes what it is asked.
type pagerOf struct{ asked []string }

func (*pagerOf) Advice(compaction.View) string { return "" }

func (p *pagerOf) Paged(_ compaction.View, again bool, since int64, before *paging.Account) *paging.Account {
	p.asked = append(p.asked, fmt.Sprint(again, " ", since, " ", before != nil))
	return &paging.Account{Zone: fmt.Sprint("zone ", len(p.asked))}
}

// ReadEpisode and Divided make it a room that knows of episodes, too.
func (*pagerOf) ReadEpisode(context.Context, string, string, int) (string, error) { return "", nil }

func (p *pagerOf) Divided(_ context.Context, v room.Seen) *room.Divided {
	return &room.Divided{Size: v.Size, Gone: len(p.asked)}
}

// offering is an agent with a tool.
type offering struct{ silent }

func (offering) Tools(tidemark.Scope) []tidemark.Tool {
	return []tidemark.Tool{{Name: "look", Description: "look", InputSchema: []byte(`{"type":"object"}`)}}
}

// records returns the records of a session, the oldest first.
func (r *rig) records() (out []Anatomy) {
	r.t.Helper()
	page, err := r.Anatomies(r.t.Context(), 0, 100)
	if err != nil {
		r.t.Fatal(err)
	}
	for i := range page {
		out = append(out, page[len(page)-1-i])
	}
	return out
}

// TestRecordOfACall: what a record tells of the call beside its context, also of one that failed, and what paging is told of
// the call before it.
func TestRecordOfACall(t *testing.T) {
	r, pager := newRig(t, Settings{}), &pagerOf{}
	r.Session.rooms = append(r.Session.rooms, pager)
	r.exec(`UPDATE heads SET compactions = 4 WHERE key = ?`, string(r.Key))
	r.person("The lighthouse stands on the pier.")
	v, err := r.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	x := r.working(stateCalling)
	x.Attempt = 2
	req := r.request(v)
	reply := tidemark.Reply{Call: tidemark.Call{Model: "test-1", Stop: "end_turn", Usage: tidemark.Usage{Input: 10, CacheRead: 5, Output: 3}}}
	record := func(x *run, v View, failed error) {
		t.Helper()
		if err := r.recordCall(t.Context(), x, v, req, reply, failed); err != nil {
			t.Fatal(err)
		}
	}
	record(x, v, nil)
	record(x, v, &tidemark.APIError{Class: tidemark.ClassRefusal, Message: strings.Repeat("no ", 100)})
	later := v
	later.Last++
	record(x, later, nil)
	record(&run{ID: "another", Log: x.Log}, later, nil)
	later.Log = "another log"
	record(x, later, nil)
	var sent bytes.Buffer
	if err := WriteRequest(&sent, req); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(sent.Bytes())
	all := r.records()
	a, b := all[0], all[1]
	if a.Turn != x.ID || a.Run != x.ID || a.Attempt != 2 || a.Cycle != 4 || a.At != rigNoon || a.Model != "test-1" || a.Stop != "end_turn" || a.Error != "" || a.Usage != reply.Call.Usage ||
		a.Context != 18 || a.SHA256 != hex.EncodeToString(sum[:]) || a.N == 0 || a.Session != x.Log || a.Topic == nil || a.Paging.Zone != "zone 1" || a.Episodes == nil || *a.Episodes != (room.Divided{Size: v.Size, Gone: 1}) {
		t.Errorf("%+v", a)
	}
	if b.Model != "test" || b.Stop != "error" || b.Error != strings.TrimSpace("model API: refusal: "+strings.Repeat("no ", 60))+"…" || b.Topic == nil || *b.Topic != *a.Topic {
		t.Errorf("of a call that failed: %q %q %q", b.Model, b.Stop, b.Error)
	}
	want := fmt.Sprint("false 0 false, true ", v.Until, " true, false ", v.Until, " true, false ", v.Until, " true, false 0 true")
	if got := strings.Join(pager.asked, ", "); got != want {
		t.Errorf("paging was told %q, want %q", got, want)
	}
	r.reads("1", `SELECT count(*) FROM prompts LIMIT 1`) // of all of them
}

// TestRecordThatFails: a record that cannot be written is warned of and fails nothing, and is nothing to warn of when the life
// is over.
func TestRecordThatFails(t *testing.T) {
	r := newRig(t, Settings{})
	r.faulty.refuses("INSERT INTO anatomy")
	r.anatomy(r.working(stateCalling), View{}, tidemark.Request{}, tidemark.Reply{}, nil)
	if got := r.warned.taken(); !strings.Contains(got, `msg="record anatomy" session=agent:main:main err="the disk is gone"`) {
		t.Errorf("logged %q", got)
	}
	life, end := context.WithCancel(t.Context())
	end()
	r.life = life
	r.anatomy(&run{ID: "r"}, View{}, tidemark.Request{}, tidemark.Reply{}, nil)
	if got := r.warned.taken(); got != "" {
		t.Errorf("logged at the end of the life: %q", got)
	}
}

// TestPromptWithAllParts: a prompt with tools and a long note is built again from what is kept of it, its room in memory is
// given back, and what is kept no more is named.
func TestPromptWithAllParts(t *testing.T) {
	r := newRig(t, Settings{})
	r.Session.Agent = offering{}
	held, asked := int64(0), 0
	r.Admit = func(bytes int64) (func(), bool) {
		held += bytes
		asked++
		return func() { held -= bytes }, true
	}
	r.person(strings.Repeat("The lighthouse stands on the pier. ", 40_000))
	v, err := r.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	req, x := r.request(v), r.working(stateCalling)
	req.Note = strings.Repeat("what was pushed ", 20)
	for range 2 {
		if err := r.recordCall(t.Context(), x, v, req, tidemark.Reply{}, nil); err != nil {
			t.Fatal(err)
		}
	}
	r.reads("3", `SELECT count(*) FROM prompts LIMIT 1`)
	n := r.records()[1].N
	used := 0
	failed := errors.New("who uses it fails")
	err = r.Prompt(t.Context(), n, func(p Prompt) error {
		used++
		if !p.Same() || p.Request.Note != req.Note || len(p.Request.Tools) != 1 || p.Request.System != req.System || held < 1<<20 || p.Record.N != n {
			t.Errorf("same %v, %d bytes held, %+v", p.Same(), held, p.Record)
		}
		return failed
	})
	if !errors.Is(err, failed) || used != 1 || held != 0 || asked != 1 {
		t.Errorf("%v, used %d times, %d bytes still held, asked %d times", err, used, held, asked)
	}
	never := func(Prompt) error { t.Error("used"); return nil }
	for _, row := range []struct{ text, what string }{{req.Note, "the note with hash"}, {mustJSON(req.Tools), "the list of tools with hash"}, {req.System, "the system text with hash"}} {
		r.exec(`DELETE FROM prompts WHERE text = ?`, row.text)
		if err := r.Prompt(t.Context(), n, never); !errors.Is(err, tidemark.ErrNotFound) || !strings.Contains(err.Error(), row.what) {
			t.Errorf("without %s: %v", row.what, err)
		}
	}
}

// TestRecordsOfOthers: a session reads its own records, page by page, and what its own calls of a run cost.
func TestRecordsOfOthers(t *testing.T) {
	r := newRig(t, Settings{})
	const many = `INSERT INTO anatomy(key, log, record) WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < ?) SELECT ?, 'log', ? FROM c`
	r.exec(many, 1, "agent:main:aunt", `{"run":"r","usage":{"input_tokens":100,"output_tokens":100}}`) // n 1
	r.exec(many, 2, string(r.Key), `{"run":"r","usage":{"input_tokens":5,"output_tokens":2}}`)         // 2, 3
	r.exec(many, 1, string(r.Key), `{"run":"q","usage":{"input_tokens":50,"output_tokens":20}}`)       // 4
	r.exec(many, 1, string(r.Key), `{"run":"damaged"}`)                                                // 5
	r.exec(many, 1000, string(r.Key), `{"run":"p","usage":{"input_tokens":1,"output_tokens":0}}`)      // 6 to 1005
	for _, row := range []struct {
		before      int64
		limit       int
		first, last int64
		n           int
	}{{0, 5000, 1005, 6, 1000}, {-7, 2, 1005, 1004, 2}, {1, 10, 0, 0, 0}, {2, 10, 0, 0, 0}, {3, 10, 2, 2, 1}, {6, 3, 5, 3, 3}} {
		page, err := r.Anatomies(t.Context(), row.before, row.limit)
		if err != nil || len(page) != row.n || row.n > 0 && (page[0].N != row.first || page[row.n-1].N != row.last) {
			t.Errorf("%d before %d: %d records, %v", row.limit, row.before, len(page), err)
		}
	}
	err := r.Prompt(t.Context(), 1, func(Prompt) error { t.Error("another's is read"); return nil })
	if !errors.Is(err, tidemark.ErrNotFound) {
		t.Error(err)
	}
	r.exec(`DELETE FROM anatomy WHERE key = ? AND n > 100`, string(r.Key))
	for run, want := range map[string]tidemark.Usage{"r": {Input: 10, Output: 4}, "q": {Input: 50, Output: 20}, "none": {}} {
		if got := r.runUsage(t.Context(), run); got != want {
			t.Errorf("run %s cost %+v, want %+v", run, got, want)
		}
	}
	if got := r.warned.taken(); got != "" {
		t.Errorf("logged %q", got)
	}
	for _, refused := range []string{"", "json_extract(record"} {
		r.faulty.refuses(refused)
		if got := r.runUsage(t.Context(), "damaged"); got != (tidemark.Usage{}) {
			t.Errorf("%+v", got)
		}
		if got := r.warned.taken(); !strings.Contains(got, `msg="read what a turn has spent"`) {
			t.Errorf("without %q: logged %q", refused, got)
		}
	}
}

// TestWrittenRequest: the canonical JSON of a request, byte for byte.
func TestWrittenRequest(t *testing.T) {
	var raw tidemark.Message
	if err := json.Unmarshal([]byte(`{"role":"user","content":[{"type":"text","text":"a","x":1.0},{"type":"text","text":"b"}]}`), &raw); err != nil {
		t.Fatal(err)
	}
	made := tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.Text("c"), tidemark.Text("d"), raw.Content[0], tidemark.Text("e")}}
	tools := []tidemark.Tool{{Name: "look", Description: "l", InputSchema: []byte(`{}`)}, {Name: "send", Description: "s", InputSchema: []byte(`{"a":1}`)}}
	for _, row := range []struct {
		name string
		req  tidemark.Request
		want string
	}{
		{"nothing", tidemark.Request{}, `{"model":"","system":"","tools":[],"messages":[],"max_tokens":0,"note":""}`},
		{"everything", tidemark.Request{Model: "m", System: "s \"q\"", Tools: tools, MaxTokens: 12, Note: "n", Options: []tidemark.Option{{Name: "stop", Value: []byte(`"x"`)}},
			Messages: []tidemark.Message{tidemark.NewText(tidemark.User, "bare"), raw, made, {Role: tidemark.User}}},
			`{"model":"m","system":"s \"q\"","tools":[{"name":"look","description":"l","input_schema":{}},{"name":"send","description":"s","input_schema":{"a":1}}],"messages":[` +
				`{"role":"user","content":"bare"},{"role":"user","content":[{"type":"text","text":"a","x":1.0},{"type":"text","text":"b"}]},` +
				`{"role":"assistant","content":[{"type":"text","text":"c"},{"type":"text","text":"d"},{"type":"text","text":"a","x":1.0},{"type":"text","text":"e"}]},{"role":"user","content":[]}` +
				`],"max_tokens":12,"note":"n","options":[{"Name":"stop","Value":"x"}]}`},
	} {
		var got bytes.Buffer
		if err := WriteRequest(&got, row.req); err != nil || got.String() != row.want {
			t.Errorf("%s: %v\n got %s\nwant %s", row.name, err, got.String(), row.want)
		}
		whole := 0
		for range pieces(row.req) {
			whole++
		}
		for most := 1; most <= whole; most++ { // whoever stops is not given more
			n := 0
			for range pieces(row.req) {
				if n++; n == most {
					break
				}
			}
		}
	}
}
