package pager

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/host/hosttest"
	"github.com/tidemark-ai/tidemark/paging"
	"github.com/tidemark-ai/tidemark/room"
	"github.com/tidemark-ai/tidemark/session"
)

// TestReleaseAnswers: a release says which of what it names is something that can leave, and what is not known here.
func TestReleaseAnswers(t *testing.T) {
	db := hosttest.DB(t)
	d := deskOf(t, db, "agent:main:main", wide, strategies(), worked(t)...)
	other := deskOf(t, db, "agent:main:second", wide, strategies(), worked(t)...)
	handle := func(message, block int) string { return compaction.Handle(d.ids[message], block) }
	released := func(names ...string) string {
		return "Released, they leave with the next batch: " + strings.Join(names, ", ") + "."
	}
	unknown := func(names ...string) string { return "Not known here: " + strings.Join(names, ", ") + "." }
	for _, c := range []struct {
		name  string
		paths []string
		want  string
	}{
		{"a result", []string{handle(2, 0)}, released(handle(2, 0))},
		{"an entry with one", []string{string(d.ids[6])}, released(string(d.ids[6]))},
		{"a call", []string{handle(3, 0)}, released(handle(3, 0))},
		{"an image", []string{handle(0, 1)}, released(handle(0, 1))},
		{"what a person said", []string{handle(0, 0)}, "refused: " + unknown(handle(0, 0))},
		{"what stands beside a result", []string{handle(6, 1)}, "refused: " + unknown(handle(6, 1))},
		{"a block behind the last", []string{handle(2, 1)}, "refused: " + unknown(handle(2, 1))},
		{"an answer", []string{string(d.ids[7])}, "refused: " + unknown(string(d.ids[7]))},
		{"of another conversation", []string{string(other.ids[2])}, "refused: " + unknown(string(other.ids[2]))},
		{"a file", []string{"b.go"}, released("b.go")},
		{"some, in their order", []string{"nope", "b.go", "c.go", handle(2, 0)}, released("b.go", handle(2, 0)) + " " + unknown("nope", "c.go")},
		{"as long as a handle may be", []string{padded(d.ids[3], 100)}, released(padded(d.ids[3], 100))},
		{"a longer one", []string{padded(d.ids[3], 101)}, "refused: " + unknown(padded(d.ids[3], 101)[:60]+"…")},
		{"as long as a path may be", []string{longest}, released(longest)},
		{"a longer one", []string{longest + "o"}, "refused: " + unknown(longest[:60]+"…")},
		{"a name longer than any file's", []string{strings.Repeat("y/", 2500)}, "refused: " + unknown(strings.Repeat("y/", 30)+"…")},
		{"as many as count", slicesOf("b.go", 64), released(slicesOf("b.go", 64)...)},
		{"more", append(slicesOf("b.go", 64), "nope"), released(slicesOf("b.go", 64)...) + " 65 are given, of which the first 64 count: name the others in another call."},
	} {
		if got := text(d.call(paging.ReleaseTool, c.paths...)); got != c.want {
			t.Errorf("%s: %q\nwant %q", c.name, got, c.want)
		}
	}
	for input, want := range map[string]string{
		`{"handles":["nope"],"paths":["b.go","c.go"],"reason":"done"}`: released("b.go") + " " + unknown("nope", "c.go"),
		`{}`:           "refused: paths: want at least one, a file or a handle such as recall takes for entry: " + tidemark.ErrInvalid.Error(),
		`{"paths":[]}`: "refused: paths: want at least one, a file or a handle such as recall takes for entry: " + tidemark.ErrInvalid.Error(),
		`{"paths":5}`:  `refused: input: want {"paths":["FILE or HANDLE"]}: ` + tidemark.ErrInvalid.Error(),
	} {
		if got := text(d.with(paging.ReleaseTool, input)); got != want {
			t.Errorf("%s: %q\nwant %q", input, got, want)
		}
	}
	d.Seen = func(context.Context, string) (room.Seen, error) { return room.Seen{}, io.ErrClosedPipe }
	if got := text(d.call(paging.ReleaseTool, "b.go", handle(2, 0))); got != "refused: "+io.ErrClosedPipe.Error() {
		t.Errorf("of a view that cannot be read: %q", got)
	}
	d.Strategies = func() []compaction.Strategy { return []compaction.Strategy{compaction.Summary{}} }
	if got := text(d.call(paging.ReleaseTool, "b.go", handle(2, 0))); got != released(handle(2, 0))+" "+unknown("b.go") {
		t.Errorf("without the strategy: %q", got)
	}
}

