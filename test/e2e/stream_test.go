//go:build !js

package e2e

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// TestStream: the events come in order, the pieces are the answer, and all of it is the same bytes
// on every target, whatever the pieces hold.
func TestStream(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		k := begin(t, s, "web", "a")
		const text = "Zeile eins\nline two\r\n\n三行 🌊 data: {\"x\":1} and so on to the end."
		k.model.Push(tidemarktest.Step{Thinking: "It is about tides.", Text: text, Piece: 5})
		e := k.stream("Tell me.", "")
		got, all := e.done()
		if got.Text != text || said(all) != text || got.Reply.PlainText() != text {
			t.Errorf("answer %q\npieces %q", got.Text, said(all))
		}
		if want := []string{"receipt", "start", "taken", "thinking", "text", "reply", "done"}; !slices.Equal(kinds(all), want) {
			t.Errorf("events %v", kinds(all))
		}
		golden(t, "stream", joined(t, all))
		if ct := e.res.Header.Get("Cache-Control"); ct != "no-store" {
			t.Errorf("Cache-Control %q", ct)
		}
	})
}

// TestFirstPiece: a piece reaches the client while the model still speaks.
func TestFirstPiece(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		k := begin(t, s, "web", "a")
		gate := make(chan struct{}, 100)
		k.model.Push(tidemarktest.Step{Text: "One piece and another.", Piece: 10, Gate: gate})
		for range 4 { // message_start, ping, content_block_start, the first delta
			gate <- struct{}{}
		}
		e := k.stream("Speak.", "")
		if ev, _ := e.until("text"); !strings.Contains(ev.data, `"One piece "`) {
			t.Errorf("%s", ev.data)
		}
		close(gate)
		if got, _ := e.done(); got.Text != "One piece and another." {
			t.Errorf("%+v", got)
		}
	})
}

// TestKeepAlive: a stream on which nothing happens shows signs of life.
func TestKeepAlive(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		k := begin(t, s, "web", "a")
		gate := make(chan struct{})
		k.model.Push(tidemarktest.Step{Text: "Slowly.", Gate: gate})
		e, live := k.stream("Speak.", ""), k.listen("GET", k.path("/events"), nil)
		e.until("") // a comment
		live.until("")
		if !strings.Contains(e.all.String(), "\n: ping\n") {
			t.Errorf("%q", e.all.String())
		}
		close(gate)
		e.done()
	})
}

// TestTwoTabs: everyone who listens to a session sees the same.
func TestTwoTabs(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		k := begin(t, s, "web", "a")
		k.model.Push(tidemarktest.Step{Text: "Both of you hear this."})
		tabs := [2]*events{k.listen("GET", k.path("/events"), nil), k.listen("GET", k.path("/events"), nil)}
		for _, tab := range tabs {
			tab.until("hello")
		}
		got := k.say("Hello, both.")
		var seen [2][]event
		for i, tab := range tabs {
			_, seen[i] = tab.until("done")
			tab.leave()
		}
		if said(seen[0]) != got.Text || !slices.Equal(seen[0], seen[1]) {
			t.Errorf("%v\n%v", seen[0], seen[1])
		}
		if want := []string{"start", "taken", "text", "reply", "done"}; !slices.Equal(kinds(seen[0]), want) {
			t.Errorf("%v", kinds(seen[0]))
		}
	})
}

// TestLateTab: who listens in the middle of a turn is told what was said so far.
func TestLateTab(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		k := begin(t, s, "web", "a")
		gate := make(chan struct{}, 100)
		k.model.Push(tidemarktest.Step{Text: "One piece and another.", Piece: 10, Gate: gate})
		for range 4 {
			gate <- struct{}{}
		}
		e := k.stream("Speak.", "late")
		e.until("text")
		tab := k.listen("GET", k.path("/events"), nil)
		if ev, _ := tab.until("hello"); !strings.Contains(ev.data, `"One piece "`) {
			t.Errorf("%s", ev.data)
		}
		again := k.stream("Speak.", "late") // joins the turn in work
		again.until("text")
		close(gate)
		first, _ := e.done()
		second, _ := again.done()
		if first.Entry != second.Entry || !second.Duplicate {
			t.Errorf("%+v\n%+v", first, second)
		}
	})
}

// TestDisconnect: a client that leaves in the middle of a stream stops no turn.
func TestDisconnect(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		k := begin(t, s, "web", "a")
		gate := make(chan struct{}, 100)
		k.model.Push(tidemarktest.Step{Text: "One piece and another.", Piece: 10, Gate: gate})
		for range 4 {
			gate <- struct{}{}
		}
		e := k.stream("Speak.", "left")
		e.until("text")
		e.leave()
		time.Sleep(200 * time.Millisecond) // the server may notice, and must not care
		if k.model.Open() != 1 {
			t.Error("the call of the model was given up with its client")
		}
		close(gate)
		eventually(t, s, func() string {
			if n := len(k.messages()); n != 2 {
				return "the log lacks the reply"
			}
			return ""
		})
		if got := ask[turn](k, 200, "POST", k.path("/messages"), map[string]string{"text": "Speak.", "id": "left"}); got.Text != "One piece and another." || !got.Duplicate {
			t.Errorf("%+v", got)
		}
	})
}

// TestProviderFails: a stream of the model that breaks begins again, and the client is told.
func TestProviderFails(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		k := begin(t, s, "web", "a")
		k.model.Push(tidemarktest.Step{Text: "This is lost in the middle.", Cut: 700}, tidemarktest.Step{Text: "This is whole."})
		got, all := k.stream("Speak.", "").done()
		if got.Text != "This is whole." || said(all) != "This is whole." || !slices.Contains(kinds(all), "restart") {
			t.Errorf("%q %v", got.Text, kinds(all))
		}
		k.model.Push(tidemarktest.Step{Status: 401, Message: "no such key"})
		ev, _ := k.stream("Speak again.", "").until("error")
		var out struct {
			Error struct{ Type, Message, Input string }
		}
		if err := json.Unmarshal([]byte(ev.data), &out); err != nil || out.Error.Type != "auth" || out.Error.Input == "" {
			t.Errorf("%s %v", ev.data, err)
		}
		if got := k.say("And now?"); got.Text == "" {
			t.Errorf("%+v", got)
		}
		if err := tidemark.Check(k.model.Calls()[len(k.model.Calls())-1].Messages); err != nil {
			t.Error(err)
		}
	})
}

// joined is a stream with the pieces of a text put together: where it is cut depends on how fast the
// client reads.
func joined(t *testing.T, all []event) string {
	t.Helper()
	type piece struct {
		Type string `json:"type"`
		Run  string `json:"run"`
		Text string `json:"text"`
	}
	var b strings.Builder
	var held piece
	flush := func() {
		if held.Type != "" {
			raw, err := json.Marshal(held)
			if err != nil {
				t.Fatal(err)
			}
			b.WriteString("event: " + held.Type + "\ndata: " + string(raw) + "\n\n")
		}
		held = piece{}
	}
	for _, ev := range all {
		if ev.name == "text" || ev.name == "thinking" {
			var p piece
			if err := json.Unmarshal([]byte(ev.data), &p); err != nil {
				t.Fatal(err)
			}
			if p.Type == held.Type && p.Run == held.Run {
				p.Text = held.Text + p.Text
			} else {
				flush()
			}
			held = p
			continue
		}
		flush()
		b.WriteString("event: " + ev.name + "\ndata: " + ev.data + "\n\n")
	}
	flush()
	return b.String()
}
