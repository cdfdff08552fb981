// Package summary has a model write summaries of a conversation, and what of it is to be remembered. What leaves a view, and
// what an unwritten summary is replaced by, is decided elsewhere; what is asked and how answers are read is of package
// compaction. Begin with [Writer.Condense].
package summary

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/memory"
	"github.com/tidemark-ai/tidemark/refusal"
)

// deadline bounds one call of the model.
const deadline = 5 * time.Minute

// maxKnown is how many bytes of memory the model is told to be known.
const maxKnown = 12_000

// How often a summary is asked for before its failure counts, and how many answers may be none.
const (
	maxTries = 3
	maxBad   = 2
)

// How often items that are too many for the model of summaries are halved: its window may be a small part of that of the
// conversation. Where that is only a doubt, since a server has the same words for an outage, it is tried a few times.
const (
	maxHalvings    = 8
	outageHalvings = 3
	leastHalved    = 2_000 // tokens; no window is so small that less is doubted
	smallPiece     = 2_000 // tokens of a message that is not looked into
	maxRefused     = 40    // pieces of items, of which the model refuses one in words that nobody knows
	maxAtFirst     = 6     // before it has taken one
)

// Settings are those of the model of summaries that are in force.
type Settings struct {
	Model      string          // that writes summaries
	Own        bool            // it is the one that answers
	Window     tidemark.Tokens // what it takes
	NoMemories bool            // none are asked for
}

// Ports are what a writer is given.
type Ports struct {
	Scope    tidemark.Scope
	Provider tidemark.Provider
	Runtime  tidemark.Runtime
	Settings func() Settings
	// Learn keeps how much a model takes, as it refused more.
	Learn func(ctx context.Context, model string, tokens tidemark.Tokens, from tidemark.WindowFrom) error
	// Near returns facts that are near what persons said, for the model that draws new ones from it.
	Near func(ctx context.Context, items []compaction.Item) []memory.Known
	// Findable leaves out what recall does not find: nothing of it is remembered.
	Findable func(ctx context.Context, items []compaction.Item) []compaction.Item
	// Failures is how often summaries were put off since one was written.
	Failures func(ctx context.Context) (int, error)
}

// Writer writes summaries of one conversation.
type Writer struct{ Ports }

// Draft is what was written so far of some messages, chunk by chunk.
type Draft struct {
	ID           string // the facts of a chunk are named by it
	Log          string
	Instructions string // what a person wants to be kept
	OnlyMemories bool   // no summary is written
	Chunk        int    // chunks that are finished
	Rolling      string // the summary so far
	Facts        []tidemark.Extraction
	Usage        tidemark.Usage
	Refused      []tidemark.EntryID // messages that the model refuses to read, in whole or in part: a note stands for each

	// Known returns what memory has. It is asked once. nil: nothing is known.
	Known func(ctx context.Context) []string `json:"-"`
	Again bool                               `json:"-"` // it was written without a model in an outage, which is over
	known []string
}

// Condense asks for the summary of a chunk and its memories, and for its halves one after the other where the model takes no
// more. What it refuses in words that nobody knows may be for one message: it is looked for, and left out of the summary. Where all
// fails the draft is as it was, but for what it cost and for memories of a part of it.
func (w *Writer) Condense(ctx context.Context, d *Draft, items []compaction.Item) error {
	err := w.condense(ctx, d, items, maxHalvings)
	if odd(err) {
		err = w.past(ctx, d, items, err)
	}
	if err == nil && !d.OnlyMemories {
		for _, id := range d.Refused { // the model that goes on with a summary may leave notes out
			if note := fmt.Sprintf("[Message %s is not all in this summary: the model that writes it refused it. recall with {\"entry\": %q} reads it.]", id, id); !strings.Contains(d.Rolling, note) {
				d.Rolling = Join(d.Rolling, note)
			}
		}
	}
	return err
}

// past gets past a refusal: without the summary so far, which stays as it is then, or without some of the messages.
func (w *Writer) past(ctx context.Context, d *Draft, items []compaction.Item, refused error) error {
	was := *d
	back := func() {
		used, facts := d.Usage, d.Facts
		*d = was
		if d.Usage = used; d.OnlyMemories {
			d.Facts = facts
		}
	}
	for _, without := range []bool{true, false} {
		if without && was.Rolling == "" {
			continue
		}
		var err error
		if without {
			d.Rolling = ""
			err = w.condense(ctx, d, items, 0)
		} else {
			err = w.around(ctx, d, items, refused)
		}
		switch {
		case err == nil && without:
			d.Rolling = Join(was.Rolling, d.Rolling)
			return nil
		case err == nil:
			return nil
		}
		if back(); !odd(err) {
			return err
		}
	}
	if was.Rolling == "" {
		return refused
	}
	d.Rolling = "" // or without both
	err := w.around(ctx, d, items, refused)
	if err != nil {
		back()
		return err
	}
	d.Rolling = Join(was.Rolling, d.Rolling)
	return nil
}

