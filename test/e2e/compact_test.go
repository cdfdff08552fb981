//go:build !js

package e2e

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

const summaryMark = "[Conversation summary from automatic context compaction]"

// long is a message that takes a noticeable part of the window.
func long(i int) string {
	return fmt.Sprintf("Note %d: the tide at station %d stands at %d cm. ", i, i, i*7) + strings.Repeat("It rises and falls. ", 30)
}

// fill speaks until the session has compacted n times.
func (k *talk) fill(n int) {
	k.t.Helper()
	for i := 0; k.info().Compactions < n; i++ {
		if i == 60 {
			k.t.Fatalf("%d messages and no compaction %d: %+v\n%s", i, n, k.info(), k.s.said())
		}
		k.say(long(i))
	}
}

// view is what the model would see.
func (k *talk) view() []tidemark.Message {
	k.t.Helper()
	var out []tidemark.Message
	if err := json.Unmarshal([]byte(k.text(k.path("/view?messages=1"))), &out); err != nil {
		k.t.Fatal(err)
	}
	return out
}

// archived is one archive as the agent lists it.
type archived struct {
	Key          string
	SessionID    string
	MessageCount int
	PartNumber   int
}

func (a archived) name() string { return path.Base(a.Key) }

// archives lists those of a session, parts in order and the whole behind them, as soon as there are n.
func (k *talk) archives(id string, n int) []archived {
	k.t.Helper()
	var out struct{ Archives []archived }
	eventually(k.t, k.s, func() string {
		out.Archives = nil
		if err := json.Unmarshal([]byte(k.text(k.agent("/archives?session="+id))), &out); err != nil {
			k.t.Fatal(err)
		}
		if len(out.Archives) < n {
			return fmt.Sprintf("%d archives of %s, want %d", len(out.Archives), id, n)
		}
		return ""
	})
	slices.SortFunc(out.Archives, func(a, b archived) int {
		if (a.PartNumber == 0) != (b.PartNumber == 0) {
			return b.PartNumber - a.PartNumber
		}
		return a.PartNumber - b.PartNumber
	})
	return out.Archives
}

// TestCompaction: a window that fills is made smaller and nothing is lost: the view can be sent, the
// archive parts and what is still in the view are the history, and undo brings all of it back.
func TestCompaction(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		k := begin(t, s, "web", "a")
		k.model.Respond(func(c tidemarktest.APICall) tidemarktest.Step {
			if !strings.Contains(c.LastText(), "</conversation>") {
				return tidemarktest.Step{}
			}
			fact := "nothing was decided"
			if strings.Contains(c.LastText(), "walnut") {
				fact = "the table is of walnut"
			}
			return tidemarktest.Step{Text: "<summary>\n## Facts\n- " + fact + "\n" + tidemarktest.Gist(c.LastText()) + "</summary>\n\n<memories>\nnone\n</memories>"}
		})
		k.say("We decided on walnut for the table.")
		k.fill(2)
		if i := k.info(); i.ContextTokens > i.Limit {
			t.Errorf("%+v", i)
		}
		view, history := k.view(), k.messages()
		if err := tidemark.Check(view); err != nil {
			t.Error(err)
		}
		if text := view[0].PlainText(); view[0].Role != tidemark.User || !strings.HasPrefix(text, summaryMark) || !strings.Contains(text, "walnut") {
			t.Errorf("the view begins with %.600s", text)
		}
		parts := k.archives(k.info().ID, 2)
		var kept []tidemark.Message
		for i, p := range parts {
			lines := decodeLines(t, k.text(k.agent("/archives/"+p.name()+"?format=jsonl")))
			if p.PartNumber != i+1 || p.MessageCount != len(lines) {
				t.Errorf("%+v has %d messages", p, len(lines))
			}
			kept = append(kept, lines...)
		}
		if d := difference(words(append(kept, behind(view)...)), words(history)); d != "" {
			t.Errorf("parts of %d messages and the view are not the history of %d: %s", len(kept), len(history), d)
		}
		if same(kept) != same(history[:len(kept)]) {
			t.Errorf("the archives hold\n%s", same(kept))
		}
		for _, c := range k.model.Calls() {
			if err := tidemark.Check(c.Messages); err != nil {
				t.Errorf("call %d: %v", c.N, err)
			}
		}
		if got := k.say("The green buoy has come loose."); !strings.Contains(got.Text, "green buoy") {
			t.Errorf("%+v", got)
		}
	})
}

