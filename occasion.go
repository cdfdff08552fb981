package tidemark

import (
	"strings"
	"time"
)

// Occasion says that an input is the run of a schedule, and what of its answer is delivered. Nothing but the answer
// is: no failure, and no word before tools are called.
type Occasion struct {
	Schedule string `json:"schedule"`        // id
	Due      int64  `json:"due"`             // Unix milliseconds, names the run
	Quiet    string `json:"quiet,omitempty"` // an answer of this word alone stays in the log
	// Said are what was delivered lately, see SaidHash: the same again stays in the log. Only where Quiet is set.
	Said []string `json:"said,omitempty"`
}

// Ran is what a conversation tells its agent of the run of a schedule that is over.
type Ran struct {
	Schedule  string    `json:"schedule"`
	Due       int64     `json:"due"`
	Session   Key       `json:"session"`
	At        time.Time `json:"at"`
	Outcome   Outcome   `json:"outcome"`             // its text is cut at MaxRanText, its usage is of this run
	Said      string    `json:"said,omitempty"`      // SaidHash of the whole text
	Delivered bool      `json:"delivered,omitempty"` // it was put into the ledger of what is sent
}

// MaxRanText bounds the text of a [Ran], in bytes.
const MaxRanText = 4 << 10

// SaidHash names an answer for [Occasion.Said].
func SaidHash(text string) string {
	const length = 16
	return string(HashOf([]byte(strings.TrimSpace(text))))[:length]
}

// Delivers reports whether an answer is for people: not one without text, and of a run with a Quiet word neither
// that word alone, with any punctuation around it, nor what was delivered lately.
func (o Occasion) Delivers(text string) bool {
	bare := strings.Trim(text, " \t\r\n.,;:!?*_`\"'~()[]#-")
	if bare == "" {
		return false
	}
	if o.Quiet == "" {
		return true
	}
	hash := SaidHash(text)
	for _, s := range o.Said {
		if s == hash {
			return false
		}
	}
	return !strings.EqualFold(bare, strings.Trim(o.Quiet, "_"))
}

// Audience are those of who wrote that read an answer. The run of a schedule is answered by its last words alone, where those
// are for people at all.
func Audience(from []Origin, answer string, last bool) []Origin {
	var out []Origin
	for _, o := range from {
		if o.Occasion != nil {
			if !last || !o.Occasion.Delivers(answer) {
				continue
			}
			o.Occasion = nil
		}
		out = append(out, o)
	}
	return out
}
