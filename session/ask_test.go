package session_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/session"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

func TestCommandLines(t *testing.T) {
	for _, row := range []struct{ line, kind, text string }{
		{"/status", "ask", "status"}, {"/model  sonnet-5 ", "ask", "model sonnet-5"}, {"/new", "reset", "new"}, {"/reset", "reset", "manual"},
		{"/compact keep  the numbers", "compact", "keep  the numbers"}, {"/status now", "", ""}, {"/newer", "", ""},
	} {
		in, err := session.Command(row.line)
		if row.kind == "" {
			if !errors.Is(err, tidemark.ErrInvalid) {
				t.Errorf("%q: %+v, %v", row.line, in, err)
			}
			continue
		}
		if err != nil || in.Kind != row.kind || in.Text != row.text || in.Validate() != nil {
			t.Errorf("%q: %+v, %v, %v", row.line, in, err, in.Validate())
		}
	}
	for _, text := range []string{"", "/status", "reset", "status now", "STATUS"} {
		if err := (session.Input{Kind: session.InputAsk, Text: text}).Validate(); !errors.Is(err, tidemark.ErrInvalid) {
			t.Errorf("an input that asks %q: %v", text, err)
		}
	}
}

// FuzzCommand holds that a line is refused, or gives an input that a session takes.
func FuzzCommand(f *testing.F) {
	for _, s := range []string{"/new", "/compact a\nb", "/model\tx", "model  ", "/STOP", "/ model x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		in, err := session.Command(line)
		if err != nil {
			if !errors.Is(err, tidemark.ErrInvalid) {
				t.Errorf("%q: %v", line, err)
			}
			return
		}
		if err := in.Validate(); err != nil && len(line) < 4000 {
			t.Errorf("%q gives %+v, which is refused: %v", line, in, err)
		}
	})
}

// TestAsk: questions are answered in the log and to who asked, once; what is the owner's is refused to others.
func TestAsk(t *testing.T) {
	files := func(b tidemark.Block) tidemark.Block {
		if strings.Contains(string(b.Input), "path") {
			return tidemark.ToolResult(b.ID, "- The boat is called Ida", false)
		}
		return tidemark.ToolResult(b.ID, "MEMORY.md\nmemory/2026-03-10.md", false)
	}
	const group, own, main = "agent:main:fake:group:g", "agent:main:fake:dm:ann", "agent:main:main"
	const refused = "Only the owner can do that. You can use "
	for _, row := range []struct {
		name, key, line string
		owner           bool
		want            []string
	}{
		{"status", own, "/status", false, []string{"Model: test", " % of the 4500 at which it is compacted (window 6000)", "Messages: 2 since", "Compactions: 0, resets: 0", "Waiting: 0"}},
		{"help of others", own, "/help", false, []string{"/new or /reset", "/model: which"}},
		{"help of the owner", main, "/help", true, []string{"/memory", "/model [name"}},
		{"help of others in the owner's", main, "/help", false, []string{"/status: how", "/model: which"}},
		{"model", own, "/model", false, []string{"Model: test"}},
		{"model of others", own, "/model big", false, []string{refused + "/new or /reset, /compact [what to keep], /stop, /snapshot [name], /status, /model and /help."}},
		{"model of others in the owner's", main, "/model big", false, []string{refused + "/status, /model and /help."}},
		{"model of the owner", main, "/model big", true, []string{"Model from now on: big"}},
		{"model of the owner with others", group, "/model big", true, []string{"Model from now on: big"}},
		{"model back", main, "/model default", true, []string{"Model from now on: test"}},
		{"memory of others", own, "/memory", false, []string{"Only the owner"}},
		{"memory of others in the owner's", main, "/memory", false, []string{"Only the owner"}},
		{"memory of the owner with others", group, "/memory", true, []string{"Only the owner"}},
		{"memory", main, "/memory", true, []string{"memory/2026-03-10.md", "The boat is called Ida"}},
		{"compact", own, "/compact", false, []string{"Nothing to compact yet"}},
		{"compact of others in the owner's", main, "/compact", false, []string{"Only the owner"}},
		{"new", own, "/new", false, []string{"New conversation (new). The 2 messages"}},
		{"new of the owner", main, "/new", true, []string{"New conversation (new). The 2 messages"}},
		{"new of others in the owner's", main, "/new", false, []string{"Only the owner"}},
		{"reset of others in the owner's", main, "/reset", false, []string{"Only the owner"}},
		{"stop of others in the owner's", main, "/stop", false, []string{"Only the owner"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := &tidemarktest.Courier{}
			h, _ := newPhone(t, c)
			h.stop()
			h.key, h.agent.call = tidemark.Key(row.key), files
			h.open()
			h.say("hello")
			for range 2 {
				in := ordered(ann, "ask", row.line)
				in.Origin.Owner = row.owner
				h.finish(in)
				h.idle()
			}
			got := c.Texts()
			if len(got) != 1 {
				t.Fatalf("people read %q, want one answer", got)
			}
			for _, w := range row.want {
				if !strings.Contains(got[0], w) {
					t.Errorf("answered %q, want %q in it", got[0], w)
				}
			}
			if c.Arrived()[0].To != ann || h.model.count() > 2 {
				t.Errorf("sent %+v, after %d calls of the model", c.Arrived()[0], h.model.count())
			}
			if n := len(h.events("reset")); n > 0 && !strings.HasPrefix(got[0], "New conversation") {
				t.Errorf("%d resets, and %q was said", n, got[0])
			}
		})
	}
}

// TestStop: a stop does not wait behind what it stops, and who said it is told once.
func TestStop(t *testing.T) {
	c := &tidemarktest.Courier{}
	h, _ := newPhone(t, c)
	h.finish(ordered(ann, "early", "/stop"))
	h.idle()
	wantTexts(t, c, "There is nothing to stop.")

	h.model.hold, h.model.entered = make(chan struct{}), make(chan struct{}, 9)
	sub, err := h.Subscribe()
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	for _, in := range []session.Input{wrote(ann, "in1", "hello"), wrote(bob, "in2", "me too")} {
		if _, err := h.Post(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	<-h.model.entered
	for _, state := range []bool{false, true} {
		r, err := h.Post(t.Context(), ordered(ann, "stop", "/stop"))
		if err != nil || r.State != "done" || r.Duplicate != state {
			t.Errorf("receipt %+v, %v", r, err)
		}
	}
	if got := h.wait(sub, "in1"); got != "error: Stopped." {
		t.Errorf("the turn ended with %q", got)
	}
	close(h.model.hold)
	h.idle()
	got := map[string][]string{}
	for _, a := range c.Arrived()[1:] {
		got[a.To.Peer] = append(got[a.To.Peer], a.Text)
	}
	if !slices.Equal(got["ann"], []string{"Stopped."}) {
		t.Errorf("ann, who stopped it, read %q", got["ann"])
	}
	if len(got["bob"]) != 1 { // stopped with her, or answered behind her, as it came
		t.Errorf("bob read %q", got["bob"])
	}
	if _, _, ok, err := h.Reply(t.Context(), "stop"); !ok || err != nil {
		t.Errorf("what became of the stop: %v, %v", ok, err)
	}
}
