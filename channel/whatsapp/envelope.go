package whatsapp

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/channel"
	"github.com/tidemark-ai/tidemark/internal/json"
)

const (
	// maxDepth is thrice what any documented payload has. It is checked before a decoder that calls
	// itself sees the body.
	maxDepth = 32
	maxWord  = 64 // of a kind in an Odd: the platform's word, but bounded
)

// The fields of a webhook that are read; the pieces stay raw, so that one that is not as documented
// does not hide the others.
type (
	wireBody struct {
		Object string          `json:"object"`
		Entry  json.RawMessage `json:"entry"`
	}
	wireEntry struct {
		Changes json.RawMessage `json:"changes"`
	}
	wireChange struct {
		Field string          `json:"field"`
		Value json.RawMessage `json:"value"`
	}
	wireValue struct {
		Metadata struct {
			Display string `json:"display_phone_number"`
			ID      string `json:"phone_number_id"`
		} `json:"metadata"`
		Contacts json.RawMessage `json:"contacts"`
		Messages json.RawMessage `json:"messages"`
		Echoes   json.RawMessage `json:"message_echoes"`
		Statuses json.RawMessage `json:"statuses"`
		Errors   json.RawMessage `json:"errors"`
		Updates  json.RawMessage `json:"user_id_update"`
	}
	wireContact struct {
		Profile struct {
			Name     string `json:"name"`
			Username string `json:"username"`
		} `json:"profile"`
		Phone  string `json:"wa_id"`
		UserID string `json:"user_id"`
		Parent string `json:"parent_user_id"`
	}
	wireStatus struct {
		ID        string          `json:"id"`
		Status    string          `json:"status"`
		Time      json.RawMessage `json:"timestamp"`
		Recipient string          `json:"recipient_id"`
		UserID    string          `json:"recipient_user_id"`
		Errors    json.RawMessage `json:"errors"`
		Ref       string          `json:"biz_opaque_callback_data"`
	}
	wireUpdate struct {
		Phone  string   `json:"wa_id"`
		UserID wireMove `json:"user_id"`
		Parent wireMove `json:"parent_user_id"`
	}
	wireMove struct {
		Previous string `json:"previous"`
		Current  string `json:"current"`
	}
)

// fieldEchoes is the webhook of what the owner of a number writes by the WhatsApp Business app, on a phone or a linked
// device: https://developers.facebook.com/docs/whatsapp/cloud-api/webhooks/reference/smb_message_echoes
const fieldEchoes = "smb_message_echoes"

// decoding is one body in work.
type decoding struct {
	out  []channel.Arrival
	seen map[string]bool // ids of messages and of statuses, each with its kind before it
}

// Decode implements [channel.Webhook]. What a body holds twice is listed once: Meta joins what it
// tries again with what is new.
func (c *client) Decode(body []byte) ([]channel.Arrival, error) {
	switch {
	case len(body) > channel.MaxBody: // Meta's own bound is 3 MB, for up to 1,000 changes
		return nil, fmt.Errorf("webhook: %d bytes, at most %d: %w", len(body), channel.MaxBody, tidemark.ErrInvalid)
	case deeper(body, maxDepth):
		return nil, fmt.Errorf("webhook: JSON deeper than %d: %w", maxDepth, tidemark.ErrInvalid)
	case !json.Valid(body):
		return nil, fmt.Errorf("webhook: no JSON: %w", tidemark.ErrInvalid)
	}
	var b wireBody
	if json.Unmarshal(body, &b) != nil || b.Object != "whatsapp_business_account" {
		return nil, fmt.Errorf("webhook: object is not whatsapp_business_account: %w", tidemark.ErrInvalid)
	}
	d := &decoding{seen: map[string]bool{}}
	for _, raw := range list(b.Entry) {
		var e wireEntry
		if json.Unmarshal(raw, &e) != nil {
			d.odd("entry")
			continue
		}
		for _, change := range list(e.Changes) {
			d.change(change)
		}
	}
	return d.out, nil
}

func (d *decoding) change(raw json.RawMessage) {
	var ch wireChange
	var v wireValue
	if json.Unmarshal(raw, &ch) != nil {
		d.odd("change")
		return
	}
	if ch.Field != "messages" && ch.Field != "user_id_update" && ch.Field != fieldEchoes {
		d.odd("field " + ch.Field)
		return
	}
	if !take(ch.Value, &v) {
		d.odd("value of " + ch.Field)
	}
	for _, raw := range list(v.Updates) {
		d.update(v.Metadata.ID, raw)
	}
	contacts := contactsOf(v.Contacts)
	if ch.Field == fieldEchoes {
		for _, raw := range list(v.Echoes) {
			d.echo(v, contacts, raw)
		}
	}
	if ch.Field != "messages" {
		return
	}
	for _, raw := range list(v.Messages) {
		d.message(v, contacts, raw)
	}
	for _, raw := range list(v.Statuses) {
		d.status(raw)
	}
	for _, raw := range list(v.Errors) {
		if e, ok := readError(raw); ok {
			d.odd("error " + strconv.Itoa(e.Code))
		}
	}
}