// slicesOf is a name so many times.
func slicesOf(name string, n int) (out []string) {
	for range n {
		out = append(out, name)
	}
	return out
}

// TestFaultAnswers: what is brought back is told with where it stands, when it was stored, and first whether it is old.
func TestFaultAnswers(t *testing.T) {
	d := paged(t, worked(t)...)
	handle := func(message, block int) string { return compaction.Handle(d.ids[message], block) }
	stored := func(name string, message, block int) string {
		return fmt.Sprintf("%s (%s), stored 2026-03-01 08:%02d:00 UTC", name, handle(message, block), message)
	}
	const old = "OUT OF DATE: a.go was changed after this copy was stored (write_file at 2026-03-01 08:03:00 UTC). Read the file for what it is now.\n"
	none := func(name string) string {
		return name + ": nothing of that name left the context. Read the file, or recall with a query."
	}
	for _, c := range []struct {
		name  string
		paths []string
		want  string
	}{
		{"what was changed since", []string{handle(2, 0)}, old + stored(handle(2, 0), 2, 0) + ":\nthe text of a"},
		{"a call", []string{"block:" + handle(3, 0)}, stored("block:"+handle(3, 0), 3, 0) + ":\n" + `{"path":"a.go","content":"new"}`},
		{"a result that nothing changed since", []string{handle(4, 0)}, stored(handle(4, 0), 4, 0) + ":\nwritten"},
		{"a file", []string{"b.go"}, stored("b.go", 6, 0) + "; it is in the context still:\nthe text of b"},
		{"an entry", []string{string(d.ids[6])}, stored(string(d.ids[6]), 6, 0) + ":\nthe text of b\n\n" + stored(string(d.ids[6]), 6, 1) + ":\nand?"},
		{"an image", []string{handle(0, 1)}, stored(handle(0, 1), 0, 1) + ":\n[image]"},
		{"two, and an image between", []string{handle(0, 0), handle(0, 1), "b.go"}, stored(handle(0, 0), 0, 0) + ":\ngo on\n\n" + stored(handle(0, 1), 0, 1) + ":\n[image]" + stored("b.go", 6, 0) + "; it is in the context still:\nthe text of b"},
		{"nothing", []string{"c.go"}, "refused: " + none("c.go")},
		{"nothing, and a file", []string{"c.go", "b.go", ""}, none("c.go") + "\n\n" + stored("b.go", 6, 0) + "; it is in the context still:\nthe text of b\n\n" + none("")},
		{"a block behind the last", []string{handle(2, 1)}, "refused: " + none(handle(2, 1))},
		{"a long name", []string{strings.Repeat("x", 300)}, "refused: " + none(strings.Repeat("x", 200)+"…")},
		{"as long as a handle may be", []string{padded(d.ids[4], 100)}, strings.Replace(stored(handle(4, 0), 4, 0), handle(4, 0), padded(d.ids[4], 100), 1) + ":\nwritten"},
		{"a longer one, as a path", []string{padded(d.ids[4], 101)}, strings.Replace(stored(handle(4, 0), 4, 0), handle(4, 0), padded(d.ids[4], 101), 1) + "; it is in the context still:\nwritten"},
		{"as long as a path may be", []string{longest}, strings.Replace(stored("", 9, 0), "", longest[:200]+"…", 1) + "; it is in the context still:\nthe text of a long path"},
		{"a longer one", []string{longest + "o"}, "refused: " + none(longest[:200]+"…")},
		{"one more than count", slicesOf("c.go", 65), "refused: " + strings.Join(slicesOf(none("c.go"), 64), "\n\n") + "\n\n1 more are given: name them in another call."},
		{"as many as count", slicesOf("c.go", 64), "refused: " + strings.Join(slicesOf(none("c.go"), 64), "\n\n")},
		{"more", slicesOf("c.go", 66), "refused: " + strings.Join(slicesOf(none("c.go"), 64), "\n\n") + "\n\n2 more are given: name them in another call."},
	} {
		if got := text(d.call(paging.FaultTool, c.paths...)); got != c.want {
			t.Errorf("%s: %q\nwant %q", c.name, got, c.want)
		}
	}
	for _, input := range []string{`{}`, `{"paths":[]}`, `{"paths":5}`} {
		if got := text(d.with(paging.FaultTool, input)); !strings.HasPrefix(got, `refused: input: want {"paths":["FILE or HANDLE"]}: `) {
			t.Errorf("%s: %q", input, got)
		}
	}
	d.may = errors.New("no more of that")
	if got := text(d.call(paging.FaultTool, "b.go")); got != "refused: no more of that" {
		t.Errorf("when the turn had enough: %q", got)
	}
	d.may = nil
	d.Strategies = func() []compaction.Strategy { return []compaction.Strategy{compaction.Summary{}} }
	if got, want := text(d.call(paging.FaultTool, handle(2, 0), "b.go")), stored(handle(2, 0), 2, 0)+":\nthe text of a\n\n"+none("b.go"); got != want {
		t.Errorf("without the strategy: %q\nwant %q", got, want)
	}
	d.Seen = func(context.Context, string) (room.Seen, error) { return room.Seen{}, io.ErrClosedPipe }
	if got := text(d.call(paging.FaultTool, "b.go")); got != "refused: "+io.ErrClosedPipe.Error() {
		t.Errorf("of a view that cannot be read: %q", got)
	}
}

