package session

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/room"
)

// deciding is a room that carries out a command at once, and reads some words as one.
type deciding struct {
	done  room.Done
	fails error
	line  string
	asked []string
}

func (*deciding) Commands() []string { return []string{tidemark.CommandDeny, tidemark.CommandApprove} }

func (d *deciding) Command(_ context.Context, word, text string, _ tidemark.Origin) (room.Done, error) {
	d.asked = append(d.asked, word+"/"+text)
	return d.done, d.fails
}

func (d *deciding) Reads(_ context.Context, text string, _ tidemark.Origin) (string, error) {
	d.asked = append(d.asked, "reads "+text)
	return d.line, d.fails
}

func (*deciding) Ahead(context.Context, tidemark.Origin) string { return "" }

// TestReadsAsCommand: a room reads a message of one text as its command, and no other input.
func TestReadsAsCommand(t *testing.T) {
	text, image := tidemark.Text("yes ABCDE"), pictureOf(t, onePicture)
	ann := tidemark.Origin{Peer: "ann"}
	for _, row := range []struct {
		name    string
		kind    string
		content []tidemark.Block
		line    string
		asked   bool
	}{
		{"a text that is one", InputMessage, []tidemark.Block{text}, "approve ABCDE", true},
		{"a text that is none", InputMessage, []tidemark.Block{text}, "", true},
		{"two texts", InputMessage, []tidemark.Block{text, text}, "approve ABCDE", false},
		{"a picture", InputMessage, []tidemark.Block{image}, "approve ABCDE", false},
		{"nothing", InputMessage, nil, "approve ABCDE", false},
		{"a command", InputCompact, []tidemark.Block{text}, "approve ABCDE", false},
	} {
		r, d := newRig(t, Settings{}), &deciding{line: row.line}
		in := Input{ID: "in", Kind: row.kind, Message: tidemark.Message{Role: tidemark.User, Content: row.content}, Origin: ann, Text: "text", Quoted: "q"}
		if got, err := r.readAsCommand(t.Context(), in); err != nil || got.Kind != row.kind || got.Text != "text" || len(got.Message.Content) != len(row.content) {
			t.Errorf("%s, without a room: %+v, %v", row.name, got, err)
		}
		r.Session.rooms = append(r.Session.rooms, d)
		got, err := r.readAsCommand(t.Context(), in)
		is := row.asked && row.line != ""
		if err != nil || (len(d.asked) > 0) != row.asked || is != (got.Kind == InputAsk) || got.ID != "in" || got.Origin != ann || is && (got.Text != row.line || got.Message.Content != nil || got.Quoted != "") || !is && got.Quoted != "q" {
			t.Errorf("%s: %+v, %v, asked %q", row.name, got, err, d.asked)
		}
		d.fails = errFaulty
		if _, err := r.readAsCommand(t.Context(), in); errors.Is(err, errFaulty) != row.asked {
			t.Errorf("%s, when it cannot read: %v", row.name, err)
		}
	}
	r, d := newRig(t, Settings{}), &deciding{}
	r.Session.rooms = append(r.Session.rooms, d)
	for word, is := range map[string]bool{tidemark.CommandApprove: true, tidemark.CommandDeny: true, tidemark.CommandStatus: false} {
		if c := r.rooms.Commander(word); (c != nil) != is {
			t.Errorf("%s: %v", word, c)
		}
	}
	if _, err := r.Post(t.Context(), Input{Kind: InputCompact, Text: "approve what we said"}); err != nil || len(d.asked) > 0 {
		t.Errorf("words of another command: %v, asked %q", err, d.asked)
	}
}

// TestCommandAtOnce: a command that a room carries out is done with its answer, or joins the run that it lets go on, with what
// else is to be written, once; what comes at the same moment as something else changes nothing.
func TestCommandAtOnce(t *testing.T) {
	write := []tidemark.Stmt{{SQL: `INSERT INTO prompts(hash, text) VALUES('decided', '') ON CONFLICT(hash) DO UPDATE SET text = text || 'x'`}}
	late := []tidemark.Stmt{{SQL: `UPDATE prompts SET text = 'late' WHERE hash = 'none'`, Want: 1}}
	for _, row := range []struct {
		name  string
		done  room.Done
		fails error
		state string
		err   error
		input string // its row
		heard string
		lines []string
	}{
		{"it is answered", room.Done{Text: "It was allowed.", Stmts: write}, nil, "done", nil, "done /approve ABC", `event  answer: It was allowed.; done in`, []string{"1 It was allowed."}},
		{"it joins a run", room.Done{Run: "r1", Text: "not told", Stmts: write}, nil, "taken", nil, "taken r1/", `taken in`, nil},
		{"it came too late for its answer", room.Done{Text: "x", Stmts: late}, nil, "", tidemark.ErrBusy, "", "", []string{"1 x"}},
		{"it came too late for its run", room.Done{Run: "r1", Stmts: late}, nil, "", tidemark.ErrBusy, "", "", nil},
		{"it fails", room.Done{}, errFaulty, "", errFaulty, "", "", nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			r, d, tells := newRig(t, Settings{}), &deciding{done: row.done, fails: row.fails}, &tellerOf{}
			r.Session.rooms = append(r.Session.rooms, d, tells)
			then := 0
			d.done.Then = func() { then++ }
			r.exec(`INSERT INTO inputs(key, id, kind, state, at, origin, payload, hash, run) VALUES('agent:main:aunt', 'in', 'message', 'new', 0, '{}', 'theirs', '', ''), (?, 'other', 'message', 'taken', 0, '{}', 'ours', '', 'r0'), (?, 'waits', 'message', 'new', 0, '{}', 'ours', '', '')`, string(r.Key), string(r.Key))
			r.active = "r0" // it takes up what waits when it ends
			sub := r.listens()
			in := Input{ID: "in", Kind: InputAsk, Text: "approve ABC", Origin: tidemark.Origin{From: tidemark.FromPerson}}
			got, err := r.Post(t.Context(), in)
			if !errors.Is(err, row.err) || err == nil && (got.State != row.state || got.Duplicate) {
				t.Errorf("%+v, %v, want %s, %v", got, err, row.state, row.err)
			}
			rows := "agent:main:aunt in new /theirs; agent:main:main other taken r0/ours; agent:main:main waits new /ours"
			if row.input != "" {
				rows = "agent:main:aunt in new /theirs; agent:main:main in " + row.input + "; agent:main:main other taken r0/ours; agent:main:main waits new /ours"
			}
			const inputs = `SELECT key, id, state, run || '/' || trim(payload, '"') FROM inputs ORDER BY key, id LIMIT 9`
			r.reads(rows, inputs)
			if row.done.Run != "" && err != nil && !strings.Contains(err.Error(), "at the same moment; look again") {
				t.Errorf("who gave it reads %v", err)
			}
			if told := heard(sub); told != row.heard || !slices.Equal(tells.lines, row.lines) {
				t.Errorf("heard %q, told %q", told, tells.lines)
			}
			if err != nil {
				r.reads("", `SELECT hash FROM prompts WHERE hash IN ('decided', 'line 1') LIMIT 9`)
				return
			}
			if then != 1 {
				t.Errorf("written %d times", then)
			}
			if got, err = r.Post(t.Context(), in); err != nil || !got.Duplicate || got.State != row.state || then != 1 {
				t.Errorf("again: %+v, %v, written %d times", got, err, then)
			}
			r.reads(rows, inputs)
			r.reads("decided", `SELECT hash || text FROM prompts WHERE hash = 'decided' LIMIT 1`)
		})
	}
}
