package trim

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/jsonscan"
)

// Side chains are told apart up to a bound; those beyond it are one.
func TestManySideChains(t *testing.T) {
	l := &ledger{chains: map[uint64]*chain{}}
	of := func(agent int) *chain { return l.chainOf(&fact{flags: isMessage | isSide, agent: uint64(agent) << 8}) }
	main := l.chainOf(&fact{flags: isMessage})
	seen := map[*chain]bool{main: true}
	for i := 1; i < maxChains; i++ {
		c := of(i)
		if seen[c] {
			t.Fatalf("chain %d is one that was there", i)
		}
		seen[c] = true
	}
	beyond := of(maxChains)
	if seen[beyond] || of(maxChains+1) != beyond || of(maxChains+2) != beyond {
		t.Error("the chains beyond the bound are not one of their own")
	}
	if !seen[of(1)] || of(1) == of(2) || l.chainOf(&fact{flags: isMessage}) != main {
		t.Error("a chain that was there is another one now")
	}
}

// unanswered are the facts of a reply with so many calls and of what a person says behind it.
func unanswered(n int) []fact {
	reply := fact{flags: isMessage | isAssistant, end: 10}
	for i := range n {
		reply.items = append(reply.items, item{kind: opCall, hash: uint64(i) + 1, id: span{int64(i), int64(i) + 1}})
	}
	return []fact{reply, {flags: isMessage | hasString, start: 10, end: 20}}
}

