package bench

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// What an agent does next.
type deed byte

const (
	reads   deed = iota // a file that it has not read
	rereads             // lines of one that it has
	runs                // a command
	looks               // for a word
	edits               // a file
	writes              // a file
	needs               // a fact that stands in a file that it has read
	sends               // sub-agents
	stops               // its turn ends, and the person says something
)

// step is one deed. A request of the agent leads to it, more do where what it needs has left the context.
type deedOf struct {
	what deed
	file int // from 0
	n    int // of commands: the how manieth; of sub-agents: the first; of facts: how far back it was read, in steps
}

// plan is what an agent is going to do, and what stands in its files. It is the same for every treatment.
type plan struct {
	steps    []deedOf
	sub      []deedOf // of each sub-agent
	files    []string
	facts    []string
	requests int // if nothing has to be read again
	agents   int
	bytes    int
}

// makePlan makes one of so many requests.
func makePlan(requests, size int, seed uint64) *plan {
	rng := rand.New(rand.NewPCG(seed, 7)) //nolint:gosec // made to be repeated
	p := &plan{bytes: size}
	var open []int        // files of which the fact has not been needed yet
	when := map[int]int{} // the step in which a file was read
	fresh := func() int {
		i := len(p.files)
		p.facts = append(p.facts, fmt.Sprintf("%06x", rng.Uint32()&0xffffff))
		p.files = append(p.files, fileText(i, p.facts[i], size/3+rng.IntN(size*4/3), rng))
		return i
	}
	add := func(s deedOf) {
		p.steps = append(p.steps, s)
		p.requests++
	}
	need := func(old bool) {
		at := len(open) - 1 - rng.IntN(min(len(open), 4))
		if old {
			at = rng.IntN((len(open) + 1) / 2)
		}
		add(deedOf{needs, open[at], len(p.steps) - when[open[at]]})
		open = append(open[:at:at], open[at+1:]...)
	}
	const closing = 6 // requests at the end that need old facts
	for range 4 {
		p.sub = append(p.sub, deedOf{reads, fresh(), 0})
	}
	for n := 0; p.requests < requests-closing; n++ {
		switch k := rng.IntN(100); {
		case len(open) > 3 && k < 14:
			need(k < 7)
		case len(open) > 3 && k < 20:
			add(deedOf{rereads, open[rng.IntN(len(open))], 0})
		case k < 40:
			add(deedOf{runs, 0, n})
		case k < 48:
			add(deedOf{looks, 0, n})
		case len(open) > 3 && k < 56:
			add(deedOf{edits, open[rng.IntN(len(open))], n})
		case k < 58:
			add(deedOf{writes, 0, n})
		case k < 66:
			add(deedOf{stops, 0, n})
		case k < 68 && p.agents < 6 && p.requests+2*len(p.sub) < requests-closing:
			add(deedOf{sends, 0, p.agents})
			p.agents += 2
			p.requests += 2 * (len(p.sub) + 1)
		default:
			i := fresh()
			open, when[i] = append(open, i), len(p.steps)
			add(deedOf{reads, i, 0})
		}
	}
	for range closing - 1 {
		if len(open) > 0 {
			need(true)
		}
	}
	add(deedOf{stops, 0, -1})
	return p
}

// fileName is the path of a file.
func fileName(i int) string { return fmt.Sprintf("/srv/pier/src/part%d/gauge_%03d.go", i%7, i) }

// factOf is how a fact stands in its file, before its value.
func factOf(i int) string { return fmt.Sprintf("level of pier %d is ", i) }

// fileText is a file of about so many bytes with its fact somewhere in it.
func fileText(i int, fact string, size int, rng *rand.Rand) string {
	var b strings.Builder
	at := rng.IntN(max(size-200, 1))
	told := false
	for n := 0; b.Len() < size || !told; n++ {
		if !told && b.Len() >= at {
			fmt.Fprintf(&b, "// %s%s, as it was measured\n", factOf(i), fact)
			told = true
			continue
		}
		fmt.Fprintf(&b, "func gauge%d_%d(moon, sun float64) float64 { return tide(moon*%d, sun) }\n", i, n, rng.IntN(900))
	}
	return b.String()
}
