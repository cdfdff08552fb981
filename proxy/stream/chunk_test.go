package stream

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// fragments are what generated texts are made of: tags whole, broken, quoted, and what looks like one.
var fragments = [...]string{
	"Plain words. ", "\n", "\n\n", "  ", "\r\n", "<", "<memory", "\n<memory_cleanup>", "</memory_cleanup>", "drop: block:ABCDEFGHIJKLMNOP#1\n",
	"\n" + tags, "\n<memory_cleanup>\r\nrelease: a.go, b.go\r\n</memory_cleanup>\r\n", "\n<memory_cleanup>\ncollapse: turns 2-4 \"what “was” said\"\n</memory_cleanup>",
	"\n```\n" + tags + "```\n", "`<memory_cleanup>`", "> " + tags, "    " + tags, "é", "👋", "\"\\", "\n~~~\n", "\n   <memory_cleanup>\nnonsense\n</memory_cleanup>\n",
}

// generate makes the legs of a turn: all but the last end in calls of ours.
func generate(r *rand.Rand) (legs []answer) {
	id := 0
	ours := func() said {
		id++
		return call(fmt.Sprintf("p%d", id), [...]string{"memory_fault", "memory_release"}[r.IntN(2)], [...]string{`{"paths":["a\"b"]}`, `{}`}[r.IntN(2)])
	}
	words := func() said {
		var b strings.Builder
		for range 1 + r.IntN(5) {
			b.WriteString(fragments[r.IntN(len(fragments))])
		}
		return textOf(b.String())
	}
	for n := r.IntN(3); len(legs) <= n; {
		a := answer{stop: "end_turn", usage: [2]int{1 + r.IntN(99), 1 + r.IntN(9)}}
		if r.IntN(2) == 0 {
			a.blocks = append(a.blocks, think("Hm… \"so\"."))
		}
		for range r.IntN(3) {
			a.blocks = append(a.blocks, words())
		}
		last := len(legs) == n
		for range 1 + r.IntN(3) {
			switch k := r.IntN(4); {
			case !last || k == 0:
				a.blocks, a.stop = append(a.blocks, ours()), "tool_use"
			case k == 1:
				id++
				a.blocks, a.stop = append(a.blocks, call(fmt.Sprintf("c%d", id), "look", `{"n":1.50,"s":"é\\n"}`)), "tool_use"
			case k == 2:
				a.blocks = append(a.blocks, words())
			}
		}
		legs = append(legs, a)
	}
	return legs
}

// verify holds what came out against what is to be seen.
func verify(t testing.TB, d Dialect, legs []answer, out string, turn Turn) {
	t.Helper()
	c := read(t, d, true, out)
	m, ops := want(d, legs)
	if !same(c.message, m) || !same(turn.Seen, m) {
		t.Fatalf("client sees %s\nSeen        %s\nwant        %s\n%s", c.message.AppendJSON(nil), turn.Seen.AppendJSON(nil), m.AppendJSON(nil), out)
	}
	if !c.ended || !turn.Whole || !reflect.DeepEqual(turn.Ops, ops) {
		t.Fatalf("ended %v, whole %v, operations %v, want %v", c.ended, turn.Whole, turn.Ops, ops)
	}
	sum := 0
	for _, a := range legs {
		sum += a.usage[1]
	}
	if turn.Usage.Output != tidemark.Tokens(sum) || figure(c.usage[[...]string{"output_tokens", "completion_tokens"}[d]]) != sum {
		t.Fatalf("usage %+v, client %v, want %d", turn.Usage, c.usage, sum)
	}
}

// TestChunkings: what comes out of generated answers depends on their bytes alone, not on where they were
// cut, whatever the dialect, the ends of lines and the size of deltas.
func TestChunkings(t *testing.T) {
	chunkings, each := tidemarktest.Rounds(8_000), 20
	r := rand.New(rand.NewPCG(7, 2026))
	for done := 0; done < chunkings; done += each {
		legs := generate(r)
		d := Dialect(r.IntN(2))
		w := wire{eol: [...]string{"\n", "\r\n", "\r"}[r.IntN(3)], cut: rand.New(rand.NewPCG(r.Uint64(), 1)), pings: r.IntN(2) == 0}
		o := Options{Dialect: d, Phantom: ours, Tags: true, Stream: true}
		all := bodies(d, true, w, legs)
		out, turn := run(t, o, all, atOnce)
		verify(t, d, legs, out, turn)
		for range each {
			most := 1 + r.IntN(600)
			got, cut := run(t, o, all, func() int { return 1 + r.IntN(most) })
			if got != out {
				t.Fatalf("pieces of up to %d: %q\nwant %q", most, got, out)
			}
			if !reflect.DeepEqual(cut, turn) {
				t.Fatalf("pieces of up to %d: %+v\nwant %+v", most, cut, turn)
			}
		}
	}
}

// FuzzFeed: any bytes, however cut, give the same bytes and the same turn, and never a panic.
func FuzzFeed(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 1))
	for i := range 12 {
		d := Dialect(i % 2)
		all := bodies(d, true, wire{eol: [...]string{"\n", "\r\n", "\r"}[i%3], piece: 5, pings: true}, generate(r))
		f.Add(all[0], uint64(i), byte(d))
		f.Add(generate(r)[0].whole(d, "x"), uint64(i), byte(d)|2)
	}
	f.Fuzz(func(t *testing.T, body []byte, seed uint64, kind byte) {
		o := Options{Dialect: Dialect(kind & 1), Phantom: ours, Tags: true, Stream: kind&2 == 0}
		feed := func(next func() int) (string, Turn) {
			f, out := New(o), []byte(nil)
			for range 2 { // the same as its own continuation
				for b := body; len(b) > 0; {
					n := min(next(), len(b))
					p, err := f.Feed(b[:n])
					if err != nil {
						t.Fatal(err)
					}
					out, b = append(out, p...), b[n:]
				}
				if !f.EndLeg().Again() {
					break
				}
				f.Next()
			}
			rest, turn := f.Finish()
			return string(append(out, rest...)), turn
		}
		out, turn := feed(atOnce)
		r := rand.New(rand.NewPCG(seed, 0))
		got, cut := feed(func() int { return 1 + r.IntN(40) })
		if got != out {
			t.Fatalf("%q\nwant %q", got, out)
		}
		if !reflect.DeepEqual(cut, turn) {
			t.Fatalf("%+v\nwant %+v", cut, turn)
		}
	})
}

// BenchmarkFeed is a stream of 10,000 small deltas; figures per delta.
func BenchmarkFeed(b *testing.B) {
	const deltas = 10_000
	a := answer{[]said{textOf(strings.Repeat("word ", deltas))}, "end_turn", [2]int{1, 1}}
	for _, d := range []Dialect{Messages, Chat} {
		for _, tagged := range []bool{false, true} {
			body := bodies(d, true, wire{eol: "\n", piece: 5}, []answer{a})[0]
			b.Run(fmt.Sprintf("dialect=%d/tags=%v", d, tagged), func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(len(body)))
				for b.Loop() {
					f := New(Options{Dialect: d, Phantom: ours, Tags: tagged, Stream: true})
					for p := body; len(p) > 0; {
						n := min(4096, len(p))
						if _, err := f.Feed(p[:n]); err != nil {
							b.Fatal(err)
						}
						p = p[n:]
					}
					f.Finish()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/deltas, "ns/delta")
			})
		}
	}
}
