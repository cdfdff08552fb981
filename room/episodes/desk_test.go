package episodes

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/episodes"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/host/hosttest"
	"github.com/tidemark-ai/tidemark/room"
)

// morning is when the first message of a log was said, each a minute behind the one before.
var morning = time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)

// watch is a runtime whose clock a test sets; it notes how long somebody would wait.
type watch struct {
	tidemark.Runtime
	at     time.Time
	limits []time.Duration
}

func (w *watch) Now() time.Time { return w.at }

func (w *watch) WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	w.limits = append(w.limits, d)
	return w.Runtime.WithTimeout(ctx, d)
}

// desk is the room of a log that is written by hand.
type desk struct {
	*Room
	t      *testing.T
	log    string
	clock  *watch
	by     *compaction.Episodes
	said   *int // messages
	warned []string
}

// deskOf makes the room of a log in a database, with a budget of 10,000 tokens.
func deskOf(t *testing.T, db tidemark.DB, log string) *desk {
	t.Helper()
	entries, err := host.OpenLog(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{t: t, log: log, said: new(int), clock: &watch{Runtime: hosttest.Runtime(t), at: morning}, by: &compaction.Episodes{Budget: episodes.Budget{Tokens: 10_000}}}
	if err := db.Tx(t.Context(), []tidemark.Stmt{entries.CreateStmt(host.Info{ID: log, Key: tidemark.Key("agent:main:local:dm:" + log), Created: morning})}); err != nil {
		t.Fatal(err)
	}
	d.Room = &Room{
		Self: room.Self{Key: tidemark.Key("agent:main:local:dm:" + log), DB: db, Made: &room.Made{DB: db}, Runtime: d.clock, Life: t.Context(), Zone: func() *time.Location { return time.UTC },
			Warn: func(what string, err error) { d.warned = append(d.warned, fmt.Sprint(what, ": ", err)) }, Logger: slog.New(slog.DiscardHandler)},
		History: room.History{Log: entries, Current: func(context.Context) (string, error) { return d.log, nil }, Messages: d.messages},
		View: room.View{Strategies: func() []compaction.Strategy {
			if d.by == nil {
				return []compaction.Strategy{compaction.Summary{}}
			}
			return []compaction.Strategy{compaction.Pointer{}, d.by}
		}, Budget: func() compaction.Budget { return compaction.Budget{Window: 100_000, Reserve: 2_000, Keep: 2_000} }, Seen: d.seen},
	}
	return d
}

// anew is the room in another life.
func (d *desk) anew() *desk {
	n := &desk{t: d.t, log: d.log, clock: d.clock, by: d.by, said: d.said}
	n.Room = &Room{Self: d.Self, History: d.History, View: d.View}
	n.Made = &room.Made{DB: d.DB}
	n.Warn = func(what string, err error) { n.warned = append(n.warned, fmt.Sprint(what, ": ", err)) }
	return n
}

func (d *desk) messages(ctx context.Context, log string, r host.Range) iter.Seq2[tidemark.Entry, error] {
	return func(yield func(tidemark.Entry, error) bool) {
		skeletons, err := d.Log.Skeletons(ctx, log, r)
		if err != nil {
			yield(tidemark.Entry{}, err)
			return
		}
		for _, k := range skeletons {
			entries, err := d.Log.Payloads(ctx, []int64{k.Seq})
			if err != nil || !yield(entries[0], nil) {
				return
			}
		}
	}
}

// seen is a view of all that was said.
func (d *desk) seen(ctx context.Context, log string) (room.Seen, error) {
	v := room.Seen{Log: log}
	for e, err := range d.messages(ctx, log, host.Range{To: host.LogEnd}) {
		if err != nil {
			return v, err
		}
		m, err := e.Message()
		if err != nil {
			return v, err
		}
		v.Items = append(v.Items, compaction.Item{ID: e.ID, From: e.ID, To: e.ID, Seq: e.Seq, Last: e.Seq, Message: m, Tokens: e.Tokens, Source: e.Origin.From, At: e.At})
		v.Size += e.Tokens
	}
	return v, nil
}

// says logs messages.
func (d *desk) says(messages ...tidemark.Message) {
	d.t.Helper()
	for _, m := range messages {
		at := morning.Add(time.Duration(*d.said) * time.Minute)
		*d.said++
		e := tidemark.Entry{ID: tidemark.EntryID(tidemark.NamedID(at, d.log+fmt.Sprint(*d.said))), Kind: tidemark.KindMessage, At: at, Tokens: tidemark.Estimate(m), Origin: tidemark.Origin{From: tidemark.SourceOf(m)}, Payload: m.AppendJSON(nil)}
		if err := d.Log.Append(d.t.Context(), d.log, e); err != nil {
			d.t.Fatal(err)
		}
	}
}

// does logs a reply with calls and what they were answered: "expl NAME", "act NAME", "end DESCRIPTION" or "look PATH".
func (d *desk) does(parts ...string) {
	d.t.Helper()
	reply, results := tidemark.Message{Role: tidemark.Assistant}, tidemark.Message{Role: tidemark.User}
	for i, p := range parts {
		verb, rest, _ := strings.Cut(p, " ")
		id, name := fmt.Sprintf("c%d_%d", *d.said, i), episodes.ToolName
		var in string
		switch verb {
		case "expl", "act":
			in = fmt.Sprintf(`{"action":"start","name":%q,"type":%q,"dependencies":[]}`, rest, verb)
			if verb == "expl" {
				in = fmt.Sprintf(`{"action":"start","name":%q,"type":"expl"}`, rest)
			}
		case "end":
			if in = `{"action":"end"}`; rest != "" {
				in = fmt.Sprintf(`{"action":"end","description":%q}`, rest)
			}
		default:
			name, in = "look", fmt.Sprintf(`{"path":%q}`, rest)
		}
		reply.Content = append(reply.Content, tidemark.ToolUse(id, name, []byte(in)))
		results.Content = append(results.Content, tidemark.ToolResult(id, "done "+p, false))
	}
	d.says(reply, results)
}

// exec runs a statement.
func (d *desk) exec(sql string, args ...any) {
	d.t.Helper()
	hosttest.Exec(d.t, d.DB, sql, args...)
}

// query gives the rows of a statement.
func (d *desk) query(sql string, args ...any) string {
	d.t.Helper()
	rows, err := d.DB.Query(d.t.Context(), sql, args...)
	if err != nil {
		d.t.Fatalf("%s: %v", sql, err)
	}
	return fmt.Sprint(rows)
}

// names of the episodes of a log, those without one by their number, the open one with "!".
func (d *desk) names() string {
	d.t.Helper()
	var out []string
	if err := d.withGraph(d.t.Context(), d.log, func(g *episodes.Graph) error {
		for _, e := range g.Episodes() {
			name := e.Name
			if name == "" {
				name = fmt.Sprint("#", e.N)
			}
			if e == g.Active() {
				name += "!"
			}
			out = append(out, name)
		}
		return nil
	}); err != nil {
		d.t.Fatal(err)
	}
	return strings.Join(out, " ")
}
