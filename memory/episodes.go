package memory

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/lexicon"
	"github.com/tidemark-ai/tidemark/internal/order"
)

// Moment is a logged message as episodes are made of it.
type Moment struct {
	ID   tidemark.EntryID
	Seq  int64
	At   time.Time
	Log  string // a new one is the start of a session
	Task string // empty for none; a change begins an episode
	Text string
}

// Episode is a stretch of a conversation on one thing: derived from the log, and made again from it at any time.
type Episode struct {
	Key    tidemark.Key     `json:"key"`
	Log    string           `json:"sessionId"`
	First  tidemark.EntryID `json:"first"`
	Last   tidemark.EntryID `json:"last"`
	From   time.Time        `json:"from"`
	To     time.Time        `json:"to"`
	Count  int              `json:"messages"`
	Topics []string         `json:"topics,omitempty"`

	Upto int64 `json:"-"` // position of the last message
}

// EpisodeGap is the silence after which an episode is over.
const EpisodeGap = 30 * time.Minute

const (
	maxTopics  = 5
	maxTerms   = 4000    // different words of an episode that are counted
	readMoment = 4 << 10 // characters of a message that topics are taken from
	shortTopic = 4       // letters
	clockTime  = "15:04"
)

// Episodes divides messages, in order, into episodes. One ends where half an hour passes, the task changes, or a
// session begins. The last is returned only when it is over at a time: what comes later may belong to it.
func Episodes(key tidemark.Key, moments []Moment, now time.Time) []Episode {
	var out []Episode
	for from := 0; from < len(moments); {
		to := from + 1
		for to < len(moments) && !parts(moments[to-1], moments[to]) {
			to++
		}
		if to == len(moments) && now.Sub(moments[to-1].At) < EpisodeGap {
			break
		}
		out = append(out, episode(key, moments[from:to]))
		from = to
	}
	return out
}

// parts reports that an episode ends between two messages.
func parts(a, b Moment) bool {
	return b.At.Sub(a.At) >= EpisodeGap || a.Log != b.Log || a.Task != b.Task && b.Task != ""
}

func episode(key tidemark.Key, ms []Moment) Episode {
	first, last := ms[0], ms[len(ms)-1]
	e := Episode{Key: key, Log: first.Log, First: first.ID, Last: last.ID, From: first.At, To: last.At, Count: len(ms), Upto: last.Seq}
	counts := map[string]int{}
	for _, m := range ms {
		for _, t := range Terms(cut(m.Text, readMoment)) {
			if n, ok := counts[t]; ok || len(counts) < maxTerms {
				counts[t] = n + 1
			}
		}
	}
	e.Topics = topics(counts)
	return e
}

// topics are the words that tell most of an episode: said more than once, long, no number, no word that all
// texts have.
func topics(counts map[string]int) []string {
	var told []string
	for w := range counts {
		if len([]rune(w)) >= shortTopic && !lexicon.Stops[w] && !lexicon.Vague[w] && strings.Trim(w, "0123456789.-/") != "" {
			told = append(told, w)
		}
	}
	order.By(told, func(a, b string) int {
		return cmp.Or(cmp.Compare(min(counts[b], 8)*len([]rune(b)), min(counts[a], 8)*len([]rune(a))), strings.Compare(a, b))
	})
	return told[:min(len(told), maxTopics)]
}

// Line is what a digest says of an episode, in a zone.
func (e Episode) Line(zone *time.Location) string {
	from, to := e.From.In(zoneOf(zone)), e.To.In(zoneOf(zone))
	until := to.Format(clockTime)
	if from.Format(dayFormat) != to.Format(dayFormat) {
		until = to.Format(dayFormat + " " + clockTime)
	}
	about := ""
	if len(e.Topics) > 0 {
		about = ": " + strings.Join(e.Topics, ", ")
	}
	return fmt.Sprintf("%s–%s %s%s (%s, %s..%s)", from.Format(dayFormat+" "+clockTime), until, e.Key, about, plural(e.Count, "message"), e.First, e.Last)
}
