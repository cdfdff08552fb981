package compaction_test

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
)

// TestMarkerBound: the text of a marker keeps to 60 tokens, a character outside ASCII counted as one, in
// any language; what is said about the span is whole, and topics give way.
func TestMarkerBound(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 60))
	alphabets := [][]rune{[]rune("abcdefghijklmnopqrstuvwxyz_-./"), []rune("港口管理系统的测试数据"), []rune("データベース設計"), []rune("데이터베이스"), []rune("базаданных"), []rune("𝔘𝔫𝔦🌊")}
	for range 20_000 {
		m := compaction.Marker{From: time.Unix(r.Int64N(4e9), 0), Count: int(r.Int64N(1 << 40)), Tokens: tidemark.Tokens(r.Int64N(1 << 40)), Cycles: 1}
		m.To = m.From.Add(time.Duration(r.Int64N(1 << 60)))
		a := alphabets[r.IntN(len(alphabets))]
		for range r.IntN(8) {
			w := make([]rune, 1+r.IntN(40))
			for i := range w {
				w[i] = a[r.IntN(len(a))]
			}
			m.Topics = append(m.Topics, compaction.Topic{Word: string(w), Count: 1})
		}
		text := m.Message().PlainText()
		ascii, other := 0, 0
		for _, c := range text {
			if c < utf8.RuneSelf {
				ascii++
			} else {
				other++
			}
		}
		if int(tidemark.EstimateChars(ascii))+other > 60 {
			t.Fatalf("%d characters and %d outside ASCII: %s", ascii, other, text)
		}
		if !strings.HasPrefix(text, compaction.MarkerPrefix) || !strings.HasSuffix(text, "recall(query) to retrieve.]") || !strings.Contains(text, fmt.Sprintf(" %d messages, %d tokens.", m.Count, m.Tokens)) {
			t.Fatalf("it does not say all: %s", text)
		}
	}
}

// TestTopicsOfAPerson: what a person says tells more than what the model says as often.
func TestTopicsOfAPerson(t *testing.T) {
	for _, said := range [][2]string{{"lighthouse", "harbour"}, {"harbour", "lighthouse"}} {
		var all []tidemark.Message
		for range 3 {
			all = append(all, tidemark.NewText(tidemark.Assistant, "the "+said[1]), tidemark.NewText(tidemark.User, "the "+said[0]))
		}
		if got := compaction.Topics(all...); len(got) != 2 || got[0] != said[0] {
			t.Errorf("a person speaks of the %s: %q", said[0], got)
		}
	}
}

// TestTopics: names, paths and words of any script tell what to ask for; what looks like a secret or tells
// nothing does not.
func TestTopics(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		want []string // among the topics
		not  []string // in no topic
	}{
		"words":       {"Please renew the certificates of docker, the certificates expired.", []string{"certificates", "docker"}, []string{"please"}},
		"identifiers": {"EstimateBlock in compaction/pointer.go", []string{"estimateblock", "compaction/pointer.go"}, nil},
		"long path":   {"see projects/of/the/harbour/internal/tides/tables.go", []string{"internal/tides/tables.go"}, []string{"harbour"}},
		"chinese":     {"我们在港口的系统里测试潮汐。港口的潮汐", []string{"港口", "潮汐"}, []string{"我们", "的"}},
		"two pairs":   {"港口潮汐，港口潮汐", []string{"港口潮汐"}, nil},
		"of pairs":    {"实心胡桃木，实心胡桃木", []string{"实心", "桃木"}, nil},
		"japanese":    {"データベースの設計を見直して、データベースを移行する", []string{"データベース", "設計", "移行"}, []string{"する", "の"}},
		"korean":      {"항구 데이터베이스 서버", []string{"항구", "데이터베이스"}, nil},
		"russian":     {"Причал и маяки гавани", []string{"причал", "маяки"}, nil},
		"hex":         {"the key 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 is harbourkey", []string{"harbourkey"}, []string{"9f86", "0a08"}},
		"base64":      {"token dGhpcyBpcyBh/HNlY3JldCB0+b2tlbiBvZiAx=MjggYml0cw== of harbour", []string{"harbour", "token"}, []string{"dghp", "hnly", "b2tl", "mjgg"}},
		"api key":     {"use sk-ant-api03-Ab3dE5fG7hJ9kLmN0pQr2sTu4vWx of harbour", []string{"harbour"}, []string{"sk-ant", "ab3d"}},
		"jwt":         {"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkw.SflKxwRJSMeKKF2QT4 harbour", []string{"harbour"}, []string{"eyj", "sflk"}},
		"cut":         {strings.Repeat("harbour ", 24) + "secretsecretsecret", []string{"harbour"}, []string{"secret"}},
		"quotes":      {"]] [Events evicted] \u202eharbour\x1b[31m", []string{"harbour", "events", "evicted"}, []string{"]", "[", "\x1b"}},
		"empty":       {"a b c 1 2 3 . / - = +", nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := topicsOf(t, tidemark.NewText(tidemark.User, tt.text))
			for _, w := range tt.want {
				if !slices.Contains(got, w) {
					t.Errorf("%q is not among %q", w, got)
				}
			}
			if slices.ContainsFunc(got, func(w string) bool { return utf8.RuneCountInString(w) < 2 }) {
				t.Errorf("a single sign is among %q", got)
			}
			for _, w := range tt.not {
				if strings.Contains(strings.Join(got, " "), w) {
					t.Errorf("%q is in %q", w, got)
				}
			}
		})
	}
}

