package recall_test

import (
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/recall"
)

var digestDay = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

// digestOf builds a digest of some random terms, and gives those.
func digestOf(r *rand.Rand, messages, each int) (recall.Digest, []string) {
	var b recall.DigestBuilder
	var all []string
	for i := range messages {
		var terms []string
		for range each {
			terms = append(terms, fmt.Sprintf("t%d", r.IntN(1<<40)))
		}
		b.Add(terms, digestDay.Add(time.Duration(i)*time.Minute))
		all = append(all, terms...)
	}
	return b.Build(), all
}

// TestDigestDeniesNothing: a term that was added is found in the digest, in what it is read back from, and
// in what it is merged into, whatever the sizes of the two.
func TestDigestDeniesNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		a, inA := digestOf(r, r.IntN(60), r.IntN(60))
		b, inB := digestOf(r, 1+r.IntN(60), r.IntN(300))
		back, err := recall.DecodeDigest(a.Encode())
		if err != nil || !reflect.DeepEqual(back.Encode(), a.Encode()) || back.Messages != a.Messages || !back.Until.Equal(a.Until) {
			t.Fatalf("read back %v: %+v", err, back)
		}
		for d, terms := range map[*recall.Digest][]string{&a: inA, &b: inB, &back: inA, ptr(recall.Merge(a, b)): slices.Concat(inA, inB), ptr(recall.Merge(b, a)): inA} {
			for some := range slices.Chunk(terms, 64) {
				if held := d.MayHold(some); bits.OnesCount64(held) != len(some) {
					t.Fatalf("of %d terms added, %d are denied", len(some), len(some)-bits.OnesCount64(held))
				}
			}
		}
	}
}

func ptr[T any](v T) *T { return &v }

// TestDigestTells: strangers are denied nearly always, the size is bounded, and a part ends in time.
func TestDigestTells(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, row := range []struct{ messages, each, most int }{{1, 3, 64}, {100, 10, 2100}, {1000, 2, 4200}, {200, 10, 4200}, {1, 3000, 8300}, {1, 60_000, 16_500}} {
		d, _ := digestOf(r, row.messages, row.each)
		if n := len(d.Encode()); n > row.most {
			t.Errorf("%d messages of %d terms: %d bytes, want at most %d", row.messages, row.each, n, row.most)
		}
		if row.each > 10_000 { // more than a filter takes: it denies nothing, and tells nothing
			continue
		}
		wrong := 0
		const asked = 64 * 500
		for i := range asked / 64 {
			var terms []string
			for j := range 64 {
				terms = append(terms, fmt.Sprintf("stranger%d", i*64+j))
			}
			wrong += bits.OnesCount64(d.MayHold(terms))
		}
		if wrong > asked/200 {
			t.Errorf("%d messages of %d terms: %d of %d strangers are taken for held", row.messages, row.each, wrong, asked)
		}
	}
	var b recall.DigestBuilder
	for n := 1; !b.Full(); n++ {
		if b.Add([]string{"same"}, digestDay); n > recall.DigestMessages {
			t.Fatal("a part of the same word never ends")
		}
	}
	var c recall.DigestBuilder
	for n := 0; !c.Full(); n++ {
		if c.Add([]string{fmt.Sprint(n), fmt.Sprint(-n - 1), "same"}, digestDay); n > recall.DigestTerms/2 {
			t.Fatal("a part of many words never ends")
		}
	}
	if r := []float64{recall.Rarity(0, 9), recall.Rarity(9, 9), recall.Rarity(3, 9), recall.Rarity(1, 9)}; !slices.IsSorted(r) || r[0] != 0 || r[1] <= 0 {
		t.Errorf("rarity %v", r)
	}
}

func TestDigestCovers(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	d, _ := digestOf(r, 10, 2) // 10:00 to 10:09
	at := func(m int) time.Time { return digestDay.Add(time.Duration(m) * time.Minute) }
	for _, row := range []struct {
		since, until time.Time
		want         bool
	}{
		{time.Time{}, time.Time{}, true}, {at(9), time.Time{}, true}, {at(10), time.Time{}, false},
		{time.Time{}, at(0), true}, {time.Time{}, at(-1), false}, {at(3), at(4), true}, {at(9).Add(200 * time.Microsecond), time.Time{}, true},
	} {
		if got := d.Covers(row.since, row.until); got != row.want {
			t.Errorf("%s to %s: %v", row.since, row.until, got)
		}
	}
	if (recall.Digest{}).Covers(time.Time{}, time.Time{}) {
		t.Error("nothing covers a time")
	}
}

