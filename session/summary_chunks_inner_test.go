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
	"github.com/tidemark-ai/tidemark/room"
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
		{"one cannot be read", map[string]error{"room 3 ": odd}, []string{"reset/0", "reset/1", "reset/2"}, 3, nil},
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

// knowing is a room that knows what is remembered.
type knowing struct{ asked []string }

func (k *knowing) Memories(_ context.Context, v room.Seen) []string {
	k.asked = append(k.asked, "memories of "+v.Log)
	return nil
}

func (k *knowing) Near(_ context.Context, items []compaction.Item) []memory.Known {
	k.asked = append(k.asked, fmt.Sprint("near ", len(items)))
	return []memory.Known{{ID: 3, Text: "the pier is closed"}}
}

// TestSummariserKnows: a room is asked for what is remembered once a plan, for facts near each chunk, and for nothing where nothing
// is to be remembered.
func TestSummariserKnows(t *testing.T) {
	for _, off := range []bool{false, true} {
		k, m := &knowing{}, &played{play: summarizes}
		s, _ := plain(t, Config{Provider: m, Settings: Settings{Window: 100_000, NoMemories: off}, Rooms: []room.Maker{func(room.Ports) any { return k }}})
		v := talk("log", 4)
		p := &summary.Draft{ID: "p", Log: "log", Known: s.known(v)}
		for _, items := range [][]compaction.Item{v.Items[:1], v.Items[1:]} {
			_ = s.writer.Condense(t.Context(), p, items)
		}
		if got := strings.Join(k.asked, ", "); got != map[bool]string{false: "near 1, memories of log, near 3", true: ""}[off] {
			t.Errorf("without memories %v: asked for %q", off, got)
		}
		for _, req := range m.calls {
			if strings.Contains(req.Messages[0].PlainText(), "the pier is closed") == off {
				t.Errorf("without memories %v: asked %q", off, req.Messages[0].PlainText())
			}
		}
	}
}
