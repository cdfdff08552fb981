package paging

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/internal/jsonscan"
)

// Session is a recorded conversation: request k is all that steps 0 to k appended and cut.
type Session struct {
	ID    string
	Fixed int  // bytes of system and tools as compact JSON: they go with each request
	Whole bool // its usage is of requests with nothing replaced, as [Options] has it
	Told  Told // by what it was decided
	Steps []Step
}

// Told is what a recorded session says of the settings that decided it. The zero value says nothing, and of the
// fields one that is nil says nothing.
type Told struct {
	Window   *tidemark.Tokens
	Policy   *string
	Tau      *int
	MinBytes *int
	Zones    *Zones
}

// Fill puts what is told into options.
func (t Told) Fill(o *Options) {
	none := func(n int) int { // 0 is a value here
		if n == 0 {
			return -1
		}
		return n
	}
	if t.Window != nil {
		o.Window = *t.Window
	}
	if t.Policy != nil {
		o.Policy = *t.Policy
	}
	if t.Tau != nil {
		o.Tau = none(*t.Tau)
	}
	if t.MinBytes != nil {
		o.MinBytes = none(*t.MinBytes)
	}
	if t.Zones != nil {
		o.Zones = *t.Zones
	}
}

// AppendSettings appends options as fields of a line that [Scanner.Session] reads, with a comma behind each.
func AppendSettings(b []byte, o Options) []byte {
	value := func(n, usual int) int { return max(cmp.Or(n, usual), 0) }
	z := cmp.Or(o.Zones, DefaultZones)
	b = json.AppendString(fmt.Appendf(b, `"window":%d,"policy":`, o.Window), cmp.Or(o.Policy, Policies()[0]))
	return fmt.Appendf(b, `,"tau":%d,"minBytes":%d,"zones":[%d,%d,%d],`, value(o.Tau, DefaultTau), value(o.MinBytes, DefaultMinBytes), z.Advisory, z.Involuntary, z.Aggressive)
}

// extent is where a value stands in a line.
type extent struct{ from, to int }

// Session reads a session from one line of JSON:
//
//	{"session","model","system","tools":[…],"fixed"?:bytes,SETTINGS,"steps":[STEP,…]}
//	SETTINGS: "window"?:tokens,"policy"?,"tau"?:messages,"minBytes"?:bytes,"zones"?:[advisory,involuntary,aggressive],"whole"?:true
//	STEP: {"keep"?:n,"stay"?:true,"release"?:[names],"anchor"?:[names],"append":[messages],"ids"?:[handles],"usage"?:{…}}
//
// fixed is what system and tools weigh where they are not told; the settings are those that decided the session, by their values.
// The fields of a step are those of [Step]; ids are the handles of the messages of append, as many, "" for none.
// What is wrong is tidemark.ErrInvalid and named by its field.
func (s *Scanner) Session(line []byte) (Session, error) {
	c := over(line)
	var out Session
	named, stepped := false, false
	system, tools, fixed := 0, 0, 0
	if !c.Open('{') {
		c.Fail("want an object with session and steps")
	}
	for c.More() {
		switch key := c.Key(); string(key) {
		case "session":
			named = c.Peek() == '"'
			out.ID = s.word(c)
		case "system":
			system = size(c)
		case "tools":
			tools = size(c)
		case "fixed":
			fixed = s.number(c, "fixed", "bytes")
		case "steps":
			if stepped = c.Peek() == '['; stepped {
				out.Steps = s.steps(c)
			} else {
				c.Skip()
			}
		case "whole":
			out.Whole = c.Peek() == 't'
			c.Skip()
		default:
			s.told(c, string(key), &out.Told)
		}
	}
	out.Fixed = system + tools + fixed
	switch {
	case c.Err() != nil:
		return out, c.Err()
	case c.Peek() != 0:
		c.Fail("more than one value on the line: give one session a line")
	case !named:
		c.Fail(`"session": want a string that names the session`)
	case !stepped:
		c.Fail(`"steps": want a list of steps, {"append":[messages]} each`)
	}
	return out, c.Err()
}

// number reads how many there are of something.
func (s *Scanner) number(c *jsonscan.Cursor, field, of string) (n int) {
	from := c.At()
	c.Skip()
	if c.Err() == nil && (json.Unmarshal(c.Since(from), &n) != nil || n < 0) {
		c.Fail(fmt.Sprintf("%s %.40s: want a number of %s, from 0", field, c.Since(from), of))
	}
	return n
}

// told reads a field of the settings and goes behind any other. null says nothing.
func (s *Scanner) told(c *jsonscan.Cursor, key string, out *Told) {
	if c.Peek() == 'n' {
		c.Skip()
		return
	}
	switch key {
	case "window":
		n := tidemark.Tokens(s.number(c, key, "tokens"))
		out.Window = &n
	case "tau":
		n := s.number(c, key, "messages")
		out.Tau = &n
	case "minBytes":
		n := s.number(c, key, "bytes")
		out.MinBytes = &n
	case "policy":
		name := s.word(c)
		if c.Err() == nil && !slices.Contains(append(Policies(), Bounds()...), name) {
			c.Fail(fmt.Sprintf("policy %.40q: want one of %v", name, Policies()))
		}
		out.Policy = &name
	case "zones":
		out.Zones = s.zones(c)
	default:
		c.Skip()
	}
}

