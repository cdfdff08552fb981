package lineage

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// A client that keeps its history itself has several of them: what a rewind or an edit left, sub-agents, small calls
// for a title. Each is a track of the conversation: the log of the root, or that of a branch (a branch of the log). None
// of them is the conversation by name, so one is chosen to stand for it, the main track.

// FirstTrack is the name of the track that stands in the log of the root, whose own key means the main one.
const FirstTrack = "#t1"

// maxTracks bounds what is listed; package proxy makes no more.
const maxTracks = 1_000

// Track is one history of a client's conversation.
type Track struct {
	Key      tidemark.Key    `json:"key"` // of the first it ends in [FirstTrack]
	Title    string          `json:"title,omitempty"`
	Messages int             `json:"messages"` // of the whole history, what it shares with others included
	Active   time.Time       `json:"updatedAt"`
	Tokens   tidemark.Tokens `json:"contextTokens"` // of its newest call
	Main     bool            `json:"main,omitempty"`

	log   string
	usage tidemark.Usage
}

// Tracked reports whether a conversation has tracks: its client keeps the history, and a proxy brings what it says.
func Tracked(key tidemark.Key) bool { return key.Channel() == tidemark.ChannelProxy }

// Ends are the first and the last key of a conversation in the order of keys: a client's has all of its tracks
// between them, since nothing that a key may have sorts before "#" or behind "~". What is looked for in it is looked for in all of them.
func Ends(key tidemark.Key) []any {
	if Tracked(key) && key == key.Root() {
		return []any{string(key), string(key) + "#~"}
	}
	return []any{string(key), string(key)}
}

// Tracks lists the histories of a client's conversation, the oldest first; one of them is the main one. Of a key that no
// client has it is empty.
func Tracks(ctx context.Context, db tidemark.DB, root tidemark.Key) ([]Track, error) {
	root = root.Root()
	if !Tracked(root) {
		return nil, nil
	}
	rows, err := db.Query(ctx, `SELECT h.key, h.log, h.title, h.active, h.context, h.usage, l.base_log, l.base_seq FROM heads h JOIN logs l ON l.id = h.log
		WHERE h.key BETWEEN ? AND ? ORDER BY length(h.key), h.key LIMIT ?`, append(Ends(root), maxTracks)...)
	if err != nil {
		return nil, fmt.Errorf("read tracks of %s: %w", root, err)
	}
	list := make([]Track, len(rows))
	lengths := &lengths{bases: map[string]cut{}, cuts: map[string][]int64{}, upTo: map[cut]int{}}
	for i, r := range rows {
		t := Track{Key: tidemark.Key(r.Text(0)), log: r.Text(1), Title: r.Text(2), Active: time.UnixMilli(r.Int(3)).UTC(), Tokens: tidemark.Tokens(r.Int(4))}
		if err := json.Unmarshal(r.Bytes(5), &t.usage); err != nil {
			return nil, fmt.Errorf("read track %s: usage: %w", t.Key, err)
		}
		lengths.add(t.log, cut{r.Text(6), r.Int(7)})
		list[i] = t
	}
	if err := lengths.count(ctx, db); err != nil {
		return nil, fmt.Errorf("count messages of %s: %w", root, err)
	}
	for i := range list {
		list[i].Messages = lengths.of(cut{list[i].log, host.LogEnd})
	}
	list = slices.DeleteFunc(list, func(t Track) bool { return t.Messages == 0 && t.Key != root })
	for i := range list {
		if list[i].Key == root {
			list[i].Key += FirstTrack
		}
	}
	if i := MainTrack(list); i >= 0 {
		list[i].Main = true
	}
	return list, nil
}

// MainTrack is the place of the track with the most messages, of equals that of the newest; -1 where there is none. What
// an agent mostly does is the longest: titles are short, sub-agents end, and a rewind is passed by what follows it.
func MainTrack(list []Track) int {
	best := -1
	for i, t := range list {
		if best < 0 || t.Messages > list[best].Messages || t.Messages == list[best].Messages && !t.Active.Before(list[best].Active) {
			best = i
		}
	}
	return best
}

