package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/snapshot"
)

// kept is a server that knows some snapshots, and remembers what it was asked for.
type kept struct {
	late    int // so many listings know nothing yet
	nodes   []snapshot.Node
	archive []byte
	asked   []string // method, path and body
}

const (
	firstID  = "snap-01jax6v2m3n4p5q6r7s8t9v0w1"
	secondID = "snap-01jax6v2m3n4p5q6r7s8t9v0w2"
	twinID   = "snap-01jax6v2m3n4p5q6r7s8t9v0w3"
)

// newKept has a snapshot of main, a branch of that, a snapshot of the branch, and one of another session that has the
// same name.
func newKept() *kept {
	ago := func(d time.Duration) time.Time { return time.Now().Add(-d - time.Minute/2) }
	one := snapshot.Node{Kind: snapshot.KindSnapshot, Of: snapshot.OfSession, Session: "agent:main:main", Messages: 120, Tokens: 84_000}
	first, second, twin := one, one, one
	first.ID, first.Name, first.Created = firstID, "before", ago(3*time.Hour)
	second.ID, second.Name, second.Session, second.Parent, second.Created = secondID, "later", "agent:main:main#try", firstID, ago(time.Minute)
	twin.ID, twin.Name, twin.Session, twin.Created, twin.Tags = twinID, "later", "agent:main:local:dm:garden", ago(2*time.Hour), []string{"plan"}
	try := snapshot.Node{ID: "agent:main:main#try", Kind: snapshot.KindBranch, Of: snapshot.OfSession, Name: "try", Session: "agent:main:main#try",
		Parent: firstID, Created: ago(2 * time.Hour), Trimmed: true}
	return &kept{nodes: []snapshot.Node{first, twin, try, second}}
}

// ServeHTTP answers as docs/http.md says.
func (k *kept) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	k.asked = append(k.asked, strings.TrimSpace(r.Method+" "+r.URL.EscapedPath()+"?"+r.URL.RawQuery+" "+string(body)))
	reply := func(v any) {
		raw, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		_, _ = w.Write(raw)
	}
	switch path := r.URL.Path; {
	case path == "/v1/tree" && k.late > 0:
		k.late--
		reply(map[string]any{"nodes": []snapshot.Node{}})
	case path == "/v1/tree" && r.URL.Query().Get("cursor") == "":
		reply(map[string]any{"nodes": k.nodes[:2], "next": "2"})
	case path == "/v1/tree":
		reply(map[string]any{"nodes": k.nodes[2:]})
	case r.Method == http.MethodGet && strings.HasSuffix(path, "/snapshots") && r.URL.Query().Get("cursor") == "":
		reply(map[string]any{"nodes": k.nodes[:3], "next": "3"})
	case r.Method == http.MethodGet && strings.HasSuffix(path, "/snapshots"):
		reply(map[string]any{"nodes": k.nodes[3:]})
	case r.Method == http.MethodDelete && strings.HasSuffix(path, "/snapshots/"+firstID):
		reply(k.nodes[0])
	case strings.HasSuffix(path, "/snapshots"):
		reply(k.nodes[0])
	case strings.HasSuffix(path, "/branch"), strings.HasSuffix(path, "/trim"):
		reply(map[string]any{"branch": k.nodes[2], "key": k.nodes[2].Session, "snapshot": k.nodes[0],
			"trim": map[string]any{"liveTokensBefore": 84_000, "liveTokensAfter": 42_000, "toolResultsStubbed": 7}})
	case strings.HasSuffix(path, "/merge"):
		reply(map[string]any{"id": "01J", "key": "agent:main:main", "from": k.nodes[2].Session, "text": "[Outcome]", "again": true})
	case path == "/v1/compare":
		_, _ = io.WriteString(w, `{"common":{"messages":2,"snapshot":"`+firstID+`"},"a":{"id":"agent:main:main","messages":5,"messagesSince":3,"contextTokens":900,"models":["m"],
			"tools":[{"name":"Read","calls":2}],"files":["a.go"],"outcome":"done","previews":[{"role":"user","text":"hello"},{"role":"assistant","text":"\u001b[2Jhi"},{"role":"user","from":"tool","text":"found"}]},
			"b":{"id":"agent:main:main#try","messages":2,"messagesSince":0,"models":[],"tools":[],"files":[]}}`)
	case strings.HasSuffix(path, "/archive") && r.Method == http.MethodGet:
		_, _ = w.Write(k.archive)
	case strings.HasSuffix(path, "/archive"):
		reply(map[string]any{"snapshot": k.nodes[0], "key": "agent:main:local:dm:again", "messages": 3})
	case r.Method == http.MethodDelete:
		w.WriteHeader(http.StatusConflict)
		reply(map[string]any{"error": map[string]any{"type": "conflict", "message": "the session main#try began at it"}})
	default:
		w.WriteHeader(http.StatusNotFound)
		reply(map[string]any{"error": map[string]any{"type": "not_found", "message": "there is no such session"}})
	}
}

