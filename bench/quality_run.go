package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/paging"
)

// maxFailed is after how many pairs in a row that fail a run stops: the rest would fail as well, and is
// made by a later run.
const maxFailed = 3

// Pair is a turn that is to be compared, and what its two requests hold by our estimate.
type Pair struct {
	Turn
	Full    tidemark.Tokens `json:"full_tokens"`
	Managed tidemark.Tokens `json:"managed_tokens"`
}

// Skips count what cannot be compared.
type Skips struct {
	Untouched int `json:"untouched"`  // sessions with no turn from which something had left
	Window    int `json:"window"`     // turns whose whole context exceeds the window
	Malformed int `json:"malformed"`  // turns that no API would take
	Beyond    int `json:"over_pairs"` // turns beyond the number that was asked for
}

// QualityPlan is what a run will do and about what it takes.
type QualityPlan struct {
	Sessions int             `json:"sessions"` // that were read
	Pairs    []Pair          `json:"pairs"`
	Skipped  Skips           `json:"skipped"`
	Calls    int             `json:"calls"`         // in all
	Made     int             `json:"answers_made"`  // of them, by an earlier run; verdicts show only later
	Input    tidemark.Tokens `json:"input_tokens"`  // of the calls that are not made yet, about
	Output   tidemark.Tokens `json:"output_tokens"` // of them, at most
}

// unit names the session of a turn: what is of one session is not independent.
func (t Turn) unit() string { return fmt.Sprintf("%s\x00%d\x00%s", t.File, t.Line, t.Session) }

// Consider adds the turns of a session to a plan. at gives the turn of a request.
func (q *Quality) Consider(ctx context.Context, plan *QualityPlan, s paging.Session, typed []int, at func(request int) Turn) error {
	plan.Sessions++
	turns, err := q.Choose(s, typed)
	if err != nil {
		return err
	}
	if len(turns) == 0 {
		plan.Skipped.Untouched++
	}
	found := 0
	for _, n := range turns[:min(len(turns), maxTries*q.Each)] {
		if found == q.Each {
			break
		}
		t := at(n)
		two, err := q.prepare(ctx, t)
		switch {
		case errors.Is(err, tidemark.ErrInvalid):
			plan.Skipped.Malformed++
			continue
		case err != nil:
			return err
		case two.size[0]+q.AnswerTokens > q.Window:
			plan.Skipped.Window++
			continue
		}
		found++
		plan.Pairs = append(plan.Pairs, Pair{t, two.size[0], two.size[1]})
	}
	return nil
}

// Settle cuts a plan to the number of pairs, which the seed draws, and counts calls and tokens.
func (q *Quality) Settle(ctx context.Context, plan *QualityPlan) error {
	if over := len(plan.Pairs) - q.Pairs; over > 0 {
		plan.Skipped.Beyond = over
		drawn := slices.Clone(plan.Pairs)
		of := func(p Pair) uint64 { return q.draw("pair", p.Session, p.Request, 0) }
		slices.SortStableFunc(drawn, func(a, b Pair) int { return cmp.Compare(of(a), of(b)) })
		taken := map[Turn]bool{}
		for _, p := range drawn[:q.Pairs] {
			taken[p.Turn] = true
		}
		plan.Pairs = slices.DeleteFunc(plan.Pairs, func(p Pair) bool { return !taken[p.Turn] })
	}
	for _, p := range plan.Pairs {
		plan.Calls += 2 + len(q.Judges)
		plan.Input += tidemark.Tokens(len(q.Judges)) * (tidemark.EstimateChars(excerptChars/2+len(judgeSystem)+len(judgeTask)) + q.AnswerTokens)
		plan.Output += tidemark.Tokens(len(q.Judges)) * q.JudgeTokens
		var two prepared
		if len(q.Have) > 0 {
			var err error
			if two, err = q.prepare(ctx, p.Turn); err != nil {
				return err
			}
		}
		for i, size := range [2]tidemark.Tokens{p.Full, p.Managed} {
			if _, have := q.Have[two.key[i]]; have {
				plan.Made++
				continue
			}
			plan.Input += size
			plan.Output += q.AnswerTokens
		}
	}
	return nil
}

// prepared are the two requests of a pair: with the whole context, and as the strategy has it.
type prepared struct {
	req     [2]tidemark.Request
	key     [2]string
	size    [2]tidemark.Tokens
	excerpt string
}

// prepare reads a turn anew and makes its requests.
func (q *Quality) prepare(ctx context.Context, t Turn) (p prepared, err error) {
	r, err := q.Load(ctx, t)
	if err != nil {
		return p, err
	}
	managed, err := q.Strategy.Manage(r, q.Recent)
	if err != nil {
		return p, err
	}
	tail := max(len(r.Messages)-q.Recent, 0)
	if len(managed) != len(r.Messages) || !sameMessages(managed[tail:], r.Messages[tail:]) {
		return p, fmt.Errorf("strategy %s changes one of the newest %d messages of session %s", q.Strategy.Name(), q.Recent, t.Session)
	}
	tools := toolsOf(r.Tools, r.Messages)
	for i, messages := range [2][]tidemark.Message{r.Messages, managed} {
		if messages, err = sendable(messages); err != nil {
			return p, fmt.Errorf("session %s request %d: %w", t.Session, t.Request, err)
		}
		p.req[i] = tidemark.Request{Model: q.Model, System: r.System, Tools: tools, Messages: messages, MaxTokens: q.AnswerTokens, Note: answerNote}
		p.key[i] = q.keyOf(p.req[i], 0)
		if i == 1 && p.key[1] == p.key[0] {
			p.key[1] = q.keyOf(p.req[1], 1) // the same question a second time, as a control
		}
		p.size[i] = tidemark.EstimateText(r.System) + tidemark.EstimateText(answerNote)
		for _, m := range messages {
			p.size[i] += tidemark.Estimate(m)
		}
		for _, tool := range tools {
			p.size[i] += tidemark.EstimateText(tool.Name + tool.Description + string(tool.InputSchema))
		}
	}
	p.excerpt = excerpt(r.Messages[tail:])
	return p, nil
}