// behind is a view without its summary, which shares a message with what a person said next.
func behind(view []tidemark.Message) []tidemark.Message {
	first := view[0]
	if first.Content = first.Content[1:]; len(first.Content) == 0 {
		return view[1:]
	}
	return append([]tidemark.Message{first}, view[1:]...)
}

// words are messages by what is said in them. A view puts what a person said at once into one message.
func words(all []tidemark.Message) string {
	var b strings.Builder
	for i, m := range all {
		if i == 0 || m.Role != all[i-1].Role {
			b.WriteString("[" + string(m.Role) + "]\n")
		}
		b.WriteString(m.PlainText() + "\n")
	}
	return b.String()
}

// difference is the first line in which two texts differ, empty when they are the same.
func difference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range max(len(g), len(w)) {
		if i >= len(g) || i >= len(w) || g[i] != w[i] {
			return fmt.Sprintf("line %d of %d:\n got %.300q\nwant %.300q", i+1, len(w), g[min(i, len(g)):min(i+1, len(g))], w[min(i, len(w)):min(i+1, len(w))])
		}
	}
	return ""
}

// TestUndo: what an overlay replaced is visible again, to the letter.
func TestUndo(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		k := begin(t, s, "web", "a")
		k.set(16_000)
		for i := range 23 {
			k.say(long(i))
		}
		before := same(k.view())
		got := ask[turn](k, 200, "POST", k.path("/compact"), map[string]string{"instructions": "Keep the stations."})
		if !slices.ContainsFunc(got.Events, func(e tidemark.Event) bool { return e.Type == "compaction" }) {
			t.Fatalf("%+v", got)
		}
		if !strings.Contains(same(k.view()), summaryMark) {
			t.Fatalf("%s", same(k.view()))
		}
		asked := false
		for _, c := range k.model.Calls() {
			asked = asked || strings.Contains(string(c.Body), "Keep the stations.")
		}
		if !asked {
			t.Error("the instructions did not reach the model")
		}
		var v struct{ Overlays []string }
		if err := json.Unmarshal([]byte(k.text(k.path("/view?messages=0"))), &v); err != nil || len(v.Overlays) != 1 {
			t.Fatalf("%+v %v", v, err)
		}
		ask[map[string]any](k, 200, "POST", k.path("/undo"), map[string]string{"overlay": v.Overlays[0]})
		if after := same(k.view()); after != before {
			t.Errorf("before\n%s\nafter\n%s", before, after)
		}
		res, raw := s.fetch(t, "POST", k.path("/undo"), map[string]string{"overlay": v.Overlays[0]})
		golden(t, "undo-twice", fmt.Sprintf("%d %s", res.StatusCode, raw))
	})
}

