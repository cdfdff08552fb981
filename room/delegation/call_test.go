package delegation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/approval"
	"github.com/tidemark-ai/tidemark/host/hosttest"
	"github.com/tidemark-ai/tidemark/room"
)

// stepped is a runtime whose clock moves by what is slept.
type stepped struct {
	tidemark.Runtime
	now   time.Time
	slept []time.Duration
}

func (s *stepped) Now() time.Time { return s.now }

func (s *stepped) Sleep(ctx context.Context, d time.Duration) error {
	s.slept, s.now = append(s.slept, d), s.now.Add(d)
	return context.Cause(ctx)
}

// family are children that answer by what a test says, and note what they are asked.
type family struct {
	work func(ctx context.Context, n int) (tidemark.Outcome, error)
	n    int
	did  []string
	text string
	err  error
}

func (f *family) Work(ctx context.Context, key tidemark.Key, e tidemark.Errand) (tidemark.Outcome, error) {
	f.n++
	f.did = append(f.did, fmt.Sprint("work ", key, " ", e.ID, " ", e.Text, " ", e.Limits.Budget))
	return f.work(ctx, f.n)
}

func (f *family) Drop(_ context.Context, key tidemark.Key, id string) error {
	f.did = append(f.did, fmt.Sprint("drop ", key, " ", id))
	return f.err
}

func (f *family) Read(_ context.Context, key tidemark.Key, entry tidemark.EntryID, offset int) (string, error) {
	f.did = append(f.did, fmt.Sprint("read ", key, " ", entry, " ", offset))
	return f.text, f.err
}

var errDown = errors.New("the database is down")

// store notes what it writes, and may be down.
type store struct {
	tidemark.DB
	wrote []string
	down  bool
}

func (s *store) Tx(_ context.Context, stmts []tidemark.Stmt) error {
	if s.down {
		return errDown
	}
	for _, x := range stmts {
		s.wrote = append(s.wrote, x.SQL)
	}
	return nil
}

// bench is a room with children of which a test says what they do.
type bench struct {
	*Room
	kids    *family
	store   *store
	clock   *stepped
	account room.Account
	failing error // of the account
	limits  tidemark.Limits
	offered []string
	warned  []string
	end     context.CancelFunc // of this life
}

func newBench(t *testing.T, key tidemark.Key, c Config) *bench {
	t.Helper()
	b := &bench{kids: &family{}, store: &store{}, clock: &stepped{Runtime: hosttest.Runtime(t), now: time.Unix(1000, 0)}, offered: []string{"look", "find", "files__read"}}
	life, end := context.WithCancel(context.Background())
	b.end = end
	t.Cleanup(end)
	if c.Children == nil {
		c.Children = b.kids
	}
	b.Room = Make(c)(room.Ports{
		Self: room.Self{Key: key, DB: b.store, Runtime: b.clock, Life: life, MayChange: func(o tidemark.Origin) bool { return o.Owner },
			Warn: func(what string, err error) { b.warned = append(b.warned, what) }},
		Allowance: room.Allowance{Limits: func() tidemark.Limits { return b.limits },
			Offered: func(context.Context) (out []tidemark.Tool, err error) {
				for _, name := range b.offered {
					out = append(out, tidemark.Tool{Name: name})
				}
				return out, b.failing
			},
			Account: func(context.Context, room.Call) (room.Account, error) { return b.account, b.failing },
			Spend:   func(_ room.Call, n tidemark.Tokens) tidemark.Stmt { return tidemark.Stmt{SQL: fmt.Sprint("spend ", n)} },
		}}).(*Room)
	return b
}

const parent tidemark.Key = "agent:main:main"

func calls(input string) room.Call {
	return room.Call{Turn: room.Turn{Run: "r", Round: 2, Origins: []tidemark.Origin{{Owner: true}}}, N: 3, ID: "c", Tool: room.DelegateTool, Input: []byte(input), Fence: func() tidemark.Stmt { return tidemark.Stmt{SQL: "fence"} }}
}

