package paging

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/order"
)

// What [Advice] lists, and how long it gets.
const (
	adviceBytes  = 1200
	adviceBlocks = 5 // of the paper; near the end of the window twice as many, since more help is wanted there
	adviceLeast  = 2000
	adviceHandle = 64 // bytes of a handle; a longer one is not listed
	adviceTool   = 20
	advicePath   = 26
)

// Held is a block that is still in the context.
type Held struct {
	Handle string // names it to memory_release and recall
	Tool   string
	Path   string // and range, "" of what reads no file
	Size   int    // bytes
	Age    int    // messages of role user since
	Next   bool   // leaves next, without being asked
}

// Fill says how full the context is.
type Fill struct {
	Size, Window tidemark.Tokens
	Zones        Zones
	Blocks       []Held // the largest first
	Next         int    // blocks that leave next, without being asked
	NextBytes    int
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
	order.By(large, func(a, b *Page) int {
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
		path := g.Call.Path
		if r := g.Call.Range.String(); r != "" {
			path += " " + r
		}
		f.Blocks = append(f.Blocks, Held{name, g.Call.Tool, path, g.Size, p.users - g.born, p.leavesNext(g)})
		if len(f.Blocks) == 2*adviceBlocks {
			break
		}
	}
	return f
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

// Advice is what the model is told of a context that fills up: how full it is, what is large in it, and what the
// model can do ("Graduated Pressure Zones" of the paper). It has at most 1,200 bytes, and is "" in [Normal]. The
// fuller the window, the more it says. Names cannot break its lines.
func Advice(f Fill) string {
	zone := f.Zones.Of(f.Size, f.Window)
	if zone == Normal {
		return ""
	}
	head := "Context: " + grouped(int64(f.Size)) + " of " + grouped(int64(f.Window)) + " tokens (" +
		strconv.FormatInt(int64(f.Size*100/f.Window), 10) + " %), zone " + zone.String() + ". "
	count := adviceBlocks
	switch zone {
	case Advisory:
		head += "There is room, but results that you no longer need cost it.\n"
	case Involuntary:
		head += "Old results now leave by themselves, a note stands for each.\n"
	default:
		count *= 2
		head += nearEnd(f)
	}
	const tail = "Done with some of it? Call memory_release with {\"handles\":[\"HANDLE\"]}. To have one back that left: recall with {\"entry\":\"HANDLE\"}. " +
		"Say in your answer what you still need of it.\n"
	list := "Largest, by handle:\n"
	if len(f.Blocks) == 0 {
		list = ""
	}
	for _, b := range f.Blocks[:min(count, len(f.Blocks))] {
		line := b.line(zone == Aggressive)
		if len(head)+len(list)+len(line)+len(tail) > adviceBytes {
			break
		}
		list += line
	}
	return head + list + tail
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

// line lists a block.
func (b Held) line(marked bool) string {
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
	s += ": " + grouped(int64(b.Size)) + " bytes, " + strconv.Itoa(b.Age) + " turn"
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

// grouped is a number with commas.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
