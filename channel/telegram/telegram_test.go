package telegram

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf16"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/channel"
	"github.com/tidemark-ai/tidemark/channel/markup"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

const person = 77

func bot(t *testing.T) (*tidemarktest.BotAPI, channel.Platform) {
	t.Helper()
	api := tidemarktest.NewBotAPI(t)
	return api, New(Config{
		Token: api.Token, Secret: "s-1", Username: "@" + tidemarktest.BotName, BaseURL: api.URL,
		Transport: http.DefaultTransport, Runtime: tidemarktest.NewRuntime(t),
	})
}

func TestVerify(t *testing.T) {
	for _, tt := range []struct {
		name, secret, given string
		ok                  bool
	}{
		{"ours", "s-1", "s-1", true},
		{"another", "s-1", "s-2", false},
		{"its begin", "s-1", "s-", false},
		{"none given", "s-1", "", false},
		{"none configured", "", "", false},
		{"none configured, one given", "", "s-1", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := http.Header{}
			if tt.given != "" {
				h.Set("X-Telegram-Bot-Api-Secret-Token", tt.given)
			}
			err := New(Config{Secret: tt.secret}).Verify(h, nil)
			if (err == nil) != tt.ok || err != nil && !errors.Is(err, tidemark.ErrUnauthorized) {
				t.Errorf("Verify: %v", err)
			}
		})
	}
}

// fields are those of a message over the usual ones.
type fields = map[string]any

func user(id int64, more fields) fields {
	u := fields{"id": id, "is_bot": false, "first_name": "Ada"}
	for k, v := range more {
		u[k] = v
	}
	return u
}

