package search

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host/hosttest"
	"github.com/tidemark-ai/tidemark/recall"
	"github.com/tidemark-ai/tidemark/room"
)

// TestWhenDigestsAreTold: a report a minute, at once where this life told nothing or the clock was set back, and one at a
// time.
func TestWhenDigestsAreTold(t *testing.T) {
	s := &Digests{}
	if !s.silent() || !s.after(morning).Equal(morning) {
		t.Errorf("at first: after %s, silent %v", s.after(morning), s.silent())
	}
	if !s.begin() || s.begin() || s.silent() {
		t.Error("two work at once")
	}
	s.end(morning)
	if s.silent() || !s.begin() {
		t.Error("nobody works behind the first")
	}
	s.end(morning)
	for after, want := range map[time.Duration]time.Duration{0: digestEvery, time.Second: digestEvery, digestEvery - 1: digestEvery, digestEvery: digestEvery, 2 * digestEvery: 2 * digestEvery, -1: -1} {
		if got := s.after(morning.Add(after)); !got.Equal(morning.Add(want)) {
			t.Errorf("%s behind the last: %s, want %s", after, got.Sub(morning), want)
		}
	}
}

// parts writes a report as "HEAD [at]: FIRST-LAST=MESSAGES …", with "!" behind a part that is closed.
func parts(t *testing.T, r recall.DigestReport) string {
	t.Helper()
	var b strings.Builder
	fmt.Fprint(&b, r.Head)
	if !r.At.IsZero() {
		fmt.Fprint(&b, " ", r.At.Sub(morning))
	}
	for _, p := range r.Parts {
		d, err := recall.DecodeDigest(p.Digest)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, " %d-%d=%d", p.First, p.Last, d.Messages)
		if p.Closed {
			b.WriteString("!")
		}
	}
	return b.String()
}

// teller is a conversation whose agent is told of its words.
func teller(t *testing.T) (d, beside *desk, a *wide, told func() []string) {
	t.Helper()
	db := hosttest.DB(t)
	a = &wide{next: func(recall.DigestReport) (int64, error) { return 1, nil }}
	d, beside = deskOf(t, db, "agent:main:main", a), deskOf(t, db, "agent:main:second", silent{})
	return d, beside, a, func() (out []string) {
		for _, r := range a.reports {
			if r.Key != d.Key {
				t.Errorf("told of %s", r.Key)
			}
			out = append(out, parts(t, r))
		}
		a.reports = nil
		return out
	}
}

// due is what is due of digests, "" for nothing.
func (d *desk) due() string {
	d.t.Helper()
	rows, err := d.DB.Query(d.t.Context(), `SELECT at FROM due WHERE key = ? AND kind = ? LIMIT 2`, string(d.Key), dueDigest)
	if err != nil {
		d.t.Fatal(err)
	}
	if len(rows) == 0 {
		return ""
	}
	return time.UnixMilli(rows[0].Int(0)).Sub(morning).String()
}

