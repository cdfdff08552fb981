package toolset

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host/hosttest"
	"github.com/tidemark-ai/tidemark/room"
)

const mine tidemark.Key = "agent:main:main"

// still is a runtime whose clock stands until a test moves it.
type still struct {
	tidemark.Runtime
	now time.Time
}

func (s *still) Now() time.Time { return s.now }

// plain is a toolbox that can say nothing of its configuration, and box one that can, and knows what its sources changed.
type plain struct {
	tools   []tidemark.Tool
	missing []string
	lists   int
	scope   tidemark.Scope
	listed  func()
}

func (b *plain) Tools(_ context.Context, s tidemark.Scope) ([]tidemark.Tool, []string) {
	b.lists, b.scope = b.lists+1, s
	if b.listed != nil {
		b.listed()
	}
	return b.tools, b.missing
}

func (b *plain) Call(context.Context, tidemark.Scope, tidemark.Block) tidemark.Block {
	return tidemark.Block{}
}

type box struct {
	plain
	mark  string
	asked string
	drift bool
}

func (b *box) Mark() string { return b.mark }

func (b *box) Changed(_ context.Context, _ tidemark.Scope, name, mark string) bool {
	b.asked = name + " " + mark
	return b.drift
}

// bench is a room over the tables that it reads of a session, in which others have lists, too.
type bench struct {
	*testing.T
	*Room
	clock  *still
	warned []string
}

func newBench(t *testing.T, of tidemark.Toolbox) *bench {
	t.Helper()
	b := &bench{T: t, clock: &still{Runtime: hosttest.Runtime(t), now: time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)}}
	db := hosttest.DB(t)
	b.open(db, of)
	if err := b.Made.Open(t.Context(), tables); err != nil {
		t.Fatal(err)
	}
	b.exec(`CREATE TABLE heads(key TEXT PRIMARY KEY, prompt_day TEXT NOT NULL)`)
	b.exec(`INSERT INTO heads(key, prompt_day) VALUES('agent:main:aunt', 'monday'), (?, 'monday'), ('agent:main:zoe', 'monday')`, string(mine))
	b.exec(`INSERT INTO toolsets(key, day, list) VALUES('agent:main:aunt', 'monday', '{"tools":[{"name":"theirs"}]}'), ('agent:main:zoe', 'monday', '{"tools":[{"name":"theirs"}]}')`)
	t.Cleanup(func() {
		if rows := b.rows(`SELECT count(*) FROM toolsets WHERE key <> ? AND list LIKE '%theirs%' LIMIT 1`, string(mine)); rows != "2" {
			t.Errorf("of others there are %s lists", rows)
		}
	})
	return b
}

// open begins a life.
func (b *bench) open(db tidemark.DB, of tidemark.Toolbox) {
	p := room.Ports{Toolbox: of, Self: room.Self{Key: mine, DB: db, Made: &room.Made{DB: db}, Runtime: b.clock, Logger: slog.New(slog.DiscardHandler), Warn: func(what string, err error) { b.warned = append(b.warned, what) }}}
	b.Room = Make(p).(*Room)
}

func (b *bench) exec(sql string, args ...any) {
	b.Helper()
	hosttest.Exec(b.T, b.DB, sql, args...)
}

// rows are those of a query of one text.
func (b *bench) rows(sql string, args ...any) string {
	b.Helper()
	return hosttest.Lines(b.T, b.DB, sql, args...)
}

