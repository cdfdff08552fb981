package telegram

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark/channel"
	"github.com/tidemark-ai/tidemark/internal/clip"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// wireMessage is a message; what we do not read is left out.
//
// https://core.telegram.org/bots/api#message
type wireMessage struct {
	ID          int64           `json:"message_id"`
	Thread      int64           `json:"message_thread_id"`
	Topic       bool            `json:"is_topic_message"`
	From        *wireUser       `json:"from"`
	Sender      *wireChat       `json:"sender_chat"`
	Date        int64           `json:"date"`
	Chat        wireChat        `json:"chat"`
	Forward     json.RawMessage `json:"forward_origin"`
	ForwardDate int64           `json:"forward_date"` // before Bot API 7.0
	Automatic   bool            `json:"is_automatic_forward"`
	Reply       *wireReply      `json:"reply_to_message"`
	MigrateTo   int64           `json:"migrate_to_chat_id"`
	MigrateFrom int64           `json:"migrate_from_chat_id"`

	Text            string       `json:"text"`
	Entities        []wireEntity `json:"entities"`
	Caption         string       `json:"caption"`
	CaptionEntities []wireEntity `json:"caption_entities"`

	Photo     []wireFile    `json:"photo"` // the same picture in several sizes
	Voice     *wireFile     `json:"voice"`
	Audio     *wireFile     `json:"audio"`
	Video     *wireFile     `json:"video"`
	VideoNote *wireFile     `json:"video_note"`
	Animation *wireFile     `json:"animation"` // comes with Document, for old clients
	Document  *wireFile     `json:"document"`
	Sticker   *wireFile     `json:"sticker"`
	Location  *wireLocation `json:"location"`
	Venue     *wireVenue    `json:"venue"`
	Contact   *wireContact  `json:"contact"`
	Poll      *wirePoll     `json:"poll"`
	Dice      *wireDice     `json:"dice"`
}

type wireUser struct {
	ID    int64  `json:"id"`
	Bot   bool   `json:"is_bot"`
	First string `json:"first_name"`
	Last  string `json:"last_name"`
}

type wireChat struct {
	ID   int64  `json:"id"`
	Type string `json:"type"` // private, group, supergroup, channel
}

// wireReply is a message that another answers.
type wireReply struct {
	ID      int64     `json:"message_id"`
	From    *wireUser `json:"from"`
	Created present   `json:"forum_topic_created"`
}

// present is whether a field is there, whatever it holds.
type present bool

// UnmarshalJSON implements json.Unmarshaler.
func (p *present) UnmarshalJSON([]byte) error { *p = true; return nil }

type wireEntity struct {
	Type   string    `json:"type"`
	Offset int       `json:"offset"`
	Length int       `json:"length"`
	User   *wireUser `json:"user"`
}

// wireFile holds what all kinds of files have, and what some do.
type wireFile struct {
	ID    string `json:"file_id"`
	Type  string `json:"mime_type"`
	Name  string `json:"file_name"`
	Bytes int64  `json:"file_size"`
	Width int64  `json:"width"`

	Emoji    string `json:"emoji"` // of a sticker
	Animated bool   `json:"is_animated"`
	Moving   bool   `json:"is_video"`
}

type wireLocation struct {
	Latitude  json.Number `json:"latitude"`
	Longitude json.Number `json:"longitude"`
}

type wireVenue struct {
	Location wireLocation `json:"location"`
	Title    string       `json:"title"`
	Address  string       `json:"address"`
}

type wireContact struct {
	Phone string `json:"phone_number"`
	First string `json:"first_name"`
	Last  string `json:"last_name"`
}

type wirePoll struct {
	Question string `json:"question"`
	Options  []struct {
		Text string `json:"text"`
	} `json:"options"`
}

type wireDice struct {
	Emoji string `json:"emoji"`
	Value int    `json:"value"`
}

// content is what a message says; kind is empty for what is not acted on: members who come and go,
// titles, pins, games, payments.
func content(m *wireMessage) (text string, media []channel.Media, kind string) {
	switch {
	case m.Text != "":
		return m.Text, nil, "text"
	case len(m.Photo) > 0:
		f := slices.MaxFunc(m.Photo, func(a, b wireFile) int { return cmp.Compare(a.Width, b.Width) })
		return file(m, &f, "image", "image/jpeg", "image")
	case m.Voice != nil:
		return file(m, m.Voice, "audio", "audio/ogg", "voice note")
	case m.Audio != nil:
		return file(m, m.Audio, "audio", "audio/mpeg", "audio")
	case m.Video != nil:
		return file(m, m.Video, "video", "video/mp4", "video")
	case m.VideoNote != nil:
		return file(m, m.VideoNote, "video", "video/mp4", "video note")
	case m.Animation != nil:
		return file(m, m.Animation, "video", "video/mp4", "animation")
	case m.Sticker != nil:
		return sticker(m)
	case m.Document != nil:
		return file(m, m.Document, "document", "application/octet-stream", "document")
	case m.Venue != nil:
		return "Location: " + clip.Words(m.Venue.Title+", "+m.Venue.Address) + point(m.Venue.Location), nil, "location"
	case m.Location != nil:
		return "Location:" + point(*m.Location), nil, "location"
	case m.Contact != nil:
		return clip.Words("Contact: " + strings.TrimSpace(m.Contact.First+" "+m.Contact.Last) + ", " + m.Contact.Phone), nil, "contact"
	case m.Poll != nil:
		return poll(m.Poll), nil, "poll"
	case m.Dice != nil:
		return fmt.Sprintf("%s %d", clip.Words(m.Dice.Emoji), m.Dice.Value), nil, "dice"
	}
	return "", nil, ""
}

func file(m *wireMessage, f *wireFile, kind, otherwise, note string) (string, []channel.Media, string) {
	return m.Caption, []channel.Media{{
		ID: f.ID, Type: cmp.Or(f.Type, otherwise), Name: f.Name, Bytes: f.Bytes, Voice: note == "voice note", Note: note,
	}}, kind
}

// sticker is a picture, a vector animation or a film; its emoji says what it stands for.
func sticker(m *wireMessage) (string, []channel.Media, string) {
	kind := "image/webp"
	switch {
	case m.Sticker.Animated:
		kind = "application/x-tgsticker"
	case m.Sticker.Moving:
		kind = "video/webm"
	}
	_, media, _ := file(m, m.Sticker, "sticker", kind, "sticker")
	return strings.TrimSpace("Sticker " + clip.Words(m.Sticker.Emoji)), media, "sticker"
}

func point(l wireLocation) string {
	return " (" + string(l.Latitude) + ", " + string(l.Longitude) + ")"
}

func poll(p *wirePoll) string {
	lines := []string{clip.Words("Poll: " + p.Question)}
	for _, o := range p.Options {
		lines = append(lines, clip.Words("- "+o.Text))
	}
	return strings.Join(lines, "\n")
}
