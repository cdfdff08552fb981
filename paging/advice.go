package paging

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark"
)

// What [Advice] lists, and how long it gets.
const (
	adviceBytes  = 1800
	adviceTags   = 700 // of the grammar of tags; a longer one is not told
	adviceOut    = 3   // of what is out, that have their place before a further large block has
	adviceBlocks = 5   // of the paper; near the end of the window twice as many, since more help is wanted there
	adviceLeast  = 2000
	adviceHandle = 64 // bytes of a handle; a longer one is not listed
	adviceTool   = 20
	advicePath   = 26
)

// Held is a block that is in the context or was.
type Held struct {
	Handle string // names it to memory_release, memory_fault and recall
	Tool   string
	Path   string // and range, "" of what names no file
	Size   int    // bytes
	Age    int    // messages of role user since
	Next   bool   // leaves next, without being asked
}

// Fill says how full the context is, and what the model may be told of it.
type Fill struct {
	Size, Window tidemark.Tokens
	Zones        Zones
	Blocks       []Held // the largest that are in first
	Next         int    // blocks that leave next, without being asked
	NextBytes    int
	Out          []Held // what is out, what left last first
	More         int    // further ones that are out

	// What the caller of Fill adds.
	Recall  bool   // the tool recall is there, too
	Tags    bool   // operations in the text of an answer are understood; a Grammar says so, too
	Grammar string // of these, "" for not to be told
	Turn    int    // the present one as they count turns, 0 for unknown
}

// Fill looks at the context as it is sent now. handle names a page to the model, nil for the id of its call; a page
// without a handle is not listed. It looks at all pages, so it is for a request that is sent, not for a replay.
func (p *Pager) Fill(handle func(*Page) string) Fill {
	f := Fill{Size: p.Size(), Window: p.window, Zones: p.zones}
	var large []*Page
	for _, g := range p.pages {
		if g.stub {
			continue
		}
		if p.leavesNext(g) {
			f.Next++
			f.NextBytes += g.Size
		}
		if g.Size >= adviceLeast {
			large = append(large, g)
		}
	}
	slices.SortStableFunc(large, func(a, b *Page) int {
		if a.Size != b.Size {
			return b.Size - a.Size
		}
		return inOrder(a, b)
	})
	for _, g := range large {
		name := g.ID
		if handle != nil {
			name = handle(g)
		}
		if !plainHandle(name) {
			continue
		}
		f.Blocks = append(f.Blocks, p.heldOf(g, name))
		if len(f.Blocks) == 2*adviceBlocks {
			break
		}
	}
	for i := len(p.stubs) - 1; i >= 0; i-- {
		name := p.stubs[i].ID
		if len(f.Out) == 2*adviceBlocks {
			f.More = i + 1
			break
		}
		if handle != nil {
			name = handle(p.stubs[i])
		}
		if plainHandle(name) {
			f.Out = append(f.Out, p.heldOf(p.stubs[i], name))
		}
	}
	return f
}

// heldOf is a page as the model is told of it.
func (p *Pager) heldOf(g *Page, name string) Held {
	h := Held{Handle: name, Tool: g.Call.Tool, Path: g.Call.Path, Size: g.Size, Age: p.users - g.born}
	if r := g.Call.Range.String(); r != "" {
		h.Path += " " + r
	}
	if g.Part == Image {
		h.Tool = g.Media
	}
	h.Next = !g.stub && p.leavesNext(g)
	return h
}

// leavesNext reports whether a page goes with the next act of the policy, as far as is known now.
func (p *Pager) leavesNext(g *Page) bool {
	switch {
	case p.holds(g):
		return false
	case g.ripe:
		return true
	}
	return !g.Err && g.Size >= p.min && p.users-g.born >= p.asked() && (g.key == nil || len(g.key.pinned) == 0)
}

// Advice is what the model is told of a context that fills up: how full it is, what is large in it, what is out, and
// what the model can do ("Graduated Pressure Zones" of the paper). It has at most 1,800 bytes, and is "" in [Normal].
// The fuller the window, the more it says. Names cannot break its lines.
func Advice(f Fill) string {
	zone := f.Zones.Of(f.Size, f.Window)
	if zone == Normal {
		return ""
	}
	head := "Context: " + grouped(int64(f.Size)) + " of " + grouped(int64(f.Window)) + " tokens (" +
		strconv.FormatInt(int64(f.Size*100/f.Window), 10) + " %), zone " + zone.String() + ". "
	in, out := adviceBlocks, adviceBlocks
	switch zone {
	case Advisory:
		head += "There is room, but results that you no longer need cost it.\n"
		out = adviceOut
	case Involuntary:
		head += "Old results now leave by themselves, a note stands for each.\n"
	default:
		in, out = 2*in, 2*out
		head += nearEnd(f)
	}
	tail := f.ways()
	return head + f.lists(in, out, zone == Aggressive, adviceBytes-len(head)-len(tail)) + tail
}

