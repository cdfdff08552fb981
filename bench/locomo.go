// Package bench repeats the benchmarks of the papers with the program's own parts: real compactions,
// the real index and ranking, and figures that anybody can repeat by a command. It does not judge
// answers of a model itself. Begin with locomo.go for recall, needles.go for compaction and quality.go
// for the paper's comparison of contexts.
package bench

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/recall"
	"github.com/tidemark-ai/tidemark/session"
)

// Conversation is one of LoCoMo (https://github.com/snap-research/locomo): its turns alone, since the
// observations and summaries beside them were written by a model.
type Conversation struct {
	Name      string
	Turns     []recall.Doc
	Questions []Question
}

// Question asks for turns of a conversation.
type Question struct {
	N        int // in the file, from 0
	Text     string
	Category int
	Evidence []string // ids of turns that are there
}

// categories are LoCoMo's, by number.
var categories = map[int]string{1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}

// maxSessions bounds the sessions of a conversation.
const maxSessions = 1000

// ReadLocomo reads a conversation from a file of the data set.
func ReadLocomo(path string, raw []byte) (Conversation, error) {
	c := Conversation{Name: strings.TrimSuffix(filepath.Base(path), ".json")}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return c, fmt.Errorf("%s: want a conversation of LoCoMo: %w: %w", path, err, tidemark.ErrInvalid)
	}
	for n := 1; n <= maxSessions; n++ {
		session, ok := fields["session_"+strconv.Itoa(n)]
		if !ok {
			continue
		}
		if err := c.addSession(int64(n), session, fields["session_"+strconv.Itoa(n)+"_date_time"]); err != nil {
			return c, fmt.Errorf("%s: session_%d: %w", path, n, err)
		}
	}
	if len(c.Turns) == 0 {
		return c, fmt.Errorf("%s: no session_1, session_2, … in it: %w", path, tidemark.ErrInvalid)
	}
	return c, c.addQuestions(path, fields["qa"])
}

func (c *Conversation) addSession(n int64, raw, when json.RawMessage) error {
	var turns []struct {
		Speaker string `json:"speaker"`
		ID      string `json:"dia_id"`
		Text    string `json:"text"`
	}
	if err := json.Unmarshal(raw, &turns); err != nil {
		return fmt.Errorf("want a list of turns: %w: %w", err, tidemark.ErrInvalid)
	}
	var date string
	if err := json.Unmarshal(when, &date); err != nil {
		return fmt.Errorf("date_time: %w: %w", err, tidemark.ErrInvalid)
	}
	at, err := time.Parse("3:04 pm on 2 January, 2006", date)
	if err != nil {
		return fmt.Errorf("date_time: %w: %w", err, tidemark.ErrInvalid)
	}
	for i, t := range turns {
		for _, f := range []struct{ name, value string }{{"dia_id", t.ID}, {"speaker", t.Speaker}} {
			if f.value == "" {
				return fmt.Errorf("turn %d of %d has no %s: %w", i+1, len(turns), f.name, tidemark.ErrInvalid)
			}
		}
		c.Turns = append(c.Turns, recall.Doc{ID: t.ID, Pos: int64(len(c.Turns) + 1), Group: n, At: at, Speaker: t.Speaker, Text: t.Text})
	}
	return nil
}

// turnID finds ids in strings of evidence, which join several and write "D:11:26" and "D30:05".
var turnID = regexp.MustCompile(`D:?(\d+):(\d+)`)

func (c *Conversation) addQuestions(path string, raw json.RawMessage) error {
	var list []struct {
		Question string   `json:"question"`
		Evidence []string `json:"evidence"`
		Category int      `json:"category"`
	}
	if raw == nil {
		return fmt.Errorf("%s: qa is missing: want the list of its questions: %w", path, tidemark.ErrInvalid)
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return fmt.Errorf("%s: qa: want a list of questions: %w: %w", path, err, tidemark.ErrInvalid)
	}
	there := map[string]bool{}
	for _, t := range c.Turns {
		there[t.ID] = true
	}
	for n, q := range list {
		if q.Question == "" {
			return fmt.Errorf("%s: qa[%d]: question is missing: %w", path, n, tidemark.ErrInvalid)
		}
		x := Question{N: n, Text: q.Question, Category: q.Category}
		for _, m := range turnID.FindAllStringSubmatch(strings.Join(q.Evidence, " "), -1) {
			id := "D" + number(m[1]) + ":" + number(m[2])
			if there[id] && !slices.Contains(x.Evidence, id) {
				x.Evidence = append(x.Evidence, id)
			}
		}
		if len(x.Evidence) > 0 {
			c.Questions = append(c.Questions, x)
		}
	}
	return nil
}

// number drops leading zeros.
func number(s string) string { return cmp.Or(strings.TrimLeft(s, "0"), "0") }

// Depths of Locomo: results, and tokens of results.
var (
	depths  = []int{5, 10, 25}
	budgets = []int{1000, 2000, 4000}
)

// Locomo is what a run measured: the mean share of a question's evidence among the first results, and among
// those that fit into a budget of tokens (characters/4 + 4 a turn).
type Locomo struct {
	Questions    int                           `json:"questions"`
	Recall       map[string]float64            `json:"recall"`
	ByCategory   map[string]map[string]float64 `json:"by_category"`
	WithinTokens map[string]float64            `json:"within_tokens"`
	ByFile       map[string]map[string]float64 `json:"by_conversation"` // recall of each, and its number of questions
	ByVerdict    map[recall.Verdict]Judged     `json:"by_verdict"`
	IndexMs      float64                       `json:"index_ms"` // a conversation, to be ranked
	QueryMs      float64                       `json:"query_ms"` // a question
	ImportMs     float64                       `json:"import_ms,omitempty"`
	Rules        *Locomo                       `json:"rules,omitempty"` // of a run through sessions: what the rules alone give over all turns
}

