package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/recall"
)

// Forms of a question, in the order of rows.
const (
	formExact       = "exact"       // in the words of the fact
	formPartial     = "partial"     // half of the words that identify it
	formParaphrased = "paraphrased" // in other words: synonyms, or a model's
	formAll         = "all"
)

var forms = []string{formExact, formPartial, formParaphrased, formAll}

// trace is a log of facts and flood, and what is asked about it.
type trace struct {
	facts     []fact
	questions []queried
	r         *rand.Rand
	turns     [][]tidemark.Message // that were made; each method plays the same
}

// fact is something that is said early in a trace.
type fact struct {
	text  string // what is said
	want  string // a hash, a path or a parameter of it
	exact string // the question in the words of the fact
}

// queried is a question in one form.
type queried struct {
	form, text, want string
	open             bool // what it has of the words of its fact, another fact has, too
}

// stages, parts and places name what a fact is about.
var (
	stages = strings.Fields("staging production testing nightly canary backup regional internal")
	things = strings.Fields("build release deploy image package bundle snapshot archive")
	owners = strings.Fields("billing search login payment mail chart upload invoice catalog gateway")
)

// synonyms are the table by which a question is put in other words; a word that is not there stays. A few
// are such as recall knows, most are not.
var synonyms = map[string]string{
	"checksum": "hash", "build": "compilation", "release": "version", "deploy": "rollout", "image": "container", "package": "module",
	"bundle": "parcel", "snapshot": "dump", "staging": "pre-production", "production": "live", "testing": "trial", "nightly": "overnight",
	"backup": "spare", "internal": "in-house", "configuration": "settings", "file": "document", "lies": "is stored", "timeout": "time limit",
	"service": "server", "set": "fixed", "what": "tell me", "which": "what",
}

// newTrace makes the n-th trace of a table: the same seed gives the same.
func newTrace(t Table, n int) *trace {
	tr := &trace{r: rand.New(rand.NewPCG(t.Seed, uint64(n)))} //nolint:gosec // a made log, the same each time
	for i := range t.Needles {
		tr.facts = append(tr.facts, tr.fact(i))
	}
	for i, f := range tr.facts {
		tr.questions = append(tr.questions, queried{formExact, f.exact, f.want, false}, queried{formPartial, half2(tr.r, f.exact), f.want, false},
			queried{formParaphrased, otherWords(f.exact), f.want, false})
		tr.questions = append(tr.questions, queried{forms[i%3], tr.fact(t.Needles + i).exact, "", false}) // of what was never said
	}
	return tr
}

// fact makes a fact that no other has the words of.
func (tr *trace) fact(i int) fact {
	stage, thing, owner, tag := stages[i%len(stages)], things[i/3%len(things)], owners[i/7%len(owners)], word(20_000+tr.r.IntN(1000)+1000*i)
	switch i % 3 {
	case 0:
		want := fmt.Sprintf("%016x", tr.r.Uint64())
		return fact{fmt.Sprintf("The checksum of the %s %s for the %s %s is %s.", stage, thing, owner, tag, want), want,
			fmt.Sprintf("what checksum has the %s %s for the %s %s", stage, thing, owner, tag)}
	case 1:
		want := fmt.Sprintf("/srv/%s/%s-%d.toml", word(tr.r.IntN(4000)), word(tr.r.IntN(4000)), tr.r.IntN(100))
		return fact{fmt.Sprintf("The configuration file of the %s %s service %s lies at %s now.", stage, owner, tag, want), want,
			fmt.Sprintf("where lies the configuration file of the %s %s service %s", stage, owner, tag)}
	}
	want := fmt.Sprintf("%s_timeout_ms=%d", word(tr.r.IntN(4000)), 100+tr.r.IntN(90_000))
	return fact{fmt.Sprintf("For the %s %s of the %s %s the timeout was set to %s.", stage, thing, owner, tag, want), want,
		fmt.Sprintf("which timeout was set for the %s %s of the %s %s", stage, thing, owner, tag)}
}