// The calls without a result are listed in the order of the log, and are not more than a trim makes results for.
func TestManyCallsWithoutResults(t *testing.T) {
	l := &ledger{facts: unanswered(maxAdded)}
	if err := l.decide(t.Context()); err != nil || len(l.added) != maxAdded {
		t.Fatalf("%v, %d results", err, len(l.added))
	}
	for i, a := range l.added {
		if a.at != 10 || a.id.from != int64(i) {
			t.Fatalf("result %d is %+v", i, a)
		}
	}
	l = &ledger{facts: unanswered(maxAdded + 1)}
	if err := l.decide(t.Context()); !errors.Is(err, tidemark.ErrTooLarge) || !strings.Contains(fmt.Sprint(err), "more than 100000 calls") {
		t.Errorf("one more: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.decide(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// The live part has as many lines as the tables may hold, whether a compaction kept them or not.
func TestLiveLines(t *testing.T) {
	lines := []string{named("a", "a"), named("b", "b"), named("c", "c"), "", `{"kind":9}`}
	for _, c := range []struct {
		wide int
		log  []string
		ok   bool
	}{{3, lines, true}, {2, lines, false}, {1, append([]string{named("h", "kept"), compacted(`"preservedMessages":["h"]`)}, lines...), false}, {5, append([]string{named("h", "kept"), compacted(`"preservedMessages":["h"]`)}, lines...), true}} {
		in := strings.Join(c.log, "\n") + "\n"
		r := reading{ctx: t.Context(), in: strings.NewReader(in), size: int64(len(in)), wide: c.wide}
		v, err := r.look()
		if (err == nil) != c.ok || err != nil && (!errors.Is(err, tidemark.ErrTooLarge) || !strings.Contains(err.Error(), fmt.Sprintf("more than %d lines", c.wide))) {
			t.Errorf("%d of %d lines: %v, %d facts", c.wide, len(c.log), err, len(v.facts))
		}
	}
}

// A label is known for as long as a result may ask for it, and forgotten when many more calls came.
func TestLabelStore(t *testing.T) {
	var l labels
	put := func(from, to uint64) {
		for i := from; i <= to; i++ {
			l.put(i, fmt.Append(nil, i))
		}
	}
	knows := func(call uint64) bool { return string(l.get(call)) == fmt.Sprint(call) }
	put(1, maxLabels)
	if !knows(1) || !knows(maxLabels) || len(l.now) != maxLabels || len(l.before) != 0 {
		t.Errorf("%d and %d labels", len(l.now), len(l.before))
	}
	put(maxLabels+1, 2*maxLabels)
	if !knows(1) || !knows(maxLabels) || !knows(2*maxLabels) || len(l.now) != maxLabels || len(l.before) != maxLabels {
		t.Errorf("%d and %d labels", len(l.now), len(l.before))
	}
	put(2*maxLabels+1, 2*maxLabels+1)
	if l.get(1) != nil || l.get(maxLabels) != nil || !knows(maxLabels+1) || !knows(2*maxLabels+1) || len(l.now) != 1 {
		t.Errorf("%d and %d labels", len(l.now), len(l.before))
	}
}

// A copy is replaced as a whole when what is left of it without its long strings is still too long.
func TestCopyBound(t *testing.T) {
	line := func(copied, parent string) string {
		return `{"toolUseResult":` + copied + `,"parentUuid":` + parent + `,"type":"user","message":{"role":"user","content":"a"}}`
	}
	digits := func(n int) string { return "0." + strings.Repeat("1", n-len("0.")) }
	for _, c := range []struct {
		name, in, want string
		copies         int64 // with that of the line before
	}{
		{"numbers", `[` + digits(maxCopy-2) + `]`, `[` + digits(maxCopy-2) + `]`, 1},
		{"one more", `[` + digits(maxCopy-1) + `]`, `"[Trimmed: ~65537 chars]"`, 2},
		// Of 605 characters beside the digits, the string has 602, of which 64 are counted.
		{"a long string and numbers", `["` + long(600) + `",` + digits(maxCopy-67) + `]`, `["[Trimmed: ~600 chars]",` + digits(maxCopy-67) + `]`, 2},
		{"a long string and one more", `["` + long(600) + `",` + digits(maxCopy-66) + `]`, `"[Trimmed: ~66075 chars]"`, 2},
	} {
		// The line before has a copy of which much is cut.
		in := line(`"`+long(70_000)+`"`, `"x"`) + "\n" + line(c.in, `"x"`) + "\n"
		out, m := laws(t, []byte(in), Options{})
		if want := line(`"[Trimmed: ~70000 chars]"`, `null`) + "\n" + line(c.want, `null`) + "\n"; string(out) != want {
			t.Errorf("%s: %.300s", c.name, firstDifference([]byte(want), out))
		}
		if m.CopiesStubbed != c.copies {
			t.Errorf("%s: %d copies", c.name, m.CopiesStubbed)
		}
	}
}

// What a boundary says of lines before it is read up to a bound.
func TestLongBoundary(t *testing.T) {
	for size, kept := range map[int]int64{maxPreserved: 1, maxPreserved + 1: 0} {
		const begin, end = `{"preservedMessages":["h"],"pad":"`, `"}`
		said := begin + long(size-len(begin)-len(end)) + end
		in := named("h", "kept") + "\n" + `{"type":"system","subtype":"compact_boundary","compactMetadata":` + said + "}\n" + user("c") + "\n"
		if _, _, m := trimmed(t, []byte(in), Options{}); m.LinesPreserved != kept {
			t.Errorf("%d bytes: %d lines", size, m.LinesPreserved)
		}
	}
}

// The end of a log without a line break stays one, also when a result is written behind it.
func TestResultAtTheEnd(t *testing.T) {
	in := reply("m", bash("t1")) + "\n" + result("t1", `"r"`) + "\n" + reply("m", bash("t2"))
	for end, want := range map[string]string{"": in + "\n" + made("t2", "null"), "\n": in + "\n" + made("t2", "null") + "\n"} {
		if out, _ := laws(t, []byte(in+end), Options{}); string(out) != want {
			t.Errorf("%q: %s", end, out)
		}
	}
}

// What a line holds that is nested deeper than JSON may be is not read, and the line is copied.
func TestDeepLines(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	// the line, the message, its content, the block
	for name, line := range map[string]func(string) string{
		"text":    func(v string) string { return assistant(`{"type":"text","text":"a","x":` + v + `}`) },
		"element": func(v string) string { return assistant(v) },
		"input":   func(v string) string { return called("t1", "B", v) },
		"source":  func(v string) string { return assistant(`{"type":"image","source":` + v + `}`) },
		"result":  func(v string) string { return result("t1", v) },
		"copy":    func(v string) string { return `{"toolUseResult":` + v + `}` },
		"usage":   func(v string) string { return `{"message":{"usage":` + v + `}}` },
		"top":     func(v string) string { return `{"uuid":` + v + `}` },
		"file":    func(v string) string { return attachment(v) },
	} {
		in := line(deep(jsonscan.MaxDepth)) + "\n"
		out, _, m := trimmed(t, []byte(in), Options{})
		if string(out) != in || m.LinesUnread != 1 || m.AssistantResponses+m.UserMessages+m.ToolUseRequests != 0 {
			t.Errorf("%s: %d bytes of %d, %+v", name, len(out), len(in), m)
		}
	}
}
