package anatomy

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
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/host/hosttest"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/paging"
	"github.com/tidemark-ai/tidemark/room"
)

// rig is a room whose session is played: asked is what paging was told, texts those that are kept under their hashes, seen the
// view that a log had, and given how often it was lent and given back.
type rig struct {
	*Room
	t     *testing.T
	asked []string
	texts map[string]string
	seen  compaction.View
	given int
}

func newRig(t *testing.T) *rig {
	r := &rig{t: t, texts: map[string]string{}}
	db := hosttest.DB(t)
	if _, err := host.OpenLog(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	p := room.Ports{Self: room.Self{Key: "agent:main:main", DB: db, Made: &room.Made{DB: db}, Runtime: hosttest.Runtime(t)}}
	p.Budget = func() compaction.Budget { return compaction.Budget{Window: 8000, Reserve: 4000} }
	p.Records = room.Records{Base: func() string { return "You are a gauge." },
		Keep: func(hash, text string) tidemark.Stmt {
			r.texts[hash] = text
			return tidemark.Stmt{SQL: `SELECT 1 LIMIT 1`}
		},
		Kept: func(_ context.Context, hash string) (string, error) {
			text, ok := r.texts[hash]
			if !ok {
				return "", tidemark.ErrNotFound
			}
			return text, nil
		},
		AsOf: func(_ context.Context, log string, until int64, use func(compaction.View) error) error {
			r.given++
			if log != "log" || until != 9 {
				t.Errorf("the view of %s as of %d is asked for", log, until)
			}
			defer func() { r.given-- }()
			return use(r.seen)
		},
		Paged: func(_ compaction.View, again bool, since int64, before *paging.Account) *paging.Account {
			r.asked = append(r.asked, fmt.Sprint(again, " ", since, " ", before != nil))
			return &paging.Account{Zone: fmt.Sprint("zone ", len(r.asked))}
		},
		Divided: func(_ context.Context, v room.Seen) *room.Divided {
			return &room.Divided{Size: v.Size, Gone: len(r.asked)}
		},
	}
	r.Room = Make(p).(*Room)
	return r
}

// records returns the records, the oldest first.
func (r *rig) records() (out []Record) {
	r.t.Helper()
	page, err := r.All(r.t.Context(), 0, 100)
	if err != nil {
		r.t.Fatal(err)
	}
	for i := range page {
		out = append(out, page[len(page)-1-i])
	}
	return out
}

func (r *rig) keeps(c room.Sent) {
	r.t.Helper()
	if err := r.Record(r.t.Context(), c); err != nil {
		r.t.Fatal(err)
	}
}

// sent is a call of a view with one message.
func sent(t *testing.T) room.Sent {
	c := dissected(t, 286)
	c.Run, c.Attempt, c.Compactions = "r", 2, 4
	c.Request = tidemark.Request{Model: "test", System: "You are a gauge. And memory.", Messages: c.Seen.Messages()}
	c.Call = tidemark.Call{Model: "test-1", Stop: "end_turn", Usage: tidemark.Usage{Input: 10, CacheRead: 5, Output: 3}}
	return c
}

// TestRecordOfACall: what a record tells of the call beside its context, also of one that failed, and what paging is told of
// the call before it.
func TestRecordOfACall(t *testing.T) {
	r, c := newRig(t), sent(t)
	if all := r.records(); len(all) != 0 {
		t.Fatalf("before the first call: %+v", all)
	}
	r.keeps(c)
	failed := c
	failed.Call, failed.Failed = tidemark.Call{}, "model API: refusal: "+strings.Repeat("no ", 100)
	r.keeps(failed)
	later := c
	later.Last++
	r.keeps(later)
	another := later
	another.Run = "another"
	r.keeps(another)
	another.Run, another.Seen.Log = "r", "another log"
	r.keeps(another)
	var body bytes.Buffer
	if err := WriteRequest(&body, c.Request); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(body.Bytes())
	all := r.records()
	a, b := all[0], all[1]
	if a.Turn != "r" || a.Run != "r" || a.Attempt != 2 || a.Cycle != 4 || a.At == 0 || a.Model != "test-1" || a.Stop != "end_turn" || a.Error != "" || a.Usage != c.Call.Usage ||
		a.Context != 18 || a.SHA256 != hex.EncodeToString(sum[:]) || a.N == 0 || a.Session != "log" || a.Limit != 4000 || a.Workspace == 0 || a.Topic == nil || a.Paging.Zone != "zone 1" ||
		a.Episodes == nil || *a.Episodes != (room.Divided{Size: c.Seen.Size, Gone: 1}) {
		t.Errorf("%+v", a)
	}
	if b.Model != "test" || b.Stop != "error" || b.Error != strings.TrimSpace("model API: refusal: "+strings.Repeat("no ", 60))+"…" || b.Topic == nil || *b.Topic != *a.Topic {
		t.Errorf("of a call that failed: %q %q %q", b.Model, b.Stop, b.Error)
	}
	if got, want := strings.Join(r.asked, ", "), "false 0 false, true 9 true, false 9 true, false 9 true, false 0 true"; got != want {
		t.Errorf("paging was told %q, want %q", got, want)
	}
	if len(r.texts) != 1 {
		t.Errorf("%d texts are kept", len(r.texts))
	}
}

// TestPushed: what was pushed to the newest call is told where that was of the log and did not fail.
func TestPushed(t *testing.T) {
	r, c := newRig(t), sent(t)
	pushed := func(log string, want bool) {
		t.Helper()
		if n, err := r.Pushed(t.Context(), log); err != nil || n > 0 != want {
			t.Errorf("%d, %v", n, err)
		}
	}
	pushed("log", false)
	c.Request.Note = "what was pushed"
	r.keeps(c)
	pushed("log", true)
	pushed("another", false)
	c.Failed = "no"
	r.keeps(c)
	pushed("log", false)
}

// TestPromptWithAllParts: a prompt with tools and a long note is built again from what is kept of it, the view is given back,
// and what is kept no more is named.
func TestPromptWithAllParts(t *testing.T) {
	r, c := newRig(t), sent(t)
	c.Request.Note, c.Request.Tools = strings.Repeat("what was pushed ", 20), []tidemark.Tool{{Name: "look", InputSchema: []byte(`{"type":"object"}`)}}
	r.seen = c.Seen.View
	r.keeps(c)
	r.keeps(c)
	if len(r.texts) != 3 {
		t.Errorf("%d texts are kept", len(r.texts))
	}
	n := r.records()[1].N
	used := 0
	failed := errors.New("who uses it fails")
	err := r.Prompt(t.Context(), n, func(p Prompt) error {
		used++
		if !p.Same() || p.Request.Note != c.Request.Note || len(p.Request.Tools) != 1 || p.Request.System != c.Request.System || r.given != 1 || p.Record.N != n {
			t.Errorf("same %v, %d views held, %+v", p.Same(), r.given, p.Record)
		}
		return failed
	})
	if !errors.Is(err, failed) || strings.Contains(err.Error(), "prompt of call") || used != 1 || r.given != 0 {
		t.Errorf("%v, used %d times, %d views still held", err, used, r.given)
	}
	never := func(Prompt) error { t.Error("used"); return nil }
	for _, row := range []struct{ text, what string }{{c.Request.Note, "the note with hash"}, {room.JSON(c.Request.Tools), "the list of tools with hash"}, {c.Request.System, "the system text with hash"}} {
		delete(r.texts, string(tidemark.HashOf([]byte(row.text))))
		if err := r.Prompt(t.Context(), n, never); !errors.Is(err, tidemark.ErrNotFound) || !strings.Contains(err.Error(), row.what) {
			t.Errorf("without %s: %v", row.what, err)
		}
	}
}

// TestRecordsOfOthers: a room reads the records of its own conversation, page by page, and what its own calls of a run cost.
func TestRecordsOfOthers(t *testing.T) {
	r := newRig(t)
	if err := r.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	const many = `INSERT INTO anatomy(key, log, record) WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < ?) SELECT ?, 'log', ? FROM c`
	exec := func(n int, key, record string) {
		hosttest.Exec(t, r.DB, many, n, key, record)
	}
	exec(1, "agent:main:aunt", `{"run":"r","usage":{"input_tokens":100,"output_tokens":100}}`) // n 1
	exec(2, string(r.Key), `{"run":"r","usage":{"input_tokens":5,"output_tokens":2}}`)         // 2, 3
	exec(1, string(r.Key), `{"run":"q","usage":{"input_tokens":50,"output_tokens":20}}`)       // 4
	exec(1, string(r.Key), `{"run":"damaged"}`)                                                // 5
	exec(1000, string(r.Key), `{"run":"p","usage":{"input_tokens":1,"output_tokens":0}}`)      // 6 to 1005
	for _, row := range []struct {
		before      int64
		limit       int
		first, last int64
		n           int
	}{{0, 5000, 1005, 6, 1000}, {-7, 2, 1005, 1004, 2}, {1, 10, 0, 0, 0}, {2, 10, 0, 0, 0}, {3, 10, 2, 2, 1}, {6, 3, 5, 3, 3}} {
		page, err := r.All(t.Context(), row.before, row.limit)
		if err != nil || len(page) != row.n || row.n > 0 && (page[0].N != row.first || page[row.n-1].N != row.last) {
			t.Errorf("%d before %d: %d records, %v", row.limit, row.before, len(page), err)
		}
	}
	err := r.Prompt(t.Context(), 1, func(Prompt) error { t.Error("another's is read"); return nil })
	if !errors.Is(err, tidemark.ErrNotFound) {
		t.Error(err)
	}
	hosttest.Exec(t, r.DB, `DELETE FROM anatomy WHERE key = ? AND n > 100`, string(r.Key))
	for run, want := range map[string]tidemark.Usage{"r": {Input: 10, Output: 4}, "q": {Input: 50, Output: 20}, "none": {}} {
		if got, err := r.Usage(t.Context(), run); got != want || err != nil {
			t.Errorf("run %s cost %+v, %v, want %+v", run, got, err, want)
		}
	}
	if got, err := r.Usage(t.Context(), "damaged"); got != (tidemark.Usage{}) || err == nil {
		t.Errorf("%+v, %v", got, err)
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