// call runs a command against the server. It returns the exit code and what was printed.
func (k *kept) call(t *testing.T, args ...string) (int, string, string) {
	t.Helper()
	server := httptest.NewServer(k)
	defer server.Close()
	var out, told bytes.Buffer
	home := t.TempDir()
	m := &cli.Main{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &told, Environ: []string{"HOME=" + home, "TIDEMARK_HOME=" + filepath.Join(home, "store")}}
	k.asked = nil
	code := m.Run(t.Context(), commands(), append(args, "--server", server.URL))
	return code, out.String(), told.String()
}

// last is the last request, less the listings.
func (k *kept) last() string {
	if len(k.asked) == 0 {
		return ""
	}
	return k.asked[len(k.asked)-1]
}

func TestSnapshotCommands(t *testing.T) {
	for _, c := range []struct {
		args, asks, prints string
	}{
		{"snapshot before", `POST /v1/sessions/main/snapshots? {"at":"","description":"","name":"before","tags":null}`, `"before" of main, 120 messages, 84k tokens`},
		{"snapshot --session garden --tag a --tag b", `POST /v1/sessions/garden/snapshots? {"at":"","description":"","name":"","tags":["a","b"]}`, firstID},
		{"snapshot ls --tag plan", "GET /v1/tree?agent=main&cursor=2&limit=1000", twinID},
		{"snapshot ls --session garden", "GET /v1/sessions/garden/snapshots?cursor=3&limit=1000", secondID},
		{"snapshot show before", "GET /v1/tree", "made of it  branch try  main#try"},
		{"snapshot show main#try", "GET /v1/tree", "from      before"},
		{"snapshot rm before", "DELETE /v1/sessions/agent:main:main/snapshots/" + firstID + "?", `snapshot "before" of main is removed`},
		{"snapshot rm " + firstID + " --session main", "DELETE /v1/sessions/agent:main:main/snapshots/" + firstID + "?", "removed"},
		{"branch before", `POST /v1/sessions/agent:main:main/branch? {"name":"","orientation":"","snapshot":"` + firstID + `","trim":true}`, "84k -> 42k tokens (50% less): 7 outputs and 0 inputs of tools, 0 thoughts, 0 images"},
		{"branch " + twinID + " --no-trim --name x", `POST /v1/sessions/agent:main:local:dm:garden/branch? {"name":"x","orientation":"","snapshot":"` + twinID + `","trim":false}`, "main#try"},
		{"branch before --threshold 700 --orientation Go", `"orientation":"Go","snapshot":"` + firstID + `","threshold":700,"trim":true}`, "main#try"},
		{"merge main#try", `POST /v1/sessions/agent:main:main/merge? {"from":"agent:main:main#try","note":""}`, "[Outcome]"},
		{"merge try --into garden --note done", `POST /v1/sessions/garden/merge? {"from":"agent:main:main#try","note":"done"}`, "01J"},
		{"compare main main#try", "GET /v1/compare?a=main&agent=main&b=main%23try", "2 messages in common, where " + firstID},
		{"compare before try", "GET /v1/compare?a=" + firstID + "&agent=main&b=agent%3Amain%3Amain%23try", "Read 2"},
		{"compare main main#try --messages 3", "GET /v1/compare", "tool       found"},
	} {
		k := newKept()
		code, out, told := k.call(t, strings.Fields(c.args)...)
		if code != cli.ExitOK || !strings.Contains(k.last(), c.asks) || !strings.Contains(out, c.prints) {
			t.Errorf("%s: exit code %d\nasked    %s\nwant     %s\nprinted  %s\nwant     %s\ntold     %s", c.args, code, k.last(), c.asks, out, c.prints, told)
		}
		if strings.Contains(out, "\x1b") {
			t.Errorf("%s: what a model said reached the terminal: %q", c.args, out)
		}
		code, out, told = k.call(t, append(strings.Fields(c.args), "--json")...)
		if code != cli.ExitOK || !json.Valid([]byte(out)) {
			t.Errorf("%s --json: exit code %d, printed %s, told %s", c.args, code, out, told)
		}
	}
}

