package odd

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/session"
)

// utterance is a message of the person's as they know it.
type utterance struct {
	id    string           // of the platform
	n     int              // of the text that it reads now
	back  bool             // it was taken back
	entry tidemark.EntryID // of one that was amended
}

// act is one of the things that a person does in a turn, a message or an amendment.
type act struct {
	in    session.Input
	at    int // with which of the calls and tools of the turn it comes; 0: at once
	tag   string
	wrote *utterance // a message
	about *utterance // an amendment
	old   int        // the text that it is about
	now   int        // and that which stands there then, 0 for none
}

// arrival is what the person does while something is in work.
type arrival struct {
	at   int
	acts func()
}

// acts are what the person does next: a message, now and then with others right behind it or while it is in work, and
// with amendments of theirs or of earlier ones.
func (x *talk) acts() []*act {
	var out []*act
	known := slices.Clone(x.wrote)
	amend := func(at int) {
		if len(known) > 0 {
			out = append(out, x.amendment(known, at))
		}
	}
	write := func(at int) {
		m := x.message()
		u := &utterance{id: x.tag(x.n), n: x.n}
		known = append(known, u)
		out = append(out, &act{in: session.Input{Message: m}, at: at, tag: x.tag(x.n), wrote: u})
	}
	if x.r.IntN(7) == 0 {
		amend(0)
	}
	write(0)
	if x.r.IntN(3) > 0 {
		return out
	}
	for range 1 + x.r.IntN(2) {
		at := x.r.IntN(4)
		if x.r.IntN(4) == 0 {
			amend(at)
		}
		write(at)
	}
	return out
}

// amendment corrects a message or takes it back: one of the newest, or any.
func (x *talk) amendment(known []*utterance, at int) *act {
	u := known[x.r.IntN(len(known))]
	if x.r.IntN(3) > 0 {
		u = known[max(0, len(known)-1-x.r.IntN(4))]
	}
	x.n++
	c := &act{at: at, about: u}
	if x.r.IntN(3) == 0 {
		c.in = session.Amend(session.Amendment{Revokes: u.id})
	} else {
		c.now = x.n
		c.in = session.Amend(session.Amendment{Edits: u.id, Text: x.framed(x.n, wordsOf(x.r.IntN, 1+x.r.IntN(40)))})
	}
	c.in.ID, c.tag = x.tag(x.n), x.tag(x.n)
	return c
}

// sends does what a person does, and waits until nothing is in work. What should have come while something was in work,
// and found nothing, is left out.
func (x *talk) sends(acts []*act) (done []*act, err error) {
	post := func(c *act) {
		c.in.ID = cmp.Or(c.in.ID, c.tag)
		c.in.Origin = x.origin(c.in.ID)
		switch {
		case c.wrote != nil:
			x.w.net.hear(c.tag)
			x.wrote = append(x.wrote, c.wrote)
		case c.about != nil:
			c.old, c.about.n, c.about.back = c.about.n, c.now, c.now == 0
		}
		r, posted := x.s.Post(x.w.t.Context(), c.in)
		if posted != nil && err == nil {
			err = fmt.Errorf("post: %w", posted)
		}
		c.in.ID, done = r.ID, append(done, c)
	}
	n := 0
	for n < len(acts) && acts[n].at == 0 {
		n++
	}
	var later []arrival
	for _, c := range acts[n:] {
		later = append(later, arrival{c.at, func() { post(c) }})
	}
	x.w.net.awaits(later, func() {
		for _, c := range acts[:n] {
			post(c)
		}
	})
	if rest := x.w.rest(); rest != nil {
		return done, fmt.Errorf("the turn does not end: %w", rest)
	}
	x.w.net.awaits(nil, func() {})
	return done, err
}

// awaits has something come later, and something else at once.
func (a *api) awaits(later []arrival, first func()) {
	a.door.Lock()
	defer a.door.Unlock()
	first()
	a.comes = later
}

// arrives has the next thing come, if it is due: a call is made, or a tool works, or nothing more comes of an answer.
func (a *api) arrives() {
	a.door.Lock()
	defer a.door.Unlock()
	if len(a.comes) > 0 {
		a.comes[0].at--
	}
	for len(a.comes) > 0 && a.comes[0].at <= 0 {
		next := a.comes[0]
		a.comes = a.comes[1:]
		next.acts()
	}
}

// reply is how an act ended.
func (x *talk) reply(c *act) (tidemark.Entry, string, error) {
	e, failure, ok, err := x.s.Reply(x.w.t.Context(), c.in.ID)
	if err == nil && !ok {
		err = fmt.Errorf("%s: no end of the turn: %s", c.in.ID, failure)
	}
	return e, failure, err
}

// reached reports whether some request had both ends of a message of this turn.
func (a *api) reached(tag string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.whole[tag]
}

// nowSaid is how a recollection says that it reads otherwise now.
var nowSaid = [][]byte{[]byte("It reads now: "), []byte("took this message back")}

