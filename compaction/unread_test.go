package compaction_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// pasted is a document of about so many characters whose clauses are numbered.
func pasted(chars int) string {
	var b strings.Builder
	for i := 1; b.Len() < chars; i++ {
		fmt.Fprintf(&b, "Clause %d: the lessee keeps the quay number %d in order.\n", i, i*7)
	}
	return b.String()[:chars]
}

// chatter is a conversation of about so many tokens that a reply ends.
func chatter(tokens tidemark.Tokens) []tidemark.Message {
	var ms []tidemark.Message
	for n := tidemark.Tokens(0); n < tokens; {
		q := tidemark.NewText(tidemark.User, fmt.Sprintf("Question %d: ", len(ms))+strings.Repeat("what of the tide ", 60))
		a := tidemark.NewText(tidemark.Assistant, strings.Repeat("it rises and falls ", 60))
		ms, n = append(ms, q, a), n+tidemark.Estimate(q)+tidemark.Estimate(a)
	}
	return ms
}

// planned is what a view becomes, or stays where nothing is to be gained.
func planned(t *testing.T, v compaction.View, b compaction.Budget, list ...compaction.Strategy) (compaction.View, compaction.Act) {
	t.Helper()
	act, err := compaction.Plan(list, v, b, false)
	if err != nil && len(act.Edits) > 0 {
		t.Fatal(err)
	}
	next, err := compaction.Preview(v, act.Edits, b)
	if err != nil {
		t.Fatal(err)
	}
	return next, act
}

// TestWhatWasJustSaid: what a person said last, and what a tool answered that nobody has read, is sent to the letter as
// long as the window has room for it alone; what was read leaves.
func TestWhatWasJustSaid(t *testing.T) {
	fit := func(window tidemark.Tokens) compaction.Budget {
		return compaction.Budget{Window: window, Reserve: compaction.DefaultReserve, Keep: compaction.DefaultKeep}.Fit()
	}
	document := tidemark.NewText(tidemark.User, pasted(52_000)+"\nWhat does clause 700 say?")
	var files []tidemark.Message
	for i := range 4 {
		id := fmt.Sprint("f", i)
		files = append(files, call(id), tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{tidemark.ToolResult(id, pasted(16<<10), false)}})
	}
	parallel := []tidemark.Message{{Role: tidemark.Assistant}, {Role: tidemark.User}}
	for i := range 4 {
		parallel[0].Content = append(parallel[0].Content, call(fmt.Sprint("p", i)).Content...)
		parallel[1].Content = append(parallel[1].Content, tidemark.ToolResult(fmt.Sprint("p", i), pasted(16<<10), false))
	}
	begun := append(chatter(4_000), tidemark.NewText(tidemark.User, "Compare the four files."))
	for name, tt := range map[string]struct {
		window tidemark.Tokens
		ms     []tidemark.Message
		last   int // messages at the end that stay as they are
	}{
		"a document at 174,000 of 200,000":        {200_000, append(chatter(174_000), document), 1},
		"a first message of 62,000 of 32,000":     {32_000, []tidemark.Message{tidemark.NewText(tidemark.User, pasted(62_000))}, 1},
		"what may be fewer tokens than we think":  {32_000, []tidemark.Message{tidemark.NewText(tidemark.User, pasted(100_000))}, 1},
		"the fourth of four files":                {32_000, append(begun[:len(begun):len(begun)], files...), 1},
		"four files at once":                      {32_000, append(begun[:len(begun):len(begun)], parallel...), 1},
		"a file, and somebody writes meanwhile":   {32_000, append(begun[:len(begun):len(begun)], files[0], files[1], files[2], files[3], tidemark.NewText(tidemark.User, "and hurry")), 2},
		"two messages, the longer one first":      {32_000, append(chatter(20_000), tidemark.NewText(tidemark.User, pasted(30_000)), tidemark.NewText(tidemark.User, "and hurry")), 2},
		"a document, and then the first of files": {32_000, append([]tidemark.Message{tidemark.NewText(tidemark.User, pasted(40_000))}, files[:2]...), 3},
	} {
		t.Run(name, func(t *testing.T) {
			for _, list := range [][]compaction.Strategy{{compaction.Summary{}}, {compaction.Pointer{}, compaction.Summary{}}, {&compaction.Paging{}, compaction.Pointer{}, compaction.Summary{}}} {
				_, v := viewOf(t, tt.ms...)
				b := fit(tt.window)
				next, _ := planned(t, v, b, list...)
				for k := 1; k <= tt.last; k++ {
					want, got := tt.ms[len(tt.ms)-k], next.Items[len(next.Items)-k].Message
					if string(got.AppendJSON(nil)) != string(want.AppendJSON(nil)) {
						t.Errorf("%s: message %d from the end is sent as %d bytes of %d", list[0].Name(), k, len(got.AppendJSON(nil)), len(want.AppendJSON(nil)))
					}
				}
				if doubted := name == "what may be fewer tokens than we think"; next.Size > b.Room() != doubted {
					t.Errorf("%s: %d tokens, the window has room for %d", list[0].Name(), next.Size, b.Room())
				}
			}
		})
	}
}