func TestTrimOfSession(t *testing.T) {
	k := newKept()
	server := httptest.NewServer(k)
	defer server.Close()
	var out bytes.Buffer
	m := &cli.Main{Server: server.URL, Out: &cli.Output{W: &out}, Err: &cli.Output{W: io.Discard}}
	if err := trimSession(t.Context(), m, "garden", primitive{Snapshot: "kept", Threshold: 60, Tag: []string{"x"}}); err != nil {
		t.Fatal(err)
	}
	want := `POST /v1/sessions/garden/trim? {"name":"","of":{"description":"","name":"kept","tags":["x"]},"orientation":"","threshold":60}`
	if k.last() != want || !strings.Contains(out.String(), "tidemark chat 'main#try'") {
		t.Errorf("asked %s, want %s; printed %s", k.last(), want, out.String())
	}
	for name, p := range map[string]primitive{"launch": {Launch: true}, "dry run": {DryRun: true}, "folder": {Dir: "/x"}, "name": {Snapshot: "a/b"}} {
		k.asked = nil
		if err := trimSession(t.Context(), m, "garden", p); err == nil || len(k.asked) > 0 {
			t.Errorf("%s: %v, asked %v", name, err, k.asked)
		}
	}
}

func TestTreeCommand(t *testing.T) {
	k := newKept()
	code, out, told := k.call(t, "tree", "--ids")
	want := "Sessions of Tidemark\nbefore (snapshot 3h ago, 120 msgs, 84k tokens)  " + firstID + "\n├── try → main#try (branch 2h ago, trimmed)\n└── later (snapshot 1m ago, 120 msgs, 84k tokens)  " + secondID +
		"\nlater (snapshot 2h ago, 120 msgs, 84k tokens) #plan  " + twinID + "\n"
	if code != cli.ExitOK || out != want {
		t.Errorf("exit code %d, drew\n%s\nwant\n%s\ntold %s", code, out, want, told)
	}
	code, out, told = k.call(t, "tree", "--json", "--depth", "1")
	var rows []snapshot.Row
	if err := json.Unmarshal([]byte(out), &rows); err != nil || code != cli.ExitOK || len(rows) != 2 || rows[0].Below != 2 || rows[0].ID != firstID {
		t.Errorf("exit code %d, rows %+v, %v, told %s", code, rows, err, told)
	}
}

func TestSnapshotMistakes(t *testing.T) {
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"snapshot", cli.ExitUsage, "want a NAME"},
		{"snapshot a b", cli.ExitUsage, `put it in quotes: "a b"`},
		{"snapshot before show", cli.ExitUsage, "stands first"},
		{"snapshot list", cli.ExitUsage, "could not be told from a command"},
		{"snapshot a/b", cli.ExitUsage, "want letters"},
		{"snapshot a --session x --claude y", cli.ExitUsage, "want one of them"},
		{"snapshot a --all-projects", cli.ExitUsage, "goes with --claude"},
		{"snapshot a --tag x,y", cli.ExitUsage, "no spaces, commas"},
		{"snapshot show", cli.ExitUsage, "which one?"},
		{"snapshot show later", cli.ExitFailed, secondID},
		{"snapshot show befor", cli.ExitFailed, "did you mean before?"},
		{"snapshot show cc-123456", cli.ExitFailed, "not found"},
		{"snapshot rm later", cli.ExitFailed, secondID},
		{"snapshot rm " + twinID, cli.ExitFailed, "the tree needs it"},
		{"snapshot rm main#try", cli.ExitFailed, "only snapshots are removed"},
		{"snapshot export main#try", cli.ExitFailed, "take a snapshot of it"},
		{"snapshot import nosuchfile", cli.ExitFailed, "no such file"},
		{"branch", cli.ExitUsage, "which one?"},
		{"branch later", cli.ExitFailed, twinID + "  snapshot of garden, "},
		{"branch main#try", cli.ExitFailed, "tidemark trim --session 'main#try'"},
		{"branch before --threshold 0", cli.ExitUsage, "over 0"},
		{"branch before --threshold x", cli.ExitUsage, "want a whole number"},
		{"branch before --no-trim --threshold 60", cli.ExitUsage, "want one of them"},
		{"branch before --orientation " + strings.Repeat("x", 8001), cli.ExitUsage, "at most 8000"},
		{"merge main", cli.ExitFailed, "is a session, no branch"},
		{"branch before --launch", cli.ExitUsage, "sessions of Claude Code"},
		{"branch before --launch --json", cli.ExitUsage, "want one of them"},
		{"tree --depth 0", cli.ExitUsage, "1 or more"},
		{"tree --session x --claude", cli.ExitUsage, "want one of them"},
		{"compare main", cli.ExitUsage, "want A B"},
		{"compare main nowhere", cli.ExitFailed, "no session, snapshot or branch"},
		{"merge nowhere", cli.ExitFailed, "not found"},
	} {
		k := newKept()
		code, out, told := k.call(t, strings.Fields(c.args)...)
		if code != c.code || !strings.Contains(told, c.says) || !strings.Contains(told, "what to do: ") && !strings.Contains(told, `"fix":`) {
			t.Errorf("%s: exit code %d, want %d; told %s, want %s; printed %s", c.args, code, c.code, told, c.says, out)
		}
	}
}