func TestDecode(t *testing.T) {
	const group = -1001
	mention := func(kind string, offset, length int) []any {
		return []any{fields{"type": kind, "offset": offset, "length": length}}
	}
	ours := fields{"message_id": 9, "from": fields{"id": tidemarktest.BotID, "is_bot": true}}
	for _, tt := range []struct {
		name string
		chat int64
		in   fields
		want channel.Incoming // what is told of it, see below
	}{
		{"text", person, fields{"text": "hi é"}, channel.Incoming{Kind: "text", Text: "hi é"}},
		{"command", person, fields{"text": "/status"}, channel.Incoming{Kind: "text", Text: "/status"}},
		{"quoted", person, fields{"text": "yes", "reply_to_message": ours}, channel.Incoming{Kind: "text", Text: "yes", Quoted: "77:9"}},
		{"forwarded", person, fields{"text": "/reset", "forward_origin": fields{"type": "user"}}, channel.Incoming{Kind: "text", Text: "[Forwarded] /reset"}},
		{"photo", person, fields{"caption": "look", "photo": []any{fields{"file_id": "small", "width": 90, "file_size": 1}, fields{"file_id": "big", "width": 900, "file_size": 9}}},
			channel.Incoming{Kind: "image", Text: "look", Media: []channel.Media{{ID: "big", Type: "image/jpeg", Bytes: 9, Note: "image"}}}},
		{"voice", person, fields{"voice": fields{"file_id": "v", "mime_type": "audio/ogg", "file_size": 5}},
			channel.Incoming{Kind: "audio", Media: []channel.Media{{ID: "v", Type: "audio/ogg", Bytes: 5, Voice: true, Note: "voice note"}}}},
		{"audio", person, fields{"audio": fields{"file_id": "a", "file_name": "a.mp3"}},
			channel.Incoming{Kind: "audio", Media: []channel.Media{{ID: "a", Type: "audio/mpeg", Name: "a.mp3", Note: "audio"}}}},
		{"video", person, fields{"video": fields{"file_id": "f"}}, channel.Incoming{Kind: "video", Media: []channel.Media{{ID: "f", Type: "video/mp4", Note: "video"}}}},
		{"video note", person, fields{"video_note": fields{"file_id": "f"}}, channel.Incoming{Kind: "video", Media: []channel.Media{{ID: "f", Type: "video/mp4", Note: "video note"}}}},
		{"animation", person, fields{"animation": fields{"file_id": "f"}, "document": fields{"file_id": "f"}},
			channel.Incoming{Kind: "video", Media: []channel.Media{{ID: "f", Type: "video/mp4", Note: "animation"}}}},
		{"document", person, fields{"document": fields{"file_id": "d", "file_name": "a.pdf", "mime_type": "application/pdf"}},
			channel.Incoming{Kind: "document", Media: []channel.Media{{ID: "d", Type: "application/pdf", Name: "a.pdf", Note: "document"}}}},
		{"sticker", person, fields{"sticker": fields{"file_id": "s", "emoji": "👍"}},
			channel.Incoming{Kind: "sticker", Text: "Sticker 👍", Media: []channel.Media{{ID: "s", Type: "image/webp", Note: "sticker"}}}},
		{"moving sticker", person, fields{"sticker": fields{"file_id": "s", "is_video": true}},
			channel.Incoming{Kind: "sticker", Text: "Sticker", Media: []channel.Media{{ID: "s", Type: "video/webm", Note: "sticker"}}}},
		{"location", person, fields{"location": fields{"latitude": 52.5, "longitude": 13.25}}, channel.Incoming{Kind: "location", Text: "Location: (52.5, 13.25)"}},
		{"venue", person, fields{"location": fields{}, "venue": fields{"title": "Zoo", "address": "A 1", "location": fields{"latitude": 52.5, "longitude": 13.25}}},
			channel.Incoming{Kind: "location", Text: "Location: Zoo, A 1 (52.5, 13.25)"}},
		{"contact", person, fields{"contact": fields{"phone_number": "+49", "first_name": "Al\nan"}}, channel.Incoming{Kind: "contact", Text: "Contact: Al an, +49"}},
		{"poll", person, fields{"poll": fields{"question": "Tea?", "options": []any{fields{"text": "yes"}, fields{"text": "no"}}}},
			channel.Incoming{Kind: "poll", Text: "Poll: Tea?\n- yes\n- no"}},
		{"dice", person, fields{"dice": fields{"emoji": "🎲", "value": 6}}, channel.Incoming{Kind: "dice", Text: "🎲 6"}},

		{"group", group, fields{"text": "hello all"}, channel.Incoming{Kind: "text", Text: "hello all", Group: "-1001"}},
		{"group, named", group, fields{"text": "😀 @tidemark_test_bot hi", "entities": mention("mention", 3, 18)},
			channel.Incoming{Kind: "text", Text: "😀 @tidemark_test_bot hi", Group: "-1001", Mentioned: true}},
		{"group, named first", group, fields{"text": "@Tidemark_Test_Bot /status", "entities": mention("mention", 0, 18)},
			channel.Incoming{Kind: "text", Text: "/status", Group: "-1001", Mentioned: true}},
		{"group, command for us", group, fields{"text": "/compact@tidemark_test_bot keep names", "entities": mention("bot_command", 0, 26)},
			channel.Incoming{Kind: "text", Text: "/compact keep names", Group: "-1001", Mentioned: true}},
		{"group, command for another", group, fields{"text": "/new@other_bot", "entities": mention("bot_command", 0, 14)},
			channel.Incoming{Kind: "text", Text: "/new@other_bot", Group: "-1001"}},
		{"group, an entity that lies outside", group, fields{"text": "ab", "entities": mention("mention", 1, 1<<40)}, channel.Incoming{Kind: "text", Text: "ab", Group: "-1001"}},
		{"group, without a user name", group, fields{"text": "Tide hi", "entities": []any{fields{"type": "text_mention", "offset": 0, "length": 4, "user": fields{"id": tidemarktest.BotID}}}},
			channel.Incoming{Kind: "text", Text: "Tide hi", Group: "-1001", Mentioned: true}},
		{"group, in a caption", group, fields{"caption": "@tidemark_test_bot", "caption_entities": mention("mention", 0, 18), "photo": []any{fields{"file_id": "p"}}},
			channel.Incoming{Kind: "image", Text: "@tidemark_test_bot", Group: "-1001", Mentioned: true, Media: []channel.Media{{ID: "p", Type: "image/jpeg", Note: "image"}}}},
		{"group, an answer to us", group, fields{"text": "yes", "reply_to_message": ours}, channel.Incoming{Kind: "text", Text: "yes", Group: "-1001", Mentioned: true, Quoted: "-1001:9"}},
		{"topic", group, fields{"text": "x", "message_thread_id": 7, "is_topic_message": true, "reply_to_message": fields{"message_id": 7, "from": fields{"id": tidemarktest.BotID}, "forum_topic_created": fields{}}},
			channel.Incoming{Kind: "text", Text: "x", Group: "-1001/7"}},
		{"thread of answers", group, fields{"text": "x", "message_thread_id": 7}, channel.Incoming{Kind: "text", Text: "x", Group: "-1001"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			api, p := bot(t)
			tt.in["from"] = user(person, fields{"last_name": "L"})
			all, err := p.Decode(api.Write(tt.chat, tt.in))
			if err != nil || len(all) != 1 || all[0].Message == nil {
				t.Fatalf("Decode: %+v, %v", all, err)
			}
			want := tt.want
			want.ID, want.Message = "telegram:4400:1001", fmt.Sprintf("%d:1", tt.chat)
			want.From, want.Name, want.At = []string{"77"}, "Ada L", time.Unix(1_795_200_001, 0).UTC()
			want.Reply = tidemark.Address{Platform: "telegram", Account: "4400", Peer: "77"}
			if want.Group != "" {
				want.Reply.Peer, want.Reply.Group = want.Group, true
			}
			if !reflect.DeepEqual(*all[0].Message, want) {
				t.Errorf("got\n%+v, want\n%+v", *all[0].Message, want)
			}
		})
	}
}