func newLocomo() Locomo {
	return Locomo{Recall: map[string]float64{}, ByCategory: map[string]map[string]float64{}, WithinTokens: map[string]float64{}, ByFile: map[string]map[string]float64{}, ByVerdict: map[recall.Verdict]Judged{}}
}

// Judged is the questions to which words gave a verdict. The adversarial ones ask one speaker for what the other said:
// their words are there, and no verdict tells them apart.
type Judged struct {
	Questions   int     `json:"questions"`
	Adversarial int     `json:"adversarial"` // of these
	First       float64 `json:"first"`       // share of the others whose first result is evidence
}

// Ranking is the order of one question.
type Ranking struct {
	Conversation string   `json:"conversation"`
	Question     int      `json:"question"` // index in qa
	Ranked       []string `json:"ranked"`
}

// rankedMost is how many turns of a ranking are told; of a shorter conversation, all.
const rankedMost = 200

// RunLocomo ranks all turns of each conversation by the rules and, when somebody makes them, by vectors: no session is
// in it, see [RunLocomoSessions].
func RunLocomo(ctx context.Context, conversations []Conversation, by session.Embedder) (Locomo, []Ranking, error) {
	out := newLocomo()
	var rankings []Ranking
	count := map[string]int{}
	var indexed, queried time.Duration
	for _, c := range conversations {
		begun := time.Now()
		stem := &recall.Stemmer{}
		x := recall.New(c.Turns, stem)
		indexed += time.Since(begun)
		v, err := vectorsOf(ctx, c, by)
		if err != nil {
			return out, nil, err
		}
		begun = time.Now()
		for _, q := range c.Questions {
			asked := recall.Parse(q.Text, stem)
			hits := x.Search(asked, recall.Stats{})
			verdict := x.Judge(asked, hits)
			hits, err := v.fuse(ctx, x, asked, hits)
			if err != nil {
				return out, nil, err
			}
			turns := make([]recall.Doc, len(hits))
			for i, h := range hits {
				turns[i] = x.Docs()[h.Doc]
			}
			rankings = append(rankings, Ranking{Conversation: c.Name, Question: q.N, Ranked: ranked(c, turns)})
			out.add(c.Name, q, turns, count)
			out.judged(verdict, q.Category, len(hits) > 0 && slices.Contains(q.Evidence, x.Docs()[hits[0].Doc].ID))
		}
		queried += time.Since(begun)
	}
	out.means(count)
	if len(conversations) > 0 {
		out.IndexMs = each(indexed, len(conversations))
	}
	out.QueryMs = each(queried, out.Questions)
	return out, rankings, nil
}

// ranked returns the ids of turns that were found, best first, and behind them those that were not, in their
// order.
func ranked(c Conversation, found []recall.Doc) []string {
	out := make([]string, 0, rankedMost)
	there := map[string]bool{}
	for _, d := range slices.Concat(found, c.Turns) {
		if len(out) < rankedMost && !there[d.ID] {
			there[d.ID] = true
			out = append(out, d.ID)
		}
	}
	return out
}

// milliseconds has three decimals.
func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func (l *Locomo) add(file string, q Question, found []recall.Doc, count map[string]int) {
	category := cmp.Or(categories[q.Category], strconv.Itoa(q.Category))
	if l.ByCategory[category] == nil {
		l.ByCategory[category] = map[string]float64{}
	}
	if l.ByFile[file] == nil {
		l.ByFile[file] = map[string]float64{}
	}
	l.Questions++
	count[category]++
	l.ByFile[file]["questions"]++
	share := 1 / float64(len(q.Evidence))
	tokens := 0
	for rank, d := range found {
		tokens += len(d.Text)/4 + 4
		if !slices.Contains(q.Evidence, d.ID) {
			continue
		}
		for _, k := range depths {
			if rank < k {
				l.Recall[strconv.Itoa(k)] += share
				l.ByCategory[category][strconv.Itoa(k)] += share
				l.ByFile[file][strconv.Itoa(k)] += share
			}
		}
		for _, b := range budgets {
			if tokens <= b {
				l.WithinTokens[strconv.Itoa(b)] += share
				l.ByFile[file][within(b)] += share
			}
		}
	}
}

// judged counts a question by its verdict.
func (l *Locomo) judged(v recall.Verdict, category int, first bool) {
	j := l.ByVerdict[v]
	j.Questions++
	if categories[category] == "adversarial" {
		j.Adversarial++
	} else if first {
		j.First++
	}
	l.ByVerdict[v] = j
}

// means divides sums by the number of questions, to three digits.
func (l *Locomo) means(count map[string]int) {
	mean := func(m map[string]float64, n int) {
		for k, v := range m {
			m[k] = float64(int(v/float64(n)*1000+0.5)) / 1000
		}
	}
	mean(l.Recall, l.Questions)
	mean(l.WithinTokens, l.Questions)
	for c, m := range l.ByCategory {
		mean(m, count[c])
	}
	for v, j := range l.ByVerdict {
		j.First = digits(j.First / float64(max(1, j.Questions-j.Adversarial)))
		l.ByVerdict[v] = j
	}
	for _, m := range l.ByFile {
		n := m["questions"]
		mean(m, int(n))
		m["questions"] = n
	}
}

// within is the field of a budget in ByFile.
func within(tokens int) string { return "within_" + strconv.Itoa(tokens) }