// FuzzDecodeDigest: whatever is read is bounded, written back the same, and never panics; the rest is refused
// as invalid.
func FuzzDecodeDigest(f *testing.F) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, n := range []int{0, 1, 30} {
		d, _ := digestOf(r, n, n)
		f.Add(d.Encode())
	}
	f.Add([]byte{1, 0, 0, 0, 0, 17})
	f.Add([]byte{2})
	f.Fuzz(func(t *testing.T, raw []byte) {
		d, err := recall.DecodeDigest(raw)
		if err != nil {
			if !errors.Is(err, tidemark.ErrInvalid) {
				t.Fatal(err)
			}
			return
		}
		d.MayHold([]string{"a", "b"})
		again, err := recall.DecodeDigest(d.Encode())
		if err != nil || !reflect.DeepEqual(again, d) {
			t.Fatalf("%v: %+v, want %+v", err, again, d)
		}
		if m := recall.Merge(d, again); m.MayHold([]string{"a"}) != d.MayHold([]string{"a"}) {
			t.Fatal("merged with itself it holds something else")
		}
	})
}

// TestJoin: results of several conversations in one order, within k and the budget; a conversation that did
// not answer is named and lowers the coverage, and all that was told is passed on.
func TestJoin(t *testing.T) {
	told := func(key tidemark.Key, id string, normalized float64, text string) recall.Result {
		raw, err := json.Marshal(map[string]any{"key": key, "id": id, "normalized": normalized, "text": text, "extra": 1})
		var r recall.Result
		if err == nil {
			err = json.Unmarshal(raw, &r)
		}
		if err != nil || r.Key != key {
			t.Fatal(err, r)
		}
		return r
	}
	a := recall.Answer{Verdict: recall.Weak, Considered: 3, Asked: []tidemark.Key{"a"}, Results: []recall.Result{told("a", "1", 0.5, "short"), told("a", "2", 0.1, "last")}}
	b := recall.Answer{Verdict: recall.Confident, Considered: 4, Asked: []tidemark.Key{"b"}, Results: []recall.Result{told("b", "3", 0.9, "best"), told("b", "4", 0.4, string(make([]byte, 4000)))}}
	lost := recall.Answer{Asked: []tidemark.Key{"c", "d"}, Unreached: []tidemark.Key{"c", "d"}}
	for _, row := range []struct {
		ask  recall.Ask
		want []string
	}{
		{recall.Ask{}, []string{"3", "1", "4", "2"}},
		{recall.Ask{K: 2}, []string{"3", "1"}},
		{recall.Ask{Budget: 100}, []string{"3", "1", "2"}},
	} {
		got, err := recall.Join(row.ask, []recall.Answer{a, lost, b})
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(got)
		var wire struct {
			Results []struct {
				Key   tidemark.Key
				ID    string
				Extra int
			}
		}
		if err == nil {
			err = json.Unmarshal(raw, &wire)
		}
		var ids []string
		for _, r := range wire.Results {
			ids = append(ids, r.ID)
			if r.Extra != 1 || r.Key == "" {
				t.Errorf("%+v", r)
			}
		}
		if err != nil || !slices.Equal(ids, row.want) || got.Coverage != 0.5 || got.Considered != 7 || got.Verdict != recall.Confident || len(got.Unreached) != 2 {
			t.Errorf("%+v: %v, %s %v", row.ask, ids, raw, err)
		}
	}
	for i, text := range []string{"the harbour is deep", "the harbour is deep", "ships lie at anchor"} { // within a budget different ones come first
		a.Results = append(a.Results[:i:i], told("a", fmt.Sprint(i), 0.5-float64(i)/100, text))
	}
	for _, budget := range []tidemark.Tokens{0, 1000} {
		got, err := recall.Join(recall.Ask{Budget: budget}, []recall.Answer{a, lost})
		if err != nil || !strings.Contains(string(got.Results[1+int(budget)/1000].Told), "deep") || !strings.Contains(string(got.Results[2-int(budget)/1000].Told), "anchor") {
			t.Errorf("budget %d: %s, %v", budget, got.Results, err)
		}
	}
	// What a conversation is sure of stands before a better find that nobody is sure of, and lends it nothing.
	weak := recall.Answer{Verdict: recall.Weak, Asked: []tidemark.Key{"a"}, Results: []recall.Result{told("a", "1", 0.9, "near"), told("a", "2", 0.8, "far")}}
	sure := recall.Answer{Verdict: recall.Confident, Asked: []tidemark.Key{"b"}, Results: []recall.Result{told("b", "3", 0.5, string(make([]byte, 4000))), told("b", "4", 0.4, "more")}}
	for budget, want := range map[tidemark.Tokens]recall.Verdict{0: recall.Confident, 100: recall.Weak} {
		got, err := recall.Join(recall.Ask{Budget: budget, K: 2}, []recall.Answer{weak, sure})
		if err != nil || got.Verdict != want || strings.Contains(string(got.Results[0].Told), `"3"`) != (want == recall.Confident) {
			t.Errorf("budget %d: %s %s, %v", budget, got.Verdict, got.Results[0].Told[:40], err)
		}
	}
	if none, err := recall.Join(recall.Ask{}, nil); err != nil || none.Verdict != recall.Nothing || none.Coverage != 1 || none.Results == nil || none.Asked == nil {
		t.Errorf("%+v, %v", none, err)
	}
}