// anArchive is a small archive of a session.
func anArchive(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := snapshot.NewWriter(&b, snapshot.Manifest{Kind: snapshot.OfSession, Node: newKept().nodes[0]})
	if err == nil {
		err = w.Line("log", []byte(`{}`))
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestSnapshotIsCarried(t *testing.T) {
	k := newKept()
	k.archive = anArchive(t)
	file := filepath.Join(t.TempDir(), "kept.tar.gz")
	if code, out, told := k.call(t, "snapshot", "export", "before", "-o", file); code != cli.ExitOK || !strings.Contains(out, file) {
		t.Fatalf("exit code %d: %s%s", code, out, told)
	}
	if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, k.archive) {
		t.Errorf("%d bytes, want %d: %v", len(got), len(k.archive), err)
	}
	if code, _, told := k.call(t, "snapshot", "export", "before", "-o", file); code != cli.ExitFailed {
		t.Errorf("a file was replaced: %s", told)
	}
	code, out, told := k.call(t, "snapshot", "import", file, "--session", "again")
	if want := "PUT /v1/snapshots/" + firstID + "/archive?session=again " + string(k.archive); code != cli.ExitOK || k.last() != want || !strings.Contains(out, "tidemark chat 'again'") {
		t.Errorf("exit code %d, printed %s, told %s, asked %.80s", code, out, told, k.last())
	}
	k.archive = k.archive[:len(k.archive)-30]
	torn := filepath.Join(t.TempDir(), "cut.tar.gz")
	if err := os.WriteFile(torn, k.archive, 0o600); err != nil {
		t.Fatal(err)
	}
	k.asked = nil
	if code, _, told := k.call(t, "snapshot", "import", torn); code != cli.ExitFailed || len(k.asked) > 0 {
		t.Errorf("a file that was cut off: exit code %d, told %s, asked %v", code, told, k.asked)
	}
	other := filepath.Join(t.TempDir(), "torn.tar.gz")
	if code, _, told := k.call(t, "snapshot", "export", "before", "-o", other); code != cli.ExitFailed || !strings.Contains(told, "cut off") {
		t.Errorf("an answer that broke off: exit code %d, told %s", code, told)
	}
	if left, err := os.ReadDir(filepath.Dir(other)); err != nil || len(left) > 0 {
		t.Errorf("an answer that broke off left %v: %v", fmt.Sprint(left), err)
	}
}

// TestLookedForAgain: an agent hears of a snapshot a moment after its session took it.
func TestLookedForAgain(t *testing.T) {
	k := newKept()
	k.late = 2
	if code, _, told := k.call(t, "snapshot", "show", "before"); code != cli.ExitOK {
		t.Errorf("exit code %d, told %s", code, told)
	}
}

func TestTails(t *testing.T) {
	got := tails([]string{"a.go", "/code/somebody/projects/very/long/way/down/to/é.go"})
	if want := []string{"a.go", "…dy/projects/very/long/way/down/to/é.go"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
