package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/memory"
	"github.com/tidemark-ai/tidemark/summary"
)

// TestSummarizeChunk: what becomes of a chunk: the model's words, or an extract, or a note of its size, each stored before the
// next one; a failure that may pass puts the compaction off where there is room, and is owed where there is none.
func TestSummarizeChunk(t *testing.T) {
	auth := &tidemark.APIError{Class: tidemark.ClassAuth, Message: "no key"}
	odd := &tidemark.APIError{Class: tidemark.ClassBadRequest, Status: 400, Param: "temperature", Message: "odd"}
	large := &tidemark.APIError{Class: tidemark.ClassOverflow, Status: 400, Message: "too long"}
	for _, c := range []struct {
		name  string
		fails error
		hard  bool
		tier  string // before
		owed  bool   // before

		chunk   int
		rolling string // of the new one a part
		after   string // tier
		isOwed  bool
		why     string
	}{
		{"summarised", nil, false, tierFull, false, 1, "walnut planks of room 0", tierFull, false, ""},
		{"summarised behind one that was not", nil, false, tierPartial, true, 1, "walnut planks of room 0", tierPartial, true, ""},
		{"refused", odd, false, tierFull, false, 1, "so far\n\n[Context contained 4 messages that were compacted. Summary unavailable: ", tierPlaintext, false, "odd"},
		{"refused, and something is owed", odd, false, tierFull, true, 1, "Summary unavailable", tierPlaintext, true, "odd"},
		{"the provider is down", auth, false, tierFull, false, 0, "so far", tierFull, false, ""},
		{"the provider is down, where the next call would not fit", auth, true, tierFull, false, 1, "Summary unavailable", tierPlaintext, true, "refused the key"},
		{"too large", large, false, tierFull, false, 1, "so far\n\n[Large message block", tierPartial, false, "too large for the model"},
		{"too large, behind an extract", large, false, tierPlaintext, false, 1, "[Large message block", tierPlaintext, false, "too large for the model"},
	} {
		m := &played{play: func(req tidemark.Request) (tidemark.Message, error) {
			if c.fails != nil {
				return tidemark.Message{}, c.fails
			}
			return summarizes(req)
		}, usage: tidemark.Usage{Input: 3}}
		s, rt := plain(t, Config{Provider: m, Settings: Settings{Window: 100_000}})
		r := s.begun(t, "r", stateCalling)
		v := talk(r.Log, 4)
		p := &plan{Draft: summary.Draft{ID: "p", Log: r.Log, Rolling: "so far"}, Reason: string(fitAuto), Act: spanOf(0, 3), At: rt.now, Tier: c.tier, ChunkSize: 1000, Owed: c.owed}
		if err := s.DB.Tx(t.Context(), []tidemark.Stmt{p.insertStmt(s.Key)}); err != nil {
			t.Fatal(err)
		}
		err := s.summarizeChunk(t.Context(), r, v, p, v.Items, c.hard)
		if (err == nil) != (c.chunk == 1) || err != nil && !errors.Is(err, c.fails) {
			t.Errorf("%s: %v", c.name, err)
		}
		if p.Chunk != c.chunk || !strings.Contains(p.Rolling, c.rolling) || p.Tier != c.after || p.Owed != c.isOwed || (p.Why == "") != (c.why == "") || !strings.Contains(p.Why, c.why) {
			t.Errorf("%s: chunk %d, %s, owed %v, why %q, %q", c.name, p.Chunk, p.Tier, p.Owed, p.Why, p.Rolling)
		}
		stored := s.reads(t, `SELECT chunk, tier, owed FROM plans WHERE key = ? LIMIT 1`, string(s.Key))
		if want := fmt.Sprintf("%d %s %d", c.chunk, c.after, map[bool]int{true: 1}[c.isOwed]); stored != want {
			t.Errorf("%s: stored is %q, want %q", c.name, stored, want)
		}
		if due := s.reads(t, `SELECT kind, at FROM due WHERE key = ? LIMIT 9`, string(s.Key)); (due == "run 1700000060000") != (c.chunk == 1) {
			t.Errorf("%s: due is %q", c.name, due)
		}
		failures := s.reads(t, `SELECT failures, cooldown FROM heads WHERE key = ? LIMIT 1`, string(s.Key))
		if want := map[bool]string{true: "0 0", false: "1 1700000060000"}[c.chunk == 1]; failures != want {
			t.Errorf("%s: failures and cooldown are %q, want %q", c.name, failures, want)
		}
	}
}

