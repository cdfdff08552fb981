package graph

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// Mode is the manner of a [Fault].
type Mode int

// The modes of a fault.
const (
	Refuse     Mode = iota // answer with the error; the message is not taken
	Late                   // take the message, and say by a status that it failed
	Slow                   // take nothing and never answer
	Lost                   // take the message and never answer: only a status will tell
	Cut                    // take the message and end the answer in the middle
	Dropped                // read the request and close the connection; the message is not taken
	Garbled                // take the message and answer 200 with something that is no JSON
	BadGateway             // answer 502 in HTML, as a proxy does; the message is not taken
)

// Fault is what goes wrong with one message.
type Fault struct {
	Code       int // of the API; see [Codes]
	Subcode    int
	Status     int    // of HTTP; 0 for the one that belongs to the code
	Text       string // empty for the code's own
	Mode       Mode
	RetryAfter int // seconds; 0 for no header
}

// Codes are the API's error codes with their HTTP status and words
// (https://developers.facebook.com/docs/whatsapp/cloud-api/support/error-codes).
var Codes = map[int]struct {
	Status int
	Text   string
}{
	0:      {401, "AuthException"},
	1:      {400, "API Unknown"},
	2:      {503, "API Service"},
	4:      {400, "API Too Many Calls"},
	10:     {403, "API Permission Denied"},
	33:     {400, "Parameter value is not valid"},
	100:    {400, "Invalid parameter"},
	190:    {401, "Access token has expired"},
	200:    {403, "API Permission"},
	299:    {403, "API Permission"},
	368:    {403, "Temporarily blocked for policies violations"},
	80007:  {400, "Rate limit issues"},
	130429: {400, "Rate limit hit"},
	130472: {400, "User's number is part of an experiment"},
	131000: {500, "Something went wrong"},
	131008: {400, "Required parameter is missing"},
	131009: {400, "Parameter value is not valid"},
	131016: {500, "Service unavailable"},
	131021: {400, "Recipient cannot be sender"},
	131026: {400, "Message undeliverable"},
	131031: {403, "Account has been locked"},
	131042: {400, "Business eligibility payment issue"},
	131047: {400, "Re-engagement message"},
	131048: {400, "Spam rate limit hit"},
	131049: {400, "This message was not delivered to maintain healthy ecosystem engagement"},
	131051: {400, "Unsupported message type"},
	131052: {400, "Media download error"},
	131053: {400, "Media upload error"},
	131056: {400, "(Business Account, Consumer Account) pair rate limit hit"},
	132000: {400, "Template Param Count Mismatch"},
	132015: {400, "Template is Paused"},
	133004: {503, "Server Temporarily Unavailable"},
	133010: {400, "Phone number Not Registered"},
}

// triggerPrefix begins the numbers that bring a fault on; no country has it.
const triggerPrefix = "999"

// Trigger is the number that a message must be sent to for a fault: 999, the mode in one digit, the
// code in six. 9990131047 is refused with 131047, 9991131047 is taken and fails by its status.
func Trigger(mode Mode, code int) string { return fmt.Sprintf("%s%d%06d", triggerPrefix, mode, code) }

// triggered reads a number that [Trigger] made.
func triggered(to string) (Fault, bool) {
	rest, ok := strings.CutPrefix(to, triggerPrefix)
	if !ok || len(rest) != 7 {
		return Fault{}, false
	}
	code, err := strconv.Atoi(rest[1:])
	mode := Mode(rest[0] - '0')
	return Fault{Mode: mode, Code: code}, err == nil && mode <= BadGateway
}

// Fail queues faults for the next messages to a number or user id.
func (s *Server) Fail(to string, faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults[to] = append(s.faults[to], faults...)
}

// fault takes the next fault of a message.
func (s *Server) fault(to string) (Fault, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q := s.faults[to]; len(q) > 0 {
		s.faults[to] = q[1:]
		return q[0], true
	}
	return triggered(to)
}

// refuse answers with an error.
func refuse(w http.ResponseWriter, f Fault) {
	if f.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(f.RetryAfter))
	}
	body := errorObject(f)
	body["type"], body["fbtrace_id"] = "OAuthException", "AFakeTraceId"
	if f.Subcode != 0 {
		body["error_subcode"] = f.Subcode
	}
	answer(w, cmp.Or(f.Status, Codes[f.Code].Status, http.StatusBadRequest), map[string]any{"error": body})
}

// errorObject is what answers and statuses have in common.
func errorObject(f Fault) map[string]any {
	title := cmp.Or(Codes[f.Code].Text, "Error")
	return map[string]any{
		"code": f.Code, "message": fmt.Sprintf("(#%d) %s", f.Code, title),
		"error_data": map[string]any{"messaging_product": "whatsapp", "details": cmp.Or(f.Text, title)},
	}
}

// spoil answers in one of the ways that are no answer.
func (s *Server) spoil(w http.ResponseWriter, r *http.Request, f Fault) {
	switch f.Mode {
	case Slow, Lost:
		select {
		case <-r.Context().Done():
		case <-s.ctx.Done():
		}
		panic(http.ErrAbortHandler) // net/http's way to close without an answer
	case Dropped:
		panic(http.ErrAbortHandler)
	case Cut:
		w.Header().Set("Content-Length", "400")
		w.WriteHeader(http.StatusOK)
		_, _ = w.Write([]byte(`{"messaging_product":"whatsapp","contacts":[{"inp`))
		_ = http.NewResponseController(w).Flush() // the cut is what matters
		panic(http.ErrAbortHandler)
	case Garbled:
		w.WriteHeader(http.StatusOK)
		_, _ = w.Write([]byte("<html>OK</html>"))
	case BadGateway:
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusBadGateway)
		_, _ = w.Write([]byte("<html>502 Bad Gateway</html>"))
	}
}