// TestOpenExchange: files that a turn reads one after the other stay whole in each of its requests while the window has room
// for all of them; what was said before leaves for them, over the limit and also where that is little.
func TestOpenExchange(t *testing.T) {
	for _, tt := range []struct {
		window tidemark.Tokens
		before tidemark.Tokens
		file   int // characters of each
	}{{32_000, 500, 16 << 10}, {32_000, 12_000, 16 << 10}, {64_000, 500, 36 << 10}, {64_000, 40_000, 36 << 10}, {200_000, 150_000, 120 << 10}} {
		for _, list := range [][]compaction.Strategy{{compaction.Summary{}}, {compaction.Pointer{}}, {compaction.Pointer{}, compaction.Summary{}}} {
			b := compaction.Budget{Window: tt.window, Reserve: compaction.DefaultReserve, Keep: compaction.DefaultKeep}.Fit()
			w, _ := viewOf(t, append(chatter(tt.before), tidemark.NewText(tidemark.User, "Compare the four files."))...)
			for i := range 4 {
				id := fmt.Sprint("f", i)
				w.add(call(id))
				w.add(tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{tidemark.ToolResult(id, pasted(tt.file), false)}})
				v, shown := w.view(t)
				next, act := planned(t, v, b, list...)
				if len(act.Edits) > 0 {
					if err := w.act(t, shown, act.Edits); err != nil {
						t.Fatal(err)
					}
				}
				read := 0
				for _, it := range next.Items {
					if r := it.Message.Results(); len(r) > 0 && strings.Contains(string(it.Message.AppendJSON(nil)), string(json.AppendString(nil, pasted(tt.file)))) {
						read++
					}
				}
				if read != i+1 {
					t.Errorf("%s, window %d after %d: with file %d only %d of the files are sent whole, by %v", list[0].Name(), tt.window, tt.before, i+1, read, act.By)
				}
				if next.Size > b.Room() {
					t.Errorf("%s, window %d after %d: %d tokens, the window has room for %d", list[0].Name(), tt.window, tt.before, next.Size, b.Room())
				}
			}
		}
	}
}

// TestTurnOfTwoMessages: of two messages that were sent before a reply the first stays whole, too, until both are answered,
// whatever the tools bring meanwhile.
func TestTurnOfTwoMessages(t *testing.T) {
	asked := []tidemark.Message{tidemark.NewText(tidemark.User, pasted(9_000)+"\nWhat does clause 7 say?"), tidemark.NewText(tidemark.User, "And is file 3 of one mind with it?")}
	ms := append(chatter(4_000), asked...)
	for i := range 12 {
		id := fmt.Sprint("f", i)
		ms = append(ms, call(id), tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{tidemark.ToolResult(id, pasted(2_000*(i+1)), false)}})
	}
	for _, list := range [][]compaction.Strategy{{compaction.Summary{}}, {compaction.Pointer{Tail: 1, Large: 10_000}, compaction.Summary{}}} {
		_, v := viewOf(t, ms...)
		next, act := planned(t, v, compaction.Budget{Window: 16_000, Reserve: compaction.DefaultReserve, Keep: compaction.DefaultKeep}.Fit(), list...)
		if len(act.Edits) == 0 || len(next.Items) > len(ms)/2 {
			t.Fatalf("%s: %d of %d messages stay", list[0].Name(), len(next.Items), len(ms))
		}
		for i, m := range asked {
			if !slices.ContainsFunc(next.Items, func(it compaction.Item) bool { return it.Message.PlainText() == m.PlainText() }) {
				t.Errorf("%s: message %d of the two is not sent any more", list[0].Name(), i+1)
			}
		}
	}
}