// ways is what the model can do.
func (f *Fill) ways() string {
	s := "Done with some of it? Call memory_release with {\"paths\":[\"HANDLE or path\"]}. To have back what is out: memory_fault with {\"paths\":[\"HANDLE or path\"]}"
	if f.Recall {
		s += ", or recall with {\"entry\":\"HANDLE\"}"
	}
	s += ". Say in your answer what you still need of it.\n"
	if f.Grammar != "" && len(f.Grammar) <= adviceTags {
		s += strings.TrimSuffix(f.Grammar, "\n") + "\n"
		if f.Turn > 0 {
			s += "This is turn " + strconv.Itoa(f.Turn) + ".\n"
		}
	}
	return s
}

// lists tells of at most so many blocks that are in, and out, in some bytes. The first that are out come before what
// is not so large.
func (f *Fill) lists(in, out int, marked bool, room int) string {
	const largest, gone = "Largest, by handle:\n", "Out, the newest first:\n"
	const more = len("and 1000000000 more\n")
	var missing []string
	kept := 0
	for i, b := range f.Out[:min(out, len(f.Out))] {
		missing = append(missing, b.line(false, false))
		if i < adviceOut {
			kept += len(missing[i])
		}
	}
	if len(missing) > 0 {
		kept += len(gone) + more
	}
	list := ""
	for i, b := range f.Blocks[:min(in, len(f.Blocks))] {
		line := b.line(marked, true)
		if i == 0 {
			line = largest + line
		}
		if len(list)+len(line)+kept > room {
			break
		}
		list += line
	}
	said := 0
	for i, line := range missing {
		if i == 0 {
			line = gone + line
		}
		if len(list)+len(line)+more > room {
			break
		}
		list += line
		said++
	}
	if rest := len(f.Out) + f.More - said; rest > 0 && said > 0 {
		list += "and " + strconv.Itoa(rest) + " more\n"
	}
	return list
}

// nearEnd says how far it is to the limit, and what leaves next.
func nearEnd(f Fill) string {
	s := "The window is full. "
	if left := f.Window - f.Size; left > 0 {
		s = grouped(int64(left)) + " tokens are left. "
	}
	if f.Next == 0 {
		return s + "Nothing else is old enough to leave by itself, so what you release now helps most.\n"
	}
	return s + "Next to leave by themselves: " + strconv.Itoa(f.Next) + " results, " + grouped(int64(f.NextBytes)) + " bytes (marked *). Note down what you need of them.\n"
}

// line lists a block, with its age if asked for.
func (b Held) line(marked, aged bool) string {
	s := "- " + b.Handle
	if marked && b.Next {
		s += " *"
	}
	tool := oneLine(b.Tool, adviceTool)
	if tool == "" {
		tool = "result"
	}
	s += " " + tool
	if path := oneLine(b.Path, advicePath); path != "" {
		s += " " + path
	}
	if s += ": " + grouped(int64(b.Size)) + " bytes"; !aged {
		return s + "\n"
	}
	s += ", " + strconv.Itoa(b.Age) + " turn"
	if b.Age != 1 {
		s += "s"
	}
	return s + " old\n"
}

// plainHandle reports whether a handle can stand in a line and in JSON as it is.
func plainHandle(s string) bool {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f || c == '"' || c == '\\' {
			return false
		}
	}
	return s != "" && len(s) <= adviceHandle
}

// oneLine is a name of at most n bytes that cannot end its line or look like another part of it: of a longer one the
// end stays, which tells files apart.
func oneLine(s string, n int) string {
	s = s[max(len(s)-4*n, 0):] // what follows looks at no more than it needs
	s = strings.Map(func(r rune) rune {
		if r == '"' || r == '`' || r == utf8.RuneError || r != ' ' && !unicode.IsPrint(r) {
			return '_'
		}
		return r
	}, s)
	if s = strings.TrimSpace(s); len(s) <= n {
		return s
	}
	const dots = "…"
	s = s[len(s)-n+len(dots):]
	for len(s) > 0 && !utf8.RuneStart(s[0]) {
		s = s[1:]
	}
	return dots + s
}

// grouped is a number from 0 on, with commas.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
