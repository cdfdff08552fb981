package whatsapp

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark/channel"
	"github.com/tidemark-ai/tidemark/internal/clip"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// wireMessage has the fields of a message that are common to all types, and each type's own.
type wireMessage struct {
	From    string          `json:"from"`
	To      string          `json:"to"` // of an echo
	ToID    string          `json:"to_user_id"`
	UserID  string          `json:"from_user_id"`
	Parent  string          `json:"from_parent_user_id"`
	ID      string          `json:"id"`
	Time    json.RawMessage `json:"timestamp"`
	Type    string          `json:"type"`
	Group   string          `json:"group_id"`
	Context struct {
		From      string `json:"from"`
		ID        string `json:"id"`
		Forwarded flag   `json:"forwarded"`
		Often     flag   `json:"frequently_forwarded"`
		Product   *struct {
			ID string `json:"product_retailer_id"`
		} `json:"referred_product"`
	} `json:"context"`

	Text struct {
		Body string `json:"body"`
	} `json:"text"`
	Image       *wireMedia       `json:"image"`
	Video       *wireMedia       `json:"video"`
	Sticker     *wireMedia       `json:"sticker"`
	Audio       *wireMedia       `json:"audio"`
	Document    *wireMedia       `json:"document"`
	Location    *wireLocation    `json:"location"`
	Contacts    []wireCard       `json:"contacts"`
	Interactive *wireInteractive `json:"interactive"`
	Button      struct {
		Payload string `json:"payload"`
		Text    string `json:"text"`
	} `json:"button"`
	Order  *wireOrder `json:"order"`
	System struct {
		Type   string `json:"type"`
		Phone  string `json:"wa_id"`
		NewID  string `json:"new_wa_id"` // before Graph v12
		UserID string `json:"user_id"`
		Parent string `json:"parent_user_id"`
	} `json:"system"`
	Errors json.RawMessage `json:"errors"`
	Edit   *wireAmends     `json:"edit"`
	Revoke *wireAmends     `json:"revoke"`
}

// wireAmends names the message that a person corrected or took back.
type wireAmends struct {
	ID      string       `json:"original_message_id"`
	Message *wireMessage `json:"message"` // as it reads now
}

type wireMedia struct {
	ID      string `json:"id"`
	Type    string `json:"mime_type"`
	SHA256  string `json:"sha256"`
	Caption string `json:"caption"`
	Name    string `json:"filename"`
	Voice   bool   `json:"voice"`
}

type wireLocation struct {
	Latitude  json.Number `json:"latitude"`
	Longitude json.Number `json:"longitude"`
	Name      string      `json:"name"`
	Address   string      `json:"address"`
	URL       string      `json:"url"`
}

type wireCard struct {
	Name struct {
		Formatted string `json:"formatted_name"`
		First     string `json:"first_name"`
	} `json:"name"`
	Phones []struct {
		Phone string `json:"phone"`
		ID    string `json:"wa_id"`
	} `json:"phones"`
	Emails []struct {
		Email string `json:"email"`
	} `json:"emails"`
}

type wireInteractive struct {
	Type   string     `json:"type"`
	Button wireChoice `json:"button_reply"`
	List   wireChoice `json:"list_reply"`
	Form   struct {
		Body string `json:"body"`
		JSON string `json:"response_json"`
	} `json:"nfm_reply"`
}

type wireChoice struct {
	ID          string `json:"id"`
	Title       string `json:"title"`
	Description string `json:"description"`
}

type wireOrder struct {
	Text  string `json:"text"`
	Items []struct {
		ID       string      `json:"product_retailer_id"`
		Quantity json.Number `json:"quantity"`
		Price    json.Number `json:"item_price"`
		Currency string      `json:"currency"`
	} `json:"product_items"`
}

// flag is whether something is so, in whatever form: a forwarded message is nobody's command.
type flag bool

// UnmarshalJSON exists because of these forms.
func (f *flag) UnmarshalJSON(data []byte) error {
	switch strings.Trim(string(data), `"`) {
	case "null", "false", "0", "":
	default:
		*f = true
	}
	return nil
}

