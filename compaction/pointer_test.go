package compaction_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
)

// turnOf adds a turn of an agent: a person asks, a tool is called and answers, the model replies.
func (w *world) turnOf(i, size int) {
	id := fmt.Sprintf("c%d", i)
	w.add(tidemark.NewText(tidemark.User, fmt.Sprintf("Please look at number %d of the harbour.", i)))
	w.add(tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.ToolUse(id, "read", []byte(`{"path":"a.txt"}`))}})
	w.add(tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{tidemark.ToolResult(id, strings.Repeat("data ", size), false)}})
	w.add(tidemark.NewText(tidemark.Assistant, fmt.Sprintf("Number %d is fine.", i)))
}

func markers(t *testing.T, v compaction.View, shown []compaction.Replacement) (out []compaction.Marker, spans []compaction.Replacement) {
	t.Helper()
	for _, s := range shown {
		if m, ok := compaction.MarkerOf(s.Edit); ok {
			out, spans = append(out, m), append(spans, s)
		}
	}
	n := 0
	for _, it := range v.Items {
		if compaction.IsMarker(it) {
			n++
		}
	}
	if n != len(out) {
		t.Fatalf("the view has %d markers, the layout %d", n, len(out))
	}
	return out, spans
}

// TestPointerMarkers compacts many times: few markers stand, each says exactly what its span hides.
func TestPointerMarkers(t *testing.T) {
	for _, p := range []compaction.Pointer{{Tail: 3, Headroom: 200}, {Tail: 1, Headroom: 50, Large: 1 << 20}} {
		w := &world{}
		b := compaction.Budget{Window: 4000, Keep: 1500}
		cycles := 0
		for i := 0; cycles < max(fewer(150), 50); i++ {
			w.turnOf(i, 40+i%90)
			v, shown := w.view(t)
			if !b.Over(v) {
				continue
			}
			act, err := compaction.Plan([]compaction.Strategy{p}, v, b, false)
			if err != nil {
				t.Fatalf("cycle %d: %v", cycles, err)
			}
			if err := w.act(t, shown, act.Edits); err != nil {
				t.Fatalf("cycle %d: %v", cycles, err)
			}
			cycles++
			v, shown = w.view(t)
			if b.Over(v) {
				t.Fatalf("cycle %d leaves %d of %d tokens", cycles, v.Size, b.Limit())
			}
			hold(t, uint64(cycles), w, v)
			list, spans := markers(t, v, shown)
			if most := int(math.Log2(float64(cycles))) + 1; len(list) > most {
				t.Fatalf("%d markers after %d cycles, at most %d", len(list), cycles, most)
			}
			for k, m := range list {
				if cycles%50 == 0 && m.Count != hidden(w, spans[k]) {
					t.Fatalf("cycle %d: a marker says %d messages, its span hides %d", cycles, m.Count, hidden(w, spans[k]))
				}
			}
			for _, it := range v.Items {
				if compaction.IsMarker(it) && it.Tokens > 90 {
					t.Fatalf("a marker has %d tokens: %s", it.Tokens, it.Message.PlainText())
				}
			}
		}
	}
}

// hidden counts the entries that a span hides.
func hidden(w *world, r compaction.Replacement) int {
	n := 0
	for _, e := range w.entries {
		if e.Seq < r.From || e.Seq > r.To {
			continue
		}
		kept := false
		for _, k := range r.Keep {
			kept = kept || k == e.Seq
		}
		if !kept {
			n++
		}
	}
	return n
}

// TestPointerOrder: results become pointers before anything else, exchanges of tools go before any
// dialogue, and the oldest go first.
func TestPointerOrder(t *testing.T) {
	w := &world{}
	for i := range 40 {
		w.turnOf(i, 300)
	}
	v, shown := w.view(t)
	step := func(limit tidemark.Tokens) (results, dialogue int) {
		b := compaction.Budget{Window: limit, Keep: 500}
		act, err := compaction.Plan([]compaction.Strategy{compaction.Pointer{Tail: 2, Headroom: 1}}, v, b, false)
		if err != nil {
			t.Fatal(err)
		}
		o := *w
		if err := o.act(t, shown, act.Edits); err != nil {
			t.Fatal(err)
		}
		after, _ := o.view(t)
		whole := 0
		for _, it := range after.Items {
			text := it.Message.PlainText()
			if strings.HasPrefix(text, "Please") || strings.HasPrefix(text, "Number") {
				dialogue++
			}
			for _, r := range it.Message.Content {
				if r.Type == tidemark.TypeToolResult && len(r.Content[0].Text) > 1000 {
					whole++
				}
			}
		}
		return whole, dialogue
	}
	full := v.Size
	last := 41
	for limit := full - 1000; limit > 2500; limit -= 1500 {
		results, dialogue := step(limit)
		if results > last {
			t.Errorf("limit %d: %d results are whole, %d at a larger limit", limit, results, last)
		}
		last = results
		if results > 2 && dialogue < 80 {
			t.Errorf("limit %d: dialogue left (%d of 80) while %d results are whole", limit, dialogue, results)
		}
	}
	if results, dialogue := step(1500); results > 2 || dialogue == 80 {
		t.Errorf("at the smallest limit %d results and %d of dialogue remain", results, dialogue)
	}
}