// half2 leaves out half of the words that tell something.
func half2(r *rand.Rand, question string) string {
	words := strings.Fields(question)
	var telling []int
	for i, w := range words {
		if len(w) > 4 {
			telling = append(telling, i)
		}
	}
	r.Shuffle(len(telling), func(i, j int) { telling[i], telling[j] = telling[j], telling[i] })
	for _, i := range telling[:len(telling)/2] {
		words[i] = ""
	}
	return strings.Join(strings.Fields(strings.Join(words, " ")), " ")
}

func otherWords(question string) string {
	words := strings.Fields(question)
	for i, w := range words {
		if s, ok := synonyms[w]; ok {
			words[i] = s
		}
	}
	return strings.Join(words, " ")
}

// rephrase has a model write the paraphrases, all in one call.
func (tr *trace) rephrase(ctx context.Context, model tidemark.Provider) error {
	var b strings.Builder
	b.WriteString("Write each of these questions in other words, as somebody would who remembers it vaguely. Keep made-up names. Answer with as many lines, one a question, without numbers.\n\n")
	for _, f := range tr.facts {
		b.WriteString(f.exact + "\n")
	}
	var said string
	const maxTokens = 8000
	for d, err := range model.Stream(ctx, tidemark.Request{Messages: []tidemark.Message{tidemark.NewText(tidemark.User, b.String())}, MaxTokens: maxTokens}) {
		if err != nil {
			return err
		}
		if d.Reply != nil {
			said = d.Reply.Message.PlainText()
		}
	}
	lines := strings.Split(strings.TrimSpace(said), "\n")
	if len(lines) != len(tr.facts) {
		return fmt.Errorf("it wrote %d lines for %d questions: %w", len(lines), len(tr.facts), tidemark.ErrInvalid)
	}
	at := 0
	for i, q := range tr.questions {
		if q.form == formParaphrased && q.want != "" {
			tr.questions[i].text = strings.TrimSpace(lines[at])
			at++
		}
	}
	return nil
}

// mark finds the questions that fit several facts: nobody can tell from one which is meant.
func (tr *trace) mark() {
	stem := &recall.Stemmer{}
	terms := make([][]string, len(tr.facts))
	for i, f := range tr.facts {
		terms[i] = stem.Terms(f.text)
	}
	for n := range tr.questions {
		q := &tr.questions[n]
		own := slices.IndexFunc(tr.facts, func(f fact) bool { return f.want == q.want })
		if own < 0 {
			continue
		}
		has := slices.DeleteFunc(stem.Terms(q.text), func(t string) bool { return !slices.Contains(terms[own], t) })
		for i := range terms {
			missing := slices.ContainsFunc(has, func(t string) bool { return !slices.Contains(terms[i], t) })
			q.open = q.open || i != own && !missing
		}
	}
}

// turn returns a turn of the trace: the facts first, then flood.
func (tr *trace) turn(i int) []tidemark.Message {
	for len(tr.turns) <= i {
		tr.turns = append(tr.turns, tr.make(len(tr.turns)))
	}
	return tr.turns[i]
}

func (tr *trace) make(i int) []tidemark.Message {
	if i < len(tr.facts) {
		return said(tr.facts[i].text).turn
	}
	if i%3 > 0 { // talk
		return []tidemark.Message{tidemark.NewText(tidemark.User, tr.flood(40)), tidemark.NewText(tidemark.Assistant, tr.flood(60))}
	}
	return event(2*i, "", tr.flood(220))
}

// flood is talk about the same matters, with other identifiers.
func (tr *trace) flood(words int) string {
	var b strings.Builder
	pools := [][]string{stages, things, owners, strings.Fields("the the a of for and to is was that with then after before look again line value")}
	for range words {
		switch n := tr.r.IntN(10); {
		case n < 6:
			p := pools[n%4]
			b.WriteString(p[tr.r.IntN(len(p))])
		case n < 9:
			b.WriteString(word(tr.r.IntN(3000)))
		default:
			fmt.Fprintf(&b, "%08x", tr.r.Uint32())
		}
		b.WriteByte(' ')
	}
	return b.String()
}
