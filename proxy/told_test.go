package proxy_test

import (
	"testing"

	"github.com/tidemark-ai/tidemark/episodes"
)

// TestEpisodesToldAtOnce: what the model marked at the end of its answer is told without the client's next request, also after a
// restart; with that request it is the same. What it marks beside a call of the client's is told when that is answered.
func TestEpisodesToldAtOnce(t *testing.T) {
	a := &worker{r: newRig(t, episodic()), history: []string{text("user", "begin")}}
	tell := func(when, open, learned string) {
		t.Helper()
		for range 2 {
			e, err := a.r.c.Episodes(t.Context(), "")
			if err != nil {
				t.Fatal(err)
			}
			var last episodes.Episode
			for _, s := range e.States {
				if s.Episode.Name != "" {
					last = *s.Episode
				}
			}
			if e.Open != open || last.Description != learned {
				t.Errorf("%s: open is %q, and the newest says %q", when, e.Open, last.Description)
			}
			a.r.restart()
		}
	}
	a.round(`{"action":"start","name":"look","type":"expl"}`)
	tell("begun beside a call", "", "")
	ends := func(mark, words string) {
		a.r.exchange("", request(a.history...), reply("tool_use", call("m"+words, episodes.ToolName, mark)), reply("end_turn", textBlock(words)))
		a.history = append(a.history, said(textBlock(words)))
	}
	ends(`{"action":"end","description":"it was there"}`, "Found.")
	tell("ended before the answer's end", "", "it was there")
	a.history = append(a.history, text("user", "go on"))
	a.round()
	tell("with the next request", "", "it was there")
	ends(`{"action":"start","name":"again","type":"expl"}`, "I begin.")
	tell("begun before the answer's end", "again", "")
}