// TestFaultBounds: an answer has eight copies and 40,000 bytes, a copy 20,000, images half of what recall gives back; what has
// no room is named.
func TestFaultBounds(t *testing.T) {
	results := func(texts ...string) (content []tidemark.Block) {
		for i, s := range texts {
			content = append(content, tidemark.ToolResult(fmt.Sprint("c", i), s, false))
		}
		return content
	}
	exchange := func(content []tidemark.Block) []tidemark.Message {
		calls := tidemark.Message{Role: tidemark.Assistant}
		for i := range content {
			calls.Content = append(calls.Content, tidemark.ToolUse(fmt.Sprint("c", i), "look", nil))
		}
		return []tidemark.Message{tidemark.NewText(tidemark.User, "go on"), calls, user(content...), tidemark.NewText(tidemark.Assistant, "Done.")}
	}
	const noRoom = ": no room left in this answer, ask for it alone."
	x := func(n int) string { return strings.Repeat("x", n) }
	media := func(n int) tidemark.Block { // of so many bytes
		b := picture(t, "")
		return picture(t, strings.Repeat("Q", n-len(b.AppendJSON(nil))))
	}
	image := func(id string, n int) tidemark.Block {
		return tidemark.Block{Type: tidemark.TypeToolResult, ToolUseID: id, Content: []tidemark.Block{tidemark.Text("a picture"), media(n)}}
	}
	for _, c := range []struct {
		name    string
		content []tidemark.Block
		want    []string // the end of what is said of each
	}{
		{"eight", results(slicesOf("so", 8)...), slicesOf(":\nso", 8)},
		{"nine", results(slicesOf("so", 9)...), append(slicesOf(":\nso", 8), noRoom)},
		{"as large as a copy may be", results(x(room.ToolPage)), []string{":\n" + x(room.ToolPage)}},
		{"a thousand bytes left", results(x(19_500), x(19_500), x(1000)), []string{":\n" + x(19_500), ":\n" + x(19_500), ":\n" + x(1000)}},
		{"a byte too little left", results(x(19_500), x(19_501), "so"), []string{":\n" + x(19_500), ":\n" + x(19_501), noRoom}},
		{"as many images as there may be", []tidemark.Block{image("c0", compaction.RecallBytes/4), image("c1", compaction.RecallBytes/4)}, []string{":\na picture[image]", ":\na picture[image]"}},
		{"more", []tidemark.Block{image("c0", compaction.RecallBytes/4), image("c1", compaction.RecallBytes/4+1)}, []string{":\na picture[image]", ": its images have no room beside the others, ask for it alone: " + tidemark.ErrTooLarge.Error()}},
		{"a text behind images that have no room", []tidemark.Block{image("c0", compaction.RecallBytes/4), image("c1", compaction.RecallBytes/4+1), results("so")[0]}, []string{":\na picture[image]", ": its images have no room beside the others, ask for it alone: " + tidemark.ErrTooLarge.Error(), ":\nso"}},
		{"what no tool gives", []tidemark.Block{{Type: tidemark.TypeToolResult, ToolUseID: "c0", Content: []tidemark.Block{parsed(t, `{"type":"odd"}`)}}}, []string{": a block of type odd is no result of a tool; a person can read the entry: " + tidemark.ErrInvalid.Error()}},
	} {
		d := paged(t, exchange(c.content)...)
		got := text(d.call(paging.FaultTool, string(d.ids[2])))
		want := ""
		for i, end := range c.want {
			if want != "" && !strings.HasSuffix(want, "[image]") {
				want += "\n\n"
			}
			want += fmt.Sprintf("%s (%s)", d.ids[2], compaction.Handle(d.ids[2], i))
			if strings.HasPrefix(end, ":\n") {
				want += ", stored 2026-03-01 08:02:00 UTC"
			}
			want += end
		}
		if c.name == "what no tool gives" {
			want = "refused: " + want
		}
		if got != want {
			t.Errorf("%s: %.300q … %.300q\nwant %.300q … %.300q", c.name, got, got[max(0, len(got)-300):], want, want[max(0, len(want)-300):])
		}
	}
	for name, c := range map[string]struct {
		text  string
		shown int
	}{"a byte too large": {x(room.ToolPage + 1), room.ToolPage}, "within a character": {x(room.ToolPage-1) + "é", room.ToolPage - 1}} {
		d := paged(t, exchange(results(c.text))...)
		handle := compaction.Handle(d.ids[2], 0)
		want := fmt.Sprintf("%s (%s), stored 2026-03-01 08:02:00 UTC:\n%s\n[%d of %d bytes; recall with {\"entry\": %q, \"offset\": %d} reads on]", handle, handle, c.text[:c.shown], c.shown, len(c.text), handle, c.shown)
		if got := text(d.call(paging.FaultTool, handle)); got != want {
			t.Errorf("%s: %d bytes, %.300q, want %d", name, len(got), got[max(0, len(got)-300):], len(want))
		}
	}
}