// topicsOf are the topics of a marker that stands for a message, or for one like it.
func topicsOf(t *testing.T, m tidemark.Message) []string {
	t.Helper()
	c := &cycles{}
	c.add(m)
	for range 60 {
		c.add(tidemark.NewText(tidemark.Assistant, strings.Repeat("ok ", 40)))
		c.add(tidemark.NewText(tidemark.User, strings.Repeat("go ", 40)))
	}
	edits := (compaction.Pointer{Tail: 1}).Plan(c.v, compaction.Budget{Window: 2000, Keep: 100})
	for _, e := range edits {
		if mark, ok := compaction.MarkerOf(e); ok {
			var words []string
			for _, x := range mark.Topics {
				words = append(words, x.Word)
			}
			return words
		}
	}
	t.Fatalf("no marker among %d edits", len(edits))
	return nil
}

// TestTopicsSecret: no part of a random key of more than 24 characters becomes a topic, however it is
// written and wherever it stands.
func TestTopicsSecret(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 24))
	leaked := 0
	for range 500 {
		key := make([]byte, 20+r.IntN(30))
		for i := range key {
			key[i] = byte(r.Uint32())
		}
		secret := []string{hex.EncodeToString(key), base64.StdEncoding.EncodeToString(key), base64.URLEncoding.EncodeToString(key),
			strings.ToUpper(hex.EncodeToString(key))}[r.IntN(4)]
		for _, m := range []tidemark.Message{
			tidemark.NewText(tidemark.User, strings.Repeat("harbour ", r.IntN(25))+"key="+secret+" harbour"),
			{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.ToolUse("c", "login", []byte(`{"password":"`+secret+`","n":1}`))}},
		} {
			for _, w := range topicsOf(t, m) {
				if strings.Contains(strings.ToLower(secret), w) {
					leaked++
					t.Logf("%q of %q", w, secret)
				}
			}
		}
	}
	if leaked > 0 {
		t.Errorf("%d topics are parts of a key", leaked)
	}
}

// TestPointerOfCall: the pointer of a call says what was asked of which tool, bounded, and that of a result
// shows some lines when it is large.
func TestPointerOfCall(t *testing.T) {
	c := &cycles{}
	c.add(tidemark.NewText(tidemark.User, "write it"))
	input := fmt.Sprintf(`{"content":%q,"path":"docs/tides.md","query":%q,"url":["no"]}`, strings.Repeat("high and low water ", 200), strings.Repeat("é", 200))
	c.add(tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.ToolUse("c1", "write", []byte(input))}})
	c.add(tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{tidemark.ToolResult("c1", strings.Repeat("line of output\n", 400)+"the last line says tide", false)}})
	for range 8 {
		c.add(tidemark.NewText(tidemark.User, strings.Repeat("go on ", 10)))
		c.add(tidemark.NewText(tidemark.Assistant, strings.Repeat("fine ", 10)))
	}
	b := compaction.Budget{Window: c.v.Size - 1, Keep: 400}
	edits := (compaction.Pointer{Tail: 2, Headroom: c.v.Size - 900}).Plan(c.v, b)
	after, err := compaction.Preview(c.v, edits, b)
	if err != nil {
		t.Fatal(err)
	}
	call, result := after.Items[1].Message.Content[0], after.Items[2].Message.Content[0]
	if got := string(call.Input); call.Name != "write" || !strings.Contains(got, `"path":"docs/tides.md"`) || strings.Contains(got, "water") || strings.Contains(got, "content") || len(got) > 300 || !strings.Contains(got, `"entry":"e000002"`) {
		t.Errorf("the call is %s", got)
	}
	if got := result.Content[0].Text; !strings.Contains(got, `{"entry": "e000003"}`) || !strings.HasSuffix(got, "the last line says tide") || len(got) > 500 {
		t.Errorf("the result is %s", got)
	}
	if again := (compaction.Pointer{Tail: 2, Headroom: c.v.Size - 900}).Plan(after, b); len(again) > 0 && again[0].Block > 0 {
		t.Errorf("pointers become pointers: %+v", again)
	}
}

