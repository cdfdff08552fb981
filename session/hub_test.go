package session

import (
	"strings"
	"testing"
)

// TestHubJoinsLongAnswer: who comes when an answer is too long to be kept has its beginning without a hole
// in it, and hears everything of the next call.
func TestHubJoinsLongAnswer(t *testing.T) {
	var h hub
	early, err := h.subscribe()
	if err != nil {
		t.Fatal(err)
	}
	piece := strings.Repeat("a", maxPartial/4+1)
	h.send(Notice{Type: NoticeStart, Run: "r"})
	for range 5 {
		h.send(Notice{Type: NoticeText, Run: "r", Text: piece})
	}
	late, err := h.subscribe()
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.Repeat(piece, 3); late.Partial != want {
		t.Errorf("the beginning has %d bytes, want %d", len(late.Partial), len(want))
	}
	for _, n := range []Notice{
		{Type: NoticeTool, Run: "r", Text: "look"}, {Type: NoticeText, Run: "r", Text: "the end"},
		{Type: NoticeReply, Run: "r"}, {Type: NoticeText, Run: "r", Text: "next call"}, {Type: NoticeDone, Run: "r"},
	} {
		h.send(n)
	}
	var heard []string
	for n, ok := late.Next(); ok; n, ok = late.Next() {
		heard = append(heard, n.Type+" "+n.Text)
	}
	if got, want := strings.Join(heard, ", "), "tool look, reply , text next call, done "; got != want {
		t.Errorf("the late one heard %q, want %q", got, want)
	}
	var all strings.Builder
	for n, ok := early.Next(); ok; n, ok = early.Next() {
		all.WriteString(n.Text)
	}
	if got := all.Len(); got != 5*len(piece)+len("lookthe endnext call") {
		t.Errorf("the early one heard %d bytes", got)
	}
}
