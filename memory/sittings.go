package memory

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/lexicon"
)

// Moment is a logged message as sittings are made of it.
type Moment struct {
	ID   tidemark.EntryID
	Seq  int64
	At   time.Time
	Log  string // a new one is the start of a session
	Task string // empty for none; a change begins a sitting
	Text string
	Role tidemark.Role // of who said it; empty where nobody did
}

// Sitting is a stretch of a conversation on one thing: derived from the log, and made again from it at any time.
// What is stored calls it an episode: the word meant this before agents marked spans of their own.
type Sitting struct {
	Key    tidemark.Key     `json:"key"`
	Log    string           `json:"sessionId"`
	First  tidemark.EntryID `json:"first"`
	Last   tidemark.EntryID `json:"last"`
	From   time.Time        `json:"from"`
	To     time.Time        `json:"to"`
	Count  int              `json:"messages"`
	Topics []string         `json:"topics,omitempty"`
	About  string           `json:"about,omitempty"` // what a person asked for, in their words
	Ended  string           `json:"ended,omitempty"` // what was said last of it
	Open   bool             `json:"open,omitempty"`  // by a person, whom nobody answered

	Upto int64 `json:"-"` // position of the last message
}

// SittingGap is the silence after which a sitting is over.
const SittingGap = 30 * time.Minute

const (
	maxTopics  = 5
	maxTerms   = 4000    // different words of a sitting that are counted
	readMoment = 4 << 10 // characters of a message that topics are taken from
	shortTopic = 4       // letters
	maxTelling = 100     // characters of what a sitting was about, and of how it ended
	clockTime  = "15:04"
)

// Sittings divides messages, in order, into sittings. One ends where half an hour passes, the task changes, or a
// session begins. The last is returned only when it is over at a time: what comes later may belong to it.
func Sittings(key tidemark.Key, moments []Moment, now time.Time) []Sitting {
	var out []Sitting
	for from := 0; from < len(moments); {
		to := from + 1
		for to < len(moments) && !parts(moments[to-1], moments[to]) {
			to++
		}
		if to == len(moments) && now.Sub(moments[to-1].At) < SittingGap {
			break
		}
		out = append(out, sitting(key, moments[from:to]))
		from = to
	}
	return out
}

// parts reports that a sitting ends between two messages.
func parts(a, b Moment) bool {
	return b.At.Sub(a.At) >= SittingGap || a.Log != b.Log || a.Task != b.Task && b.Task != ""
}

func sitting(key tidemark.Key, ms []Moment) Sitting {
	first, last := ms[0], ms[len(ms)-1]
	s := Sitting{Key: key, Log: first.Log, First: first.ID, Last: last.ID, From: first.At, To: last.At, Count: len(ms), Upto: last.Seq}
	counts := map[string]int{}
	for _, m := range ms {
		for _, t := range Terms(cut(m.Text, readMoment)) {
			if n, ok := counts[t]; ok || len(counts) < maxTerms {
				counts[t] = n + 1
			}
		}
	}
	s.Topics = topics(counts)
	s.tell(ms)
	return s
}

// tell says what a sitting was about, by the first that a person asked for, and how it ended, by the last that was said
// and is no mere thanks. Both are words of the log: nobody sums up here.
func (s *Sitting) tell(ms []Moment) {
	for _, m := range ms {
		if m.Role == "" || Acknowledges(m.Text) {
			continue
		}
		first := sentence(m.Text)
		if s.About == "" && m.Role == tidemark.User {
			s.About = first
			s.Open = true
			continue
		}
		s.Ended, s.Open = first, m.Role == tidemark.User
	}
}

// sentence is the first sentence of a text that says something, cut to a bound.
func sentence(text string) string {
	for one := range lexicon.Sentences(text) {
		if one = clean(one); one != "" {
			return cut(one, maxTelling)
		}
	}
	return ""
}

// topics are the words that tell most of a sitting: said more than once, long, no number, no word that all
// texts have.
func topics(counts map[string]int) []string {
	var told []string
	for w := range counts {
		if len([]rune(w)) >= shortTopic && !lexicon.Stops[w] && !lexicon.Vague[w] && strings.Trim(w, "0123456789.-/") != "" {
			told = append(told, w)
		}
	}
	slices.SortStableFunc(told, func(a, b string) int {
		return cmp.Or(cmp.Compare(min(counts[b], 8)*len([]rune(b)), min(counts[a], 8)*len([]rune(a))), strings.Compare(a, b))
	})
	return told[:min(len(told), maxTopics)]
}

// Line is what a digest says of a sitting, in a zone.
func (s Sitting) Line(zone *time.Location) string {
	from, to := s.From.In(zoneOf(zone)), s.To.In(zoneOf(zone))
	until := to.Format(clockTime)
	if from.Format(dayFormat) != to.Format(dayFormat) {
		until = to.Format(dayFormat + " " + clockTime)
	}
	about := ""
	if s.About != "" {
		about = ": “" + s.About + "”"
		switch {
		case s.Open && s.Ended != "":
			about += ", then “" + s.Ended + "”, not answered;"
		case s.Open:
			about += ", not answered;"
		case s.Ended != "":
			about += ", ended with “" + s.Ended + "”;"
		}
		if len(s.Topics) > 0 {
			about += " " + strings.Join(s.Topics, ", ")
		}
		about = strings.TrimSuffix(about, ";")
	} else if len(s.Topics) > 0 {
		about = ": " + strings.Join(s.Topics, ", ")
	}
	return fmt.Sprintf("%s–%s %s%s (%s, %s..%s)", from.Format(dayFormat+" "+clockTime), until, s.Key, about, plural(s.Count, "message"), s.First, s.Last)
}
