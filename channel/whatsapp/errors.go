package whatsapp

import (
	"cmp"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/clip"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// pairPause is the first pause after too many messages to one person; the API asks for 4^n seconds
// after the n-th refusal, and the ledger counts them
// (https://developers.facebook.com/docs/whatsapp/cloud-api/overview#pair-rate-limits).
const pairPause = 4 * time.Second

const maxErrorText = 400 // of Meta's own words that are passed on

// Codes that are not only classified.
const (
	codeNoObject      = 100    // with subcode 33: no such media
	codePair          = 131056 // too many to this person
	codeMediaDownload = 131052
)

// codes is the one table from Meta's error codes to what is done; what is not in it is refused for
// good, or, with a 5xx, not known (https://developers.facebook.com/docs/whatsapp/cloud-api/support/error-codes).
var codes = map[int]tidemark.SendClass{
	131047: tidemark.SendClosed, // more than 24 hours since the person wrote

	131026: tidemark.SendFailed, // no WhatsApp, an old app, or blocked
	131049: tidemark.SendFailed, // Meta chose not to deliver
	130472: tidemark.SendFailed, // the same, for an experiment

	130429:   tidemark.SendAgain, // throughput of the number
	80007:    tidemark.SendAgain, // rate of the account
	4:        tidemark.SendAgain, // rate of the app
	codePair: tidemark.SendAgain,

	131048: tidemark.SendHalted, // rate limited as spam
	368:    tidemark.SendHalted, // blocked for a breach of policy

	131016: tidemark.SendAgain, // service unavailable
	131000: tidemark.SendAgain, // something went wrong
	1:      tidemark.SendAgain, // unknown, or a fault of theirs
	2:      tidemark.SendAgain, // temporarily down

	codeNoObject:      tidemark.SendFailed, // a parameter
	131008:            tidemark.SendFailed, // one is missing
	131009:            tidemark.SendFailed, // one is not valid
	131051:            tidemark.SendFailed, // message type
	codeMediaDownload: tidemark.SendFailed, // Meta could not fetch a medium
	131053:            tidemark.SendFailed, // upload of one

	190: tidemark.SendHalted, // token expired or revoked
	0:   tidemark.SendHalted, // token not valid
	10:  tidemark.SendHalted, // permission

	131021: tidemark.SendFailed, // to oneself
	131031: tidemark.SendFailed, // account locked
	131042: tidemark.SendFailed, // payment
	33:     tidemark.SendFailed, // our number is gone
}

// classOf looks a code up. The ranges are those of the same table: permissions, templates,
// registration.
func classOf(code, status int) tidemark.SendClass {
	if class, ok := codes[code]; ok {
		return class
	}
	switch {
	case code >= 200 && code <= 299:
		return tidemark.SendHalted
	case status >= 500 && code/1000 != 132 && code/1000 != 133:
		return tidemark.SendUnknown // a fault that nobody documented, perhaps after the message was taken
	}
	return tidemark.SendFailed
}

// graphError is what Meta says of a failure: in an answer below "error", in a webhook in "errors".
// It is classified by code alone: the words change.
type graphError struct {
	Code    int
	Subcode int
	Text    string
}

// readError reads one error object; it is false when it has no code, since 0 is one.
func readError(raw json.RawMessage) (graphError, bool) {
	var w struct {
		Code    *int   `json:"code"`
		Subcode int    `json:"error_subcode"`
		Message string `json:"message"`
		Title   string `json:"title"`
		Data    struct {
			Details string `json:"details"`
		} `json:"error_data"`
	}
	if len(raw) == 0 || json.Unmarshal(raw, &w) != nil || w.Code == nil {
		return graphError{}, false
	}
	text := cmp.Or(w.Message, w.Title)
	if w.Data.Details != "" && w.Data.Details != text {
		text = strings.TrimPrefix(text+": "+w.Data.Details, ": ")
	}
	return graphError{Code: *w.Code, Subcode: w.Subcode, Text: text}, true
}

// readAnswerError reads the error of an answer.
func readAnswerError(body []byte) (graphError, bool) {
	var w struct {
		Error json.RawMessage `json:"error"`
	}
	if deeper(body, maxDepth) || !json.Valid(body) || json.Unmarshal(body, &w) != nil {
		return graphError{}, false
	}
	return readError(w.Error)
}

// sendError gives the error its class. The status is 0 in a webhook; secret must not be in the text.
func (e graphError) sendError(status int, secret string) *tidemark.SendError {
	s := &tidemark.SendError{Class: classOf(e.Code, status), Code: e.Code, Text: redact(e.Text, secret)}
	if e.Code == codePair {
		s.RetryAfter = pairPause
	}
	return s
}

// redact removes the token, and what looks like one of Meta's, from a text that people will see:
// "Malformed access token EAAG…" is one of the API's own sentences.
func redact(s, secret string) string {
	const gone = "[redacted]"
	if secret != "" {
		s = strings.ReplaceAll(s, secret, gone)
	}
	const prefix, shortest = "EAA", 20
	for from := 0; ; {
		i := strings.Index(s[from:], prefix)
		if i < 0 {
			break
		}
		i += from
		end := i
		for end < len(s) && (s[end] >= '0' && s[end] <= '9' || s[end] >= 'A' && s[end] <= 'Z' || s[end] >= 'a' && s[end] <= 'z') {
			end++
		}
		if from = end; end-i >= shortest {
			s, from = s[:i]+gone+s[end:], i+len(gone)
		}
	}
	return clip.To(strings.ToValidUTF8(s, "\uFFFD"), maxErrorText)
}