// TestBegetting: what a call may delegate, and what it is told where it may not.
func TestBegetting(t *testing.T) {
	task := func(n int) string { return `{"task":"` + strings.Repeat("x", n) + `"}` }
	for _, tc := range []struct {
		name    string
		input   string
		before  int
		owner   bool
		failing error
		says    string // "": it may
	}{
		{"a task", `{"task":"go"}`, 0, true, nil, ""},
		{"none", `{"task":" "}`, 0, true, nil, `want {"task": what is to be done}`},
		{"what cannot be read", `{`, 0, true, nil, `want {"task": what is to be done}`},
		{"as long as may be", task(maxTask), 0, true, nil, ""},
		{"longer", task(maxTask + 1), 0, true, nil, "the task has 65537 bytes, at most 65536"},
		{"as little as may be", `{"task":"go","budget":2000}`, 0, true, nil, ""},
		{"less", `{"task":"go","budget":1999}`, 0, true, nil, "budget 1999: want 2000 tokens or more, or none"},
		{"less than none", `{"task":"go","budget":-1}`, 0, true, nil, "budget -1: want 2000 tokens or more, or none"},
		{"by another", `{"task":"go"}`, 0, false, nil, "this turn answers somebody else, and only the owner's turns delegate"},
		{"the last of a turn", `{"task":"go"}`, 7, true, nil, ""},
		{"one more", `{"task":"go"}`, 8, true, nil, "this turn delegated 8 times, which is the most (delegation.maxChildren)"},
		{"nobody can tell", `{"task":"go"}`, 0, true, errDown, "count what was delegated: the database is down"},
		{"no tools", `{"task":"go","tools":["nosuch"]}`, 0, true, nil, "tools: none of yours is named so; you have look, find, files__read"},
	} {
		b := newBench(t, parent, Config{})
		b.account.Before, b.failing = tc.before, tc.failing
		c := calls(tc.input)
		c.Origins = append(c.Origins, tidemark.Origin{Owner: tc.owner})
		ch, err := b.begetting(t.Context(), c)
		if (err == nil) != (tc.says == "") || err != nil && !strings.HasPrefix(inWords(err), tc.says) || err == nil && (ch.errand.Text == "" || ch.errand.Limits.Depth != 1) {
			t.Errorf("%s: %+v, %v", tc.name, ch, err)
		}
		if b.kids.work = func(context.Context, int) (tidemark.Outcome, error) { return tidemark.Outcome{Text: "done"}, nil }; tc.says != "" {
			if got := b.Call(t.Context(), c); !got.IsError || !strings.HasPrefix(got.Content[0].Text, "Not delegated: "+tc.says) || len(b.kids.did) > 0 {
				t.Errorf("%s: the model reads %q", tc.name, got.Content[0].Text)
			}
		}
	}
}

// TestChildOf: a child is named by the place of its call, the same in every life and another for every other call.
func TestChildOf(t *testing.T) {
	b := newBench(t, parent, Config{})
	first := b.childOf(calls(`{}`))
	if b.childOf(calls(`{"task":"x"}`)).key != first.key || !strings.HasPrefix(string(first.key), "agent:main:delegate:dm:") || len(first.errand.ID) != 24 || first.key.Peer() != first.errand.ID {
		t.Errorf("child %+v", first)
	}
	if o := first.errand.Origin; o.From != tidemark.FromAgent || o.Channel != tidemark.ChannelDelegate || o.Peer != string(parent) || o.Owner {
		t.Errorf("it is asked by %+v", o)
	}
	seen := map[tidemark.Key]bool{first.key: true}
	for i, change := range []func(*room.Call){func(c *room.Call) { c.Run = "s" }, func(c *room.Call) { c.Round = 3 }, func(c *room.Call) { c.N = 4 }, func(c *room.Call) { c.ID = "d" }} {
		c := calls(`{}`)
		change(&c)
		if key := b.childOf(c).key; seen[key] {
			t.Errorf("change %d: the same child", i)
		} else {
			seen[key] = true
		}
	}
	if key := newBench(t, "agent:main:local:dm:x", Config{}).childOf(calls(`{}`)).key; seen[key] {
		t.Error("two conversations have one child")
	}
}