func sameMessages(a, b []tidemark.Message) bool {
	return slices.EqualFunc(a, b, func(x, y tidemark.Message) bool { return string(x.AppendJSON(nil)) == string(y.AppendJSON(nil)) })
}

// Run makes the calls of a plan that no earlier run made, and judges. A pair whose calls fail is told and
// left out. An error ends the run: a wrong key, the end of ctx, a record that cannot be kept. The
// result is that of what came before it.
func (q *Quality) Run(ctx context.Context, plan QualityPlan) (res QualityResult, err error) {
	res = QualityResult{Strategy: q.Strategy.Name(), Model: q.Model, Judges: q.Judges, Seed: q.Seed, Recent: q.Recent, Margin: q.Margin, Skipped: plan.Skipped}
	var done []compared
	inRow := 0
	for i, p := range plan.Pairs {
		if q.Told != nil {
			q.Told("pairs, "+p.Session, i, len(plan.Pairs))
		}
		c, failed := q.compare(ctx, p, &res)
		var api *tidemark.APIError
		switch {
		case failed == nil:
			done, inRow = append(done, c), 0
			continue
		case ctx.Err() != nil:
			err = context.Cause(ctx)
		case !errors.As(failed, &api):
			err = failed
		case errors.Is(failed, tidemark.ErrOverflow):
			res.Skipped.Window++
			continue
		default:
			res.Failed = append(res.Failed, FailedPair{p.Session, p.Request, failed.Error()})
			if inRow++; inRow >= maxFailed || api.Class == tidemark.ClassAuth {
				err = fmt.Errorf("stopped at pair %d of %d: %w", i+1, len(plan.Pairs), failed)
			}
		}
		if err != nil {
			break
		}
	}
	q.judged(&res, done)
	return res, err
}

// compared is a pair with what was answered and what the judges said.
type compared struct {
	Pair
	answers [2]Saved
	votes   []vote
}

// vote is what one judge said.
type vote struct {
	ballot
	fullFirst bool // A was the answer with the whole context
	why       string
}

func (q *Quality) compare(ctx context.Context, p Pair, res *QualityResult) (c compared, err error) {
	two, err := q.prepare(ctx, p.Turn)
	if err != nil {
		return c, err
	}
	c.Pair = p
	for i, condition := range [2]string{condFull, condManaged} {
		s, made, err := q.call(ctx, two.req[i], two.key[i], res)
		if err == nil && made {
			err = q.keep(QualityRecord{Kind: kindAnswer, Key: two.key[i], Session: p.Session, Request: p.Request, Strategy: q.Strategy.Name(), Condition: condition, Model: q.Model, Saved: s})
		}
		var api *tidemark.APIError
		if errors.As(err, &api) && api.Class == tidemark.ClassOverflow {
			err = fmt.Errorf("%w: %w", err, tidemark.ErrOverflow)
		}
		if err != nil {
			return c, fmt.Errorf("answer (%s): %w", condition, err)
		}
		c.answers[i] = s
	}
	for judge := range q.Judges {
		v, err := q.judge(ctx, c, two.excerpt, judge, res)
		if err != nil {
			return c, fmt.Errorf("judge %d: %w", judge+1, err)
		}
		c.votes = append(c.votes, v)
	}
	return c, nil
}

// judge asks one judge.
func (q *Quality) judge(ctx context.Context, c compared, excerpt string, judge int, res *QualityResult) (vote, error) {
	v := vote{fullFirst: q.fullFirst(c.Turn, judge+1)}
	a, b := cmp.Or(c.answers[0].Text, emptyAnswer), cmp.Or(c.answers[1].Text, emptyAnswer)
	if !v.fullFirst {
		a, b = b, a
	}
	req := tidemark.Request{Model: q.Judges[judge], System: judgeSystem, MaxTokens: q.JudgeTokens,
		Messages: []tidemark.Message{tidemark.NewText(tidemark.User, judgePrompt(excerpt, a, b))}}
	key := q.keyOf(req, judge+1)
	s, made, err := q.call(ctx, req, key, res)
	if err != nil {
		return v, err
	}
	v.ballot, err = parseBallot(s.Text)
	if err != nil {
		v.why = err.Error()
	}
	if made {
		rec := QualityRecord{Kind: kindVerdict, Key: key, Session: c.Session, Request: c.Request, Strategy: q.Strategy.Name(), Judge: judge + 1, Model: q.Judges[judge], Saved: s, Invalid: v.why}
		v.write(&rec)
		return v, q.keep(rec)
	}
	return v, nil
}

// side is the condition that a side of the ballot was.
func (v vote) side(s string) string {
	switch {
	case s == "":
		return ""
	case (s == sideA) == v.fullFirst:
		return condFull
	}
	return condManaged
}

// points are the scores of both conditions.
func (v vote) points() (full, managed scores) {
	if v.fullFirst {
		return v.a, v.b
	}
	return v.b, v.a
}

func (v vote) write(rec *QualityRecord) {
	rec.A = v.side(sideA)
	if v.why != "" {
		return
	}
	full, managed := v.points()
	rec.Score = map[string]map[string]int{condFull: {}, condManaged: {}}
	for i, name := range criteria {
		rec.Score[condFull][name], rec.Score[condManaged][name] = full[i], managed[i]
	}
	rec.Better, rec.Less = cmp.Or(v.side(v.better), "tie"), cmp.Or(v.side(v.less), "unsure")
}