// TestDigestReports: the agent is asked once from where on it wants to know, and then told of the messages since, without
// events and without what a neighbour says between them.
func TestDigestReports(t *testing.T) {
	d, beside, a, told := teller(t)
	wake := func() {
		t.Helper()
		if err := d.digests.Wake(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	beside.exec(`INSERT INTO due(key, kind, at) VALUES(?, ?, 1)`, string(beside.Key), dueDigest)
	d.exec(`INSERT INTO due(key, kind, at) VALUES(?, 'other', 1)`, string(d.Key))
	wake()
	if got := told(); !slices.Equal(got, []string{"0"}) || d.due() != "" {
		t.Errorf("of nothing: %q, due %q", got, d.due())
	}
	beside.says(minutes(0), "acorn") // 1
	d.says(minutes(0), "walnut")     // 2
	beside.says(minutes(1), "acorn")
	d.says(minutes(1), "harbour") // 4
	d.event()
	beside.says(minutes(2), "acorn")
	d.clock.move(time.Minute)
	d.exec(`INSERT INTO due(key, kind, at) VALUES(?, ?, ?)`, string(d.Key), dueDigest, d.clock.Now().UnixMilli())
	wake()
	if got := told(); !slices.Equal(got, []string{"4 1m0s 1-4=2"}) || d.due() != "" {
		t.Errorf("of two messages: %q, due %q", got, d.due())
	}
	d.logs(minutes(3), tidemark.FromRecall, tidemark.NewText(tidemark.User, "walnut")) // 7: stands elsewhere
	d.says(minutes(4), "lighthouse")
	d.clock.move(time.Minute)
	d.exec(`INSERT INTO due(key, kind, at) VALUES(?, ?, ?)`, string(d.Key), dueDigest, d.clock.Now().UnixMilli()+1) // somebody said something meanwhile
	wake()
	if got := told(); !slices.Equal(got, []string{"8 2m0s 1-8=3"}) || d.due() != "2m0.001s" {
		t.Errorf("of two more: %q, due %q", got, d.due())
	}
	wake()
	if got := told(); len(got) != 0 {
		t.Errorf("of nothing new: %q", got)
	}
	a.next = func(recall.DigestReport) (int64, error) { return 3, nil } // it has the first from another life
	d.says(minutes(5), "anchor")                                        // 9
	wake()
	if got, due, alarms := told(), d.due(), d.alarms; !slices.Equal(got, []string{"9 2m0s 1-9=4"}) || due != (3*time.Minute).String() || alarms == 0 {
		t.Errorf("to who wants it from another place on: %q, due %q, %d alarms", got, due, alarms)
	}
	d.clock.move(time.Minute)
	wake()
	if got := told(); !slices.Equal(got, []string{"9", "9 3m0s 3-9=3"}) || d.due() != "" {
		t.Errorf("from there on: %q, due %q", got, d.due())
	}
	a.next = func(recall.DigestReport) (int64, error) { return 0, errors.New("the agent is down") }
	d.says(minutes(6), "rudder") // 10
	d.exec(`INSERT INTO due(key, kind, at) VALUES(?, ?, 5)`, string(d.Key), dueDigest)
	if err := d.digests.Wake(t.Context()); err == nil || d.due() == "" {
		t.Errorf("of a report that failed: %v, due %q", err, d.due())
	}
	told()
	a.next = func(recall.DigestReport) (int64, error) { return 5, nil }
	wake()
	if got := told(); !slices.Equal(got, []string{"10", "10 3m0s 5-10=3"}) || d.due() != "" {
		t.Errorf("after that: %q, due %q", got, d.due())
	}
	if d.number(`SELECT count(*) FROM due WHERE key = ? LIMIT 1`, string(d.Key)) != 1 || beside.due() == "" {
		t.Error("what else is due is gone")
	}
}

// keptParts answers as an agent that keeps what it is told: with where the part that is open begins.
func keptParts(r recall.DigestReport) (next int64, err error) {
	next = 1
	if n := len(r.Parts); n > 0 {
		if next = r.Parts[n-1].First; r.Parts[n-1].Closed {
			next = r.Parts[n-1].Last + 1
		}
	}
	return next, nil
}

// TestDigestParts: a part ends with the message that has as many words as one may hold, and a report has eight such; what is
// left is told a minute later.
func TestDigestParts(t *testing.T) {
	d, _, a, told := teller(t)
	for i := range digestParts + 2 {
		var b strings.Builder
		for j := range recall.DigestTerms + 10 {
			fmt.Fprintf(&b, "w%dx%d ", i, j)
		}
		d.says(minutes(i), b.String())
	}
	d.says(minutes(50), "the last")
	a.next = keptParts
	if err := d.digests.Wake(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, want := told(), []string{"11", "11 1-1=1! 2-2=1! 3-3=1! 4-4=1! 5-5=1! 6-6=1! 7-7=1! 8-8=1!"}; !slices.Equal(got, want) || d.due() != digestEvery.String() || d.alarms == 0 {
		t.Errorf("%q, want %q; due %q, %d alarms", got, want, d.due(), d.alarms)
	}
	d.clock.move(digestEvery)
	if err := d.digests.Wake(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, want := told(), []string{"11 1m0s 9-9=1! 10-10=1! 11-11=1"}; !slices.Equal(got, want) || d.due() != "" {
		t.Errorf("%q, want %q; due %q", got, want, d.due())
	}
}

// TestDigestMessages: of a long conversation of few words a report is of four thousand messages more, as far as it reaches.
func TestDigestMessages(t *testing.T) {
	d, _, a, told := teller(t)
	a.next = keptParts
	for i := range digestMessages + digestPage + 1 {
		d.says(minutes(i), "walnut")
	}
	for _, want := range [][]string{{"4021", "4021 1-1000=1000! 1001-2000=1000! 2001-3000=1000! 3001-4000=1000!"}, {"4021 1m0s 4001-4021=21"}} {
		if err := d.digests.Wake(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := told(); !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		d.clock.move(digestEvery)
	}
}

// TestDigestsDue: what is to be told is due a minute behind the last report, sooner where there was none; an agent that keeps
// no digests is told nothing.
func TestDigestsDue(t *testing.T) {
	d, _, a, told := teller(t)
	d.says(minutes(0), "walnut")
	d.digests.soon(t.Context())
	if got := d.due(); got != digestRest.String() || d.alarms != 1 {
		t.Errorf("asked before it told anything: due %q, %d alarms", got, d.alarms)
	}
	d.clock.move(5 * time.Second)
	d.digests.soon(t.Context())
	if got := d.due(); got != digestRest.String() {
		t.Errorf("asked again: due %q", got)
	}
	stmts := d.digests.ToldStmts()
	if err := d.DB.Tx(t.Context(), stmts); err != nil || d.due() != (5*time.Second).String() {
		t.Errorf("with the first report: due %q, %v", d.due(), err)
	}
	d.digests.Told(t.Context())
	if got := told(); !slices.Equal(got, []string{"1", "1 5s 1-1=1"}) || d.due() != "" {
		t.Errorf("at once: %q, due %q", got, d.due())
	}
	alarms := d.alarms
	d.digests.soon(t.Context())
	if d.due() != "" || d.alarms != alarms {
		t.Errorf("asked when it has told: due %q", d.due())
	}
	d.clock.move(time.Second)
	d.says(minutes(1), "harbour")
	if err := d.DB.Tx(t.Context(), d.digests.ToldStmts()); err != nil || d.due() != (65*time.Second).String() {
		t.Errorf("with the next report: due %q, %v", d.due(), err)
	}
	if d.digests.Told(t.Context()); len(told()) != 0 || d.alarms != alarms+1 {
		t.Errorf("before its time: %d alarms, %d before", d.alarms, alarms)
	}
	d.clock.move(time.Minute)
	var warned []string
	d.digests.Warn = func(what string, err error) { warned = append(warned, fmt.Sprint(what, ": ", err)) }
	a.next = func(recall.DigestReport) (int64, error) { return 0, errors.New("the agent is down") }
	if d.digests.Told(t.Context()); len(told()) != 1 || d.due() != (126*time.Second).String() || d.alarms != alarms+2 {
		t.Errorf("to an agent that is down: due %q, %d alarms, %d before", d.due(), d.alarms, alarms)
	}
	if !slices.Equal(warned, []string{"tell digests: the agent is down"}) {
		t.Errorf("warned of %q", warned)
	}
	a.next = func(recall.DigestReport) (int64, error) { return 1, nil }
	d.digests.begin() // somebody is at it
	if err := d.digests.Wake(t.Context()); err != nil || len(told()) != 0 || d.due() != (126*time.Second).String() {
		t.Errorf("beside another: due %q, %v", d.due(), err)
	}
	d.digests.soon(t.Context())
	d.digests.end(d.clock.Now())
	db := d.digests.DB
	d.digests.told, d.digests.DB = time.Time{}, unreadable{db}
	if d.digests.soon(t.Context()); len(warned) != 2 || warned[1] != "plan digests: the disk is full" {
		t.Errorf("of a database that fails it warned %q", warned)
	}
	d.digests.DB = db

	plain := deskOf(t, hosttest.DB(t), "agent:main:main", silent{})
	plain.says(minutes(0), "walnut")
	plain.digests.soon(t.Context())
	plain.digests.Told(t.Context())
	if stmts := plain.digests.ToldStmts(); len(stmts) != 0 || plain.due() != "" || plain.alarms != 0 {
		t.Errorf("%v, due %q, %d alarms", stmts, plain.due(), plain.alarms)
	}
	plain.exec(`INSERT INTO due(key, kind, at) VALUES(?, ?, ?), (?, 'other', 0)`, string(plain.Key), dueDigest, morning.UnixMilli()-1, string(plain.Key))
	if err := plain.digests.Wake(t.Context()); err != nil || plain.due() != "" || plain.number(`SELECT count(*) FROM due WHERE key = ? LIMIT 1`, string(plain.Key)) != 1 {
		t.Errorf("what an agent without digests has due: %q, %v", plain.due(), err)
	}
	if got := plain.digests.Wakes() + " " + plain.index.Wakes() + " " + plain.pieces.Wakes(); got != "digest "+room.DueIndex+" words" {
		t.Error(got)
	}
}