// TestLimitsOf: a child has at most what this conversation has, and of its tools those that are named.
func TestLimitsOf(t *testing.T) {
	many := make([]string, approval.MaxGlobs+1)
	for i := range many {
		many[i] = fmt.Sprint("tool", i)
	}
	for _, tc := range []struct {
		name    string
		offered []string
		mine    []string
		globs   []string
		want    []string
		says    string
	}{
		{"not narrowed", nil, nil, nil, nil, ""}, {"as narrow as here", nil, []string{"l*"}, nil, []string{"l*"}, ""},
		{"narrowed", nil, nil, []string{"l*", "files__*"}, []string{"l*", "files__*"}, ""}, {"narrowed further", nil, []string{"*"}, []string{"l*", "files__*"}, []string{"look", "files__read"}, ""},
		{"to nothing", nil, []string{"*"}, []string{"x*"}, nil, "tools: none of yours is named so; you have look, find, files__read"}, {"by no glob", nil, nil, []string{""}, nil, "tools"},
		{"as many as may be", many[1:], []string{"*"}, []string{"tool*"}, many[1:], ""}, {"more", many, []string{"*"}, []string{"tool*"}, nil, "tools: 129 are named, at most 128"},
		{"more, where nothing is narrowed", many, nil, []string{"tool*"}, []string{"tool*"}, ""},
	} {
		b := newBench(t, parent, Config{})
		if b.limits.Tools = tc.mine; tc.offered != nil {
			b.offered = tc.offered
		}
		l, err := b.limitsOf(t.Context(), tc.globs, 0)
		if !slices.Equal(l.Tools, tc.want) || (err == nil) != (tc.says == "") || err != nil && !strings.HasPrefix(err.Error(), tc.says) {
			t.Errorf("%s: %.100q, %v", tc.name, l.Tools, err)
		}
	}
	b := newBench(t, parent, Config{Budget: 5000})
	for asked, want := range map[tidemark.Tokens]tidemark.Tokens{0: 5000, 1: 1, 4999: 4999, 6000: 5000} {
		if l, err := b.limitsOf(t.Context(), nil, asked); err != nil || l.Budget != want || l.Depth != 1 {
			t.Errorf("asked for %d: %+v, %v", asked, l, err)
		}
	}
	b.failing = errDown
	if _, err := b.limitsOf(t.Context(), []string{"l*"}, 0); !errors.Is(err, errDown) {
		t.Errorf("nobody can tell the tools: %v", err)
	}
}

// TestWorkOf: a child that was cut off is asked again, some times, after longer and longer pauses.
func TestWorkOf(t *testing.T) {
	down := fmt.Errorf("away: %w", tidemark.ErrUnavailable)
	seconds := func(of ...int) (out []time.Duration) {
		for _, n := range of {
			out = append(out, time.Duration(n)*time.Second)
		}
		return out
	}
	for _, tc := range []struct {
		name  string
		errs  []error
		lasts map[int]time.Duration // of a try
		tries int
		slept []time.Duration
		err   error
	}{
		{"at once", []error{nil}, nil, 1, nil, nil},
		{"behind four cuts", []error{down, tidemark.ErrDead, tidemark.ErrBusy, down, nil}, nil, 5, seconds(1, 2, 4, 8), nil},
		{"behind five", []error{down, down, down, down, down}, nil, 5, seconds(1, 2, 4, 8), tidemark.ErrUnavailable},
		{"refused", []error{tidemark.ErrInvalid}, nil, 1, nil, tidemark.ErrInvalid},
		{"behind a long one it is the first again", []error{down, down, down, down, down, down, down}, map[int]time.Duration{3: childLong}, 7, seconds(1, 2, 1, 2, 4, 8), tidemark.ErrUnavailable},
		{"nearly as long is not", []error{down, down, down, down, down}, map[int]time.Duration{3: childLong - 1}, 5, seconds(1, 2, 4, 8), tidemark.ErrUnavailable},
	} {
		b := newBench(t, parent, Config{})
		b.kids.work = func(_ context.Context, n int) (tidemark.Outcome, error) {
			b.clock.now = b.clock.now.Add(tc.lasts[n])
			return tidemark.Outcome{Text: fmt.Sprint(n)}, tc.errs[n-1]
		}
		out, err := b.workOf(t.Context(), child{key: "k"})
		if !errors.Is(err, tc.err) || b.kids.n != tc.tries || !slices.Equal(b.clock.slept, tc.slept) || out.Text != fmt.Sprint(tc.tries) {
			t.Errorf("%s: %v behind %d tries, slept %v", tc.name, err, b.kids.n, b.clock.slept)
		}
	}
	for name, end := range map[string]func(b *bench, cancel func()){"its turn": func(_ *bench, cancel func()) { cancel() }, "this life": func(b *bench, _ func()) { b.end() }} {
		b := newBench(t, parent, Config{})
		ctx, cancel := context.WithCancel(t.Context())
		b.kids.work = func(context.Context, int) (tidemark.Outcome, error) {
			end(b, cancel)
			return tidemark.Outcome{}, down
		}
		if _, err := b.workOf(ctx, child{key: "k"}); !errors.Is(err, tidemark.ErrUnavailable) || b.kids.n != 1 {
			t.Errorf("behind the end of %s: %v behind %d tries", name, err, b.kids.n)
		}
		cancel()
	}
}