// TestPostpone: each time that a summary is put off the pause is longer, up to the longest; the first time the conversation is
// told, where nobody asked for the compaction.
func TestPostpone(t *testing.T) {
	why := &tidemark.APIError{Class: tidemark.ClassAuth, Message: "no key"}
	for _, c := range []struct {
		failures int
		reason   fitMode
		pause    time.Duration
		told     bool
	}{{0, fitAuto, cooldowns[0], true}, {0, fitManual, cooldowns[0], false}, {1, fitAuto, cooldowns[1], false}, {2, fitAuto, cooldowns[2], false}, {3, fitAuto, cooldowns[len(cooldowns)-1], false}, {9, fitAuto, cooldowns[len(cooldowns)-1], false}} {
		s, rt := plain(t, Config{Settings: Settings{Window: 100_000, Zone: time.FixedZone("CET", 3600)}})
		r := s.begun(t, "r", stateCalling)
		p := &plan{Draft: summary.Draft{ID: "p", Log: r.Log}, Reason: string(c.reason), At: rt.now}
		if err := s.DB.Tx(t.Context(), []tidemark.Stmt{p.insertStmt(s.Key)}); err != nil {
			t.Fatal(err)
		}
		s.does(t, `UPDATE heads SET failures = ? WHERE key = ?`, c.failures, string(s.Key))
		p.Usage = tidemark.Usage{Input: 5}
		if err := s.postpone(t.Context(), r, p, weighing(r.Log, 81_000, 0, 0), why); err != nil {
			t.Fatal(err)
		}
		if got := s.reads(t, `SELECT failures, cooldown FROM heads WHERE key = ? LIMIT 1`, string(s.Key)); got != fmt.Sprint(c.failures+1, " ", rt.now.Add(c.pause).UnixMilli()) {
			t.Errorf("after %d failures: %s", c.failures, got)
		}
		want := map[bool]string{true: "The compaction is put off until 23:14 CET, at 81000 of 100000 tokens, and tried again until it is made: " + noSummary(why)}[c.told]
		if got := s.notices(t); got != want || s.reads(t, `SELECT usage FROM plans WHERE key = ? LIMIT 1`, string(s.Key)) != mustJSON(p.Usage) {
			t.Errorf("after %d failures, %s: told %q", c.failures, c.reason, got)
		}
		for _, k := range []struct {
			summarize int
			reason    fitMode
			want      int
		}{{0, fitAuto, c.failures + 1}, {-1, fitAuto, 0}, {0, fitAgain, 0}} {
			p.Act.Summarize, p.Reason = k.summarize, string(k.reason)
			if n, err := s.putOffs(t.Context(), p); n != k.want || err != nil {
				t.Errorf("put off %d times, %v; want %d", n, err, k.want)
			}
		}
	}
}

// TestExtraction: of the newest part of a view memories are drawn chunk by chunk. What no model can read is passed over; where
// the provider is down, what was read is kept.
func TestExtraction(t *testing.T) {
	odd := &tidemark.APIError{Class: tidemark.ClassBadRequest, Status: 400, Param: "temperature", Message: "odd"}
	auth := &tidemark.APIError{Class: tidemark.ClassAuth}
	for _, c := range []struct {
		name  string
		fails map[string]error
		facts []string
		chunk int
		err   error
	}{
		{"all of it", nil, []string{"reset/0", "reset/1", "reset/2"}, 3, nil},
		{"one cannot be read", map[string]error{"room 3 ": odd}, []string{"reset/0", "reset/2"}, 3, nil},
		{"the provider goes down", map[string]error{"room 3 ": auth}, []string{"reset/0"}, 1, auth},
	} {
		m := &played{}
		m.play = func(req tidemark.Request) (tidemark.Message, error) {
			for part, err := range c.fails {
				if strings.Contains(req.Messages[0].PlainText(), part) {
					return tidemark.Message{}, err
				}
			}
			return summarizes(req)
		}
		s, _ := plain(t, Config{Provider: m, Settings: Settings{Window: 800, Reserve: 100, Keep: 10}})
		s.settings().set, s.settings().Window = 100_000, 800
		v := talk(s.current(t), 6)
		v.Items[0].Overlay, v.Items[0].Message = "o", tidemark.NewText(tidemark.User, "a marker") // what stands for others was read before
		p, err := s.extraction(t.Context(), v)
		var got []string
		for _, x := range p.Facts {
			got = append(got, strings.TrimPrefix(x.ID, v.Log+"/"))
		}
		if !slices.Equal(got, c.facts) || p.Chunk != c.chunk || (err == nil) != (c.err == nil) || err != nil && !errors.Is(err, c.err) {
			t.Errorf("%s: %q, chunk %d, %v", c.name, got, p.Chunk, err)
		}
		for _, req := range m.calls {
			if strings.Contains(req.Messages[0].PlainText(), "a marker") {
				t.Errorf("%s: it reads what stands for others", c.name)
			}
		}
	}
}

// informed is an agent that tells what is new in memory.
type informed struct {
	silent
	asked []memory.Since
	news  memory.News
	fail  error
}

func (a *informed) PromptWithin(context.Context, tidemark.Scope, time.Time, tidemark.Tokens) (string, memory.Mark, error) {
	return "", memory.Mark{}, nil
}