// offers are the names that are offered.
func (b *bench) offers() string {
	b.Helper()
	list, err := b.Offer(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	var out []string
	for _, t := range list {
		out = append(out, t.Name)
	}
	return strings.Join(out, " ")
}

func tool(name string) tidemark.Tool {
	return tidemark.Tool{Name: name, InputSchema: []byte(`{}`), Idempotent: true, Timeout: 7 * time.Second, Mark: "m-" + name}
}

// TestOfferIsFrozen: a list is made once and stays with the prompt, over lives, with all that is known of its tools.
func TestOfferIsFrozen(t *testing.T) {
	of := &box{plain: plain{tools: []tidemark.Tool{tool("a__x"), tool("b__y")}}, mark: "one"}
	b := newBench(t, of)
	if got := b.offers(); got != "a__x b__y" || of.scope.Key != mine || !of.scope.Owner {
		t.Errorf("offered %s, asked for %+v", got, of.scope)
	}
	if got := b.rows(`SELECT day || ' ' || list FROM toolsets WHERE key = ? LIMIT 2`, string(mine)); got != fmt.Sprintf(`monday {"mark":"one","at":%d,"tools":[{"name":"a__x","description":"","input_schema":{},"idempotent":true,"timeoutMs":7000,"mark":"m-a__x"},{"name":"b__y","description":"","input_schema":{},"idempotent":true,"timeoutMs":7000,"mark":"m-b__y"}]}`, b.clock.now.UnixMilli()) {
		t.Errorf("row %s", got)
	}
	of.tools = of.tools[:1]
	for _, step := range []struct {
		name  string
		does  func()
		want  string
		lists int
	}{
		{"as it was", func() {}, "a__x b__y", 1},
		{"in another life", func() { b.open(b.DB, of) }, "a__x b__y", 1},
		{"thawed", b.Thaw, "a__x b__y", 1}, // of the life before
		{"thawed now", func() { b.Thaw() }, "a__x", 2},
		{"and not again", func() {}, "a__x", 2},
		{"another configuration", func() { of.mark, of.tools = "two", []tidemark.Tool{tool("c__z")} }, "c__z", 3},
		{"another prompt, in this life", func() { b.exec(`UPDATE heads SET prompt_day = 'tuesday' WHERE key = ?`, string(mine)) }, "c__z", 3},
		{"another prompt, in another life", func() { of.tools = []tidemark.Tool{tool("d__z")}; b.open(b.DB, of) }, "d__z", 4},
		{"what cannot be read", func() { b.exec(`UPDATE toolsets SET list = '{' WHERE key = ?`, string(mine)); b.open(b.DB, of) }, "d__z", 5},
	} {
		if step.does(); b.offers() != step.want || of.lists != step.lists {
			t.Errorf("%s: offered %s behind %d lists, want %s behind %d", step.name, b.offers(), of.lists, step.want, step.lists)
		}
	}
	if len(b.warned) != 1 {
		t.Errorf("warned of %q", b.warned)
	}
	b.open(b.DB, of)
	if got, ok := b.Offered("d__z"); ok {
		t.Errorf("before a list was offered it has %+v", got)
	}
	b.offers()
	if got, ok := b.Offered("d__z"); !ok || !got.Idempotent || got.Timeout != 7*time.Second || got.Mark != "m-d__z" {
		t.Errorf("of another life it knows %+v, %v", got, ok)
	}
	if got, ok := b.Offered("d__"); ok || got.Name != "" {
		t.Errorf("a tool that is not offered: %+v", got)
	}
	b.open(b.DB, nil)
	if list, err := b.Offer(t.Context()); list != nil || err != nil {
		t.Errorf("without a toolbox: %v, %v", list, err)
	}
}

// TestOfferOfMissing: the tools of a source that is away stay as they were, and it is asked again in a minute, by whatever clock.
func TestOfferOfMissing(t *testing.T) {
	of := &box{plain: plain{tools: []tidemark.Tool{tool("a__x"), tool("ab__x"), tool("b__y")}}, mark: "one"}
	b := newBench(t, of)
	b.offers()
	of.tools, of.missing = []tidemark.Tool{tool("b__z")}, []string{"a"}
	b.Thaw()
	begun := b.clock.now
	for _, step := range []struct {
		behind time.Duration
		want   string
		lists  int
	}{{0, "b__z a__x", 2}, {0, "b__z a__x", 2}, {time.Minute - 1, "b__z a__x", 2}, {time.Minute, "b__z a__x", 3}, {time.Minute - time.Hour, "b__z a__x", 4}} {
		b.clock.now = begun.Add(step.behind)
		if got := b.offers(); got != step.want || of.lists != step.lists {
			t.Errorf("%s behind: offered %s behind %d lists, want %s behind %d", step.behind, got, of.lists, step.want, step.lists)
		}
	}
	if got := b.rows(`SELECT list ->> '$.missing' FROM toolsets WHERE key = ? LIMIT 2`, string(mine)); got != `["a"]` {
		t.Errorf("missing %s", got)
	}
	of.mark = "two" // of another configuration nothing is known of what it had
	if got := b.offers(); got != "b__z" {
		t.Errorf("of another configuration: %s", got)
	}
	of.missing, b.clock.now = nil, begun.Add(time.Hour)
	lists := of.lists
	b.offers()
	b.clock.now = begun.Add(2 * time.Hour)
	if b.offers(); of.lists != lists+1 {
		t.Errorf("with nothing missing it is asked %d times more", of.lists-lists)
	}
	p := &plain{tools: []tidemark.Tool{tool("a__x")}}
	b = newBench(t, p)
	b.offers()
	if b.offers() != "a__x" || p.lists != 1 {
		t.Errorf("of one that says nothing of its configuration: %d lists", p.lists)
	}
}

// TestChangedBehind: a tool whose source changed it is told as that, and the list is made anew.
func TestChangedBehind(t *testing.T) {
	of := &box{plain: plain{tools: []tidemark.Tool{tool("a__x"), {Name: "b__y", InputSchema: []byte(`{}`)}}}, mark: "one", drift: true}
	b := newBench(t, of)
	if b.Changed(t.Context(), "a__x") {
		t.Error("before it was offered it is changed")
	}
	b.offers()
	for name, want := range map[string]bool{"a__x": true, "b__y": false, "c__z": false} { // one without a mark, and one that is not there
		if got := b.Changed(t.Context(), name); got != want {
			t.Errorf("%s: changed %v", name, got)
		}
	}
	if b.offers(); of.lists != 2 || of.asked != "a__x m-a__x" {
		t.Errorf("%d lists, asked of %q", of.lists, of.asked)
	}
	of.drift = false
	if b.Changed(t.Context(), "a__x") {
		t.Error("it is changed still")
	}
	if b.offers(); of.lists != 2 {
		t.Errorf("of what is not changed %d lists are made", of.lists)
	}
	b = newBench(t, &plain{tools: []tidemark.Tool{tool("a__x")}})
	b.offers()
	if b.Changed(t.Context(), "a__x") {
		t.Error("of a toolbox that cannot tell it is changed")
	}
}

// TestOfferEnds: a list that is asked for by who has left is not kept.
func TestOfferEnds(t *testing.T) {
	of := &box{plain: plain{tools: []tidemark.Tool{tool("a__x")}}}
	b := newBench(t, of)
	ctx, cancel := context.WithCancel(t.Context())
	of.listed = cancel
	if _, err := b.Offer(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if got := b.rows(`SELECT count(*) FROM toolsets WHERE key = ? LIMIT 1`, string(mine)); got != "0" {
		t.Errorf("%s lists are kept", got)
	}
}
