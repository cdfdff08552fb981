package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/archive"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/summary"
)

// fitMode says why a view is to be made smaller.
type fitMode string

const (
	fitAuto   fitMode = "threshold" // if it is over the limit
	fitForced fitMode = "overflow"  // the provider reported that it is
	fitManual fitMode = "manual"    // a person asked
	fitAgain  fitMode = "again"     // an extract stood in for a summary
)

// fit compacts a view that is over the limit and returns the new one. It is decided once: a plan
// that an earlier life began is carried out, but neither it nor a new one while the summariser is in
// its cooldown, unless the next call would not fit at all.
func (s *Session) fit(ctx context.Context, r *run, v View, mode fitMode) (View, error) {
	return s.fitWith(ctx, r, v, mode, "")
}

func (s *Session) fitWith(ctx context.Context, r *run, v View, mode fitMode, instructions string) (View, error) {
	p, err := s.openPlan(ctx, v.Log)
	if err != nil {
		return v, err
	}
	hard := mode == fitForced || v.Size > s.settings().Window
	list, rests, err := s.asked(ctx, v, mode, hard)
	if err != nil {
		return v, err
	}
	switch owed := p != nil && p.Act.Replaces != ""; {
	case len(list) == 0 && !rests && !owed:
		return v, s.dropPlan(ctx, r, p)
	case len(list) == 0, rests && p != nil && !p.Act.Early: // what is owed has a turn of its own
		return v, nil
	}
	if p, err = s.plan(ctx, r, v, mode, instructions, list, p); err != nil {
		return v, s.cannot(v, mode, err)
	}
	if !p.Act.Early {
		s.hub.send(Notice{Type: NoticeCompacting, Run: r.ID, Text: fmt.Sprintf("%d of %d tokens, compacting", v.Size, s.settings().Window)})
	}
	if err := s.carryOut(ctx, r, v, p, hard); err != nil {
		return v, s.cannot(v, mode, err)
	}
	after, err := s.view(ctx, v.Log)
	if err != nil {
		return after, err
	}
	after, err = s.checked(ctx, r, p, after)
	if p.overlay != "" {
		s.rooms.Compacted(ctx, p.Log, p.edits)
	}
	return after, err
}

// cannot decides what a compaction that did not happen means: an automatic one leaves the view as
// it was and the turn goes on; an overflow without it is the end of the turn.
func (s *Session) cannot(v View, mode fitMode, err error) error {
	lost := errors.Is(err, tidemark.ErrConflict) || errors.Is(err, tidemark.ErrDead) || errors.Is(err, context.Canceled) || errors.Is(err, tidemark.ErrAborted)
	switch {
	case lost || mode == fitManual:
		return err
	case mode == fitForced:
		return fmt.Errorf("%w: %w", tidemark.ErrOverflow, err)
	}
	if !errors.Is(err, tidemark.ErrNoGain) {
		s.Logger.Warn("compaction put off", "session", s.Key, "size", v.Size, "err", err)
	}
	return nil
}

// plan asks strategies and makes their act durable. A plan that was put off goes on if they would still plan the same:
// otherwise it would take out too little of what came since, or what was pinned since. The new one goes on where it was.
func (s *Session) plan(ctx context.Context, r *run, v View, mode fitMode, instructions string, list []compaction.Strategy, old *plan) (*plan, error) {
	list, err := s.rooms.Tune(ctx, list)
	if err != nil {
		return nil, err
	}
	pins, err := s.rooms.Pinned(ctx, v.Log)
	if err != nil {
		return nil, err
	}
	act, err := s.rooms.Plan(ctx, v.Log, instructed(list, instructions), compaction.Hold(v.View, pins, s.Budget()), s.Budget(), mode != fitAuto)
	if err == nil && old.madeFor(v, act, mode, instructions) {
		return old, nil
	}
	if err := s.dropPlan(ctx, r, old); err != nil {
		return nil, err
	}
	if err != nil {
		return nil, errors.Join(s.tooLarge(v, err), s.fellShort(ctx, r, mode, act, v))
	}
	if mode != fitManual { // a person may try again
		why, err := s.rooms.Unsound(ctx, act.Edits)
		if err == nil && why != "" { // it would be again
			err = fmt.Errorf("the same compaction was taken back by its self-check (%s): %w", why, tidemark.ErrNoGain)
		}
		if err != nil {
			return nil, err
		}
	}
	now := s.Runtime.Now()
	p := &plan{Draft: summary.Draft{ID: tidemark.NewID(now), Log: v.Log, Instructions: instructions}, Reason: string(mode), Act: act, At: now, Size: v.Size, Tier: tierFull, ChunkSize: s.chunkSize()}
	p.Last = lastOf(v.Items, act.Edits)
	s.inherit(p, old, v)
	if err := s.step(ctx, r, stateCalling, p.insertStmt(s.Key)); err != nil {
		return nil, fmt.Errorf("store plan: %w", err)
	}
	return p, nil
}