func (a *informed) News(_ context.Context, _ tidemark.Scope, since memory.Since) (memory.News, error) {
	a.asked = append(a.asked, since)
	return a.news, a.fail
}

// TestNewsOfATurn: what is new in memory is asked for once under a prompt, within what is free, and not for a prompt that the
// turn has made itself; without an answer the turn goes on.
func TestNewsOfATurn(t *testing.T) {
	agent := &informed{news: memory.News{Files: []memory.Fresh{{Path: "MEMORY.md", Lines: []string{"- the key hangs behind the door"}}}}}
	s, rt := plain(t, Config{Agent: agent, Settings: Settings{Window: 100_000}})
	mark := func(at time.Time) string {
		raw := mustJSON(memory.Mark{At: at.UnixMilli()})
		hash := string(tidemark.HashOf([]byte(raw)))
		if err := s.DB.Tx(t.Context(), []tidemark.Stmt{keepText(hash, raw)}); err != nil {
			t.Fatal(err)
		}
		return hash
	}
	before, now := mark(rt.now.Add(-time.Millisecond)), mark(rt.now)
	view := func(mark string, size tidemark.Tokens) View {
		v := weighing("log", size, 0, 0)
		v.mark = mark
		return v
	}
	r := &run{Started: rt.now}
	for _, c := range []struct {
		name string
		v    View
		told bool
		asks int
		most tidemark.Tokens
	}{
		{"no memory", view("", 10), false, 0, 0},
		{"of before", view(before, 10), true, 1, 1_000},
		{"again", view(before, 10), true, 1, 1_000},
		{"of this turn", view(now, 10), false, 1, 1_000},
		{"again of this turn", view(now, 10), false, 1, 1_000},
		{"of before, and little is free", view(before, 98_000), true, 2, 500},
		{"an unknown one", view("gone", 10), false, 2, 500},
	} {
		got := s.news(t.Context(), r, c.v)
		if strings.Contains(got, "the key hangs") != c.told || len(agent.asked) != c.asks || c.asks > 0 && (agent.asked[c.asks-1].Most != c.most || agent.asked[c.asks-1].Log != "log" || !agent.asked[c.asks-1].Now.Equal(rt.now)) {
			t.Errorf("%s: %q, asked %+v", c.name, got, agent.asked)
		}
	}
	agent.fail, agent.news = errKnown, memory.News{}
	if got := s.news(t.Context(), &run{Started: rt.now}, view(before, 10)); got != "" {
		t.Errorf("without an answer: %q", got)
	}
	full := view(before, 100_001)
	if s.news(t.Context(), &run{Started: rt.now}, full); agent.asked[len(agent.asked)-1].Most != 0 {
		t.Errorf("of a full window %d tokens are asked for", agent.asked[len(agent.asked)-1].Most)
	}
}

// TestNearFacts: facts are looked for by what persons said, the newest of it, where facts are compared at all.
func TestNearFacts(t *testing.T) {
	agent := &informed{news: memory.News{Near: []memory.Known{{ID: 3, Text: "x"}}}}
	s, _ := plain(t, Config{Agent: agent, Settings: Settings{Window: 100_000}})
	said := func(source, text string) compaction.Item {
		return compaction.Item{Source: source, Message: tidemark.NewText(tidemark.User, text)}
	}
	long := strings.Repeat("y", maxNear)
	items := []compaction.Item{said(tidemark.FromPerson, " first "), said(tidemark.FromModel, "an answer"), said(tidemark.FromPerson, "  "), said(tidemark.FromPerson, "second")}
	if got := s.near(t.Context(), items); got != nil || len(agent.asked) > 0 {
		t.Errorf("nobody compares facts, and %+v are near", got)
	}
	s.settings().Gate = struct{ memory.Gate }{}
	if got := s.near(t.Context(), items[1:3]); got != nil || len(agent.asked) > 0 {
		t.Errorf("persons said nothing, and %+v are near", got)
	}
	if got := s.near(t.Context(), items); len(got) != 1 || agent.asked[0].Near != "first\nsecond" {
		t.Errorf("%+v, asked %+v", got, agent.asked)
	}
	s.near(t.Context(), []compaction.Item{said(tidemark.FromPerson, "é"+long)})
	s.near(t.Context(), []compaction.Item{said(tidemark.FromPerson, long), said(tidemark.FromPerson, "z")})
	if agent.asked[1].Near != long || agent.asked[2].Near != long[2:]+"\nz" {
		t.Errorf("asked for %d and %d bytes", len(agent.asked[1].Near), len(agent.asked[2].Near))
	}
	s.settings().NoMemories = true
	if got := s.near(t.Context(), items); got != nil || len(agent.asked) != 3 {
		t.Errorf("without memories %+v are near", got)
	}
}