// TestDelegated: what the parent reads of a child, what is dropped of it, and what it has spent.
func TestDelegated(t *testing.T) {
	for _, tc := range []struct {
		name  string
		out   tidemark.Outcome
		err   error
		want  string
		wrote string
		drops bool
	}{
		{"an answer", tidemark.Outcome{Text: "done", Spent: 50, Entry: "e"}, nil, "false [Answer of KEY, which spent 50 tokens. Recall with entry KEY/e reads it again, with scope agent it finds what led there.]\n\ndone", "fence,spend 100000,fence,spend 50", false},
		{"a failure", tidemark.Outcome{Error: "no key", Spent: 7}, nil, "true [KEY failed, having spent 7 tokens: no key. Recall with scope agent finds what was said there.]", "fence,spend 100000,fence,spend 7", false},
		{"refused", tidemark.Outcome{}, fmt.Errorf("no such tool: %w", tidemark.ErrInvalid), "true KEY could not be asked: no such tool", "fence,spend 100000,fence,spend 0", false},
		{"away", tidemark.Outcome{}, tidemark.ErrDead, "true KEY could not be asked: " + tidemark.ErrDead.Error(), "fence,spend 100000", true},
	} {
		b := newBench(t, parent, Config{})
		b.kids.work = func(context.Context, int) (tidemark.Outcome, error) { return tc.out, tc.err }
		c := calls(`{"task":"go"}`)
		key := b.childOf(c).key
		got := b.Call(t.Context(), c)
		if text := fmt.Sprint(got.IsError, " ", got.Content[0].Text); text != strings.ReplaceAll(tc.want, "KEY", string(key)) || got.ToolUseID != "c" {
			t.Errorf("%s: %s", tc.name, text)
		}
		if wrote := strings.Join(b.store.wrote, ","); wrote != tc.wrote {
			t.Errorf("%s: wrote %s, want %s", tc.name, wrote, tc.wrote)
		}
		if drops := slices.Contains(b.kids.did, fmt.Sprint("drop ", key, " ", key.Peer())); drops != tc.drops || b.kids.did[0] != fmt.Sprint("work ", key, " ", key.Peer(), " go 100000") || len(b.slots) > 0 {
			t.Errorf("%s: did %q, %d are waited for", tc.name, b.kids.did, len(b.slots))
		}
	}
	b := newBench(t, parent, Config{})
	b.store.down = true
	if got := b.Call(t.Context(), calls(`{"task":"go"}`)); got.Content[0].Text != "Not delegated: note the budget of call c: the database is down" || len(b.kids.did) > 0 {
		t.Errorf("a store that is down: %q, did %q", got.Content[0].Text, b.kids.did)
	}
	b.spent(t.Context(), calls(`{}`), 5)
	b.kids.err = errDown
	b.drop(t.Context(), child{key: "k", errand: tidemark.Errand{ID: "i"}})
	if !slices.Equal(b.warned, []string{"note what was delegated", "stop what was delegated"}) {
		t.Errorf("warned of %q", b.warned)
	}
}