// Shown lists the tracks of the conversation that a key is of, and the key of the one that is shown for it: for the root of a
// client's conversation that of the main track, for any other key that one itself. Where there are no tracks both are empty.
func Shown(ctx context.Context, db tidemark.DB, key tidemark.Key) (shown tidemark.Key, list []Track, err error) {
	list, err = Tracks(ctx, db, key)
	if err != nil || len(list) == 0 {
		return "", nil, err
	}
	if key == key.Root() {
		key = list[MainTrack(list)].Key
	}
	return key, list, nil
}

// cut is a log up to a position.
type cut struct {
	log string
	seq int64
}

// lengths counts the messages of histories that have parts in common, reading each log once.
type lengths struct {
	bases map[string]cut     // what a log continues
	cuts  map[string][]int64 // where logs are counted to
	upTo  map[cut]int        // messages of a log itself
}

func (l *lengths) add(log string, base cut) {
	l.cuts[log] = append(l.cuts[log], host.LogEnd)
	if base.log != "" {
		l.bases[log] = base
		l.cuts[base.log] = append(l.cuts[base.log], base.seq)
	}
}

func (l *lengths) count(ctx context.Context, db tidemark.DB) error {
	type stretch struct {
		Log  string `json:"log"`
		From int64  `json:"from"` // behind it
		To   int64  `json:"to"`
	}
	var all []stretch
	for log, cuts := range l.cuts {
		slices.Sort(cuts)
		from := int64(0)
		for _, to := range slices.Compact(cuts) {
			all, from = append(all, stretch{log, from, to}), to
		}
	}
	if len(all) == 0 {
		return nil
	}
	raw, err := json.Marshal(all)
	if err != nil {
		return err
	}
	rows, err := db.Query(ctx, `SELECT j.key, (SELECT count(*) FROM entries e WHERE e.log = json_extract(j.value, '$.log') AND e.kind = 'message' AND e.seq > json_extract(j.value, '$.from')
			AND e.seq <= json_extract(j.value, '$.to'))
		FROM json_each(?) j LIMIT ?`, string(raw), len(all))
	if err != nil {
		return err
	}
	counts := make([]int, len(all))
	for _, r := range rows {
		counts[r.Int(0)] = int(r.Int(1))
	}
	sum := 0
	for i, s := range all {
		if s.From == 0 {
			sum = 0
		}
		sum += counts[i]
		l.upTo[cut{s.Log, s.To}] = sum
	}
	return nil
}

// of is how many messages a history has. Bases are older than what continues them, so they end.
func (l *lengths) of(c cut) int {
	n := 0
	for range maxTracks {
		n += l.upTo[c]
		base, ok := l.bases[c.log]
		if !ok {
			break
		}
		c = base
	}
	return n
}

// Whole has the row of a client's conversation tell of it as a whole: title, messages and context are of the track that is
// shown, what was used is of all of them. A title that a person gave stays.
func Whole(i *tidemark.SessionInfo, shown tidemark.Key, list []Track, title string) {
	i.Usage = tidemark.Usage{}
	for _, t := range list {
		i.Usage = i.Usage.Add(t.usage)
		if t.Active.After(i.UpdatedAt) {
			i.UpdatedAt = t.Active
		}
		if t.Key != shown {
			continue
		}
		t.tell(i)
		if title != "" {
			i.Title = title
		}
	}
}

// tell writes what a track is by itself.
func (t Track) tell(i *tidemark.SessionInfo) {
	i.ID, i.Title, i.Messages, i.ContextTokens = t.log, t.Title, t.Messages, t.Tokens
}

// Of returns the row of a track that was named, and not of the conversation.
func (t Track) Of(i tidemark.SessionInfo) tidemark.SessionInfo {
	i.Key, i.UpdatedAt, i.Usage = t.Key, t.Active, t.usage
	t.tell(&i)
	return i
}