// TestChangedSince: the newest call that changed a file counts, and what only read it does not; of a long history not all is
// looked at.
func TestChangedSince(t *testing.T) {
	d := paged(t, worked(t)...)
	read, write, other := uses("c", "read_file", `{"path":"a.go"}`), uses("c", "write_file", `{"path":"a.go","content":""}`), uses("c", "write_file", `{"path":"b.go","content":""}`)
	write.Content = append([]tidemark.Block{tidemark.Text("so")}, write.Content...)
	var log []tidemark.Message
	var fail error
	d.Messages = func(_ context.Context, _ string, r host.Range) iter.Seq2[tidemark.Entry, error] {
		return func(yield func(tidemark.Entry, error) bool) {
			if r.From != 8 || r.To != host.LogEnd {
				t.Errorf("read from %d to %d", r.From, r.To)
			}
			for i, m := range log {
				if !yield(tidemark.Entry{At: morning.Add(time.Duration(i) * time.Minute), Payload: m.AppendJSON(nil)}, nil) {
					return
				}
			}
			if fail != nil {
				yield(tidemark.Entry{}, fail)
			}
		}
	}
	many := func(n int, then ...tidemark.Message) (out []tidemark.Message) {
		for range n {
			out = append(out, other)
		}
		return append(out, then...)
	}
	for _, c := range []struct {
		name  string
		log   []tidemark.Message
		by    string
		whole bool
	}{
		{"nothing", nil, "", true},
		{"a read and another file", []tidemark.Message{read, other}, "", true},
		{"what the provider runs itself", []tidemark.Message{{Role: tidemark.Assistant, Content: []tidemark.Block{parsed(t, `{"type":"server_tool_use","id":"s","name":"write_file","input":{"path":"a.go","content":""}}`)}}}, "", true},
		{"a change", []tidemark.Message{read, write}, "write_file at 2026-03-01 08:01:00 UTC", true},
		{"two", []tidemark.Message{write, read, write, read}, "write_file at 2026-03-01 08:02:00 UTC", true},
		{"as many as are looked at", many(faultScan-1, write), "write_file at 2026-03-04 02:39:00 UTC", true},
		{"behind those", many(faultScan, write), "", false},
		{"before more than those", append([]tidemark.Message{write}, many(faultScan)...), "write_file at 2026-03-01 08:00:00 UTC", true},
	} {
		log = c.log
		if by, whole, err := d.changedSince(t.Context(), d.log, "./a.go", 7); err != nil || by != c.by || whole != c.whole {
			t.Errorf("%s: %q, whole %v, %v; want %q", c.name, by, whole, err, c.by)
		}
	}
	log = many(faultScan + 1)
	out := faulted{left: faultBytes}
	if err := d.faultCopy(t.Context(), d.log, "a.go", compaction.Copy{Entry: d.ids[2], Seq: 7, At: morning, Path: "a.go"}, &out); err != nil || out.copies != 1 || out.left != faultBytes-len("the text of a") ||
		text(out.result("c9")) != fmt.Sprintf("Perhaps out of date: much happened since, and only 4000 later messages were looked at.\na.go (%s#0), stored 2026-03-01 08:00:00 UTC; it is in the context still:\nthe text of a", d.ids[2]) {
		t.Errorf("%q, %d left, %v", text(out.result("c9")), out.left, err)
	}
	log, fail = nil, io.ErrClosedPipe
	if _, _, err := d.changedSince(t.Context(), d.log, "a.go", 7); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("of a log that cannot be read: %v", err)
	}
	d.Strategies = func() []compaction.Strategy { return nil }
	if by, whole, err := d.changedSince(t.Context(), d.log, "a.go", 7); by != "" || !whole || err != nil {
		t.Errorf("without the strategy: %q, %v, %v", by, whole, err)
	}
}

