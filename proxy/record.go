package proxy

import (
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/episodes"
	"github.com/tidemark-ai/tidemark/paging"
)

// Record is what an exchange was and what became of it: the line that people and tools read.
type Record struct {
	At        time.Time
	Treatment string
	Untouched string         // why it was sent as it came, where it was not asked to
	Requested string         // the model, as the client named it
	Call      tidemark.Call  // with the usage of all legs
	First     tidemark.Usage // of the first leg, which is all that there were without the proxy,
	Newest    tidemark.Usage // and of the last, which tells how large the context is
	Legs      int            // calls of the API
	Error     string         // why there is no whole answer
	Messages  int            // of the client's history
	Window    tidemark.Tokens

	paging.Account       // Out counts the bytes of what stubs stand for; In and Sent are of the body
	Phantom        int   // calls of our tools that were answered
	Trimmed        int   // bytes of the body that tools, skills and repeated parts were shortened by
	Last           int64 // position of the newest message
	LastID         tidemark.EntryID

	Episodes *episodes.Account // nil where none may leave
}

// tellAct notes an act.
func tellAct(e *episodes.Account, a *act) {
	of := map[int]bool{}
	for _, s := range a.steps {
		of[s.Episode.N] = of[s.Episode.N] || s.Level == episodes.Whole
	}
	for _, whole := range of {
		if whole {
			e.Whole++
		} else {
			e.Part++
		}
	}
	e.Freed += a.Real
}