// take reads an object field by field where it cannot be read at once, and reports whether all of it was read. Of a field
// of another form than it has the rest of the object does not hang.
func take(raw json.RawMessage, out any, path ...string) bool {
	var whole []byte
	for _, key := range path {
		whole = append(json.AppendString(append(whole, '{'), key), ':')
	}
	whole = append(append(whole, raw...), strings.Repeat("}", len(path))...)
	if json.Unmarshal(whole, out) == nil {
		return true
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil { // it is no object
		return false
	}
	for key, value := range fields {
		take(value, out, append(slices.Clone(path), key)...)
	}
	return false
}

// read reads a message, false for one that is none or was there before.
func (d *decoding) read(raw json.RawMessage, what string) (m wireMessage, ok bool) {
	all := take(raw, &m)
	if m.ID == "" {
		d.odd(what)
		return m, false
	}
	if !d.first("message", m.ID) {
		return m, false
	}
	if m.Type == "" && m.Text.Body != "" {
		m.Type = "text"
	}
	if !all {
		d.odd(what + " with a field of another form")
	}
	return m, true
}

// message adds a message, or what it stands for.
func (d *decoding) message(v wireValue, contacts []wireContact, raw json.RawMessage) {
	m, ok := d.read(raw, "message")
	if !ok {
		return
	}
	m.From = phone(m.From)
	if m.Type == "system" {
		d.system(v.Metadata.ID, m)
		return
	}
	in := person(m, contacts)
	if len(in.From) == 0 || v.Metadata.ID == "" {
		d.odd("message without an address")
		return
	}
	if !d.fill(in, m) {
		return
	}
	in.ID, in.Message, in.At, in.Kind = m.ID, m.ID, seconds(m.Time), m.Type
	in.Quoted = m.Context.ID
	in.Reply.Platform, in.Reply.Account = Name, v.Metadata.ID
	if m.Group != "" {
		in.Group, in.Reply.Peer, in.Reply.Group = m.Group, m.Group, true
		ours, written := phone(v.Metadata.Display), m.Type == "text" || len(in.Media) > 0
		in.Mentioned = ours != "" && (phone(m.Context.From) == ours || written && strings.Contains(in.Text, "@"+ours))
	}
	in.Mentioned = in.Mentioned || in.Edits+in.Revokes != "" // of a message that is there, or nothing comes of it
	in.Text = about(m, in.Text)
	d.out = append(d.out, channel.Arrival{Message: in})
}

// fill puts in what a message says: its content, what it corrects or takes back, or a note that something came. It is
// false for what is not acted on.
func (d *decoding) fill(in *channel.Incoming, m wireMessage) bool {
	var ok bool
	switch {
	case m.Type == "revoke" && m.Revoke != nil && m.Revoke.ID != "":
		in.Revokes = m.Revoke.ID
		return true
	case m.Type == "edit" && m.Edit != nil && m.Edit.ID != "" && m.Edit.Message != nil:
		if in.Text, _, ok = content(*m.Edit.Message); ok && in.Text != "" { // the file stays as it was sent
			in.Edits = m.Edit.ID
			return true
		}
	default:
		if in.Text, in.Media, ok = content(m); ok {
			return true
		}
	}
	d.odd(strings.TrimSpace("message of type " + m.Type + " " + firstCode(m.Errors)))
	if m.Type == "reaction" { // it says nothing that would be read
		return false
	}
	in.Note, in.Text = true, "[A message came, whose content is not known here.]"
	if m.Type != "" {
		in.Text = fmt.Sprintf("[A message of type %q came, whose content is not known here.]", word(m.Type))
	}
	return true
}

// word is a word of the platform's, bounded and without what could look like ours.
func word(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '?'
	}, s[:min(len(s), maxWord)])
}

// echo adds what the owner wrote to a person by the app. It is of that person's conversation.
func (d *decoding) echo(v wireValue, contacts []wireContact, raw json.RawMessage) {
	m, ok := d.read(raw, "echo")
	if !ok {
		return
	}
	m.From, m.UserID, m.Parent = phone(m.To), m.ToID, ""
	in := person(m, contacts)
	if len(in.From) == 0 || v.Metadata.ID == "" || m.Group != "" {
		d.odd("echo without an address")
		return
	}
	if !d.fill(in, m) {
		return
	}
	in.ID, in.Message, in.At, in.Kind, in.Echo = m.ID, m.ID, seconds(m.Time), m.Type, true
	in.Reply.Platform, in.Reply.Account = Name, v.Metadata.ID
	d.out = append(d.out, channel.Arrival{Message: in})
}

// person finds all names of who wrote a message. Where a phone number is known, answers go to it:
// the API prefers it over the user id when both are given.
func person(m wireMessage, contacts []wireContact) *channel.Incoming {
	in := &channel.Incoming{}
	for _, c := range contacts {
		same := m.UserID != "" && c.UserID == m.UserID || m.From != "" && c.Phone == m.From
		if !same && (len(contacts) > 1 || m.UserID != "" || m.From != "") {
			continue
		}
		m.From, m.UserID, m.Parent = cmp.Or(m.From, c.Phone), cmp.Or(m.UserID, c.UserID), cmp.Or(m.Parent, c.Parent)
		in.Name = cmp.Or(c.Profile.Name, c.Profile.Username)
	}
	in.From = names(m.UserID, m.From, m.Parent)
	in.Reply.Peer = cmp.Or(m.From, m.UserID, m.Parent)
	return in
}