// lastOf returns the position of the last item at which one of the spans ends, 0 for none.
func lastOf(items []compaction.Item, edits []tidemark.Edit) (last int64) {
	ends := map[tidemark.EntryID]bool{}
	for i := range edits {
		if edits[i].Block == 0 {
			ends[edits[i].To] = true
		}
	}
	for i := range items {
		if ends[items[i].To] {
			last = max(last, items[i].Last)
		}
	}
	return last
}

// instructed leaves the summary alone when a person said what it should keep in mind: the others write
// nothing.
func instructed(list []compaction.Strategy, instructions string) []compaction.Strategy {
	for _, x := range list {
		if x.Name() == (compaction.Summary{}).Name() && instructions != "" {
			return []compaction.Strategy{compaction.Summary{Asked: true}}
		}
	}
	return list
}

// tooLarge adds to an error that nothing can leave the view why that is, where the newest message is the reason.
func (s *Session) tooLarge(v View, err error) error {
	if size, ok := v.TooLarge(s.Budget()); ok && errors.Is(err, tidemark.ErrNoGain) {
		return errors.Join(tooLargeError{size, s.Budget().Limit()}, err)
	}
	return err
}

// tooLargeError is a message that no compaction makes room for.
type tooLargeError struct{ size, limit tidemark.Tokens }

func (e tooLargeError) Error() string {
	return fmt.Sprintf("the newest message alone takes about %d tokens, and %d may be sent", e.size, e.limit)
}

// fellShort says, at most once in a while, that the strategies have nothing left to give though the view
// is over the limit. Then they rest. A summary alone is asked again at the next call, as ever.
func (s *Session) fellShort(ctx context.Context, r *run, mode fitMode, act compaction.Act, v View) error {
	if mode != fitAuto || act.Short == 0 || !s.pointing() || len(act.Edits) > 0 {
		return nil
	}
	if cooling, err := s.cooling(ctx); cooling || err != nil {
		return err
	}
	event := tidemark.Event{Type: "notice", Data: []byte(mustJSON(Compacted{Reason: string(mode), By: []string{}, Limit: s.Budget().Limit(), Short: act.Short})),
		Text: fmt.Sprintf("Nothing can leave the view: %d tokens over what was asked remain, pinned or of the newest turns.", act.Short)}
	if size, ok := v.TooLarge(s.Budget()); ok {
		event.Text = Explain(tooLargeError{size, s.Budget().Limit()})
	}
	if err := s.stepEvent(ctx, r, event, s.pauseStmt()); err != nil {
		return fmt.Errorf("record what did not leave: %w", err)
	}
	return nil
}

// carryOut does the steps of a plan: archive, then chunk by chunk the summary, then the overlay.
func (s *Session) carryOut(ctx context.Context, r *run, v View, p *plan, hard bool) error {
	var part archive.Info
	if p.Last > 0 {
		var err error
		if part, err = s.parts.Put(ctx, p.Log, p.Last); err != nil {
			return fmt.Errorf("archive before compaction: %w", err)
		}
	}
	if p.Act.Summarize < 0 {
		return s.install(ctx, r, v, p, part, compaction.Digest{})
	}
	edit := p.Act.Edits[p.Act.Summarize]
	under := v
	if p.Act.Replaces != "" {
		var err error
		if under, err = s.viewWithout(ctx, v.Log, p.Act.Replaces); err != nil {
			return err
		}
	}
	items, prev := s.covered(under, edit)
	if len(items) == 0 {
		return errors.Join(s.dropPlan(ctx, r, p), fmt.Errorf("the messages of the plan are not in the view any more: %w", tidemark.ErrNoGain))
	}
	if p.Chunk == 0 {
		p.Rolling = prev.Text
	}
	chunks := compaction.Chunks(items, p.ChunkSize)
	for p.Chunk < len(chunks) {
		if err := s.summarizeChunk(ctx, r, v, p, chunks[p.Chunk], hard); err != nil {
			return err
		}
		if err := s.Runtime.Sleep(ctx, host.YieldRest); err != nil { // a model in this process never waited
			return err
		}
	}
	var err error
	if prev.Asks, err = s.amendedAsks(ctx, prev.Asks); err != nil {
		return err
	}
	d := compaction.Gather(prev, items)
	d.Text, d.Tier = p.Rolling, p.Tier
	return s.install(ctx, r, v, p, part, d)
}

