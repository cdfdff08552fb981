package compaction

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
)

// TestMarkerRoom: a marker has 60 tokens; a topic that is too long leaves room for a shorter one, and the day is said twice
// only where it is another.
func TestMarkerRoom(t *testing.T) {
	at := time.Date(2026, 5, 2, 14, 32, 0, 0, time.UTC)
	m := Marker{From: at, To: at.Add(time.Hour), Count: 36, Tokens: 12_345}
	const bare = "[Events 2026-05-02 14:32 to 15:32 evicted: 36 messages, 12345 tokens. Use recall(query) to retrieve.]"
	room := 200 - len(bare) - len(" Key topics: .") // of 60 tokens, ASCII alone
	x := func(n int) Topic { return Topic{Word: strings.Repeat("x", n)} }
	for _, row := range []struct {
		topics []Topic
		want   string
	}{
		{nil, ""},
		{[]Topic{x(room)}, x(room).Word},
		{[]Topic{x(room + 1)}, ""},
		{[]Topic{x(room + 1), x(room)}, x(room).Word},
		{[]Topic{x(10), x(room - 12)}, x(10).Word + ", " + x(room-12).Word},
		{[]Topic{x(10), x(room - 11), {Word: "yy"}}, x(10).Word + ", yy"},
	} {
		m.Topics = row.topics
		want := bare
		if row.want != "" {
			want = strings.Replace(bare, " Use", " Key topics: "+row.want+". Use", 1)
		}
		if got := m.Message(); got.PlainText() != want || got.Role != tidemark.User {
			t.Errorf("%s: %s\nwant %s", got.Role, got.PlainText(), want)
		}
	}
	for s, want := range map[string]tidemark.Tokens{"": 0, "a": 1, "abc": 1, "abcd": 2, "é": 1, "ab字é": 3, "🌊": 1} {
		if got := textCost(s); got != want {
			t.Errorf("%q costs %d, want %d", s, got, want)
		}
	}
	for to, want := range map[time.Duration]string{0: "14:32", 9*time.Hour + 27*time.Minute: "23:59", 9*time.Hour + 28*time.Minute: "2026-05-03 00:00", 365 * 24 * time.Hour: "2027-05-02 14:32"} {
		if got := stampAfter(at, at.Add(to).In(time.FixedZone("", 3600))); got != want {
			t.Errorf("%s later is %s, want %s", to, got, want)
		}
	}
}

// TestMarkerOfSpans: a marker over messages, markers and lines of episodes counts what all of them stand for.
func TestMarkerOfSpans(t *testing.T) {
	at := time.Date(2026, 5, 2, 14, 0, 0, 0, time.UTC)
	old := Marker{From: at.Add(-time.Hour), To: at.Add(time.Hour), Count: 5, Tokens: 700, Cycles: 2, Topics: []Topic{{"lighthouse", 4}}}
	items := scripted("u=30 M1 a=40 E u=50 u=60")
	for i := range items {
		items[i].At = at.Add(time.Duration(i) * time.Minute)
	}
	items[1].Data, items[2].Whole = old.data(), 400
	items[0].Message.Content[0].Text, items[2].Message.Content[0].Text, items[5].Message.Content[0].Text = "the lighthouse", "the harbour", "the breakwater"
	for _, row := range []struct {
		covered []int
		want    Marker
	}{
		{[]int{0, 2}, Marker{From: at, To: at.Add(2 * time.Minute), Count: 2, Tokens: 430, Cycles: 1, Topics: []Topic{{"lighthouse", 3}, {"harbour", 2}}}},
		{[]int{0, 1, 2, 3}, Marker{From: old.From, To: old.To, Count: 8, Tokens: 1130, Cycles: 3, Topics: []Topic{{"lighthouse", 7}, {"harbour", 2}}}},
		{[]int{1}, Marker{From: old.From, To: old.To, Count: 5, Tokens: 700, Cycles: 2, Topics: []Topic{{"lighthouse", 4}}}},
		{[]int{1, 3}, Marker{From: old.From, To: old.To, Count: 6, Tokens: 700, Cycles: 2, Topics: []Topic{{"lighthouse", 4}}}},
		{[]int{3, 5}, Marker{From: at.Add(5 * time.Minute), To: at.Add(5 * time.Minute), Count: 2, Tokens: 60, Cycles: 1, Topics: []Topic{{"breakwater", 3}}}},
	} {
		covered := make([]bool, len(items))
		for _, i := range row.covered {
			covered[i] = true
		}
		if got := markerOf(items, covered); !reflect.DeepEqual(got, row.want) {
			t.Errorf("over %v: %+v\nwant %+v", row.covered, got, row.want)
		}
	}
	a := Marker{From: at, To: at.Add(time.Minute), Count: 1, Tokens: 10, Cycles: 1, Topics: []Topic{{"tide", 2}, {"gauge", 1}}}
	b := Marker{From: at.Add(-time.Minute), To: at, Count: 2, Tokens: 20, Cycles: 4, Topics: []Topic{{"gauge", 5}}}
	want := Marker{From: b.From, To: a.To, Count: 3, Tokens: 30, Cycles: 5, Topics: []Topic{{"gauge", 6}, {"tide", 2}}}
	if got := a.join(b); !reflect.DeepEqual(got, want) {
		t.Errorf("joined %+v, want %+v", got, want)
	}
	if got := b.join(a); !reflect.DeepEqual(got, want) {
		t.Errorf("joined the other way %+v", got)
	}
	e := a.Put(tidemark.Edit{From: "e1", To: "e2"})
	if got, ok := MarkerOf(e); !ok || !reflect.DeepEqual(got, a) || told(e) != "e1-e2" || len(e.Messages) != 1 {
		t.Errorf("put and read %+v, %v", got, ok)
	}
	for _, data := range []string{"", "{}", `{"marker":null}`, `{"marker":1}`, `[`} {
		if got, ok := MarkerOf(tidemark.Edit{Data: []byte(data)}); ok || got.Count != 0 {
			t.Errorf("%s is the marker %+v", data, got)
		}
	}
	if IsMarker(scripted("u")[0]) || IsMarker(scripted("E")[0]) || IsMarker(scripted("L")[0]) || !IsMarker(scripted("M1")[0]) {
		t.Error("markers are told by their data")
	}
}

// TestMarkerOfMany: of many messages some are looked at, evenly over the span.
func TestMarkerOfMany(t *testing.T) {
	for _, row := range []struct{ n, looked int }{{24, 24}, {25, 13}, {48, 24}, {49, 17}, {240, 24}} {
		var items []Item
		for i := range row.n {
			it := scripted("u")[0]
			it.Message.Content[0].Text = fmt.Sprintf("lighthouse number%03d", i)
			items = append(items, it)
		}
		covered := make([]bool, row.n)
		for i := range covered {
			covered[i] = true
		}
		if got := markerOf(items, covered).Topics[0]; got.Word != "lighthouse" || got.Count != 3*row.looked {
			t.Errorf("of %d messages %+v, want %d looked at", row.n, got, row.looked)
		}
	}
}