// TestArchives: what a reset puts away is one object that gzip and JSON read without us, and that our
// doors list, read, search, verify and restore.
func TestArchives(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		k := begin(t, s, "web", "a")
		k.say("The kingfisher nests under the bridge.")
		k.fill(1)
		history, old := k.messages(), k.info().ID
		got := ask[turn](k, 200, "POST", k.path("/reset"), map[string]string{"reason": "new season"})
		all := k.archives(old, 2)
		whole := all[len(all)-1]
		if whole.PartNumber != 0 || whole.MessageCount != len(history) || !strings.Contains(same2(got), whole.Key) {
			t.Fatalf("%+v\n%+v", all, got)
		}
		raw, meta, err := s.bucket().get(whole.Key)
		if err != nil {
			t.Fatal(err)
		}
		if got := same(gunzipLines(t, raw)); got != same(history) {
			t.Errorf("the object holds\n%s", got)
		}
		golden(t, "archive-metadata", metadata(meta, old))
		part, partMeta, err := s.bucket().get(all[0].Key)
		if err != nil || len(gunzipLines(t, part)) != all[0].MessageCount {
			t.Errorf("part %+v: %v", all[0], err)
		}
		golden(t, "archive-part-metadata", metadata(partMeta, old))
		if !bytes.HasPrefix(raw, part) {
			t.Error("the whole does not begin with its part")
		}
		res, sent := s.fetch(t, "GET", k.agent("/archives/"+whole.name()), nil)
		if sent != string(raw) || res.Header.Get("Content-Type") != "application/gzip" {
			t.Errorf("%v, %d bytes, %d in the bucket", res.Header, len(sent), len(raw))
		}
		if got := same(decodeLines(t, k.text(k.agent("/archives/"+whole.name()+"?format=jsonl")))); got != same(history) {
			t.Errorf("read as lines\n%s", got)
		}
		found := k.text(k.agent("/archives-search?q=kingfisher"))
		golden(t, "archives-search", found)
		type verdicts struct{ OK, Bad int }
		for body, n := range map[string]int{`{"archive":"` + whole.Key + `"}`: 1, ``: len(all)} {
			if v := ask[verdicts](k, 200, "POST", k.agent("/archives-verify"), body); v.OK != n || v.Bad != 0 {
				t.Errorf("%s: %+v", body, v)
			}
		}
		restored := at(t, s, k.key+"-restored")
		restored.set(100_000)
		ask[map[string]any](restored, 200, "POST", restored.path("/restore"), map[string]string{"archive": whole.name()})
		if got := same(restored.messages()); got != same(history) {
			t.Errorf("restored\n%s", got)
		}
	})
}

func same2(v turn) string {
	var b strings.Builder
	for _, e := range v.Events {
		b.WriteString(e.Text + " " + string(e.Data) + "\n")
	}
	return b.String()
}

// gunzipLines reads an archive as zcat and a JSON decoder do.
func gunzipLines(t *testing.T, raw []byte) []tidemark.Message {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	lines, err := io.ReadAll(bufio.NewReader(z))
	if err != nil {
		t.Fatal(err)
	}
	return decodeLines(t, string(lines))
}

var figures = regexp.MustCompile(`(?m)^(inputTokens|outputTokens|totalTokens|rawBytes|messageCount): \d+$`)

// metadata are the names and the values of an object's, figures left out.
func metadata(m map[string]string, id string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(m)) {
		value := m[name]
		if value == id {
			value = "SESSION"
		}
		fmt.Fprintf(&b, "%s: %s\n", name, value)
	}
	return figures.ReplaceAllString(b.String(), "$1: N")
}

// TestMemoryFile: what a compaction is to remember stands in the daily file, over HTTP and in the
// bucket, and reaches the next prompt.
func TestMemoryFile(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		k := at(t, s, "agent:memoryfile:main")
		k.set(8000)
		k.fill(1)
		var daily string
		eventually(t, s, func() string {
			keys, err := s.bucket().list("agents/memoryfile/memory/")
			if err != nil {
				t.Fatal(err)
			}
			if len(keys) == 0 {
				return "no memory file in the bucket"
			}
			daily = keys[0]
			return ""
		})
		if !regexp.MustCompile(`^agents/memoryfile/memory/\d{4}-\d\d-\d\d\.md$`).MatchString(daily) {
			t.Fatalf("the file is %s", daily)
		}
		raw, _, err := s.bucket().get(daily)
		if err != nil {
			t.Fatal(err)
		}
		if text := string(raw); !strings.Contains(text, "### Extracted from context compaction (") || !strings.Contains(text, "- The person was heard in call ") {
			t.Errorf("%s", text)
		}
		over := k.text(k.agent("/memory/") + strings.TrimPrefix(daily, "agents/memoryfile/"))
		if over != string(raw) {
			t.Errorf("over HTTP\n%s\nin the bucket\n%s", over, raw)
		}
		if found := k.text(k.agent("/memory-search?q=person+heard")); !strings.Contains(found, "The person was heard") {
			t.Errorf("%s", found)
		}
		ask[turn](k, 200, "POST", k.path("/reset"), nil)
		k.say("What do you know of me?")
		calls := k.model.Calls()
		if last := calls[len(calls)-1]; !strings.Contains(last.System, "The person was heard in call") {
			t.Errorf("the prompt has no memory:\n%s", last.System)
		}
	})
}
