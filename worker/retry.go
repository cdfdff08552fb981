package worker

import (
	"time"

	"github.com/tidemark-ai/tidemark/session"
)

// naming is what a request to a conversation that is kept here is known by, when it comes again.
type naming int

const (
	asWhole naming = iota // all of its messages
	asWords               // its words alone: it brings no history
	asKey                 // the Idempotency-Key of its client
)

// Bounds of retries.
const (
	// retryWindow is how long behind the end of a turn the same request is a retry: the SDKs of both APIs wait
	// 10 minutes for an answer that was lost, and then ask again within seconds.
	retryWindow = 11 * time.Minute
	// maxNamed is how many bytes a client's key may have: behind it is room for the number of a try.
	maxNamed = 180
)

// id returns the id under which a request is said that was said before. This is the rule of what a retry is, for all
// doors where clients send the same bytes for two reasons: because the answer was lost, and because somebody says
// the same again. A retry has the id of the last try, and so its turn and its answer; all else is said anew, under the
// next number.
//
//   - While the turn has not ended, the same request is a retry.
//   - Behind a failed turn it is another try.
//   - Under a key of the client it is a retry for ever: to tell the two apart is what the key is for.
//   - Else it is a retry for a while (retryWindow), unless the conversation was reset meanwhile, and, for words without a
//     history, unless something else was said.
func (by naming) id(last session.Try, now time.Time) string {
	retry := by == asKey || !last.Reset && now.Sub(last.Ended) <= retryWindow && (by == asWhole || last.Last)
	if last.Open || retry && !last.Failed {
		return last.ID
	}
	return last.Anew
}
