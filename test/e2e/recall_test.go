//go:build !js

package e2e

import (
	"net/url"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// recalledWide is an answer of GET /v1/recall.
type recalledWide struct {
	Verdict string
	Results []struct {
		Key, ID, Text string
		Normalized    float64
	}
	Considered int
	Coverage   float64
	Asked      []string
	Unreached  []string
}

// TestRecallAcross: what was said in one conversation is found from another of the owner, by the route and by
// the model; a stranger's finds nothing of it, and is not told that it is there.
func TestRecallAcross(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		first, second, peer := begin(t, s, "web", "a"), begin(t, s, "web", "b"), begin(t, s, "whatsapp", "+4917")
		const said = "The key of the boathouse hangs behind heron_7431."
		first.model.Push(tidemarktest.Step{Text: "Noted."})
		first.say(said)
		peer.model.Push(tidemarktest.Step{Text: "Hello."})
		peer.say("My parcel is late.")

		look := func(q string) (got recalledWide) { // a busy machine may not reach a session in time, and says so
			eventually(t, s, func() string {
				got = ask[recalledWide](first, 200, "GET", "/v1/recall?agent="+testName(t)+"&"+q, nil)
				return strings.Join(got.Unreached, " ")
			})
			return got
		}
		eventually(t, s, func() string { // the directory is told behind a turn
			if got := look("q=heron_7431+parcel"); len(got.Asked) < 2 {
				return "the directory knows " + strings.Join(got.Asked, " ")
			}
			return ""
		})
		got := look("q=heron_7431")
		if len(got.Results) == 0 || got.Results[0].Key != first.key || got.Results[0].Text != said || got.Verdict != "confident" || got.Coverage != 1 {
			t.Errorf("the owner: %+v", got)
		}
		for _, q := range []string{"scope=agent", "scope=peer", "scope=peer&peer=main", "scope=session"} {
			got := look("q=heron_7431&session=" + url.QueryEscape(peer.key) + "&" + q)
			if len(got.Results) != 0 || got.Verdict != "nothing" || strings.Contains(strings.Join(got.Asked, " "), first.key) || len(got.Asked) > 1 {
				t.Errorf("a stranger, %s: %+v", q, got)
			}
		}
		if got := look("q=parcel&scope=peer&peer=" + url.QueryEscape("whatsapp:+4917")); len(got.Results) == 0 || len(got.Asked) != 1 || got.Asked[0] != peer.key {
			t.Errorf("of one peer: %+v", got)
		}
		if res, raw := s.fetch(t, "GET", "/v1/recall?agent=main&q=x&session="+url.QueryEscape(peer.key), nil); res.StatusCode != 400 {
			t.Errorf("a session of another agent: %d %s", res.StatusCode, raw)
		}
		if res, raw := s.fetch(t, "GET", "/v1/recall?q=x", nil, "Authorization", ""); res.StatusCode != 401 {
			t.Errorf("without a token: %d %s", res.StatusCode, raw)
		}

		for _, row := range []struct {
			k    *talk
			want bool
		}{{second, true}, {peer, false}} {
			row.k.model.Push(tidemarktest.Step{Text: "Let me look.", Calls: []tidemarktest.ToolCall{{ID: "call_a", Name: "recall", Input: `{"query":"heron_7431","scope":"agent"}`}}},
				tidemarktest.Step{Text: "So it is."})
			row.k.say("Where is the key of the boathouse?")
			log := same(row.k.messages())
			if strings.Contains(log, said) != row.want || strings.Contains(log, first.key) != row.want {
				t.Errorf("the model of %s: %s", row.k.key, log)
			}
		}
	})
}
