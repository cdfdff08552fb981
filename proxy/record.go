package proxy

import (
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/episodes"
)

// Record is what an exchange was and what became of it: the line that people and tools read.
type Record struct {
	At        time.Time
	Track     string // "" for the first
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

	Zone      string
	Size      tidemark.Tokens // as the zone was decided on
	Tau       int
	Stubs     int
	StubBytes int
	Evicted   int // with this request
	Collected int
	Inputs    int
	Images    int
	Pins      int
	Faults    []Faulted
	Phantom   int // calls of our tools that were answered
	Came      int // bytes of the body, as it came and as it was sent
	Sent      int
	Trimmed   int   // of these, what tools, skills and repeated parts were shortened by
	Last      int64 // position of the newest message
	LastID    tidemark.EntryID

	Totals   Totals   // of the track, with this exchange
	Episodes *Evicted // nil where none may leave
}

// Evicted is what became of episodes with a request.
type Evicted struct {
	Budget tidemark.Tokens
	Size   tidemark.Tokens // of the request as it is sent
	Whole  int             // that left whole with it,
	Part   int             // or in part
	Freed  tidemark.Tokens
	Short  tidemark.Tokens // how far it is over the budget: what could not leave
}

// tell notes an act.
func (e *Evicted) tell(a *act) {
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

// Totals are what paging did in a track.
type Totals struct {
	Calls     int
	Evicted   int
	Collected int
	Inputs    int
	Images    int
	Faults    int
	Pins      int
	In        int64 // bytes of bodies, as they came and as they were sent
	Sent      int64
}

// Faulted is a read of what had been evicted.
type Faulted struct{ Call, Of, Path string }