// TestFileOf: a call and its result are of the file that the call names.
func TestFileOf(t *testing.T) {
	d := paged(t, worked(t)...)
	v, err := d.Seen(t.Context(), d.log)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		b    tidemark.Block
		want string
	}{
		"a call": {tidemark.ToolUse("c3", "read_file", nil), "b.go"}, "a result": {tidemark.ToolResult("c1", "x", false), "a.go"},
		"a text": {tidemark.Text("c1"), ""}, "a call that is not in view": {tidemark.ToolUse("c7", "read_file", nil), ""},
	} {
		if got := d.fileOf(v, c.b); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	d.Strategies = func() []compaction.Strategy { return nil }
	if got := d.fileOf(v, tidemark.ToolUse("c3", "read_file", nil)); got != "" {
		t.Errorf("without the strategy: %q", got)
	}
}

// TestWithoutPaging: a conversation without the strategy is offered no tool and told nothing; calls that the view names are
// carried out all the same.
func TestWithoutPaging(t *testing.T) {
	for _, on := range []bool{true, false} {
		d := paged(t, worked(t)...)
		if !on {
			d.Strategies = func() []compaction.Strategy { return []compaction.Strategy{compaction.Summary{}} }
		}
		v, err := d.Seen(t.Context(), d.log)
		if err != nil {
			t.Fatal(err)
		}
		_, tidied := d.Tidy(v.View, nil)
		if got := d.Paged(v.View, false, 0, nil); len(d.Tools(true)) != map[bool]int{true: 2}[on] || d.Cooperates() != on || tidied != on || (got != nil) != on {
			t.Errorf("with the strategy %v: %d tools, cooperates %v, tidied %v, accounted %+v", on, len(d.Tools(true)), d.Cooperates(), tidied, got)
		}
		if d.Advice(v.View) != "" || !d.Carries(paging.ReleaseTool) || !d.Carries(paging.FaultTool) || d.Carries("recall") {
			t.Errorf("with the strategy %v: advice %q", on, d.Advice(v.View))
		}
	}
}

// readsFile is a call that reads a file of 60 lines, and its result.
func readsFile(id, name string) []tidemark.Message {
	var b strings.Builder
	for i := range 60 {
		fmt.Fprintf(&b, "%s line %d: the tide comes and goes\n", name, i)
	}
	return []tidemark.Message{uses(id, "read_file", fmt.Sprintf(`{"path":%q}`, name)), user(tidemark.ToolResult(id, b.String(), false))}
}

// pagedLog is a conversation of which a picture, an input and results leave, with files that are read again at its end.
func pagedLog(t *testing.T) []tidemark.Message {
	log := []tidemark.Message{
		user(tidemark.Text("look"), picture(t, strings.Repeat("QUJD", 2000))), uses("w1", "write_file", fmt.Sprintf(`{"path":"w.go","content":%q}`, strings.Repeat("new ", 800))), user(tidemark.ToolResult("w1", "written", false)),
		uses("l1", "look", `{}`), readsFile("l1", "look")[1], tidemark.NewText(tidemark.Assistant, "Done."),
	}
	for i := range 14 {
		log = append(log, tidemark.NewText(tidemark.User, fmt.Sprint("read ", i)))
		log = append(log, readsFile(fmt.Sprint("c", i), fmt.Sprintf("f%d.go", i))...)
		log = append(log, tidemark.NewText(tidemark.Assistant, "So it is."))
	}
	log = append(log, tidemark.NewText(tidemark.User, "again"))
	long := strings.Repeat("directory/", 8)
	for i := range 4 {
		log = append(log, readsFile(fmt.Sprintf("again%d%s", i, long), fmt.Sprintf("f%d.go", i))...)
	}
	return log
}

