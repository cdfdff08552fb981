package claude

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/transcript"
)

// TestMain leaves js out: there are no locks on files there, and no program of this package runs there.
func TestMain(m *testing.M) {
	if runtime.GOOS == "js" {
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// Ids of sessions in tests.
const (
	idOne   = "11111111-aaaa-4bbb-8ccc-000000000001"
	idTwo   = "22222222-aaaa-4bbb-8ccc-000000000002"
	idThree = "2222eeee-aaaa-4bbb-8ccc-000000000003"
)

// world is a machine with a folder of Claude Code, a home of ours and a project.
type world struct {
	t       *testing.T
	store   *Store
	project string
}

func newWorld(t *testing.T) *world {
	root := canonical(t.TempDir())
	w := &world{t: t, project: filepath.Join(root, "my project_1"), store: &Store{Home: filepath.Join(root, "home"), Dir: filepath.Join(root, "claude")}}
	must(t, os.MkdirAll(w.project, 0o700))
	return w
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// path is where the log of a session of the project lies.
func (w *world) path(id string) string {
	return filepath.Join(w.store.Dir, projectsName, Encode(w.project), id+logSuffix)
}

// write writes the log of a session of the project.
func (w *world) write(id, log string) Session {
	w.t.Helper()
	must(w.t, os.MkdirAll(filepath.Dir(w.path(id)), 0o700))
	must(w.t, os.WriteFile(w.path(id), []byte(log), 0o600))
	return w.session(id)
}

func (w *world) session(id string) Session {
	w.t.Helper()
	s, err := w.store.Finder().Pick(w.t.Context(), id, "")
	must(w.t, err)
	return s
}

func (w *world) read(path string) string {
	w.t.Helper()
	raw, err := os.ReadFile(path)
	must(w.t, err)
	return string(raw)
}

// talk is a log of so many exchanges, each a question, a call with its result and an answer.
func (w *world) talk(id string, exchanges int) string { return talkIn(w.project, id, exchanges) }

func talkIn(project, id string, exchanges int) string {
	var b strings.Builder
	parent, n := "null", 0
	line := func(rest string) {
		n++
		uuid := fmt.Sprintf("%08d-0000-4000-8000-000000000000", n)
		fmt.Fprintf(&b, `{"parentUuid":%s,"isSidechain":false,"userType":"external","cwd":%s,"sessionId":"%s","version":"2.1.39","gitBranch":"main",%s,"uuid":"%s","timestamp":"%s"}`+"\n",
			parent, quoted(project), id, rest, uuid, time.Date(2026, 2, 1, 10, 0, n, 0, time.UTC).Format(time.RFC3339Nano))
		parent = `"` + uuid + `"`
	}
	b.WriteString(`{"type":"file-history-snapshot","messageId":"m","snapshot":{},"isSnapshotUpdate":false}` + "\n")
	for i := range exchanges {
		line(fmt.Sprintf(`"type":"user","message":{"role":"user","content":"question %d, 1.0 and  9007199254740993"}`, i))
		usage := fmt.Sprintf(`"usage":{"input_tokens":10,"cache_read_input_tokens":%d,"cache_creation_input_tokens":5,"output_tokens":20}`, 1000*(i+1))
		line(fmt.Sprintf(`"type":"assistant","message":{"id":"msg_%d","role":"assistant","model":"claude-opus","content":[{"type":"tool_use","id":"toolu_%d","name":"Read","input":{"file_path":"/x/%d"}}],%s}`, i, i, i, usage))
		line(fmt.Sprintf(`"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_%d","content":%s}]}`, i, quoted(strings.Repeat(fmt.Sprintf("line %d of a file\n", i), 60))))
		line(fmt.Sprintf(`"type":"assistant","message":{"id":"msg_%db","role":"assistant","model":"claude-opus","content":[{"type":"text","text":"answer %d"}],%s}`, i, i, usage))
	}
	return b.String()
}

// compacted is a line that ends what was read before, and the summary behind it.
func compacted(project, id string) string {
	return fmt.Sprintf(`{"parentUuid":null,"logicalParentUuid":"x","isSidechain":false,"cwd":%s,"sessionId":"%s","type":"system","subtype":"compact_boundary","content":"Conversation compacted","uuid":"bbbbbbbb-0000-4000-8000-000000000000","timestamp":"2026-02-02T10:00:00Z","compactMetadata":{"trigger":"auto","preTokens":5}}`+"\n"+
		`{"parentUuid":"bbbbbbbb-0000-4000-8000-000000000000","isSidechain":false,"cwd":%s,"sessionId":"%s","type":"user","isCompactSummary":true,"message":{"role":"user","content":"This session is being continued."},"uuid":"cccccccc-0000-4000-8000-000000000000","timestamp":"2026-02-02T10:00:01Z"}`+"\n"+
		`{"parentUuid":"cccccccc-0000-4000-8000-000000000000","isSidechain":false,"cwd":%s,"sessionId":"%s","type":"assistant","message":{"id":"msg_after","role":"assistant","content":[{"type":"text","text":"I go on."}]},"uuid":"dddddddd-0000-4000-8000-000000000000","timestamp":"2026-02-02T10:00:02Z"}`+"\n",
		quoted(project), id, quoted(project), id, quoted(project), id)
}

// entry is a line of a log as tests look at it.
type entry struct {
	Type    string  `json:"type"`
	Subtype string  `json:"subtype"`
	UUID    string  `json:"uuid"`
	Parent  *string `json:"parentUuid"`
	Session string  `json:"sessionId"`
	CWD     string  `json:"cwd"`
	Title   string  `json:"customTitle"`
	Message struct {
		Role    string `json:"role"`
		Content any    `json:"content"`
	} `json:"message"`
}

func entries(t *testing.T, log string) []entry {
	t.Helper()
	var all []entry
	for l, err := range transcript.Lines(strings.NewReader(log), transcript.Options{}) {
		must(t, err)
		var e entry
		if l.Blank() {
			continue
		}
		if err := json.Unmarshal(l.Raw, &e); err != nil {
			t.Fatalf("line %d: %v", l.Number, err)
		}
		all = append(all, e)
	}
	return all
}

// coherent holds a log to what resuming needs: one session, uuids once, every parent there before its child.
func coherent(t *testing.T, log, session string) {
	t.Helper()
	seen := map[string]bool{}
	for i, e := range entries(t, log) {
		if e.Session != "" && e.Session != session {
			t.Errorf("line %d is of session %s", i+1, e.Session)
		}
		if e.Parent != nil && !seen[*e.Parent] {
			t.Errorf("line %d has the parent %s, which is not before it", i+1, *e.Parent)
		}
		if e.UUID != "" && seen[e.UUID] {
			t.Errorf("line %d has the uuid %s again", i+1, e.UUID)
		}
		seen[e.UUID] = true
	}
}

// noTemps finds what a writer left.
func noTemps(t *testing.T, root string) {
	t.Helper()
	must(t, filepath.WalkDir(root, func(path string, e os.DirEntry, err error) error {
		if err == nil && (strings.Contains(e.Name(), ".tidemark-") && !strings.HasSuffix(path, backupSuffix) || strings.HasPrefix(e.Name(), ".new-")) {
			t.Errorf("left behind: %s", path)
		}
		return err
	}))
}

func logOf(t *testing.T, s *Store, ref string) string {
	t.Helper()
	var b bytes.Buffer
	must(t, s.Log(t.Context(), ref, &b))
	return b.String()
}