// TestAddressed: our name is taken off what is said to us, whatever separates the two.
func TestAddressed(t *testing.T) {
	for _, row := range []struct {
		text string
		name int // length of the entity that names us
		want string
	}{
		{"/compact@tidemark_test_bot keep\nnames", 26, "/compact keep\nnames"},
		{"/compact@tidemark_test_bot\nkeep\nnames", 26, "/compact\nkeep\nnames"},
		{"@tidemark_test_bot\n/status", 18, "/status"},
		{"@tidemark_test_bot,\thello", 18, "hello"},
		{"@tidemark_test_bot\n", 18, "@tidemark_test_bot\n"},
	} {
		t.Run(row.text, func(t *testing.T) {
			api, p := bot(t)
			all, err := p.Decode(api.Write(-1001, fields{"from": user(person, nil), "text": row.text, "entities": []any{fields{"type": "bot_command", "offset": 0, "length": row.name}}}))
			if err != nil || len(all) != 1 || all[0].Message == nil || !all[0].Message.Mentioned || all[0].Message.Text != row.want {
				t.Errorf("Decode: %+v, %v; want %q", all[0].Message, err, row.want)
			}
		})
	}
}

func TestDecodeOther(t *testing.T) {
	alias := func(old, new string) string { return "alias " + old + " " + new }
	for _, tt := range []struct{ name, body, want string }{
		{"edited", `{"update_id":1,"edited_message":{"message_id":1,"chat":{"id":1}}}`, "edited message"},
		{"channel", `{"update_id":1,"channel_post":{"message_id":1,"chat":{"id":1}}}`, "channel post"},
		{"channel in its group", `{"update_id":1,"message":{"message_id":1,"chat":{"id":-1},"is_automatic_forward":true,"text":"x"}}`, "channel post"},
		{"anonymous", `{"update_id":1,"message":{"message_id":1,"chat":{"id":-1},"from":{"id":1087968824,"is_bot":true},"sender_chat":{"id":-1},"text":"x"}}`, "message without a person"},
		{"a bot", `{"update_id":1,"message":{"message_id":1,"chat":{"id":-1},"from":{"id":5,"is_bot":true},"text":"x"}}`, "message of a bot"},
		{"member", `{"update_id":1,"message":{"message_id":1,"chat":{"id":-1},"from":{"id":5},"new_chat_members":[{"id":6}]}}`, "message of a type that is not acted on"},
		{"another kind", `{"update_id":1,"poll_answer":{}}`, "update of another kind"},
		{"not as documented", `{"update_id":1,"message":{"message_id":"x"}}`, "update that cannot be read"},
		{"no chat", `{"update_id":1,"message":{"message_id":1}}`, "message without an address"},
		{"upgraded", `{"update_id":1,"message":{"message_id":1,"chat":{"id":-5},"migrate_to_chat_id":-1005}}`, alias("-5", "-1005")},
		{"upgraded from", `{"update_id":1,"message":{"message_id":1,"chat":{"id":-1005},"migrate_from_chat_id":-5}}`, alias("-5", "-1005")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, p := bot(t)
			all, err := p.Decode([]byte(tt.body))
			if err != nil || len(all) != 1 {
				t.Fatalf("Decode: %+v, %v", all, err)
			}
			got := all[0].Odd
			if a := all[0].Alias; a != nil {
				got = alias(a.Old, a.New)
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	for _, body := range []string{"", "{}", "[]", `{"update_id":null}`, `{"update_id":"x"}`, strings.Repeat("[", 1<<20)} {
		if all, err := New(Config{}).Decode([]byte(body)); !errors.Is(err, tidemark.ErrInvalid) {
			t.Errorf("Decode(%.20q): %v, %v", body, all, err)
		}
	}
}

// The law: a body is refused or comes to one arrival with one thing in it.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"update_id":1,"message":{"message_id":1,"date":1,"chat":{"id":-1,"type":"group"},"from":{"id":5},"text":"/x@a_bot","entities":[{"type":"mention","offset":0,"length":3}]}}`))
	f.Add([]byte(`{"update_id":1,"message":{"message_id":1,"chat":{"id":1},"from":{"id":5},"photo":[{}],"reply_to_message":{"forum_topic_created":1}}}`))
	p := New(Config{Token: "1:x"})
	f.Fuzz(func(t *testing.T, body []byte) {
		all, err := p.Decode(body)
		if err != nil {
			if !errors.Is(err, tidemark.ErrInvalid) {
				t.Fatal(err)
			}
			return
		}
		if len(all) != 1 {
			t.Fatalf("%d arrivals", len(all))
		}
		n, a := 0, all[0]
		for _, set := range []bool{a.Message != nil, a.Status != nil, a.Alias != nil, a.Odd != ""} {
			if set {
				n++
			}
		}
		if n != 1 {
			t.Fatalf("%+v", a)
		}
		if m := a.Message; m != nil {
			if _, ok := parsePlace(m.Reply.Peer); !ok || m.ID == "" || len(m.From) != 1 || m.Text == "" && len(m.Media) == 0 {
				t.Fatalf("%+v", m)
			}
		}
	})
}

// serve runs a handler and gives its address.
func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

func to(peer string) tidemark.Address {
	return tidemark.Address{Platform: Name, Account: "4400", Peer: peer}
}

func TestSend(t *testing.T) {
	api, p := bot(t)
	api.Chat(person)
	api.Write(person, fields{"text": "hi"})
	parts := p.Parts(to("77"), "# Plan\n\n[a](https://x.y) & **b**\n```go\nx < y\n```")
	if len(parts) != 1 {
		t.Fatalf("parts %q", parts)
	}
	id, err := p.Send(t.Context(), tidemark.Outgoing{To: to("77/5"), Text: parts[0], Quote: "77:1"})
	if err != nil || id != "77:2" {
		t.Fatalf("Send: %q, %v", id, err)
	}
	want := tidemarktest.BotMessage{ID: 2, Chat: person, Thread: 5, Text: "Plan\n\na & b\nx < y", Tags: "b,a,b,pre,code", Quote: 1}
	if got := api.Sent(); len(got) != 1 || got[0] != want {
		t.Errorf("sent %+v, want %+v", got, want)
	}
	if _, err := p.Send(t.Context(), tidemark.Outgoing{To: to("77"), Text: "x", Quote: "78:1"}); err != nil || api.Sent()[1].Quote != 0 {
		t.Errorf("a quote of another chat: %v, %+v", err, api.Sent()[1])
	}
}

// Every part of a long text is taken as HTML: none falls back to plain text.
func TestSendLong(t *testing.T) {
	api, p := bot(t)
	api.Chat(person)
	text := strings.Repeat("**Bold *both* & `code <x>`** [link](https://x.y/?a=1&b=2) 😀\n\n```\nif a < b && c {\n```\n\n> quote\n\n", 300)
	parts := p.Parts(to("77"), text)
	for _, part := range parts {
		if _, err := p.Send(t.Context(), tidemark.Outgoing{To: to("77"), Text: part}); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(api.Calls("sendMessage")); n != len(parts) || n < 4 {
		t.Errorf("%d calls for %d parts", n, len(parts))
	}
}

func TestSendRefused(t *testing.T) {
	const parse = "Bad Request: can't parse entities: Unsupported start tag \"x\" at byte offset 0"
	for _, tt := range []struct {
		name  string
		fault tidemarktest.BotFault
		class tidemark.SendClass
		after time.Duration
		sent  int
	}{
		{"markup that cannot be parsed goes plain", tidemarktest.BotFault{Code: 400, Text: parse}, "", 0, 1},
		{"flood", tidemarktest.BotFault{Code: 429, Text: "Too Many Requests: retry after 7", After: 7}, tidemark.SendAgain, 7 * time.Second, 0},
		{"flood for days", tidemarktest.BotFault{Code: 429, Text: "Too Many Requests", After: 1 << 40}, tidemark.SendAgain, time.Hour, 0},
		{"blocked", tidemarktest.BotFault{Code: 403, Text: "Forbidden: bot was blocked by the user"}, tidemark.SendFailed, 0, 0},
		{"never written", tidemarktest.BotFault{Code: 403, Text: "Forbidden: bot can't initiate conversation with a user"}, tidemark.SendClosed, 0, 0},
		{"no such chat", tidemarktest.BotFault{Code: 400, Text: "Bad Request: chat not found"}, tidemark.SendFailed, 0, 0},
		{"token revoked", tidemarktest.BotFault{Code: 401, Text: "Unauthorized"}, tidemark.SendHalted, 0, 0},
		{"its own error", tidemarktest.BotFault{Code: 500, Text: "Internal Server Error"}, tidemark.SendUnknown, 0, 0},
		{"a proxy", tidemarktest.BotFault{Code: 502, Raw: "<html>"}, tidemark.SendUnknown, 0, 0},
		{"an answer that cannot be read", tidemarktest.BotFault{Code: 200, Raw: "<html>"}, tidemark.SendUnknown, 0, 0},
		{"cut before it was sent", tidemarktest.BotFault{Cut: true}, tidemark.SendUnknown, 0, 0},
		{"cut after it was sent", tidemarktest.BotFault{Cut: true, Done: true}, tidemark.SendUnknown, 0, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			api, p := bot(t)
			api.Chat(person)
			api.Fail(tt.fault)
			_, err := p.Send(t.Context(), tidemark.Outgoing{To: to("77"), Text: "<b>x</b> &amp; y"})
			var s *tidemark.SendError
			if errors.As(err, &s); err == nil && tt.class != "" || err != nil && (s == nil || s.Class != tt.class || s.RetryAfter != tt.after) {
				t.Errorf("Send: %v", err)
			}
			if err != nil && strings.Contains(err.Error(), "AAtest") {
				t.Errorf("the token is in %q", err)
			}
			sent := api.Sent()
			if len(sent) != tt.sent || tt.sent > 0 && sent[0].Text != "x & y" {
				t.Errorf("sent %+v", sent)
			}
		})
	}
}

// What was never written to a connection may be tried again.
func TestSendNoConnection(t *testing.T) {
	p := New(Config{Token: "1:key", BaseURL: "http://127.0.0.1:1", Transport: http.DefaultTransport})
	_, err := p.Send(t.Context(), tidemark.Outgoing{To: to("77"), Text: "x"})
	var s *tidemark.SendError
	if !errors.As(err, &s) || s.Class != tidemark.SendAgain || strings.Contains(s.Text, "key") {
		t.Errorf("Send: %v", err)
	}
	for _, cfg := range []Config{{}, {Token: "no token", BaseURL: "http://127.0.0.1:1", Transport: http.DefaultTransport}} {
		if _, err := New(cfg).Send(t.Context(), tidemark.Outgoing{To: to("77"), Text: "x"}); !errors.As(err, &s) || s.Class != tidemark.SendHalted {
			t.Errorf("Send, not configured: %v", err)
		}
	}
	if _, err := p.Send(t.Context(), tidemark.Outgoing{To: to("@ada"), Text: "x"}); !errors.As(err, &s) || s.Class != tidemark.SendFailed {
		t.Errorf("Send to no chat: %v", err)
	}
}

// A group that was upgraded has another id; a message on its way follows it.
func TestSendMigrated(t *testing.T) {
	api, p := bot(t)
	api.Migrate(-5, -1005)
	id, err := p.Send(t.Context(), tidemark.Outgoing{To: to("-5"), Text: "<b>x</b>", Quote: "-5:1"})
	if sent := api.Sent(); err != nil || id != "-1005:1" || len(sent) != 1 || sent[0].Chat != -1005 || sent[0].Quote != 0 {
		t.Errorf("Send: %q, %v, %+v", id, err, api.Sent())
	}
}

// A deadline after the request was written leaves its fate unknown.
func TestSendDeadline(t *testing.T) {
	api, p := bot(t)
	api.Chat(person)
	api.Fail(tidemarktest.BotFault{Hang: true})
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		if err := api.WaitCall(t.Context(), "sendMessage"); err != nil {
			t.Error(err)
		}
		cancel(tidemark.ErrTimeout)
	}()
	_, err := p.Send(ctx, tidemark.Outgoing{To: to("77"), Text: "x"})
	var s *tidemark.SendError
	if !errors.As(err, &s) || s.Class != tidemark.SendUnknown || s.Text != "timed out" {
		t.Errorf("Send: %v", err)
	}
}

// recorder answers every call and notes when it came.
type recorder struct{ at []time.Duration }

func TestWorking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		r := &recorder{}
		cfg := Config{Token: "1:x", Transport: r.since(begin), Runtime: tidemarktest.NewRuntime(t)}
		if err := New(cfg).Working(t.Context(), to("77"), "77:1"); err != nil {
			t.Fatal(err)
		}
		want := []time.Duration{0, 4500 * time.Millisecond, 9 * time.Second, 13500 * time.Millisecond}
		if !reflect.DeepEqual(r.at, want) {
			t.Errorf("typing at %v, want %v", r.at, want)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		r.at = nil
		if err := New(cfg).Working(ctx, to("77"), ""); err != nil || len(r.at) != 2 {
			t.Errorf("an answer after 5 s: %v, typing %d times", err, len(r.at))
		}
	})
}