// status adds what became of a message of ours.
func (d *decoding) status(raw json.RawMessage) {
	var s wireStatus
	if json.Unmarshal(raw, &s) != nil || s.ID == "" {
		d.odd("status")
		return
	}
	del := &tidemark.Delivery{Ref: s.Ref, ID: s.ID, Status: s.Status, At: seconds(s.Time)}
	switch s.Status {
	case tidemark.StatusSent, tidemark.StatusDelivered, tidemark.StatusRead:
	case "played": // a voice message that was listened to
		del.Status = tidemark.StatusRead
	case tidemark.StatusFailed:
		del.Error = &tidemark.SendError{Class: tidemark.SendFailed}
		for _, raw := range list(s.Errors) {
			if e, ok := readError(raw); ok {
				del.Error = e.sendError(0, "")
				break
			}
		}
	default:
		d.odd("status " + s.Status)
		return
	}
	if d.first("status", s.ID, del.Status, s.Recipient, s.UserID) {
		d.out = append(d.out, channel.Arrival{Status: del})
	}
}

// update adds the aliases of a person whose user id has changed.
func (d *decoding) update(account string, raw json.RawMessage) {
	var u wireUpdate
	if json.Unmarshal(raw, &u) != nil {
		d.odd("user_id_update")
		return
	}
	n := len(d.out)
	from := names(u.UserID.Previous, phone(u.Phone), u.Parent.Previous)
	d.alias(account, from, names(u.UserID.Previous, u.Parent.Previous), names(u.UserID.Current, "", u.Parent.Current), u.Parent.Previous, u.Parent.Current)
	d.alias(account, from, names(phone(u.Phone)), names(u.UserID.Current))
	if len(d.out) == n {
		d.odd("user_id_update")
	}
}

// alias tells that each of the old names and each of the new ones are one person's. All pairs are
// told, because it is not known which of the old names whoever listens has. An old one that is
// among the new ones stays, and so does one beside that of an account's parents, which is told with any change.
// from are all names that the person had.
func (d *decoding) alias(account string, from, old, now []string, parents ...string) {
	for _, o := range old {
		for _, n := range now {
			if o != n && d.first("alias", account, o, n) {
				keep := slices.Contains(now, o) || slices.Contains(parents, o) != slices.Contains(parents, n)
				d.out = append(d.out, channel.Arrival{Alias: &channel.Alias{Platform: Name, Account: account, Old: o, New: n, From: from, Keep: keep}})
			}
		}
	}
}

// odd notes what is not acted on. The words are the platform's, and cleaned: they go to a log.
func (d *decoding) odd(what string) {
	clean := strings.Map(func(r rune) rune {
		if r == ' ' || r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '?'
	}, what[:min(len(what), maxWord)])
	d.out = append(d.out, channel.Arrival{Odd: clean})
}

// first reports whether this is the first time that an id is seen in this body.
func (d *decoding) first(kind string, id ...string) bool {
	key := kind + "\x00" + strings.Join(id, "\x00")
	if d.seen[key] {
		return false
	}
	d.seen[key] = true
	return true
}

func contactsOf(raw json.RawMessage) []wireContact {
	var out []wireContact
	for _, r := range list(raw) {
		var c wireContact
		if json.Unmarshal(r, &c) == nil {
			c.Phone = phone(c.Phone)
			out = append(out, c)
		}
	}
	return out
}

// list returns the elements of an array, none when it is none.
func list(raw json.RawMessage) []json.RawMessage {
	var out []json.RawMessage
	if len(raw) == 0 || json.Unmarshal(raw, &out) != nil {
		return nil
	}
	return out
}

// names leaves the empty and the repeated ones out.
func names(all ...string) []string {
	var out []string
	for _, n := range all {
		known := n == ""
		for _, o := range out {
			known = known || o == n
		}
		if !known {
			out = append(out, n)
		}
	}
	return out
}

// phone is a number as the API writes it: digits alone. What holds anything but a number's
// punctuation stays as it is, because two names that differ must not become one.
func phone(s string) string {
	digits := strings.NewReplacer("+", "", " ", "", "-", "", "(", "", ")", "").Replace(s)
	for i := range len(digits) {
		if digits[i] < '0' || digits[i] > '9' {
			return s
		}
	}
	return digits
}

// seconds reads a time, which Meta writes as a string of seconds, in some fields as a number.
func seconds(raw json.RawMessage) time.Time {
	n, err := strconv.ParseInt(strings.Trim(string(raw), `"`), 10, 64)
	if err != nil || n <= 0 || n > 1<<36 { // beyond the year 4000 it is no time
		return time.Time{}
	}
	return time.Unix(n, 0).UTC()
}

// deeper reports whether JSON nests more than limit objects and arrays.
func deeper(body []byte, limit int) bool {
	depth, inString := 0, false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			if depth++; depth > limit {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}
