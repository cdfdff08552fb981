package session

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/room"
)

// TestCommandsOfWhom: what may be asked for by the owner and by others, in a conversation of the owner's and of others.
func TestCommandsOfWhom(t *testing.T) {
	const others = "/new or /reset, /compact [what to keep], /stop, /snapshot [name], /status, "
	for _, row := range []struct {
		name          string
		owner, owners bool
		want          string
	}{
		{"others in theirs", false, false, others + "/model, /help"},
		{"others in the owner's", false, true, "/status, /model, /help"},
		{"the owner with others", true, false, others + "/model [name or default], /help"},
		{"the owner in theirs", true, true, others + "/model [name or default], /branch [name], /memory, /approve CODE, /deny CODE, /help"},
	} {
		var forms []string
		for _, c := range commands(row.owner, row.owners) {
			forms = append(forms, c.Form)
		}
		if got := strings.Join(forms, ", "); got != row.want {
			t.Errorf("%s: %s, want %s", row.name, got, row.want)
		}
	}
	if got := helpText([]tidemark.Command{{Form: "/a", Does: "one"}, {Form: "/b", Does: "two"}}); got != "/a: one\n/b: two" {
		t.Errorf("%q", got)
	}
	if got := Help(); got != helpText(commands(true, true)) {
		t.Errorf("%q", got)
	}
}

// TestByOwner: inputs are the owner's unless a person gave one who is not; and who may end what is going on.
func TestByOwner(t *testing.T) {
	r := newRig(t, Settings{})
	theirs := r.opened("agent:main:fake:dm:eve", Settings{})
	owner, eve, schedule, agent := tidemark.Origin{From: tidemark.FromPerson, Owner: true}, tidemark.Origin{From: tidemark.FromPerson}, tidemark.Origin{From: tidemark.FromSystem}, tidemark.Origin{}
	for _, row := range []struct {
		name string
		of   []tidemark.Origin
		want bool
	}{
		{"nobody", nil, true}, {"the owner", []tidemark.Origin{owner}, true}, {"another", []tidemark.Origin{eve}, false}, {"both", []tidemark.Origin{owner, eve}, false},
		{"the program", []tidemark.Origin{schedule, agent}, true},
	} {
		if got := byOwner(row.of...); got != row.want {
			t.Errorf("%s: %v", row.name, got)
		}
	}
	if !r.mayChange(owner) || r.mayChange(eve) || !theirs.mayChange(owner) || !theirs.mayChange(eve) {
		t.Error("who may change the owner's conversation, or theirs")
	}
}

// keeping is an agent with files of memory.
type keeping struct {
	silent
	files, curated string
	fails          string // the input that fails
}

func (k *keeping) Call(_ context.Context, _ tidemark.Scope, c tidemark.Block) tidemark.Block {
	text := k.files
	if strings.Contains(string(c.Input), "MEMORY.md") {
		text = k.curated
	}
	half := len(text) / 2
	return tidemark.Block{Type: tidemark.TypeToolResult, ToolUseID: c.ID, Content: []tidemark.Block{tidemark.Text(text[:half]), tidemark.Text(text[half:])}, IsError: string(c.Input) == k.fails}
}

// TestMemoryIsShown: /memory shows the names of some files and the beginning of the curated memory, cut between characters.
func TestMemoryIsShown(t *testing.T) {
	lines := func(n int) string { return strings.TrimSuffix(strings.Repeat("memory/a.md\n", n), "\n") }
	full := strings.Repeat("a", memoryText)
	for _, row := range []struct {
		name, files, curated, fails, want string
	}{
		{"little", "a\nb", "- one", "", "Memory files:\na\nb\n\nMEMORY.md:\n- one"},
		{"as many as are shown", lines(memoryLines), full, "", "Memory files:\n" + lines(memoryLines) + "\n\nMEMORY.md:\n" + full},
		{"one more", lines(memoryLines + 1), full + "b", "", "Memory files:\n" + lines(memoryLines) + "\n…\n\nMEMORY.md:\n" + full + "…"},
		{"cut within a character", "a", full[1:] + "é", "", "Memory files:\na\n\nMEMORY.md:\n" + full[1:] + "…"},
		{"no curated memory", "a", "gone", `{"path":"MEMORY.md"}`, "Memory files:\na"},
		{"no memory", "the bucket\nis down", "", `{}`, "Memory cannot be read now: the bucket is down"},
		{"no memory, at length", full, "", `{}`, "Memory cannot be read now: " + full[:200] + "…"},
	} {
		r := newRig(t, Settings{})
		r.Session.Agent = &keeping{files: row.files, curated: row.curated, fails: row.fails}
		if got := r.askMemory(t.Context(), true); got != row.want {
			t.Errorf("%s: %d bytes, want %d: %.300q", row.name, len(got), len(row.want), got)
		}
		if got := r.askMemory(t.Context(), false); !strings.HasPrefix(got, "Only the owner can do that.") {
			t.Errorf("%s, to others: %.300q", row.name, got)
		}
	}
}

// unsent is a room with messages that people do not have yet.
type unsent struct {
	room.NoTeller
	n     int64
	fails error
}

func (u *unsent) Unsent(context.Context) (int64, error) { return u.n, u.fails }