// TestPagedAccount: each call is counted once in the sums, with what left with it, what was read again, and how full the window
// was.
func TestPagedAccount(t *testing.T) {
	log := pagedLog(t)
	d := deskOf(t, hosttest.DB(t), "agent:main:main", session.Settings{Window: 12_000, Reserve: 1500, Keep: 1500, ArtifactChars: -1}, []compaction.Strategy{&compaction.Paging{}}, log...)
	v, err := d.Seen(t.Context(), d.log)
	if err != nil {
		t.Fatal(err)
	}
	got := d.Paged(v.View, false, 0, nil)
	st := d.strategy().State(v.View, d.Budget())
	if got == nil || got.Evicted == 0 || got.Collected != 1 || got.Inputs != 1 || got.Images != 1 || got.Evicted+got.Collected+got.Inputs+got.Images != got.Stubs || got.Zone != st.Zone.String() || got.Size != st.Size || got.Tau != st.Tau || got.Out != st.StubBytes || got.Fill != float64(1000*st.Size/12_000)/10 || got.Fill == 0 ||
		got.In != st.Decision.In || got.Sent != st.Decision.Out || got.Pins != len(st.Decision.Pin) {
		t.Fatalf("%+v of %+v", got, st.Decision)
	}
	if n := len(st.Decision.Fault); n > 0 && (len(got.Faults) != min(n, maxFaulted) || len(got.Faults[0].Call) > faultedName+len("…")) {
		t.Errorf("%d faults, told %+v", n, got.Faults)
	}
	sum := paging.Sum{Calls: 1, Evicted: got.Evicted, Collected: got.Collected, Inputs: got.Inputs, Images: got.Images, Faults: len(st.Decision.Fault), Pins: got.Pins, In: int64(got.In), Sent: int64(got.Sent)}
	if got.Totals != sum {
		t.Errorf("totals %+v, want %+v", got.Totals, sum)
	}
	if advice := d.Advice(v.View); advice == "" || advice != d.strategy().Advice(v.View, d.Budget()) {
		t.Errorf("advice %q", advice)
	}
	before := &paging.Account{Totals: paging.Sum{Calls: 10, Evicted: 20, Collected: 30, Inputs: 40, Images: 50, Faults: 60, Pins: 70, In: 80, Sent: 90}}
	both := paging.Sum{Calls: 11, Evicted: 20 + sum.Evicted, Collected: 30 + sum.Collected, Inputs: 40 + sum.Inputs, Images: 50 + sum.Images, Faults: 60 + sum.Faults, Pins: 70 + sum.Pins, In: 80 + sum.In, Sent: 90 + sum.Sent}
	if next := d.Paged(v.View, false, 0, before); next.Totals != both || before.Totals.Calls != 10 {
		t.Errorf("behind another: %+v, want %+v", next.Totals, both)
	}
	if again := d.Paged(v.View, true, 0, before); again.Totals != before.Totals || again.Evicted != got.Evicted {
		t.Errorf("a call that is tried again: %+v", again)
	}
	if later := d.Paged(v.View, false, host.LogEnd, nil); later.Evicted != 0 || later.Stubs != got.Stubs {
		t.Errorf("behind all that left: %+v", later)
	}
	for i := range 14 { // what was read again becomes old, and stays
		log = append(log, tidemark.NewText(tidemark.Assistant, "So it is."), tidemark.NewText(tidemark.User, fmt.Sprint("then ", i)))
		log = append(log, readsFile(fmt.Sprint("then", i), fmt.Sprintf("g%d.go", i))...)
	}
	d = deskOf(t, hosttest.DB(t), "agent:main:main", session.Settings{Window: 12_000, Reserve: 1500, Keep: 1500, ArtifactChars: -1}, []compaction.Strategy{&compaction.Paging{}}, log...)
	if v, err = d.Seen(t.Context(), d.log); err != nil {
		t.Fatal(err)
	}
	pinned := false
	for k := range v.Items { // as it stood at each call
		then := v.View
		then.Items = v.Items[:k+1]
		if got := d.Paged(then, false, 0, before); got.Pins > 0 {
			pinned = true
			if got.Totals.Pins != before.Totals.Pins+got.Pins {
				t.Errorf("%d are pinned, in all %d", got.Pins, got.Totals.Pins)
			}
		}
	}
	if !pinned {
		t.Error("nothing is pinned at any call")
	}
	d.Budget = func() compaction.Budget { return compaction.Budget{} }
	if none := d.Paged(v.View, false, 0, nil); none == nil || none.Fill != 0 {
		t.Errorf("without a window: %+v", none)
	}
}