// TestSqueezed: what does not fit the window alone loses its middle, and no more than that; who cuts it again, since the
// window turned out to be smaller, still says how much of the original is left out.
func TestSqueezed(t *testing.T) {
	said := pasted(500_000)
	w, v := viewOf(t, append(chatter(8_000), tidemark.NewText(tidemark.User, said))...)
	for _, window := range []tidemark.Tokens{32_000, 8_192} {
		b := compaction.Budget{Window: window, Reserve: 20_000, Keep: 20_000}.Fit()
		next, act := planned(t, v, b, compaction.Summary{})
		cut, ok := compaction.GapOf(act.Edits[len(act.Edits)-1])
		if !ok || cut.Of != len(said) {
			t.Fatalf("cut %+v of %+v", cut, act.By)
		}
		text := next.Items[len(next.Items)-1].Message.PlainText()
		if !strings.HasPrefix(text, said[:cut.Head]) || !strings.HasSuffix(text, said[len(said)-cut.Tail:]) || !strings.Contains(text, fmt.Sprintf("%d of %d bytes left out", cut.Left(), len(said))) {
			t.Errorf("window %d: %d bytes are sent, %+v", window, len(text), cut)
		}
		if next.Size > b.Room() || next.Size < b.Room()*7/10 {
			t.Errorf("window %d: %d tokens where there is room for %d", window, next.Size, b.Room())
		}
		if err := w.act(t, nil, act.Edits); err != nil {
			t.Fatal(err)
		}
		v, _ = w.view(t)
	}
}

// TestSqueezedMedia: a document loses its middle as a text does; where pictures have no room even so, the oldest leave, and
// notes say how to have them back. What has room stays as it came.
func TestSqueezedMedia(t *testing.T) {
	made := func(raw string) tidemark.Block {
		var b tidemark.Block
		if err := json.Unmarshal([]byte(raw), &b); err != nil {
			t.Fatal(err)
		}
		return b
	}
	document := made(`{"type":"document","title":"Lease","source":{"type":"text","media_type":"text/plain","data":` + string(json.AppendString(nil, pasted(60_000))) + `}}`)
	var album []tidemark.Block
	for i := range 22 {
		album = append(album, made(fmt.Sprintf(`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QUJD%04d"}}`, i)))
	}
	seen := tidemark.Block{Type: tidemark.TypeToolResult, ToolUseID: "s", Content: append([]tidemark.Block{tidemark.Text(pasted(9_000))}, album[:9]...)}
	for _, tt := range []struct {
		name     string
		ms       []tidemark.Message
		stays    string // as it came
		leaves   []string
		pictures int // that stay, at least
	}{
		{"a document", []tidemark.Message{{Role: tidemark.User, Content: []tidemark.Block{document, tidemark.Text("What does clause 7 say?")}}}, "What does clause 7 say?", []string{"[document Lease]", "bytes left out here"}, 0},
		{"an album", []tidemark.Message{{Role: tidemark.User, Content: append([]tidemark.Block{tidemark.Text("Which is the best?")}, album...)}}, "QUJD0021", []string{"image/png", "shows it"}, 3},
		{"a document and a picture", []tidemark.Message{{Role: tidemark.User, Content: []tidemark.Block{document, album[0]}}}, "QUJD0000", []string{"bytes left out here"}, 1},
		{"a result with pictures", []tidemark.Message{tidemark.NewText(tidemark.User, "Look."), call("s"), {Role: tidemark.User, Content: []tidemark.Block{seen}}}, "Look.", []string{"image/png"}, 0},
	} {
		for _, list := range [][]compaction.Strategy{{compaction.Summary{}}, {compaction.Pointer{}}} {
			_, v := viewOf(t, append(chatter(3_000), tt.ms...)...)
			b := compaction.Budget{Window: 8_192, Reserve: 20_000, Keep: 20_000}.Fit()
			next, act := planned(t, v, b, list...)
			raw := ""
			for _, it := range next.Items {
				raw += string(it.Message.AppendJSON(nil))
			}
			if most := b.Window - b.Window/16; next.Size > most || !slices.Contains(act.By, "cut") {
				t.Errorf("%s, %s: %d tokens where there is room for %d, by %v", tt.name, list[0].Name(), next.Size, most, act.By)
			}
			for _, w := range append(tt.leaves, tt.stays) {
				if !strings.Contains(raw, w) {
					t.Errorf("%s, %s: no %q in %.3000s", tt.name, list[0].Name(), w, raw)
				}
			}
			if n := strings.Count(raw, `"type":"image"`); n < tt.pictures || n > tt.pictures+1 {
				t.Errorf("%s, %s: %d pictures stay, want %d", tt.name, list[0].Name(), n, tt.pictures)
			}
		}
	}
}