// sent looks through a request for the messages of this turn, and for words that were corrected or taken back. Recall
// may find those, and says so beside them.
func (a *api) sent(body []byte) {
	const near = 8000
	for _, tag := range a.tags {
		a.whole[tag] = a.whole[tag] || whole(body, tag)
	}
	for rest := body; ; {
		var found bool
		if _, rest, found = bytes.Cut(rest, []byte(secretMark)); !found {
			return
		}
		name, _, _ := bytes.Cut(rest[:min(len(rest), 40)], []byte("."))
		word := secretMark + string(name) + "."
		if !a.gone[word] {
			continue
		}
		delete(a.gone, word) // what follows from it is no other fault
		behind := rest[:min(len(rest), near)]
		if !slices.ContainsFunc(nowSaid, func(s []byte) bool { return bytes.Contains(behind, s) }) {
			at := len(body) - len(rest)
			a.leaked = fmt.Sprintf("%s was corrected or taken back, and is sent: %q", word, body[max(0, at-300):min(len(body), at+300)])
		}
	}
}

// leaks says what was sent that should not be.
func (a *api) leaks() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.leaked
}

// forget has words that were corrected or taken back, and are not in view, never be sent again.
func (a *api) forget(word string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.gone[word] = true
}

// inView is the text of a message as the model sees it, if it stands in the view as itself; all is that of the whole view.
func (x *talk) inView(id tidemark.EntryID) (own, all string, ok bool, err error) {
	v, err := x.s.View(x.w.t.Context())
	if err != nil {
		return "", "", false, err
	}
	var b strings.Builder
	for _, it := range v.Items {
		raw := string(it.Message.AppendJSON(nil))
		b.WriteString(raw)
		if it.ID == id && !it.Span() {
			own, ok = raw, true
		}
	}
	return own, v.System + b.String(), ok, nil
}

// refusedMark begins what stands where something was refused.
const refusedMark = "[Refused by the model's API: "

// amended holds an amendment against the view: the new words stand where the message stands, the old ones do not. What
// stood in a summary, a result or an answer before stays there.
func (x *talk) amended(c *act) error {
	if c.about == nil {
		return nil
	}
	if _, _, err := x.reply(c); err != nil { // the turn of a message that it came with may have failed
		return fmt.Errorf("amend %s: %w", c.about.id, err)
	}
	if c.about.n != c.now || c.old == 0 && c.now == 0 {
		return nil // it was amended again
	}
	ctx := x.w.t.Context()
	logs, err := x.s.Reader.Logs(ctx)
	if err != nil {
		return err
	}
	rows, err := x.w.db.Query(ctx, `SELECT id FROM entries WHERE log = ? AND kind = 'message' AND json_extract(origin, '$.message') = ? ORDER BY seq DESC LIMIT 1`, logs[0], c.about.id)
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		if c.now > 0 {
			return fmt.Errorf("%s is nowhere: it corrects %s", x.secret(c.now), c.about.id)
		}
		return nil
	}
	c.about.entry = tidemark.EntryID(rows[0].Text(0))
	own, all, ok, err := x.inView(c.about.entry)
	old := x.secret(c.old)
	switch {
	case err != nil:
		return err
	case ok && c.now > 0 && !whole([]byte(own), x.tag(c.now)) && !strings.Contains(own, refusedMark): // it may have been refused since
		return fmt.Errorf("%s was corrected to %s, and reads %.300q", c.about.id, x.tag(c.now), own)
	case ok && strings.Contains(own, old):
		return fmt.Errorf("%s was amended, and reads %.300q", c.about.id, own)
	}
	if c.old > 0 && ok && !strings.Contains(all, old) { // of what had left the view before, summaries may go on to have words
		x.w.net.forget(old)
	}
	return nil
}

// amends are the messages that were corrected.
func (x *talk) amends() []utterance {
	var out []utterance
	for _, u := range x.wrote {
		if u.entry != "" && !u.back {
			out = append(out, *u)
		}
	}
	return out
}

// corrected holds the request that a calm turn answered against what was corrected before it, where that is in view.
func (x *talk) corrected(before []utterance) error {
	for _, u := range before {
		own, _, ok, err := x.inView(u.entry)
		if err != nil {
			return err
		}
		if ok && whole([]byte(own), x.tag(u.n)) && !whole(x.w.net.last, x.tag(u.n)) {
			return fmt.Errorf("%s was corrected to %s, which was not sent", u.id, x.tag(u.n))
		}
	}
	return nil
}

// keptBoth holds what was corrected against the database: the words before it stand in the log by themselves.
func (x *talk) keptBoth() error {
	for _, u := range x.amends() {
		rows, err := x.w.db.Query(x.w.t.Context(), `SELECT 1 FROM entries WHERE instr(payload, ?) > 0 LIMIT 1`, x.secret(u.n))
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			return fmt.Errorf("%s is nowhere in the log", x.secret(u.n))
		}
	}
	return nil
}