// around condenses items piece by piece, and leaves out messages that the model refuses by themselves. Where it refuses all, or
// too many, its error is refused.
func (w *Writer) around(ctx context.Context, d *Draft, items []compaction.Item, refused error) error {
	asked, wrote := 0, false
	var pieces func(items []compaction.Item) error
	pieces = func(items []compaction.Item) error {
		for _, half := range compaction.Halves(items) {
			if len(half) == 0 {
				continue
			}
			err := w.condense(ctx, d, half, 0)
			wrote = wrote || err == nil
			asked++
			switch parts := compaction.Halves(half); {
			case err == nil:
			case !odd(err):
				return err
			case asked >= maxRefused || asked >= maxAtFirst && !wrote:
				return refused
			case len(half) > 1 || len(parts[1]) > 0 && tidemark.EstimateText(compaction.Transcribe(half)) > smallPiece:
				if err := pieces(half); err != nil {
					return err
				}
			case !slices.Contains(d.Refused, half[0].From):
				d.Refused = append(d.Refused[:len(d.Refused):len(d.Refused)], half[0].From)
			}
		}
		return nil
	}
	if err := pieces(items); err != nil || !wrote {
		return cmp.Or(err, refused)
	}
	return nil
}

// odd reports a refusal that may be for anything in what was sent, other than its size and an outage.
func odd(err error) bool {
	var api *tidemark.APIError
	return errors.As(err, &api) && refusal.Unexplained(*api, false) && !api.Transient() && !TooLarge(err) && api.Status != http.StatusNotFound && api.Param != "model"
}

// Join puts a paragraph behind another.
func Join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n\n" + b
}

func (w *Writer) condense(ctx context.Context, d *Draft, items []compaction.Item, halvings int) error {
	var near []memory.Known
	if !w.Settings().NoMemories {
		near = w.Near(ctx, items)
	}
	written, err := w.ask(ctx, d, items, memory.List(near))
	if err == nil {
		if !d.OnlyMemories {
			d.Rolling = written.Summary
		}
		w.addFacts(d, w.Findable(ctx, items), written.Memories, near)
		return nil
	}
	size := tidemark.EstimateText(compaction.Transcribe(items))
	var api *tidemark.APIError
	doubted := errors.As(err, &api) && api.Transient() && refusal.Unexplained(*api, false) && size > leastHalved
	if doubted { // it is an outage, unless it lasts
		n, err := w.Failures(ctx)
		if err != nil {
			return err
		}
		doubted, halvings = n > 0 && !d.Again, min(halvings, outageHalvings)
	}
	if !TooLarge(err) && !doubted || halvings == 0 {
		return err
	}
	was, halves := *d, compaction.Halves(items)
	if len(halves[1]) == 0 {
		return err
	}
	for _, half := range halves {
		if e := w.condense(ctx, d, half, halvings-1); e != nil {
			if used := d.Usage; !d.OnlyMemories { // the summary of a part of a chunk is none
				*d = was
				d.Usage = used
			}
			return e
		}
	}
	return nil // a refusal in other words teaches nothing: it may have been an outage
}

// TooLarge reports that a model takes no more than it was sent.
func TooLarge(err error) bool {
	var api *tidemark.APIError
	return errors.As(err, &api) && api.Class == tidemark.ClassOverflow
}

// Passing reports a failure that is not the fault of what was asked: the provider is down, busy or
// refuses the key.
func Passing(err error) bool {
	var api *tidemark.APIError
	return errors.As(err, &api) && (api.Transient() || api.Class == tidemark.ClassAuth)
}

