package session

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/history"
)

// pictureOfSize is a picture whose JSON has so many bytes.
func pictureOfSize(t *testing.T, bytes int) tidemark.Block {
	t.Helper()
	return pictureOf(t, strings.Replace(onePicture, "QUJD", strings.Repeat("A", bytes-len(onePicture)+4), 1))
}

// TestNoteBlocks: a note stands for a block that is large and whose tokens do not say so; calls, thinking and texts that are
// read anyway stay.
func TestNoteBlocks(t *testing.T) {
	hash := strings.Repeat("0", 64)
	refers := func(typ string, bytes int) tidemark.Block {
		return pictureOf(t, fmt.Sprintf(`{"type":%q,"tidemark_blob":{"sha256":%q,"bytes":%d}}`, typ, hash, bytes))
	}
	long := strings.Repeat("a", 5000)
	result := tidemark.ToolResult("c", long, true)
	content := []tidemark.Block{pictureOfSize(t, 4095), pictureOfSize(t, 4096), tidemark.Text(long), refers("text", 4095), refers("text", 5000),
		tidemark.ToolUse("d", "look", []byte(`{"a":"`+long+`"}`)), refers("thinking", 5000), refers("redacted_thinking", 5000), result}
	note := func(typ string, bytes int) string {
		return fmt.Sprintf("[A block of type %q and %d bytes stood here. It is in entry e.]", typ, bytes)
	}
	size := len(result.AppendJSON(nil))
	want := []tidemark.Edit{
		{From: "e", Block: 2, Blocks: []tidemark.Block{tidemark.Text(note("image", 4096))}}, {From: "e", Block: 5, Blocks: []tidemark.Block{tidemark.Text(note("text", 5000))}},
		{From: "e", Block: 9, Blocks: []tidemark.Block{tidemark.ToolResult("c", note("tool_result", size), true)}},
	}
	got, bytes := noteBlocks(compaction.Visible{Skeleton: tidemark.Skeleton{ID: "e"}, Message: tidemark.Message{Content: content}})
	if !reflect.DeepEqual(got, want) || bytes != int64(4096+5000+size) {
		t.Errorf("%d bytes\n got %+v\nwant %+v", bytes, got, want)
	}
}

// TestRoomOfARun: the view of a run takes room in memory, which is given back when the run leaves, or computes it again.
func TestRoomOfARun(t *testing.T) {
	r := newRig(t, Settings{})
	asked, held := 0, int64(0)
	r.Reader.Admit = func(bytes int64) (func(), bool) {
		asked, held = asked+1, held+bytes
		return func() { held -= bytes }, true
	}
	const large = 1 << 20
	r.person(strings.Repeat("a long text ", 120_000))
	x := r.working(stateCalling)
	for range 2 { // the room of the view before is given back
		if v, err := r.admitted(t.Context(), x); err != nil || len(v.Items) != 1 || held < large || held > 2*large {
			t.Errorf("%d items, %d held, %v", len(v.Items), held, err)
		}
	}
	for range 2 {
		if x.releaseView(); held != 0 || asked != 2 || x.release != nil {
			t.Errorf("%d held, asked %d times", held, asked)
		}
	}
}

// TestLightView: what does not fit into memory leaves the view, the oldest first, for notes: half of what fits stays whole, and
// what came last does as long as it fits alone. The log keeps all of it.
func TestLightView(t *testing.T) {
	for _, row := range []struct {
		name   string
		bound  int64
		size   int   // of each picture
		many   []int // pictures of each message
		shown  string
		notice string
	}{
		{"it fits", 20_000, 5000, []int{1, 1, 1}, "1 1 1", ""},
		{"up to the half", 20_000, 5000, []int{1, 1, 1, 1, 1, 1}, "0 0 0 0 1 1", "4 large blocks (0 MB)"},
		{"in the bucket", 2 << 20, 800_000, []int{1, 1, 1, 1}, "0 0 0 1", "3 large blocks (2 MB)"},
		{"too much alone", 20_000, 7000, []int{3}, "0", "3 large blocks (0 MB)"},
		{"too much alone behind another", 20_000, 7000, []int{1, 3}, "0 0", "1 large blocks (0 MB)"},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := newRig(t, Settings{ViewBytes: row.bound})
			for _, n := range row.many {
				m := tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{tidemark.Text("look")}}
				for range n {
					m.Content = append(m.Content, pictureOfSize(t, row.size))
				}
				r.logs(r.Session, tidemark.Origin{From: tidemark.FromPerson}, m)
			}
			sub := r.listens()
			v, err := r.light(t.Context(), r.working(stateCalling))
			if err != nil {
				t.Fatal(err)
			}
			var shown []string
			for _, it := range v.Items {
				shown = append(shown, fmt.Sprint(it.Message.Images()))
			}
			if got := strings.Join(shown, " "); got != row.shown {
				t.Errorf("pictures in view: %q, want %q", got, row.shown)
			}
			const told = " of older messages are notes to the model from now on: together they do not fit into memory. They stay whole in the log."
			got := heard(sub)
			if row.notice == "" && got != "" || row.notice != "" && !strings.HasPrefix(got, "event  notice: "+row.notice+told) {
				t.Errorf("heard %q", got)
			}
			for e, err := range r.Reader.All(t.Context(), false) {
				m, bad := e.Message()
				if err != nil || bad != nil || m.Images() == 0 {
					t.Errorf("the log lost a picture: %v, %v", err, bad)
				}
			}
			for _, e := range strings.Fields(r.table(`SELECT json_extract(payload, '$.by[0]') || '/' || json_extract(payload, '$.reason') || '/' || json_extract(origin, '$.from') FROM entries WHERE kind = 'overlay' LIMIT 9`)) {
				if strings.TrimSuffix(e, ";") != "session/memory/system" {
					t.Errorf("an overlay of %s", e)
				}
			}
		})
	}
}

// TestLightIsNotEverything: of words nothing leaves so, and nothing is done about a view that fits.
func TestLightIsNotEverything(t *testing.T) {
	r := newRig(t, Settings{ViewBytes: 20_000})
	x := r.working(stateCalling)
	r.person("short")
	if err := r.lighten(t.Context(), x, 0); err != nil {
		t.Error(err)
	}
	r.person(strings.Repeat("words and no picture ", 1000))
	if _, err := r.light(t.Context(), x); !errors.Is(err, history.ErrHeavy) || !errors.Is(err, tidemark.ErrTooLarge) {
		t.Errorf("%v", err)
	}
	r.reads("0", `SELECT count(*) FROM entries WHERE kind <> 'message' LIMIT 1`)
	r.faulty.refuses("kind = 'overlay'")
	if _, err := r.light(t.Context(), x); !errors.Is(err, errFaulty) {
		t.Errorf("when it cannot be read: %v", err)
	}
	if err := r.lighten(t.Context(), x, 0); !errors.Is(err, errFaulty) {
		t.Errorf("when it cannot be read: %v", err)
	}
}