// zones reads the percents at which the zones begin.
func (s *Scanner) zones(c *jsonscan.Cursor) *Zones {
	var p []int
	from := c.At()
	c.Skip()
	if c.Err() != nil {
		return nil
	}
	if json.Unmarshal(c.Since(from), &p) != nil || len(p) != 3 {
		c.Fail(fmt.Sprintf("zones %.40s: want three percents of the window", c.Since(from)))
		return nil
	}
	z := Zones{p[0], p[1], p[2]}
	if err := z.Valid(); err != nil || z == (Zones{}) {
		c.Fail(fmt.Sprintf("zones %.40s: want three percents of the window that ascend, from 1 to 100", c.Since(from)))
	}
	return &z
}

// size goes behind a value and returns its bytes as compact JSON, none for null.
func size(c *jsonscan.Cursor) int {
	if c.Peek() == 'n' {
		c.Skip()
		return 0
	}
	from := c.Compact()
	c.Skip()
	return c.Compact() - from
}

func (s *Scanner) steps(c *jsonscan.Cursor) (steps []Step) {
	var history []extent // of the messages
	c.Open('[')
	for c.More() {
		st, added := s.step(c)
		switch {
		case c.Err() != nil:
		case st.Cut && st.Keep > len(history):
			c.Fail(fmt.Sprintf("keep %d: the history has %d messages: want 0 to %d", st.Keep, len(history), len(history)))
		case st.Cut:
			if st.Keep < len(history) && len(added) > 0 {
				st.Shared = shared(c.Since(0), history[st.Keep], added[0])
			}
			history = history[:st.Keep]
		}
		if c.Err() != nil {
			c.Stop(fmt.Errorf("steps[%d]: %w", len(steps), c.Err()))
			return nil
		}
		history = append(history, added...)
		steps = append(steps, st)
	}
	return steps
}

// step reads the step that is next, and where its messages stand.
func (s *Scanner) step(c *jsonscan.Cursor) (st Step, added []extent) {
	if !c.Open('{') {
		c.Fail("want an object with append")
	}
	given := false
	var ids []string
	for c.More() {
		switch key := c.Key(); string(key) {
		case "keep":
			s.keepOf(c, &st)
		case "stay":
			st.Stay = c.Peek() == 't'
			c.Skip()
		case "release":
			st.Release = s.named(c, "release", maxAsks, maxPath)
		case "anchor":
			st.Anchor = s.named(c, "anchor", maxAsks, maxPath)
		case "append":
			given, st.Append = true, nil // of equal keys the last one counts
			added = s.appended(c, &st)
		case "ids":
			ids = s.named(c, "ids", math.MaxInt, maxHandle)
		case "usage":
			s.usage(c, &st)
		default:
			c.Skip()
		}
	}
	switch {
	case c.Err() != nil:
	case !given:
		c.Fail(`"append" is missing: want a list of messages, [] for none`)
	case ids != nil && len(ids) != len(st.Append):
		c.Fail(fmt.Sprintf("ids: %d for %d messages of append: want one for each", len(ids), len(st.Append)))
	}
	if c.Err() != nil {
		return st, nil
	}
	for i, id := range ids {
		st.Append[i].Handle = id
	}
	return st, added
}

// keepOf reads how many messages stay; null is as none given.
func (s *Scanner) keepOf(c *jsonscan.Cursor, st *Step) {
	b := c.Peek()
	from := c.At()
	c.Skip()
	if b == 'n' || c.Err() != nil {
		return
	}
	st.Cut = true
	if err := json.Unmarshal(c.Since(from), &st.Keep); err != nil || st.Keep < 0 {
		c.Fail(fmt.Sprintf("keep %.40s: want a whole number of messages, from 0", c.Since(from)))
	}
}

func (s *Scanner) appended(c *jsonscan.Cursor, st *Step) (added []extent) {
	if !c.Open('[') {
		c.Fail("append: want a list of messages")
	}
	for c.More() {
		from := c.At()
		m := s.message(c)
		if c.Err() != nil {
			c.Stop(fmt.Errorf("append[%d]: %w", len(st.Append), c.Err()))
			return nil
		}
		st.Append = append(st.Append, m)
		added = append(added, extent{from, c.At()})
	}
	return added
}

// maxAsks bounds what a step lets go or keeps.
const maxAsks = 4096

// named reads a list of at most so many names, of at most so many bytes each, nil for null.
func (s *Scanner) named(c *jsonscan.Cursor, field string, most, long int) (out []string) {
	if c.Peek() == 'n' {
		c.Skip()
		return nil
	}
	if !c.Open('[') {
		c.Fail(field + ": want a list of strings")
		return nil
	}
	out = []string{}
	for c.More() {
		switch {
		case len(out) == most:
			c.Fail(fmt.Sprintf("%s: more than %d", field, most))
		case c.Peek() != '"':
			c.Fail(field + ": want a list of strings")
		default:
			name := s.word(c)
			if len(name) > long {
				c.Fail(fmt.Sprintf("%s: a name of %d bytes: want at most %d", field, len(name), long))
			}
			out = append(out, name)
		}
	}
	return out
}

// usage reads what the provider reported.
func (s *Scanner) usage(c *jsonscan.Cursor, st *Step) {
	b := c.Peek()
	from := c.At()
	c.Skip()
	if b == 'n' || c.Err() != nil {
		return
	}
	var u tidemark.Usage
	if err := json.Unmarshal(c.Since(from), &u); err != nil {
		c.Fail("usage: want an object with input_tokens, cache_read_input_tokens and so on, as the API reports")
		return
	}
	st.Usage = &u
}

// shared is how many first bytes two messages have in common as compact JSON.
func shared(data []byte, a, b extent) int {
	var x, y bytes.Buffer
	if json.Compact(&x, data[a.from:a.to]) != nil || json.Compact(&y, data[b.from:b.to]) != nil {
		return 0
	}
	return sameBegin(x.Bytes(), y.Bytes())
}