// ask asks for the summary or the memories of some items. An answer that cannot be read
// strictly is asked for again; an oversized chunk is not sent at all.
func (w *Writer) ask(ctx context.Context, d *Draft, items []compaction.Item, near string) (compaction.Written, error) {
	set := w.Settings()
	ask := compaction.Ask{Model: set.Model, Previous: compaction.Bound(d.Rolling, set.Window/8), Memories: w.known(ctx, d), Instructions: d.Instructions,
		Items: items, OnlyMemories: d.OnlyMemories, NoMemories: set.NoMemories, Near: near}
	req := compaction.Prompt(ask)
	req.MaxTokens = min(compaction.SummaryTokens, max(set.Window/8, 400))
	size := tidemark.Estimate(req.Messages[0])
	if size > set.Window/2 {
		return compaction.Written{}, &tidemark.APIError{Class: tidemark.ClassOverflow, Message: "the chunk exceeds half of the window"}
	}
	var last error
	for try, bad := 1, 0; try <= maxTries; try++ {
		reply, err := w.complete(ctx, req)
		d.Usage = d.Usage.Add(reply.Call.Usage)
		if err == nil {
			written, perr := compaction.Read(reply, ask)
			if perr == nil {
				return written, nil
			}
			last = perr
			if bad++; bad == maxBad {
				break
			}
			req.Messages = compaction.AskAgain(req, perr)
			continue
		}
		last = err
		var api *tidemark.APIError
		if ctx.Err() == nil && errors.As(err, &api) && api.Class == tidemark.ClassRefusal { // without a word; another try may have some
			if bad++; bad == maxBad {
				break
			}
			continue
		}
		if ctx.Err() != nil || !errors.As(err, &api) || !api.Transient() {
			return compaction.Written{}, errors.Join(err, w.learn(ctx, size, err))
		}
		if try < maxTries {
			if err := w.Runtime.Sleep(ctx, refusal.Backoff(try, api.RetryAfter)); err != nil {
				return compaction.Written{}, err
			}
		}
	}
	return compaction.Written{}, last
}

// learn takes up what a refusal says of the window of the model of summaries.
func (w *Writer) learn(ctx context.Context, size tidemark.Tokens, refused error) error {
	var api *tidemark.APIError
	set := w.Settings()
	switch {
	case !errors.As(refused, &api) || !refusal.OverTokens(*api):
		return nil // bytes that are too many say nothing of tokens
	case api.Limit > 0:
		return w.Learn(ctx, set.Model, api.Limit, tidemark.WindowRefused)
	case set.Own:
		return nil // a smaller piece is asked for; the window of all conversations is halved where a turn shows it
	}
	return w.Learn(ctx, set.Model, min(size, set.Window), tidemark.WindowHalved) // what is sent is at most half of it
}

// complete makes one bounded call of the model.
func (w *Writer) complete(ctx context.Context, req tidemark.Request) (tidemark.Reply, error) {
	limited, stop := w.Runtime.WithTimeout(ctx, deadline)
	defer stop()
	reply, err := tidemark.Complete(limited, w.Provider, req)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return reply, &tidemark.APIError{Class: tidemark.ClassNetwork, Message: fmt.Sprintf("no summary within %s", deadline)}
	}
	return reply, err
}

// known is what the model need not extract again: what memory has, as far as the conversation may see it, and the facts
// of earlier chunks; the newest within a budget.
func (w *Writer) known(ctx context.Context, d *Draft) string {
	set := w.Settings()
	if set.NoMemories {
		return ""
	}
	if d.known == nil {
		d.known = []string{}
		if d.Known != nil {
			d.known = append(d.known, d.Known(ctx)...)
		}
	}
	lines := d.known
	for _, x := range d.Facts {
		for _, f := range x.Facts {
			lines = append(lines[:len(lines):len(lines)], "- "+f.Text)
		}
	}
	from, size := len(lines), 0
	most := min(maxKnown, int(set.Window)/5) // some 1/16 of it, in tokens
	for ; from > 0; from-- {
		if size += len(lines[from-1]) + 1; size > most {
			break
		}
	}
	return strings.Join(lines[from:], "\n")
}

// addFacts keeps what a chunk gave to remember, under an id that makes storing it twice one act.
func (w *Writer) addFacts(d *Draft, items []compaction.Item, lines []string, near []memory.Known) {
	if w.Settings().NoMemories || len(lines) == 0 || len(items) == 0 {
		return
	}
	id := fmt.Sprintf("%s/%s/%d", d.Log, d.ID, d.Chunk)
	if n := len(d.Facts); n > 0 && strings.HasPrefix(d.Facts[n-1].ID, id) { // of another half of it
		id = fmt.Sprintf("%s.%d", id, n)
	}
	x := tidemark.Extraction{ID: id, Session: d.Log, Scope: w.Scope, At: w.Runtime.Now()}
	if len(near) == 0 {
		for _, l := range lines {
			x.Facts = append(x.Facts, tidemark.Fact{Text: l})
		}
	} else if x.Facts = memory.Decide(lines, near); len(x.Facts) == 0 {
		return
	}
	for i := range x.Facts {
		x.Facts[i].Sources = []tidemark.EntryID{items[0].From, items[len(items)-1].To}
	}
	d.Facts = append(d.Facts, x)
}
