package bench

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/tidemark-ai/tidemark"
)

// Kinds of questions, as they stand in by_kind.
const (
	kindExact      = "exact"       // the needle word for word
	kindPrefix     = "prefix"      // its name without its value, the query of the paper's own implementation
	kindMerged     = "merged"      // exact, of needles under a marker of several compactions
	kindArtifact   = "artifact"    // deep within a large result of a tool
	kindNear       = "near"        // among others that differ in a digit or a word
	kindHalf       = "half"        // half of the words that identify it
	kindHops       = "2-hop"       // a needle that is only named through another
	kindSaid       = "said"        // posted as a message instead of imported
	kindAbsent     = "absent"      // not there
	kindAsked      = "asked"       // not there, but asked about before, and answered with nothing
	kindAbsentNear = "absent_near" // not there, but others are that differ in a digit or a word
)

// planted is a turn that hides something, and what is asked for it.
type planted struct {
	turn      []tidemark.Message
	questions []asked
}

// name is the exact words of a needle of the paper.
func name(i int) string { return fmt.Sprintf("NEEDLE_FACT_%d_secret_value_%d", i, (i*7919)%99991) }

// harder returns turns with the needles that the paper does not have, count of each kind. The same count
// gives the same turns.
func harder(count int) []planted {
	r := rand.New(rand.NewPCG(uint64(count), 7919)) //nolint:gosec // a made log, the same each time
	var out []planted
	first, second := hops(r, count)
	out = append(out, first...)
	for i := range count {
		out = append(out, artifact(r, i), near(i), half(r, i, count), inVain(i))
	}
	return append(out, second...)
}

// said is a turn of a person with a text.
func said(text string, questions ...asked) planted {
	return planted{[]tidemark.Message{tidemark.NewText(tidemark.User, text), tidemark.NewText(tidemark.Assistant, "Noted.")}, questions}
}

// artifact hides a needle deep within a result of 8 to 200 KB: text, a log, JSON or CSV.
func artifact(r *rand.Rand, i int) planted {
	secret := fmt.Sprintf("ARTIFACT_FACT_%d_secret_value_%d", i, (i*7907)%99989)
	lines := []int{100, 300, 900, 2400}[i/4%4]
	deep := lines * (60 + r.IntN(39)) / 100
	var b strings.Builder
	for n := range lines {
		hidden := ""
		if n == deep {
			hidden = secret
		}
		b.WriteString(artifactLine(r, i%4, n, hidden))
	}
	id := fmt.Sprintf("call_a%d", i)
	return planted{[]tidemark.Message{
		tidemark.NewText(tidemark.User, "Show me the whole of it."),
		{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.ToolUse(id, "show", fmt.Appendf(nil, `{"part":%d}`, i))}},
		{Role: tidemark.User, Content: []tidemark.Block{tidemark.ToolResult(id, b.String(), false)}},
		tidemark.NewText(tidemark.Assistant, "Shown."),
	}, []asked{{kindArtifact, secret, secret}}}
}

// artifactLine is one line of some 80 bytes.
func artifactLine(r *rand.Rand, form, n int, hidden string) string {
	a, b := word(r.IntN(400)), word(r.IntN(400))
	switch form {
	case 0:
		return fmt.Sprintf("The %s of paragraph %d leads to a %s and from there on %s.\n", a, n, b, hidden)
	case 1:
		return fmt.Sprintf("2026-01-02T03:%02d:%02dZ INFO worker-%d %s took %d ms %s\n", n/60%60, n%60, r.IntN(9), a, r.IntN(999), hidden)
	case 2:
		return fmt.Sprintf(`{"row":%d,"name":%q,"kind":%q,"note":%q}`+"\n", n, a, b, hidden)
	}
	return fmt.Sprintf("%d,%s,%s,%d,%s\n", n, a, b, r.IntN(99999), hidden)
}

