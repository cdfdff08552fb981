package bench

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/provider/offline"
	"github.com/tidemark-ai/tidemark/recall"
	"github.com/tidemark-ai/tidemark/room/replay"
	"github.com/tidemark-ai/tidemark/room/search"
	"github.com/tidemark-ai/tidemark/session"
)

// RunLocomoSessions imports each conversation into a session of its own in a folder, as a group of a channel has it,
// and asks there: the same path that the tool of the model, HTTP and tidemark recall take. What the rules alone give
// stands beside.
func RunLocomoSessions(ctx context.Context, conversations []Conversation, folder string) (Locomo, []Ranking, error) {
	rules, _, err := RunLocomo(ctx, conversations, nil)
	if err != nil {
		return rules, nil, err
	}
	out := newLocomo()
	var rankings []Ranking
	count := map[string]int{}
	var imported, queried time.Duration
	for n, c := range conversations {
		begun := time.Now()
		t, err := openChat(ctx, c, filepath.Join(folder, fmt.Sprint(n)))
		if err != nil {
			return out, nil, fmt.Errorf("conversation %s: %w", c.Name, err)
		}
		imported += time.Since(begun)
		begun = time.Now()
		for _, q := range c.Questions {
			found, verdict, err := t.ask(ctx, q.Text)
			if err != nil {
				return out, nil, errors.Join(fmt.Errorf("conversation %s, %q: %w", c.Name, q.Text, err), t.end())
			}
			rankings = append(rankings, Ranking{Conversation: c.Name, Question: q.N, Ranked: ranked(c, found)})
			out.add(c.Name, q, found, count)
			out.judged(verdict, q.Category, len(found) > 0 && slices.Contains(q.Evidence, found[0].ID))
		}
		queried += time.Since(begun)
		if err := t.end(); err != nil {
			return out, nil, err
		}
	}
	out.means(count)
	out.ImportMs = each(imported, len(conversations))
	out.IndexMs, out.QueryMs = rules.IndexMs, each(queried, out.Questions)
	out.Rules = &rules
	return out, rankings, nil
}

// chat is a conversation in a session.
type chat struct {
	*session.Session
	end   func() error
	turns map[tidemark.EntryID]recall.Doc
}

func openChat(ctx context.Context, c Conversation, folder string) (t chat, err error) {
	const perm = 0o700
	if err := os.Mkdir(folder, perm); err != nil {
		return t, err
	}
	t.turns = map[tidemark.EntryID]recall.Doc{}
	t.Session, t.end, err = open(ctx, folder, offline.Model{}, []compaction.Strategy{compaction.Pointer{}}, session.Settings{NoMemories: true})
	if err != nil {
		return t, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.end())
		}
	}()
	if err := sayLog(ctx, t.Session, group(c), nil); err != nil {
		return t, err
	}
	n := 0
	for e, err := range t.Reader.All(ctx, true) {
		if err != nil {
			return t, err
		}
		if n < len(c.Turns) {
			t.turns[e.ID] = c.Turns[n]
		}
		n++
	}
	if n != len(c.Turns) {
		return t, fmt.Errorf("%d of %d turns are there: %w", n, len(c.Turns), tidemark.ErrInvalid)
	}
	return t, nil
}

// group gives the turns as a channel writes what is said in a group: who it is stands before it. All of a sitting have
// one time in the data set; here a few seconds lie between them.
func group(c Conversation) iter.Seq2[replay.Message, error] {
	const pause = 5 * time.Second
	return func(yield func(replay.Message, error) bool) {
		first := 0 // of the sitting
		for i, d := range c.Turns {
			if d.Group != c.Turns[first].Group {
				first = i
			}
			peer := strings.ToLower(strings.ReplaceAll(d.Speaker, " ", "."))
			in := replay.Message{At: d.At.Add(time.Duration(i-first) * pause), Peer: peer, Message: tidemark.NewText(tidemark.User, "["+d.Speaker+" "+peer+"] "+d.Text)}
			if !yield(in, nil) {
				return
			}
		}
	}
}

// ask returns the turns that a recall finds, best first, and how far they can be trusted.
func (t chat) ask(ctx context.Context, query string) ([]recall.Doc, recall.Verdict, error) {
	got, err := find(t.Session).Recall(ctx, search.Wanted{Query: query, K: search.MaxK})
	if errors.Is(err, tidemark.ErrInvalid) { // nothing but words that tell nothing
		return nil, recall.Nothing, nil
	}
	out := make([]recall.Doc, len(got.Results))
	for i, r := range got.Results {
		out[i] = t.turns[r.ID]
	}
	return out, got.Verdict, err
}