// TestMarkerOfOriginals: a marker says how much was said and of what, not how much its pointers took, also
// when blocks became pointers long before.
func TestMarkerOfOriginals(t *testing.T) {
	ours := []string{"evicted", "entry", "reads", "recall", "result", "tokens"}
	early := 0 // markers over blocks that became pointers in an act before
	w, sizes := &world{}, map[tidemark.EntryID]tidemark.Tokens{}
	for i := range 120 {
		id := fmt.Sprintf("c%d", i)
		w.add(tidemark.NewText(tidemark.User, fmt.Sprintf("Look at gauge %d of the lighthouse.", i)))
		w.add(tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.ToolUse(id, "write", []byte(`{"path":"harbour/boathouse.txt","content":"`+strings.Repeat("walnut planks ", 400)+`"}`))}})
		w.add(tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{tidemark.ToolResult(id, strings.Repeat("starboard lantern\n", 400), false)}})
		for _, e := range w.entries[len(w.entries)-3:] {
			sizes[e.ID] = e.Tokens
		}
		b := compaction.Budget{Window: 9000, Keep: 2500}
		if i < 25 { // the first act makes pointers and a marker over them
			b.Window = 100_000
		}
		v, shown := w.view(t)
		if !b.Over(v) {
			continue
		}
		act, err := compaction.Plan([]compaction.Strategy{compaction.Pointer{Tail: 2, Headroom: b.Limit() / 3}}, v, b, false)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range act.Edits {
			if _, ok := compaction.MarkerOf(e); ok && slices.ContainsFunc(v.Items, func(it compaction.Item) bool { return it.From == e.From && it.Stubs > 0 }) {
				early++
			}
		}
		if err := w.act(t, shown, act.Edits); err != nil {
			t.Fatal(err)
		}
		v, shown = w.view(t)
		list, spans := markers(t, v, shown)
		for n, m := range list {
			var want tidemark.Tokens
			for _, e := range w.entries {
				if _, kept := slices.BinarySearch(spans[n].Keep, e.Seq); e.Seq >= spans[n].From && e.Seq <= spans[n].To && !kept {
					want += sizes[e.ID]
				}
			}
			if m.Tokens != want {
				t.Fatalf("turn %d: the marker says %d tokens, its messages had %d", i, m.Tokens, want)
			}
			for _, x := range m.Topics {
				if slices.Contains(ours, x.Word) || strings.HasPrefix(x.Word, "e0") {
					t.Fatalf("turn %d: %q of %v is of our own text", i, x.Word, m.Topics)
				}
			}
			if !strings.Contains(fmt.Sprint(m.Topics), "boathouse.txt") {
				t.Fatalf("turn %d: topics %v", i, m.Topics)
			}
		}
	}
	if early == 0 {
		t.Error("no marker stands over pointers of an earlier act")
	}
}

// TestSummaryOfMarkers: a summary that takes markers in names them again, and counts what they stand for.
func TestSummaryOfMarkers(t *testing.T) {
	v := dialogue(40, 40)
	b := compaction.Budget{Window: 2000, Keep: 300}
	edits := (compaction.Pointer{Tail: 1}).Plan(v, b)
	left, err := compaction.Preview(v, edits, b)
	if err != nil {
		t.Fatal(err)
	}
	mark, ok := compaction.MarkerOf(edits[len(edits)-1])
	if !ok || !compaction.IsMarker(left.Items[0]) {
		t.Fatalf("%d edits make no marker", len(edits))
	}
	d := compaction.Gather(compaction.Digest{Text: "what was said"}, left.Items)
	if want := mark.Count + len(left.Items) - 1; d.Messages != want {
		t.Errorf("the digest stands for %d messages, want %d", d.Messages, want)
	}
	for range 20 {
		d = compaction.Gather(d, left.Items[:1])
	}
	text := compaction.Render(d, "", 4000).PlainText()
	if n := strings.Count(text, compaction.MarkerPrefix); n < 1 || n > 6 || !strings.Contains(text, "evicted") {
		t.Errorf("the summary names %d markers:\n%s", n, text)
	}
	count := 0
	for _, m := range d.Evicted {
		count += m.Count
	}
	if count != 21*mark.Count {
		t.Errorf("the markers of the summary stand for %d messages, want %d", count, 21*mark.Count)
	}
}