func (r *recorder) since(begin time.Time) http.RoundTripper {
	return roundTrip(func(req *http.Request) (*http.Response, error) {
		var w wireSend
		body, err := io.ReadAll(req.Body)
		if err == nil {
			err = json.Unmarshal(body, &w)
		}
		if err != nil || w.Action != "typing" || w.Chat != person {
			return nil, fmt.Errorf("%+v: %w", w, err)
		}
		r.at = append(r.at, time.Since(begin))
		return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(`{"ok":true,"result":true}`))}, nil
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestOpen(t *testing.T) {
	api, p := bot(t)
	data := bytes.Repeat([]byte("x"), 1000)
	api.File("f1", data)
	api.File("huge", make([]byte, maxFile+1))
	m, body, err := p.Open(t.Context(), "4400", channel.Media{ID: "f1", Type: "image/jpeg"})
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(body)
	if err != nil || !bytes.Equal(got, data) || m.Bytes != 1000 || m.Type != "image/jpeg" {
		t.Errorf("Open: %d bytes, %+v, %v", len(got), m, err)
	}
	if err := body.Close(); err != nil {
		t.Error(err)
	}
	for _, tt := range []struct {
		name  string
		media channel.Media
		fault *tidemarktest.BotFault
		want  error
	}{
		{"gone", channel.Media{ID: "no"}, nil, tidemark.ErrNotFound},
		{"too big", channel.Media{ID: "huge"}, nil, tidemark.ErrTooLarge},
		{"said to be too big", channel.Media{ID: "f1", Bytes: maxFile + 1}, nil, tidemark.ErrTooLarge},
		{"flood", channel.Media{ID: "f1"}, &tidemarktest.BotFault{Method: "getFile", Code: 429, Text: "Too Many Requests"}, tidemark.ErrUnavailable},
		{"down", channel.Media{ID: "f1"}, &tidemarktest.BotFault{Method: "getFile", Cut: true}, tidemark.ErrUnavailable},
		{"a path out of the API", channel.Media{ID: "f1"}, &tidemarktest.BotFault{Method: "getFile", Code: 200, Raw: `{"ok":true,"result":{"file_path":"../../x"}}`}, tidemark.ErrNotFound},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.fault != nil {
				api.Fail(*tt.fault)
			}
			if _, _, err := p.Open(t.Context(), "4400", tt.media); !errors.Is(err, tt.want) || strings.Contains(err.Error(), "AAtest") {
				t.Errorf("Open: %v, want %v", err, tt.want)
			}
		})
	}
}

// TestParts: the laws of every courier, by the length that the Bot API counts: that of the text without its
// markup, in UTF-16.
func TestParts(t *testing.T) {
	units := func(s string) int { return len(utf16.Encode([]rune(markup.Plain(s)))) }
	_, p := bot(t)
	to := tidemark.Address{Platform: Name, Peer: "77"}
	tidemarktest.Couriers(t, p, to, 4096, units)
	for _, text := range []string{"```a", "```a\n", "```a\n```", "~~~x", "- ```a", "> ```a"} {
		t.Run(text, func(t *testing.T) { tidemarktest.CheckParts(t, p, to, 4096, units, text) })
	}
}