// TestDelegatedLate: a child that takes too long is stopped, one whose turn is stopped is left to that, and one that finds no place
// is not begun.
func TestDelegatedLate(t *testing.T) {
	b := newBench(t, parent, Config{Timeout: time.Millisecond})
	b.kids.work = func(ctx context.Context, _ int) (tidemark.Outcome, error) {
		<-ctx.Done()
		return tidemark.Outcome{}, context.Cause(ctx)
	}
	c := calls(`{"task":"go"}`)
	key := b.childOf(c).key
	if got := b.Call(t.Context(), c); got.Content[0].Text != fmt.Sprintf("%s did not answer within 1ms and was stopped. Recall with scope agent finds what was said there.", key) || !got.IsError || b.kids.did[len(b.kids.did)-1] != fmt.Sprint("drop ", key, " ", key.Peer()) {
		t.Errorf("too late: %q, did %q", got.Content[0].Text, b.kids.did)
	}
	b = newBench(t, parent, Config{})
	ctx, cancel := context.WithCancel(t.Context())
	b.kids.work = func(ctx context.Context, _ int) (tidemark.Outcome, error) {
		cancel()
		return tidemark.Outcome{}, context.Canceled
	}
	if got := b.Call(ctx, c); got.Content[0].Text != "Stopped." || !got.IsError || len(b.kids.did) != 1 {
		t.Errorf("stopped: %q, did %q", got.Content[0].Text, b.kids.did)
	}
	b = newBench(t, parent, Config{})
	for range maxAtOnce {
		b.slots <- struct{}{}
	}
	if got := b.Call(ctx, c); got.Content[0].Text != "Not delegated: others were in work all the time." || len(b.kids.did) > 0 {
		t.Errorf("without a place: %q, did %q", got.Content[0].Text, b.kids.did)
	}
}

// TestToolOutlivesChildren: a call may wait for those before it, and ends in words of its own before its time is over.
func TestToolOutlivesChildren(t *testing.T) {
	if tool := newBench(t, parent, Config{Timeout: time.Minute}).Tools(true)[0]; tool.Timeout != 2*time.Minute+30*time.Second || !tool.Idempotent || tool.Name != room.DelegateTool {
		t.Errorf("tool %+v", tool)
	}
}

// TestGrants: what part of the turn's budget a call has; one that had its part keeps it.
func TestGrants(t *testing.T) {
	for _, tc := range []struct {
		name   string
		a      room.Account
		budget tidemark.Tokens
		want   tidemark.Tokens
		wrote  string
		says   string
	}{
		{"of a turn without a budget", room.Account{Open: 1}, 0, 9000, "fence,spend 9000", ""},
		{"of a turn with one", room.Account{Open: 1}, 8000, 6000, "fence,spend 6000", ""},
		{"as little as may be", room.Account{Open: 3}, 8000, 2000, "fence,spend 2000", ""},
		{"less", room.Account{Open: 4}, 8000, 0, "", "8000 tokens are left of this turn's budget, too few to delegate"},
		{"of more than all", room.Account{Open: 1, Turn: 9000}, 8000, 0, "", "0 tokens are left of this turn's budget"},
		{"again", room.Account{Open: 1, Call: 77}, 8000, 77, "", ""},
		{"again, in a turn without a budget", room.Account{Call: 1}, 0, 1, "", ""},
	} {
		b := newBench(t, parent, Config{})
		b.account, b.limits.Budget = tc.a, tc.budget
		got, err := b.grant(t.Context(), calls(`{}`), 9000)
		if got != tc.want || strings.Join(b.store.wrote, ",") != tc.wrote || (err == nil) != (tc.says == "") || err != nil && !strings.HasPrefix(err.Error(), tc.says) {
			t.Errorf("%s: %d, %v, wrote %q", tc.name, got, err, b.store.wrote)
		}
	}
	b := newBench(t, parent, Config{})
	b.failing = errDown
	if _, err := b.grant(t.Context(), calls(`{}`), 9000); !errors.Is(err, errDown) || !strings.HasPrefix(err.Error(), "read the budget: ") {
		t.Errorf("nobody can tell: %v", err)
	}
}

// TestCancels: the end of a run drops what its calls delegated, whether more may be delegated or not, and nothing of other tools.
func TestCancels(t *testing.T) {
	for _, tc := range []struct {
		tool string
		c    Config
		want int
	}{{room.DelegateTool, Config{}, 1}, {room.DelegateTool, Config{Off: true}, 1}, {"look", Config{}, 0}} {
		b := newBench(t, parent, tc.c)
		c := calls(`{}`)
		c.Tool = tc.tool
		if b.Cancel(t.Context(), c); len(b.kids.did) != tc.want {
			t.Errorf("%s, %+v: did %q", tc.tool, tc.c, b.kids.did)
		}
	}
	b := newBench(t, parent, Config{})
	b.Children = nil
	b.Cancel(t.Context(), calls(`{}`))
}