// about tells what else the platform says of a message. A forwarded one begins with a word, so that
// it is nobody's command.
func about(m wireMessage, text string) string {
	if m.Context.Forwarded || m.Context.Often {
		text = strings.TrimSpace("[Forwarded] " + text)
	}
	if p := m.Context.Product; p != nil && p.ID != "" {
		text = strings.TrimSpace(text + "\n[About product " + p.ID + "]")
	}
	return text
}

// content is what a message says, by its type. It is false for what is not known: reactions, what the platform itself
// cannot show, and what nobody has documented.
func content(m wireMessage) (text string, media []channel.Media, ok bool) {
	switch m.Type {
	case "text":
		return m.Text.Body, nil, m.Text.Body != ""
	case "image":
		return file(m.Image, m.Type)
	case "video":
		return file(m.Video, m.Type)
	case "sticker":
		return file(m.Sticker, m.Type)
	case "audio":
		return file(m.Audio, m.Type)
	case "document":
		return file(m.Document, m.Type)
	case "location":
		text = location(m.Location)
	case "contacts":
		text = cards(m.Contacts)
	case "interactive":
		text = choice(m.Interactive)
	case "button":
		text = cmp.Or(m.Button.Text, m.Button.Payload)
	case "order":
		text = order(m.Order)
	}
	return text, nil, text != ""
}

func file(f *wireMedia, kind string) (string, []channel.Media, bool) {
	if f == nil || f.ID == "" {
		return "", nil, false
	}
	m := channel.Media{ID: f.ID, Type: f.Type, Name: f.Name, SHA256: digest(f.SHA256), Voice: f.Voice, Note: kind}
	if f.Voice {
		m.Note = "voice note"
	}
	return f.Caption, []channel.Media{m}, true
}

func location(l *wireLocation) string {
	if l == nil || l.Latitude == "" || l.Longitude == "" {
		return ""
	}
	where := strings.Join(names(l.Name, l.Address), ", ")
	if where != "" {
		where += " "
	}
	return strings.TrimSpace(clip.Words("Location: " + where + "(" + string(l.Latitude) + ", " + string(l.Longitude) + ") " + l.URL))
}

func cards(all []wireCard) string {
	var lines []string
	for _, c := range all {
		var how []string
		for _, p := range c.Phones {
			how = append(how, cmp.Or(p.Phone, p.ID))
		}
		for _, e := range c.Emails {
			how = append(how, e.Email)
		}
		if who := names(append([]string{cmp.Or(c.Name.Formatted, c.Name.First)}, how...)...); len(who) > 0 {
			lines = append(lines, clip.Words("Contact: "+strings.Join(who, ", ")))
		}
	}
	return strings.Join(lines, "\n")
}

func choice(i *wireInteractive) string {
	switch {
	case i == nil:
		return ""
	case i.Type == "button_reply":
		return cmp.Or(i.Button.Title, i.Button.ID)
	case i.Type == "list_reply":
		return strings.Join(names(cmp.Or(i.List.Title, i.List.ID), i.List.Description), ": ")
	case i.Type == "nfm_reply":
		return strings.TrimSpace("Form: " + cmp.Or(i.Form.JSON, i.Form.Body))
	}
	return ""
}

func order(o *wireOrder) string {
	if o == nil {
		return ""
	}
	lines := []string{"Order:"}
	for _, i := range o.Items {
		lines = append(lines, clip.Words(fmt.Sprintf("- %s × %s, %s %s each", i.Quantity, i.ID, i.Price, i.Currency)))
	}
	if o.Text != "" {
		lines = append(lines, o.Text)
	}
	if len(lines) == 1 {
		return ""
	}
	return strings.Join(lines, "\n")
}

// system adds the aliases of a person who has another number or user id from now on.
func (d *decoding) system(account string, m wireMessage) {
	s := m.System
	switch s.Type {
	case "user_changed_number", "customer_changed_number", "user_changed_user_id":
		n := len(d.out)
		old := names(m.UserID, m.From)
		d.alias(account, old, old, names(s.UserID, phone(cmp.Or(s.Phone, s.NewID)), s.Parent), s.Parent)
		if len(d.out) > n {
			return
		}
	}
	d.odd("system " + s.Type)
}

// firstCode is the code of the first error of a message, as a word.
func firstCode(raw json.RawMessage) string {
	for _, r := range list(raw) {
		if e, ok := readError(r); ok {
			return fmt.Sprint(e.Code)
		}
	}
	return ""
}

// digest is a SHA-256 in hex. Webhooks have it in base64, the media API in hex.
func digest(s string) string {
	for _, decode := range []func(string) ([]byte, error){hex.DecodeString, base64.StdEncoding.DecodeString, base64.RawStdEncoding.DecodeString} {
		if sum, err := decode(s); err == nil && len(sum) == 32 {
			return hex.EncodeToString(sum)
		}
	}
	return ""
}