// inVain is a turn that asks for what nobody said, and hears that it is not known.
func inVain(i int) planted {
	a, b := word(14_000+i), word(15_000+i)
	question := fmt.Sprintf([]string{"Where might the %s %s be??", "where is my %s %s", "Tell me what became of the %s %s.", "Do you know who has the %s %s? It is urgent."}[i%4], a, b)
	answer := []string{"I find nothing about that here.", fmt.Sprintf("I couldn't find a %s %s.", a, b), fmt.Sprintf("I have no record of that. The %s %s was never mentioned.", a, b)}[i%3]
	return planted{[]tidemark.Message{tidemark.NewText(tidemark.User, question), tidemark.NewText(tidemark.Assistant, answer)},
		[]asked{{kindAsked, a + " " + b, ""}, {kindAsked, question, ""}}}
}

// nearGroup is how many needles differ from one another in a digit or a word: more than ten results hold.
const nearGroup = 25

var colours = strings.Fields(`amber azure beige black bronze brown coral crimson cyan emerald gold gray green indigo ivory
	lilac magenta maroon olive orange pink purple red silver teal`)

// near is a needle beside which others stand that differ in a digit, or in a word.
func near(i int) planted {
	group, n := i/nearGroup, i%nearGroup
	value := fmt.Sprintf("%d.%03d", 1+i%7, i*37%1000)
	if group%2 == 0 {
		sensor := fmt.Sprintf("cal-%d04%02d", 2+group, n)
		text := fmt.Sprintf("Sensor %s in the turbine hall has an offset of %s volts.", sensor, value)
		return said(text, asked{kindNear, "which offset has sensor " + sensor + " in the turbine hall", text},
			asked{kindAbsentNear, fmt.Sprintf("which offset has sensor cal-%d04%02d in the turbine hall", 2+group, n+nearGroup), ""})
	}
	crane := colours[n]
	text := fmt.Sprintf("The %s crane at dock %d lifts %s tons.", crane, group, value)
	return said(text, asked{kindNear, fmt.Sprintf("how much does the %s crane at dock %d lift", crane, group), text},
		asked{kindAbsentNear, fmt.Sprintf("how much does the %s crane at dock %d lift", word(800+n), group), ""})
}

// half is a needle of four words that identify it, two of which are asked.
func half(r *rand.Rand, i, count int) planted {
	pool := max(12, 2*count)
	var w [4]string
	for k := range w {
		w[k] = word(500 + k*1000 + (i*(2*k+1)+r.IntN(3)*pool/3)%pool)
	}
	text := fmt.Sprintf("The %s %s of the %s %s is at shelf %d.", w[0], w[1], w[2], w[3], 1000+i*13)
	a, b := r.IntN(2), 2+r.IntN(2)
	return said(text, asked{kindHalf, "where is the " + w[a] + " " + w[b], text})
}

// hops are needles that another names: who asks knows the first alone.
func hops(r *rand.Rand, count int) (first, second []planted) {
	for i := range count {
		gate, keeper := word(6000+i), fmt.Sprintf("%s-%d", strings.ToUpper(word(7000+i)), 10+i)
		first = append(first, said(fmt.Sprintf("The %s gate is in the care of %s since last spring.", gate, keeper)))
		text := fmt.Sprintf("%s carries the code %08x.", keeper, r.Uint32())
		second = append(second, said(text, asked{kindHops, "which code does the one carry who cares for the " + gate + " gate", text},
			asked{kindAbsent, "which code does the one carry who cares for the " + word(9000+i) + " gate", ""}))
	}
	return first, second
}

// word makes a word that no language has, another one for each number up to some 200,000.
func word(n int) string {
	const consonants, vowels = "bdfgklmnprstvz", "aeiou"
	var b strings.Builder
	for n, i := n+4711, 0; i < 3 || n > 0; i++ {
		b.WriteByte(consonants[n%len(consonants)])
		n /= len(consonants)
		b.WriteByte(vowels[n%len(vowels)])
		n /= len(vowels)
	}
	b.WriteByte('n')
	return b.String()
}