// covered returns the messages under a summary edit, without former summaries, and the digest of
// those.
func (s *Session) covered(v View, e tidemark.Edit) ([]compaction.Item, compaction.Digest) {
	keep := map[tidemark.EntryID]bool{}
	for _, id := range e.Keep {
		keep[id] = true
	}
	var from, to int64
	for _, it := range v.Items {
		if it.From == e.From {
			from = it.Seq
		}
		if it.To == e.To {
			to = max(to, it.Last)
		}
	}
	var prev compaction.Digest
	var items []compaction.Item
	for _, it := range v.Items {
		if it.Seq < from || it.Last > to || keep[it.From] || it.Lead() {
			continue
		}
		if !compaction.IsSummary(it) {
			items = append(items, it)
			continue
		}
		for _, sh := range v.Shown {
			if sh.Overlay == it.Overlay && sh.N == it.Edit {
				if d, ok := compaction.PreviousDigest(sh.Edit); ok {
					prev = d
				}
			}
		}
	}
	return items, prev
}

// leaving counts the messages that edits take out of a view. What an archive part holds may be less: some of them stand
// in a part since a plan that was put off.
func (s *Session) leaving(v View, edits []tidemark.Edit) (n int) {
	for _, e := range edits {
		if e.Block > 0 {
			continue
		}
		items, _ := s.covered(v, e)
		for i := range items {
			if !items[i].Span() {
				n++
			}
		}
	}
	return n
}

