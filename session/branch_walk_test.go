package session_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/room/search"
	"github.com/tidemark-ai/tidemark/room/snapshots"
	"github.com/tidemark-ai/tidemark/session"
	"github.com/tidemark-ai/tidemark/snapshot"
)

// imagined is what a session must be: what was said in its present log, through all that it continues, and every word
// that it can find, from before resets, too.
type imagined struct {
	*harness
	said  []string
	words []string
}

// place is a snapshot of one.
type imaginedPlace struct {
	id    string
	said  []string
	words []string
}

// TestBranchesWalk makes random acts on a conversation and its branches and holds each session against a list of
// strings: its log is what it must be, and it finds its own words and no other's.
func TestBranchesWalk(t *testing.T) {
	rounds, acts := 3, 70
	if runtime.GOOS == "js" || testing.Short() {
		rounds, acts = 1, 15
	}
	for seed := range rounds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { walk(t, rand.New(rand.NewPCG(uint64(seed), 9)), acts) })
	}
}

func walk(t *testing.T, r *rand.Rand, acts int) {
	h := newAlone(t, small)
	all := []*imagined{{harness: h}}
	var snaps []imaginedPlace
	word := 0
	for n := range acts {
		s := all[r.IntN(len(all))]
		what := ""
		switch k := r.IntN(20); {
		case k < 10 || len(s.said) == 0:
			word++
			what = fmt.Sprintf("word%dx", word)
			text := what + " " + filler(word)
			reply := s.say(text)
			s.said = append(s.said, "user: "+text, "assistant: "+reply)
			s.words = append(s.words, what)
		case k < 13:
			what = "snapshot"
			id := s.snap(snapshots.Options{Name: fmt.Sprint("s ", n)}).ID
			snaps = append(snaps, imaginedPlace{id, slices.Clone(s.said), slices.Clone(s.words)})
		case k < 17 && len(snaps) > 0 && len(all) < 12:
			p := snaps[r.IntN(len(snaps))]
			what = "branch of " + p.id
			b, _ := s.branch(snapshots.BranchOptions{Snapshot: p.id, Trim: r.IntN(2) == 0, Orientation: []string{"", "go that way"}[r.IntN(2)]})
			all = append(all, &imagined{b, slices.Clone(p.said), slices.Clone(p.words)})
		case k == 17:
			what = "compact"
			s.post(session.Input{Kind: session.InputCompact})
		case k == 18:
			what = "reset"
			s.post(session.Input{Kind: session.InputReset, Text: "manual"})
			s.said = nil
		case len(all) > 1:
			from := all[r.IntN(len(all))]
			if from == s || len(from.said) == 0 {
				continue
			}
			word++
			what = fmt.Sprintf("word%dx", word)
			m, err := s.Merge(t.Context(), snapshots.MergeOptions{From: from.key, Note: what})
			if err != nil {
				t.Fatal(err)
			}
			s.said, s.words = append(s.said, "user: "+m.Text), append(s.words, what)
		}
		for _, x := range all {
			x.holds(fmt.Sprintf("act %d (%s in %s)", n, what, s.key), word, r)
		}
		if t.Failed() {
			return
		}
	}
	h.whole("the end")
}

// holds compares a session with what it must be.
func (x *imagined) holds(at string, words int, r *rand.Rand) {
	t := x.t
	t.Helper()
	var got []string
	for e, err := range x.Reader.All(t.Context(), false) {
		if err != nil {
			t.Fatalf("%s: %s: %v", at, x.key, err)
		}
		m, err := e.Message()
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(m.Role)+": "+m.PlainText())
	}
	if !slices.Equal(got, x.said) {
		t.Errorf("%s: the log of %s is %d messages %.300q, want %d %.300q", at, x.key, len(got), got, len(x.said), x.said)
		return
	}
	shown := ""
	if len(got) > 0 {
		shown = x.shows()
	}
	for _, w := range []int{1 + r.IntN(words+1), words} {
		word := fmt.Sprintf("word%dx", w)
		own := slices.Contains(x.words, word)
		if strings.Contains(shown, word) && !own {
			t.Errorf("%s: %s shows %s", at, x.key, word)
		}
		found, err := x.Recall(t.Context(), search.Wanted{Query: word})
		if err != nil {
			t.Fatal(err)
		}
		if said := slices.ContainsFunc(found.Results, func(r search.Recollection) bool { return strings.Contains(r.Text, word) }); said != own {
			t.Errorf("%s: %s finds %s: %v", at, x.key, word, said)
		}
	}
	info, err := x.Info(t.Context())
	if err != nil || info.Messages != len(x.said) {
		t.Errorf("%s: %s counts %d messages of %d, %v", at, x.key, info.Messages, len(x.said), err)
	}
	if tree, err := x.nodes(); err != nil || slices.ContainsFunc(tree, func(n snapshot.Node) bool { return n.Hash == "" || n.Messages == 0 }) {
		t.Errorf("%s: tree %+v, %v", at, tree, err)
	}
}