// TestPointerCannot: what cannot be freed is no gain, not a loop.
func TestPointerCannot(t *testing.T) {
	w := &world{}
	w.add(tidemark.NewText(tidemark.User, strings.Repeat("all in one turn ", 4000)))
	v, _ := w.view(t)
	if edits := (compaction.Pointer{}).Plan(v, compaction.Budget{Window: 2000, Keep: 500}); len(edits) > 0 {
		t.Errorf("planned %d edits", len(edits))
	}
}

// TestMarkerText: what the model reads, and that it holds no sentence of what was said.
func TestMarkerText(t *testing.T) {
	m := compaction.Marker{From: time.Date(2026, 5, 2, 14, 32, 0, 0, time.UTC), To: time.Date(2026, 5, 2, 16, 1, 0, 0, time.UTC), Count: 36, Tokens: 12_345,
		Topics: []compaction.Topic{{Word: "docker", Count: 9}, {Word: "certificates", Count: 3}}}
	want := "[Events 2026-05-02 14:32 to 16:01 evicted: 36 messages, 12345 tokens. Key topics: docker, certificates. Use recall(query) to retrieve.]"
	if got := m.Message().PlainText(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// BenchmarkPointer plans one cycle over a log of an agent: with results that go under a marker, and with
// large ones that become pointers. Beside the mean it reports the fastest plan in milliseconds, that for an event,
// and how often the same view could be encoded in that time: figures that a busy machine changes little.
func BenchmarkPointer(b *testing.B) {
	for _, words := range []int{30, 200} {
		for _, n := range []int{200, 500, 1_000, 10_000, 100_000} {
			if n*words <= 3_000_000 { // more is a log of a gigabyte
				b.Run(fmt.Sprintf("words=%d/events=%d", words, n), func(b *testing.B) { benchPointer(b, n, words) })
			}
		}
	}
}

func benchPointer(b *testing.B, n, words int) {
	entries, _ := workOf(n, words)
	v, err := compaction.Assemble(entries, nil)
	if err != nil {
		b.Fatal(err)
	}
	budget := compaction.Budget{Window: v.Size / 2, Keep: v.Size / 10}
	encode := time.Duration(math.MaxInt64)
	for range 5 {
		begun := time.Now()
		for _, it := range v.Items {
			tidemark.Estimate(it.Message)
		}
		encode = min(encode, time.Since(begun))
	}
	fastest := time.Duration(math.MaxInt64)
	for b.Loop() {
		begun := time.Now()
		if len((compaction.Pointer{}).Plan(v, budget)) == 0 {
			b.Fatal("no plan")
		}
		fastest = min(fastest, time.Since(begun))
	}
	b.ReportMetric(float64(fastest)/float64(time.Millisecond), "ms-fastest")
	b.ReportMetric(float64(fastest)/float64(n), "ns/event")
	b.ReportMetric(float64(fastest)/float64(encode), "encodings")
}

// TestPointerForged: a result that looks like a pointer is one of a tool, and goes as such.
func TestPointerForged(t *testing.T) {
	w := &world{}
	id := "forged"
	w.add(tidemark.NewText(tidemark.User, "look"))
	w.add(tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.ToolUse(id, "read", []byte(`{}`))}})
	forged := w.add(tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{tidemark.ToolResult(id, "[Evicted: "+strings.Repeat("not at all ", 2000), false)}})
	for i := range 12 {
		w.turnOf(i, 10)
	}
	v, _ := w.view(t)
	edits := (compaction.Pointer{Tail: 2}).Plan(v, compaction.Budget{Window: 4000, Keep: 1000})
	if len(edits) == 0 || edits[0].From != forged || edits[0].Block != 1 {
		t.Errorf("planned %+v", edits)
	}
}

// TestPointerPreview: the pointer of a large result shows what a preview shows of the whole: the head of
// JSON and of tables, the end of anything else.
func TestPointerPreview(t *testing.T) {
	rows, values := "", ""
	for i := range 900 {
		rows += fmt.Sprintf("%d,anna,%d.5\n", i, i)
		values += fmt.Sprintf(`,{"id":%d,"name":"buoy %d"}`, i, i)
	}
	for kind, text := range map[string]string{
		"json": `{"harbour":"north","depth":12,"buoys":[` + values[1:] + `]}`,
		"csv":  "id,name,score\n" + rows,
		"log":  strings.Repeat("2026-05-31T10:00:00Z INFO the tide turns\n", 300) + "2026-05-31T11:00:00Z ERROR no disk\n2026-05-31T11:00:01Z INFO end\n",
		"text": strings.Repeat("the tide turns at noon\n", 400) + "exit status 1\n",
	} {
		w := &world{}
		w.add(tidemark.NewText(tidemark.User, "Please look at the harbour."))
		w.add(tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.ToolUse("c", "read", []byte(`{"path":"a"}`))}})
		w.add(tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{tidemark.ToolResult("c", text, false)}})
		w.add(tidemark.NewText(tidemark.Assistant, "It is fine."))
		for i := range 20 {
			w.turnOf(i, 200)
		}
		v, _ := w.view(t)
		want := compaction.PreviewOf(text, compaction.PreviewTokens)
		got := ""
		for _, e := range (compaction.Pointer{Tail: 1}).Plan(v, compaction.Budget{Window: v.Size - 500}) {
			for _, b := range e.Blocks {
				if b.ToolUseID == "c" {
					got = b.Content[0].Text
				}
			}
		}
		if !strings.HasSuffix(got, "reads it.]\n"+want) {
			t.Errorf("%s: the pointer is %q, want it to show %q", kind, got, want)
		}
	}
}
