package outbound

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/room"
)

// TestStatusOfWhich: a status is of the row that it names, by its ref or by the platform's id, of this conversation alone.
func TestStatusOfWhich(t *testing.T) {
	for _, tc := range []struct {
		name    string
		ref, id string
		want    string // the row that is read
	}{
		{"by ref", string(mine) + "/2", "", "2"}, {"by id", "", "own.1", "1"}, {"by ref before id", string(mine) + "/2", "own.2", "2"}, {"of an unknown ref", string(mine) + "/9", "own.1", ""},
		{"by a ref that is none, and the id", string(mine) + "/x", "own.1", "1"}, {"by a ref of another, and the id", "agent:main:zoe/1", "own.1", "1"},
		{"of another's ref", string(mine) + "/-2", "", ""}, {"of another's id", "", "mid.1", ""}, {"of no id", "", "", ""},
	} {
		b := newBench(t)
		for _, text := range []string{"one", "two", "three"} {
			b.say(text)
		}
		b.exec(`UPDATE outbound SET state = 'unknown', open = 1, id = CASE n WHEN 1 THEN 'own.1' ELSE '' END WHERE key = ?`, string(mine))
		if err := b.Delivered(t.Context(), tidemark.Delivery{Ref: tc.ref, ID: tc.id, Status: tidemark.StatusRead}); err != nil {
			t.Errorf("%s: %v", tc.name, err)
		}
		if got := b.lines(`SELECT n FROM outbound WHERE key = ? AND status = 'read' LIMIT 9`, string(mine)); got != tc.want {
			t.Errorf("%s: row %q, want %q", tc.name, got, tc.want)
		}
		if (len(b.clock.run) > 0) != (tc.want != "") {
			t.Errorf("%s: %d send what waited for it", tc.name, len(b.clock.run))
		}
	}
	b := newBench(t)
	b.say("hello")
	b.open(nil)
	if err := b.Delivered(t.Context(), tidemark.Delivery{Ref: string(mine) + "/1", Status: tidemark.StatusRead}); err != nil || b.rows() != "1 pending open tries 0" {
		t.Errorf("without a channel: %v, %s", err, b.rows())
	}
}