// TestLittleLeaves: where a request was refused for its size, what was read leaves however little that is, and what was just
// said stays whole.
func TestLittleLeaves(t *testing.T) {
	said := pasted(17_600)
	for _, list := range [][]compaction.Strategy{{compaction.Summary{}}, {compaction.Pointer{}}} {
		_, v := viewOf(t, append(chatter(1_200), tidemark.NewText(tidemark.User, said))...)
		b := compaction.Budget{Window: 8_192, Reserve: 20_000, Keep: 20_000}.Fit()
		v.Size = b.Window
		next, act := planned(t, v, b, list...)
		if last := next.Items[len(next.Items)-1].Message.PlainText(); next.Size >= b.Window || last != said {
			t.Errorf("%s: %d tokens and the last %d of %d bytes, by %v", list[0].Name(), next.Size, len(last), len(said), act.By)
		}
	}
}

// TestSqueezedCall: what a tool was called with is cut twice and stays one object with one gap.
func TestSqueezedCall(t *testing.T) {
	in, err := json.Marshal(map[string]string{"text": pasted(400_000)})
	if err != nil {
		t.Fatal(err)
	}
	w, v := viewOf(t, tidemark.NewText(tidemark.User, "Write it."),
		tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.ToolUse("w", "Write", in)}}, result("w", 10))
	for _, window := range []tidemark.Tokens{32_000, 8_192} {
		b := compaction.Budget{Window: window, Reserve: 20_000, Keep: 20_000}.Fit()
		next, act := planned(t, v, b, compaction.Summary{})
		var now map[string]string
		if err := json.Unmarshal(next.Items[1].Message.Content[0].Input, &now); err != nil {
			t.Fatal(err)
		}
		gap, _ := compaction.GapOf(act.Edits[len(act.Edits)-1])
		text := now["shortened"]
		if len(now) != 1 || gap.Of != len(in) || !strings.HasPrefix(text, string(in[:gap.Head])) || !strings.HasSuffix(text, string(in[len(in)-gap.Tail:])) || strings.Count(text, "bytes left out") != 1 {
			t.Errorf("window %d: %+v, sent %.60q", window, gap, text)
		}
		if err := w.act(t, nil, act.Edits); err != nil {
			t.Fatal(err)
		}
		v, _ = w.view(t)
	}
}

// TestNothingUnreadIsCut: of a random conversation, whatever the window and the strategies, a block that nobody has read
// changes only where all such blocks are too large for the window by themselves.
func TestNothingUnreadIsCut(t *testing.T) {
	acted, cuts := 0, 0
	for seed := range tidemarktest.Rounds(1600) {
		rng := rand.New(rand.NewPCG(uint64(seed), 30))
		ms := chatter(tidemark.Tokens(rng.IntN(12_000)))
		for i := range rng.IntN(6) {
			ms = append(ms, call(fmt.Sprint("c", i)), result(fmt.Sprint("c", i), rng.IntN(4000)))
		}
		if len(ms) == 0 || rng.IntN(2) == 0 {
			ms = append(ms, tidemark.NewText(tidemark.User, pasted(rng.IntN(60_000)+1)))
		}
		_, v := viewOf(t, ms...)
		b := compaction.Budget{Window: tidemark.Tokens(4_000 + rng.IntN(30_000)), Reserve: 20_000, Keep: 20_000}.Fit()
		lists := [][]compaction.Strategy{{compaction.Summary{}}, {compaction.Pointer{}}, {&compaction.Paging{}, compaction.Summary{}}, {&compaction.Paging{}, compaction.Pointer{}, compaction.Summary{}}}
		next, act := planned(t, v, b, lists[rng.IntN(len(lists))]...)
		if len(act.Edits) > 0 {
			acted++
		}
		if len(next.Items) == 0 || len(act.Edits) == 0 {
			continue
		}
		want, got := v.Items[len(v.Items)-1], next.Items[len(next.Items)-1]
		if want.Message.Role == tidemark.Assistant || string(want.Message.AppendJSON(nil)) == string(got.Message.AppendJSON(nil)) {
			continue
		}
		cuts++
		alone, said := v.Fixed, false
		for i, read := len(v.Items)-1, false; i >= 0 && !(read && said); i-- { // what no reply followed, and the newest turn of a person
			m := v.Items[i].Message
			asks := m.Role == tidemark.User && len(m.Results()) == 0 && !said
			read = read || m.Role == tidemark.Assistant && m.PlainText() != ""
			if !read || asks {
				alone += v.Items[i].Tokens
			}
			said = said || asks
			read = read || m.Role == tidemark.Assistant
		}
		if alone <= b.Window*13/16 { // beside it a summary of an eighth and an answer of a sixteenth
			t.Errorf("seed %d: %d tokens were cut to %d in a window of %d, by %v", seed, alone, got.Tokens, b.Window, act.By)
		}
	}
	if acted == 0 || cuts == 0 {
		t.Errorf("%d plans, %d cuts: nothing was tried", acted, cuts)
	}
}