// install writes the overlay: the last step, in one transaction with everything that follows from
// it. A plan that turns out to free nothing is dropped.
func (s *Session) install(ctx context.Context, r *run, v View, p *plan, part archive.Info, d compaction.Digest) error {
	edits := append([]tidemark.Edit(nil), p.Act.Edits...)
	if i := p.Act.Summarize; i >= 0 {
		edits[i].Messages = []tidemark.Message{compaction.Render(d, part.Key, s.summaryBudget(v))}
		edits[i].Data = []byte(mustJSON(d))
		edits[i].Summarize = false
	}
	if err := s.recount(ctx, p.Log, edits); err != nil {
		return err
	}
	after, err := compaction.Preview(v.View, edits, s.Budget())
	if err == nil && p.Act.Replaces == "" && after.Tokens() >= v.View.Tokens() {
		err = fmt.Errorf("the summary is as large as what it replaces: %w", tidemark.ErrNoGain)
	}
	if err == nil {
		err = s.Reader.Fits(ctx, v.Shown, edits)
	}
	if err != nil {
		// What it cost is accounted, and the same is not planned again at once.
		err = errors.Join(err, s.dropPlan(ctx, r, p))
		if p.Act.Early {
			return err
		}
		return errors.Join(err, s.DB.Tx(ctx, []tidemark.Stmt{s.pauseStmt()}))
	}
	now := s.Runtime.Now()
	size := after.Size // by the measure of what stood before, which may be a provider's
	entry := tidemark.Entry{ID: tidemark.EntryID(tidemark.NewID(now)), Kind: tidemark.KindOverlay, At: now, Origin: tidemark.Origin{From: tidemark.FromSystem},
		Payload: []byte(mustJSON(tidemark.Overlay{By: p.Act.By, Edits: edits, Reason: p.Reason, Before: p.Size, After: size, Own: v.Fixed + after.Tokens(), Model: s.settings().Model}))}
	done := Compacted{Reason: p.Reason, By: p.Act.By, Tier: d.Tier, Why: p.Why, Messages: cmp.Or(s.leaving(v, edits), part.Messages), Before: p.Size, After: size, Limit: s.Budget().Limit(),
		Memories: countFacts(p.Facts), Archive: part.Key, Usage: p.Usage, Millis: max(0, now.Sub(p.At).Milliseconds()), Overlay: entry.ID, Instructions: p.Instructions, Short: max(size-s.Budget().Limit(), 0), Loose: p.Act.Loose}
	if err = s.leftBy(ctx, p, v, after, &done); err != nil {
		return err
	}
	if done.PutOff, err = s.putOffs(ctx, p); err != nil {
		return err
	}
	owed := done.counts(edits, p.Act.Summarize) && !s.settings().NoMemories
	stmts, err := s.log.AppendStmts(p.Log, entry)
	if err != nil {
		return err
	}
	event := tidemark.Event{Type: "compaction", Text: done.line(), Data: []byte(mustJSON(done))}
	if p.Act.Early {
		event.Type = p.Act.By[0]
	}
	stmts = append(stmts, s.eventStmt(p.Log, event), s.addUsage(p.Usage), spendStmt(r, p.Usage), p.doneStmt(), s.headStmt(size, p.Act.Early))
	stmts = append(stmts, s.dueStmt(dueOutbox, now.Add(outboxRetry), ""))      // if this life cannot tell the agent
	if done.Short > 0 && p.Act.Summarize < 0 && s.pointing() && !p.Act.Early { // the next turn would plan the same little again
		stmts = append(stmts, s.pauseStmt())
	}
	if p.Owed {
		stmts = append(stmts, s.dueStmt(dueAgain, now.Add(cooldowns[0]), string(entry.ID)))
	}
	if owed {
		stmts = append(stmts, s.evictedStmt(p.Log, entry.ID))
	}
	for _, x := range p.Facts {
		stmts = append(stmts, s.outboxStmt("facts:"+x.ID, outFacts, x))
	}
	lines, err := s.compactedLines(ctx, r, p.Log, done, event.Text)
	if err != nil {
		return err
	}
	stmts = append(stmts, lines...)
	if err := s.last(ctx, r, stmts...); err != nil {
		return fmt.Errorf("install overlay: %w", err)
	}
	p.overlay, p.edits = entry.ID, edits
	s.hub.send(Notice{Type: NoticeEvent, Run: r.ID, Event: &event})
	s.report(ctx)
	return nil
}

// compactedLines tells the people of the turn what they have to know of a compaction: that what they said was cut, or
// all of it, if one of them asked for it.
func (s *Session) compactedLines(ctx context.Context, r *run, log string, done Compacted, all string) ([]tidemark.Stmt, error) {
	told := done.cutLine()
	if r.command != nil {
		told = all
	}
	if told == "" {
		return nil, nil
	}
	return s.rooms.Teller().Lines(ctx, log, r.origins, told)
}

// dropPlan ends a plan that is not carried out, and accounts what it cost.
func (s *Session) dropPlan(ctx context.Context, r *run, p *plan) error {
	if p == nil {
		return nil
	}
	if err := s.step(ctx, r, stateCalling, s.dropStmts(r, p)...); err != nil {
		return fmt.Errorf("drop plan %s: %w", p.ID, err)
	}
	return nil
}

// dropStmts end a plan that is not carried out. What it cost is counted.
func (s *Session) dropStmts(r *run, p *plan) []tidemark.Stmt {
	return []tidemark.Stmt{s.addUsage(p.Usage), spendStmt(r, p.Usage), {SQL: `UPDATE plans SET state = 'dropped' WHERE id = ?`, Args: []any{p.ID}}}
}

// compactNow carries out /compact.
func (s *Session) compactNow(ctx context.Context, r *run, instructions string) error {
	v, err := s.light(ctx, r)
	if err != nil {
		return err
	}
	_, err = s.fitWith(ctx, r, v, fitManual, instructions)
	if errors.Is(err, tidemark.ErrNoGain) {
		event := tidemark.Event{Type: "notice", Text: "Nothing to compact yet: what would leave the view is smaller than a summary of it."}
		if large := (tooLargeError{}); errors.As(err, &large) {
			event.Text = Explain(large)
		}
		if e := s.lastEvent(ctx, r, event); e != nil {
			return e
		}
	}
	return err
}