// TestStatusBesideOthers: a status that comes while something else becomes of the message is held against what it then is.
func TestStatusBesideOthers(t *testing.T) {
	again := &tidemark.SendError{Class: tidemark.SendAgain, Text: "why"}
	for _, tc := range []struct {
		name, set string
		d         tidemark.Delivery
		want      string // state and status
	}{
		{"it was read", `status = 'read'`, tidemark.Delivery{Status: tidemark.StatusDelivered}, "sent read"},
		{"it is to be sent anew", `state = 'pending'`, tidemark.Delivery{Status: tidemark.StatusDelivered}, "pending "},
		{"it has another id", `id = 'other'`, tidemark.Delivery{ID: "own", Status: tidemark.StatusDelivered}, "sent "},
		{"it was tried for the last time", `tries = 20`, tidemark.Delivery{Status: tidemark.StatusFailed, Error: again}, "failed "},
		{"nothing of all that", `quote = ''`, tidemark.Delivery{Status: tidemark.StatusDelivered}, "sent delivered"},
	} {
		b := newBench(t)
		b.say("hello")
		b.exec(`UPDATE outbound SET state = 'sent', open = 0, id = 'own', tries = 1 WHERE key = ?`, string(mine))
		tc.d.Ref = string(mine) + "/1"
		b.store.part, b.store.times = "UPDATE outbound SET state =", 1
		b.store.before = func() { b.exec(`UPDATE outbound SET `+tc.set+` WHERE key = ?`, string(mine)) }
		if err := b.Delivered(t.Context(), tc.d); err != nil {
			t.Errorf("%s: %v", tc.name, err)
		}
		if got := b.lines(`SELECT state || ' ' || status FROM outbound WHERE key = ? LIMIT 9`, string(mine)); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
	for times, want := range map[int]error{4: nil, 5: tidemark.ErrBusy} {
		b := newBench(t)
		b.say("hello")
		b.exec(`UPDATE outbound SET state = 'sent', open = 0 WHERE key = ?`, string(mine))
		b.store.part, b.store.err, b.store.times = "UPDATE outbound SET state =", tidemark.ErrConflict, times
		if err := b.Delivered(t.Context(), tidemark.Delivery{Ref: string(mine) + "/1", Status: tidemark.StatusRead}); !errors.Is(err, want) {
			t.Errorf("changed %d times meanwhile: %v, want %v", times, err, want)
		}
	}
	b := newBench(t)
	b.say("hello")
	b.exec(`UPDATE outbound SET state = 'sent', open = 0 WHERE key = ?`, string(mine))
	b.store.part, b.store.err = "UPDATE outbound SET state =", errDown
	if err := b.Delivered(t.Context(), tidemark.Delivery{Ref: string(mine) + "/1", Status: tidemark.StatusRead}); !errors.Is(err, errDown) || b.store.met != 1 {
		t.Errorf("a store that is down: %v behind %d tries", err, b.store.met)
	}
}

// TestUnclosed: a window is open still where the person wrote since, by their name or from their address, and where it is not known to be
// closed for the third time.
func TestUnclosed(t *testing.T) {
	since := now.Add(-time.Minute)
	wrote := func(to *tidemark.Address, peer string) string {
		return room.JSON(tidemark.Origin{From: tidemark.FromPerson, Peer: peer, To: to})
	}
	who := tidemark.Origin{Peer: "ann", To: &ann}.Reader()
	for _, tc := range []struct {
		name   string
		tries  int
		peer   string
		at     time.Time
		origin string
		closed bool
	}{
		{"they wrote in that moment", 2, who, since, wrote(&ann, "ann"), false},
		{"they wrote before", 2, who, since.Add(-time.Millisecond), wrote(&ann, "ann"), true},
		{"another wrote", 2, who, now, wrote(&bob, "bob"), true},
		{"they wrote over no channel", 2, who, now, wrote(nil, "ann"), true},
		{"who is known by an address alone", 2, ann.Reader(), now, wrote(&ann, "ann"), false},
		{"what cannot be read", 2, who, now, `{`, true},
	} {
		b := newBench(t)
		b.exec(`INSERT INTO inputs(key, id, at, origin) VALUES(?, 'old', 2, '{}'), (?, 'x', ?, ?)`, string(mine), string(mine), tc.at.UnixMilli(), tc.origin)
		b.exec(`INSERT INTO inputs(key, id, at, origin) VALUES('agent:main:zoe', 'x', ?, ?)`, now.UnixMilli(), wrote(&ann, "ann"))
		stmt, err := b.unclosed(t.Context(), Message{Tries: tc.tries, peer: tc.peer}, since, tidemark.Stmt{SQL: `SET hold = 'closed' WHERE 1`, Args: []any{"a"}})
		want, args := `SET hold = '' WHERE 1`, []any{"a"}
		if tc.closed {
			want, args = `SET hold = 'closed' WHERE 1 AND NOT EXISTS (SELECT 1 FROM inputs WHERE key = ? AND n > ?)`, []any{"a", string(mine), int64(4)}
		}
		if err != nil || stmt.SQL != want || fmt.Sprint(stmt.Args...) != fmt.Sprint(args...) {
			t.Errorf("%s: %s %v, %v", tc.name, stmt.SQL, stmt.Args, err)
		}
		if stmt, err = b.unclosed(t.Context(), Message{Tries: 3, peer: tc.peer}, since, tidemark.Stmt{SQL: `x`}); err != nil || stmt.SQL != `x` {
			t.Errorf("%s, for the third time: %s, %v", tc.name, stmt.SQL, err)
		}
	}
	fresh := newBench(t)
	if stmt, err := fresh.unclosed(t.Context(), Message{peer: who}, since, tidemark.Stmt{SQL: `x`}); err != nil || fmt.Sprint(stmt.Args...) != fmt.Sprint(string(mine), int64(0)) {
		t.Errorf("where nobody wrote ever: %v, %v", stmt.Args, err)
	}
	// Somebody writes while it is decided: that is a conflict, and decided anew.
	b := newBench(t)
	b.phone.Fail = fails(&tidemark.SendError{Class: tidemark.SendClosed, Text: "window"})
	b.say("hello")
	b.store.part, b.store.times = "hold = 'closed'", 1
	b.store.before = func() {
		b.exec(`INSERT INTO inputs(key, id, at, origin) VALUES(?, 'x', ?, ?)`, string(mine), now.Add(time.Millisecond).UnixMilli(), room.JSON(tidemark.Origin{To: &ann}))
	}
	b.Dispatch()
	b.sends()
	if got := b.rows(); got != "1 sent tries 2 by 000000000007/2 id mid.2" {
		t.Errorf("they wrote while it was decided: %s", got)
	}
	b = newBench(t)
	b.phone.Fail = fails(&tidemark.SendError{Class: tidemark.SendClosed, Text: "window"})
	b.say("hello")
	b.store.part, b.store.err = "hold = 'closed'", tidemark.ErrConflict
	b.Dispatch()
	b.sends()
	if got := b.rows(); got != "1 unknown open tries 1 by 000000000007/1 next 120000 error cut off while it was being sent" || b.store.met != maxRaces {
		t.Errorf("each time: %s behind %d tries", got, b.store.met)
	}
}

// TestLinesWrite: each reader has a text once, in as many messages as the platform makes of it, of which the first may quote.
func TestLinesWrite(t *testing.T) {
	b := newBench(t)
	b.phone.Most = 3
	from := func(to tidemark.Address, message string) tidemark.Origin {
		return tidemark.Origin{To: &to, Message: message}
	}
	const rows = `SELECT peer || ' ' || text || ' ' || quote || ' ' || state || open || ' ' || CAST(at - ? AS INTEGER) || ' ' || address FROM outbound WHERE key = ? ORDER BY n LIMIT 9`
	b.clock.now = now.Add(time.Second)
	stmts, err := b.Lines(t.Context(), "log", []tidemark.Origin{from(group, "m1"), from(ann, "m2"), from(bob, "m3"), {}}, "abcd", bob.Reader())
	if err != nil {
		t.Fatal(err)
	}
	if err := b.DB.Tx(t.Context(), stmts); err != nil {
		t.Fatal(err)
	}
	club, hers := group.Reader(), ann.Reader()
	if got, want := b.lines(rows, now.UnixMilli(), string(mine)), fmt.Sprintf("%s abc m1 pending1 1000 %s\n%s d  pending1 1000 %s\n%s abc  pending1 1000 %s\n%s d  pending1 1000 %s",
		club, room.JSON(group), club, room.JSON(group), hers, room.JSON(ann), hers, room.JSON(ann)); got != want || b.due() != "out 11000 " {
		t.Errorf("rows\n%s\nwant\n%s\ndue %q", got, want, b.due())
	}
	known := from(bob, "m4")
	known.Peer = "bob"
	for name, stmts := range map[string]func() ([]tidemark.Stmt, error){
		"nobody": func() ([]tidemark.Stmt, error) { return b.Lines(t.Context(), "log", nil, "x") },
		"blank": func() ([]tidemark.Stmt, error) {
			return b.Lines(t.Context(), "log", []tidemark.Origin{from(ann, "m")}, " \n")
		},
		"but for whoever": func() ([]tidemark.Stmt, error) {
			return b.Lines(t.Context(), "log", []tidemark.Origin{known}, "x", "else", known.Reader())
		},
		"but for who is there": func() ([]tidemark.Stmt, error) {
			return b.Lines(t.Context(), "log", []tidemark.Origin{known}, "x", bob.Reader())
		},
	} {
		if got, err := stmts(); err != nil || len(got) > 0 {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	if got := b.lineStmts(listener{To: ann}, "\u200b "); len(got) != 2 {
		t.Errorf("of a text of one sign: %v", got)
	}
	if got := b.lineStmts(listener{To: ann}, " "); got != nil {
		t.Errorf("of a text of which the platform makes nothing: %v", got)
	}
	b.open(nil)
	nobody, err := b.Lines(t.Context(), "log", nil, "x")
	blank, err2 := b.Lines(t.Context(), "log", []tidemark.Origin{from(ann, "m")}, " ")
	if nobody != nil || blank != nil || err != nil || err2 != nil {
		t.Errorf("nothing, without a channel: %v, %v, %v, %v", nobody, blank, err, err2)
	}
	for i, want := range []int{1, 0, 0} {
		stmts, err := b.Lines(t.Context(), "log", []tidemark.Origin{from(ann, "m")}, "x")
		if err != nil || len(stmts) != want || want > 0 && fmt.Sprint(stmts[0].Args...) != "log error: Answers stay in the log: no channel that sends over fake is set up here." {
			t.Errorf("without a channel, %d: %v, %v", i, stmts, err)
		}
	}
}

// TestSayOnce: a line is said once for an id, with what the log has of it, and sent.
func TestSayOnce(t *testing.T) {
	b := newBench(t)
	event := &tidemark.Event{Type: "approval", Text: "asked"}
	for range 2 {
		if err := b.Say(t.Context(), "q", &ann, "May it?", event); err != nil {
			t.Fatal(err)
		}
	}
	b.sends()
	if got := b.lines(`SELECT id || ' ' || kind || ' ' || state || ' ' || CAST(at - ? AS INTEGER) || ' ' || origin || payload || (hash = ?) FROM inputs WHERE key = ? LIMIT 9`, now.UnixMilli(), string(tidemark.HashOf([]byte("say\nMay it?"))), string(mine)); got != "say:q say done 0 {}1" {
		t.Errorf("input %s", got)
	}
	if got := b.lines(`SELECT text FROM events LIMIT 9`); got != "log approval: asked" || !slices.Equal(b.told, []string{" asked"}) || b.rang != 1 || !slices.Equal(b.phone.Texts(), []string{"May it?"}) {
		t.Errorf("events %q, told %q, rang %d times, people read %q", got, b.told, b.rang, b.phone.Texts())
	}
	if err := b.Say(t.Context(), "r", nil, "To nobody.", nil); err != nil || len(b.told) != 1 || b.rang != 2 {
		t.Errorf("to nobody: %v, told %q, rang %d times", err, b.told, b.rang)
	}
	b.store.part, b.store.err = "INSERT INTO inputs", errDown
	if err := b.Say(t.Context(), "s", &ann, "x", event); !errors.Is(err, errDown) || !strings.Contains(err.Error(), "say s: ") || len(b.told) != 1 {
		t.Errorf("a store that is down: %v, told %q", err, b.told)
	}
	if n, err := b.Unsent(t.Context()); err != nil || n != 0 {
		t.Errorf("%d are unsent, %v", n, err)
	}
	b.store.part = ""
	b.say("one")
	b.say("two")
	if n, err := b.Unsent(t.Context()); err != nil || n != 2 {
		t.Errorf("%d are unsent, %v", n, err)
	}
	if list, err := b.Messages(t.Context(), 2); err != nil || len(list) != 2 || list[0].Text != "two" || list[1].Text != "one" || list[0].Ref != string(mine)+"/3" || list[0].To != ann || !list[0].At.Equal(now) || !list[0].Next.IsZero() {
		t.Errorf("messages %+v, %v", list, err)
	}
	b.exec(`INSERT INTO outbound(n, key, state, open, hold, status, peer, address, text, quote, id, past, tries, error, at, next, owner) VALUES(25, ?, 'unknown', 1, 'halted', 'sent', 'p', ?, 'text', 'q', 'own.25', 'o1 o2', 4, 'why', 5, 1, 'o')`, string(mine), room.JSON(bob))
	want := Message{Ref: string(mine) + "/25", State: Unknown, Hold: HoldHalted, Status: "sent", To: bob, Text: "text", Quote: "q", ID: "own.25", Tries: 4, Error: "why", At: time.UnixMilli(5), Next: time.UnixMilli(1), n: 25, peer: "p", address: room.JSON(bob), past: "o1 o2"}
	if list, err := b.Messages(t.Context(), 1); err != nil || len(list) != 1 || list[0] != want {
		t.Errorf("message %+v, %v, want %+v", list, err, want)
	}
	if m, err := b.find(t.Context(), tidemark.Delivery{Ref: string(mine) + "/25"}); err != nil || m == nil || *m != want {
		t.Errorf("found %+v, %v", m, err)
	}
	b.exec(`WITH RECURSIVE i(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM i WHERE n < 1001) INSERT INTO outbound(key, state, open, peer, address, text, at) SELECT ?, 'sent', 0, 'p', '{}', '', 1000 FROM i`, string(mine))
	if list, err := b.Messages(t.Context(), 2000); err != nil || len(list) != 1000 {
		t.Errorf("%d messages at once, %v", len(list), err)
	}
	b.exec(`UPDATE outbound SET address = '{' WHERE key = ?`, string(mine))
	if _, err := b.Messages(t.Context(), 2); err == nil {
		t.Error("an address that cannot be read is")
	}
}

// TestTyping: who waits for an answer is shown once a message that it is read, and again and again that somebody writes.
func TestTyping(t *testing.T) {
	b := newBench(t)
	show := b.Typing(t.Context())
	at := func(to tidemark.Address, message string) tidemark.Origin {
		return tidemark.Origin{To: &to, Message: message}
	}
	b.clock.most = 3
	show([]tidemark.Origin{at(ann, "m1"), at(bob, "")})
	show([]tidemark.Origin{at(ann, "m1")})
	if len(b.clock.run) != 1 {
		t.Errorf("%d show it", len(b.clock.run))
	}
	b.sends()
	if want := []time.Duration{workingEvery, workingEvery, workingEvery}; !slices.Equal(b.phone.Shown(), []string{"m1", "m1", "m1"}) || !slices.Equal(b.clock.slept, want) {
		t.Errorf("shown %q, slept %v", b.phone.Shown(), b.clock.slept)
	}
	show([]tidemark.Origin{at(ann, "m2")})
	b.sends()
	if want := []string{"m1", "m1", "m1", "m2"}; !slices.Equal(b.phone.Shown(), want) {
		t.Errorf("shown %q, want %q: the first goes on", b.phone.Shown(), want)
	}
	b.open(nil)
	if b.Typing(t.Context())([]tidemark.Origin{at(ann, "m1")}); len(b.clock.run) > 0 {
		t.Error("it shows without a channel")
	}
	for took, want := range map[time.Duration]time.Duration{0: workingEvery, 5 * time.Second: 15 * time.Second, time.Minute: time.Second, -time.Second: workingEvery} {
		b := newBench(t)
		b.clock.most = 1
		b.open(slow{b.phone, func() { b.clock.now = b.clock.now.Add(took) }})
		b.show(t.Context(), listener{To: ann, newest: "m1"}, true)
		if !slices.Equal(b.clock.slept, []time.Duration{want}) {
			t.Errorf("shown for %s, and then slept %v, want %s", took, b.clock.slept, want)
		}
	}
}

// slow is a courier that takes its time to show something.
type slow struct {
	tidemark.Courier
	takes func()
}

func (s slow) Working(context.Context, tidemark.Address, string) error {
	s.takes()
	return nil
}

// TestCorrespondentOf: who wrote last over a channel, of the newest inputs; in the main session, the owner alone.
func TestCorrespondentOf(t *testing.T) {
	wrote := func(to *tidemark.Address, o tidemark.Origin) string {
		o.To = to
		return room.JSON(o)
	}
	b := newBench(t)
	add := func(origin string) {
		b.exec(`INSERT INTO inputs(key, id, at, origin) VALUES(?, random(), 2, ?)`, string(b.Key), origin)
	}
	for _, tc := range []struct {
		name, origin  string
		guests, mains string // whose peer is found
	}{
		{"over no channel", wrote(nil, tidemark.Origin{Owner: true}), "", ""},
		{"a guest", wrote(&bob, tidemark.Origin{}), "bob", ""},
		{"the owner", wrote(&ann, tidemark.Origin{Owner: true}), "ann", "ann"},
		{"a schedule", wrote(&bob, tidemark.Origin{Owner: true, Occasion: &tidemark.Occasion{Schedule: "s"}}), "ann", "ann"},
		{"a guest again", wrote(&bob, tidemark.Origin{}), "bob", "ann"},
	} {
		for key, want := range map[tidemark.Key]string{mine: tc.guests, "agent:main:main": tc.mains} {
			b.Key = key
			add(tc.origin)
			o, err := b.Correspondent(t.Context())
			got := ""
			if o.To != nil {
				got = o.To.Peer
			}
			if got != want || (want == "") != errors.Is(err, tidemark.ErrNotFound) {
				t.Errorf("%s, in %s: %q, %v, want %q", tc.name, key, got, err, want)
			}
		}
	}
	b.Key = mine
	for n, want := range map[int]error{originsRead - 1: nil, originsRead: tidemark.ErrNotFound} {
		b.exec(`DELETE FROM inputs WHERE key = ?`, string(mine))
		add(wrote(&ann, tidemark.Origin{}))
		b.exec(`WITH RECURSIVE i(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM i WHERE n < ?) INSERT INTO inputs(key, id, at, origin) SELECT ?, 'later' || n, 2, '{}' FROM i`, n, string(mine))
		if _, err := b.Correspondent(t.Context()); !errors.Is(err, want) {
			t.Errorf("behind %d others: %v", n, err)
		}
	}
}

// TestHeard: what a person wrote lets go of what waited for it, is quoted, amended and in the end forgotten.
func TestHeard(t *testing.T) {
	b := newBench(t)
	next := now.Add(time.Hour).UnixMilli()
	b.exec(`INSERT INTO outbound(key, state, open, hold, peer, address, text, at, next, id) VALUES(?1, 'pending', 1, 'closed', ?2, '{}', 'a', 2, ?4, ''), (?1, 'pending', 1, 'halted', ?3, '{}', 'b', 2, ?4, ''), (?1, 'pending', 1, 'closed', 'bob', '{}', 'c', 2, ?4, ''),
		(?1, 'unknown', 1, '', ?2, '{}', 'd', 2, ?4, 'own.4'), (?1, 'pending', 0, 'closed', ?2, '{}', 'e', 2, ?4, '')`, string(mine), tidemark.Origin{Peer: "ann", To: &ann}.Reader(), ann.Reader(), next)
	moved := ann
	o := tidemark.Origin{Peer: "ann", To: &moved, Message: "their.9"}
	write := func(stmts []tidemark.Stmt, err error) {
		t.Helper()
		if err == nil {
			err = b.DB.Tx(t.Context(), stmts)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	write(b.Wrote(t.Context(), o, "when   does\nit leave?"))
	write(b.Wrote(t.Context(), o, "something else"))
	o.Message = ""
	write(b.Wrote(t.Context(), o, "of no message"))
	at := room.JSON(moved)
	if got, want := b.lines(`SELECT text || ' ' || (peer = ?) || ' ' || hold || ' ' || next || ' ' || address FROM outbound WHERE key = ? ORDER BY n LIMIT 9`, o.Reader(), string(mine)),
		fmt.Sprintf("a 1  0 %s\nb 1 halted %d %s\nc 0 closed %d {}\nd 1  %d {}\ne 1 closed %d {}", at, next, at, next, next, next); got != want {
		t.Errorf("rows\n%s\nwant\n%s", got, want)
	}
	if got := b.lines(`SELECT message || ' ' || said || ' ' || CAST(at - ? AS INTEGER) FROM heard WHERE key = ? LIMIT 9`, now.UnixMilli(), string(mine)); got != "their.9 when does it leave? 0" {
		t.Errorf("heard %q", got)
	}
	b.exec(`UPDATE outbound SET text = ? WHERE key = ? AND text = 'd'`, "[a] \"b\"\n"+strings.Repeat("x", 300), string(mine))
	b.exec(`INSERT INTO heard(key, message, said, at) VALUES(?, 'own.4', 'theirs by our id', 2), (?, 'their.0', ' ', 2)`, string(mine), string(mine))
	for message, want := range map[string]string{
		"own.4":   `[In reply to your message: "(a) 'b' ` + strings.Repeat("x", 232) + `…"]`,
		"their.9": `[In reply to a message: "when does it leave?"]`,
		"their.0": `[In reply to a message: "(no text)"]`,
		"their.1": `[In reply to an older message, which is not at hand.]`,
		"mid.1":   `[In reply to an older message, which is not at hand.]`,
		"":        `[In reply to an older message, which is not at hand.]`,
	} {
		if got, err := b.Quoted(t.Context(), message); err != nil || got != want {
			t.Errorf("quoting %q: %s, %v, want %s", message, got, err, want)
		}
	}
	write(b.Amended("their.9", "and  when back?"), nil)
	if got := b.lines(`SELECT message || ' ' || said FROM heard WHERE key = ? ORDER BY 1 LIMIT 9`, string(mine)); got != "own.4 theirs by our id\ntheir.0  \ntheir.9 and when back?" {
		t.Errorf("amended %q", got)
	}
	for name, o := range map[string]tidemark.Origin{"over no channel": {Message: "m"}, "without a channel": {To: &ann, Message: "m"}} {
		if name == "without a channel" {
			b.open(nil)
		}
		if stmts, err := b.Wrote(t.Context(), o, "x"); err != nil || stmts != nil {
			t.Errorf("%s: %v, %v", name, stmts, err)
		}
		b.open(b.phone)
	}
}

// TestPrune: what was settled a month ago goes, what is on its way, what is newer and what others have stays.
func TestPrune(t *testing.T) {
	b := newBench(t)
	old := now.Add(-keepSettled).UnixMilli()
	b.exec(`INSERT INTO outbound(key, state, open, peer, address, text, at) VALUES(?1, 'sent', 0, 'p', '{}', 'old', ?2 - 1), (?1, 'sent', 0, 'p', '{}', 'kept', ?2), (?1, 'pending', 1, 'p', '{}', 'open', 2)`, string(mine), old)
	b.exec(`INSERT INTO heard(key, message, said, at) VALUES(?1, 'old', '', ?2 - 1), (?1, 'kept', '', ?2)`, string(mine), old)
	b.exec(`INSERT INTO inputs(key, id, kind, at, origin) VALUES(?1, 'say:old', 'say', ?2 - 1, ''), (?1, 'say:kept', 'say', ?2, ''), (?1, 'say:typed', 'message', 2, ''), (?1, 'say', 'say', 2, ''), (?1, 'say;', 'say', 2, '')`, string(mine), old)
	if err := b.DB.Tx(t.Context(), b.PruneStmts()); err != nil {
		t.Fatal(err)
	}
	if got := b.lines(`SELECT text FROM outbound WHERE key = ?1 UNION ALL SELECT 'heard ' || message FROM heard WHERE key = ?1 UNION ALL SELECT id FROM inputs WHERE key = ?1 ORDER BY 1 LIMIT 99`, string(mine)); got != "heard kept\nkept\nopen\nsay\nsay:kept\nsay:typed\nsay;" {
		t.Errorf("there is\n%s", got)
	}
	fresh := Make(b.phone)(room.Ports{Self: room.Self{Key: mine, DB: b.store, Made: &room.Made{DB: b.store}, Runtime: b.clock}}).(*Room)
	n, err := fresh.Unsent(t.Context())
	list, err2 := fresh.Messages(t.Context(), 9)
	line, err3 := fresh.Quoted(t.Context(), "own.1")
	if fresh.PruneStmts() != nil || fresh.Amended("m", "x") != nil || n != 0 || len(list) != 0 || line == "" || errors.Join(err, err2, err3) != nil {
		t.Errorf("before the tables are known to be there: %d unsent, %+v, %q, %v %v %v", n, list, line, err, err2, err3)
	}
	if raw, err := json.Marshal(list); err != nil || string(raw) != "[]" {
		t.Errorf("no messages are %s, %v", raw, err)
	}
}