// TestStatusLines: what /status says, line by line, of this conversation and of no other.
func TestStatusLines(t *testing.T) {
	r := newRig(t, Settings{Window: 6000, Reserve: 1500, Keep: 1200, Zone: time.FixedZone("HERE", 2*3600)})
	r.opened("agent:main:aunt", Settings{})
	waits := func(key, id, state string) {
		r.exec(`INSERT INTO inputs(key, id, kind, state, at, origin, payload, hash) VALUES(?, ?, 'message', ?, 0, '{}', '', '')`, key, id, state)
	}
	waits("agent:main:aunt", "1", "new")
	waits("agent:main:aunt", "2", "new")
	waits(string(r.Key), "1", "done")
	u := &unsent{}
	r.Session.rooms = append(r.Session.rooms, u)
	x := r.working(stateCalling)
	status := func() string {
		t.Helper()
		got, err := r.status(t.Context(), x)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	v, err := r.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	lines := []string{"Model: test", fmt.Sprintf("Context: %d tokens, %s of the 4500 at which it is compacted (window 6000)", v.Size, share(v.Size, 4500)), "Messages: 0 since 2026-03-10 14:00 HERE",
		"Compactions: 0, resets: 0", "Waiting: 0"}
	if got, want := status(), strings.Join(lines, "\n"); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	r.exec(`UPDATE heads SET messages = 5, compactions = 2, resets = 1 WHERE key = ?`, string(r.Key))
	for i := range 4 {
		waits(string(r.Key), fmt.Sprint("w", i), "new")
	}
	u.n = 1
	known := map[string]tidemark.Window{"test": {Model: "test", Tokens: 5000, From: tidemark.WindowKnown, Until: r.clock.Now().Add(time.Hour)}}
	if err := errors.Join(r.windows.Read([]byte(mustJSON(known))), r.loadSettings(t.Context())); err != nil {
		t.Fatal(err)
	}
	lines = []string{"Model: test", fmt.Sprintf("Context: %d tokens, %s of the 3500 at which it is compacted (window 5000: the model's maker says so)", v.Size, share(v.Size, 3500)), "Messages: 5 since the last reset",
		"Compactions: 2, resets: 1", "Waiting: 3", "Not sent yet: 1"}
	if got, want := status(), strings.Join(lines, "\n"); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	held, asked := int64(0), 0
	r.Reader.Admit = func(bytes int64) (func(), bool) {
		held, asked = held+bytes, asked+1
		return func() { held -= bytes }, true
	}
	r.person(strings.Repeat("a long text ", 120_000))
	if status(); held != 0 || asked != 1 { // before anything else is written
		t.Errorf("%d bytes held, asked %d times", held, asked)
	}
	u.fails = errFaulty
	if _, err := r.status(t.Context(), x); !errors.Is(err, errFaulty) {
		t.Errorf("when it is not known what is sent: %v", err)
	}
	r.faulty.refuses("count(*) FROM inputs")
	if _, err := r.status(t.Context(), x); !errors.Is(err, errFaulty) || !strings.Contains(err.Error(), "count queue") {
		t.Errorf("when it is not known what waits: %v", err)
	}
}

// askedRoom notes what it is asked.
type askedRoom struct{ got []room.Asked }

func (*askedRoom) Answers() []string { return []string{"branch"} }

func (a *askedRoom) Answer(_ context.Context, q room.Asked) (string, error) {
	a.got = append(a.got, q)
	if !q.Owner {
		return "", fmt.Errorf("no: %w", tidemark.ErrForbidden)
	}
	return "a branch", nil
}

// TestReplyOfWhom: a word is answered by the session, by the room that it is of, or by what may be asked.
func TestReplyOfWhom(t *testing.T) {
	r, a := newRig(t, Settings{}), &askedRoom{}
	r.Session.Agent, r.Session.rooms = &keeping{files: "files"}, append(r.Session.rooms, a)
	owner, eve := []tidemark.Origin{{From: tidemark.FromPerson, Owner: true}}, []tidemark.Origin{{From: tidemark.FromPerson}}
	for _, row := range []struct {
		line  string
		of    []tidemark.Origin
		begin string
	}{
		{"status", eve, "Model: test\nContext: "}, {"model", eve, "Model: test"}, {"model big", eve, "Only the owner can do that."}, {"model big", owner, "Model from now on: big"},
		{"model", owner, "Model: big"}, {"model default", owner, "Model from now on: test"}, {"memory", owner, "Memory files:\nfiles"}, {"memory", eve, "Only the owner can do that."}, {"branch off we go", owner, "a branch"},
		{"branch off", eve, "Only the owner can do that."}, {"help", owner, Help()}, {"help", eve, "/status: "},
	} {
		x := r.working(stateCalling)
		x.origins, x.command = row.of, &queued{ID: "in", At: r.clock.Now()}
		if got, err := r.reply(t.Context(), x, row.line); err != nil || !strings.HasPrefix(got, row.begin) {
			t.Errorf("/%s: %q, %v, want %q", row.line, got, err, row.begin)
		}
		r.exec(`UPDATE runs SET state = 'done'`)
	}
	if len(a.got) != 2 || a.got[0] != (room.Asked{Word: "branch", Text: "off we go", Owner: true, ID: "in", At: r.clock.Now()}) {
		t.Errorf("the room was asked %+v", a.got)
	}
}