// TestAnswerShown: of a long answer the first page is shown, and how to read on.
func TestAnswerShown(t *testing.T) {
	x := func(n int) string { return strings.Repeat("x", n) }
	const head, tail = "[Answer of k, which spent 5 tokens.", " Recall with entry k/e reads it again, with scope agent it finds what led there.]\n\n"
	for _, tc := range []struct{ name, text, want string }{
		{"nothing", " \n", head + tail + room.Wordless}, {"as long as is shown", x(shownBytes), head + tail + x(shownBytes)},
		{"longer", " " + x(shownBytes+1) + "\n", head + ` These are the first 8192 of 8193 bytes: recall with {"entry": "k/e", "offset": 8192} reads on.` + tail + x(shownBytes)},
		{"cut before a letter", x(shownBytes-1) + "é", head + ` These are the first 8191 of 8193 bytes: recall with {"entry": "k/e", "offset": 8191} reads on.` + tail + x(shownBytes-1)},
	} {
		if got := answerOf("c", "k", tidemark.Outcome{Text: tc.text, Entry: "e", Spent: 5}); got.Content[0].Text != tc.want || got.IsError {
			t.Errorf("%s: %.300q", tc.name, got.Content[0].Text)
		}
	}
}

// TestReadsChildren: messages of conversations that were delegated to are read by their name, in the owner's conversations of one agent.
func TestReadsChildren(t *testing.T) {
	const kid = "agent:main:delegate:dm:a"
	id := func(n int) string { return kid + "/" + strings.Repeat("i", n) }
	long := "agent:main:delegate:dm:a#" + strings.Repeat("b", 128)
	for _, tc := range []struct {
		name string
		key  tidemark.Key
		of   string
		err  error
		did  string
	}{
		{"one", parent, kid + "/e", nil, "read " + kid + " e 5"}, {"by a child", "agent:main:delegate:dm:b", kid + "/e", nil, "read " + kid + " e 5"},
		{"by nothing", parent, "", tidemark.ErrInvalid, ""},
		{"by no name", parent, "e", tidemark.ErrInvalid, ""}, {"of no key", parent, "a b/e", tidemark.ErrInvalid, ""},
		{"of another kind", parent, "agent:main:local:dm:a/e", tidemark.ErrInvalid, ""}, {"of another agent", parent, "agent:other:delegate:dm:a/e", tidemark.ErrInvalid, ""},
		{"an id as long as may be", parent, id(100), nil, "read " + kid + " " + strings.Repeat("i", 100) + " 5"}, {"a longer one", parent, id(101), tidemark.ErrInvalid, ""},
		{"a name as long as may be", parent, long + "/e", nil, "read " + long + " e 5"},
		{"by a guest", "agent:main:fake:dm:eve", kid + "/e", tidemark.ErrForbidden, ""},
	} {
		b := newBench(t, tc.key, Config{})
		b.kids.text = "said"
		got, err := b.Read(t.Context(), tc.of, 5)
		if !errors.Is(err, tc.err) || err == nil && got != "said" || strings.Join(b.kids.did, ",") != tc.did {
			t.Errorf("%s: %q, %v, did %q", tc.name, got, err, b.kids.did)
		}
	}
	for n, want := range map[int]error{23: nil, 24: tidemark.ErrInvalid} { // of names of 400 bytes, and of one more
		agent, part := strings.Repeat("a", n), strings.Repeat("b", 128)
		name := "agent:" + agent + ":delegate:dm:" + part + "#" + part + "/" + strings.Repeat("i", 100)
		if _, err := newBench(t, tidemark.Key("agent:"+agent+":main"), Config{}).Read(t.Context(), name, 0); !errors.Is(err, want) {
			t.Errorf("a name of %d bytes: %v", len(name), err)
		}
	}
	b := newBench(t, parent, Config{})
	b.kids.err = fmt.Errorf("entry e: %w", tidemark.ErrNotFound)
	if _, err := b.Read(t.Context(), kid+"/e", 0); !errors.Is(err, tidemark.ErrInvalid) || err.Error() != fmt.Sprintf("read entry %q: entry e: %s", kid+"/e", tidemark.ErrInvalid) {
		t.Errorf("one that is not there: %v", err)
	}
	b.Children = nil
	if _, err := b.Read(t.Context(), kid+"/e", 0); !errors.Is(err, tidemark.ErrForbidden) {
		t.Errorf("where nothing is delegated: %v", err)
	}
}
