package tidemarktest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode/utf16"

	"github.com/tidemark-ai/tidemark/internal/json"
)

// BotAPI is a fake of Telegram's Bot API over real HTTP: it keeps chats, gives ids, reads HTML as the
// real one does and refuses what it refuses, in its words; it keeps files, and posts updates to the
// webhook that it was given, again until they are taken. A test that runs the real binary gives it
// the URL.
//
// https://core.telegram.org/bots/api
type BotAPI struct {
	URL   string // of the server, without a path
	Token string // of its only bot

	server *httptest.Server
	quit   chan struct{} // closed by the end of the test: frees what hangs

	mu      sync.Mutex // guards the following
	chats   map[int64]*botChat
	files   map[string][]byte
	sent    []BotMessage
	calls   []BotCall
	faults  []BotFault
	updates []json.RawMessage // not taken by the webhook yet
	update  int64             // last id
	hook    BotWebhook
	more    chan struct{} // closed at the next call; nil while nobody waits
}

// botChat is a chat that the bot may write to.
type botChat struct {
	last    int64 // id of a message
	blocked bool
	migrate int64
}

// BotMessage is a message that the bot sent.
type BotMessage struct {
	ID, Chat, Thread int64
	Text             string // as it is shown
	Tags             string // of its HTML, in order: "b,a,pre"
	Quote            int64
}

// BotCall is a call as the server read it.
type BotCall struct {
	Method string
	Args   map[string]any
}

// BotFault is what happens to the next call of a method instead of the usual.
type BotFault struct {
	Method string // empty: sendMessage
	Code   int    // answered with this code and text
	Text   string
	After  int  // retry_after, seconds
	Cut    bool // the connection ends without an answer
	Done   bool // but the call was obeyed
	Raw    string
	Hang   bool // no answer until the caller goes away
}

// BotWebhook is what the server was told of a webhook.
type BotWebhook struct {
	URL     string   `json:"url"`
	Secret  string   `json:"-"`
	Allowed []string `json:"allowed_updates,omitempty"`
	Pending int      `json:"pending_update_count"`
	Error   string   `json:"last_error_message,omitempty"`
	At      int64    `json:"last_error_date,omitempty"`
	Max     int      `json:"max_connections,omitempty"`
}

// BotID and BotName are the bot's, as getMe tells them.
const (
	BotID   = 4400
	BotName = "tidemark_test_bot"
)

// NewBotAPI starts a server; it ends with the test.
func NewBotAPI(tb testing.TB) *BotAPI {
	b := &BotAPI{
		Token: strconv.Itoa(BotID) + ":AAtest-key", quit: make(chan struct{}), update: 1000,
		chats: map[int64]*botChat{}, files: map[string][]byte{},
	}
	b.server = httptest.NewServer(b)
	b.URL = b.server.URL
	tb.Cleanup(func() {
		close(b.quit)
		b.server.Close()
	})
	return b
}

// Chat opens a chat, so that the bot may write to it.
func (b *BotAPI) Chat(id int64) { b.in(func() { b.chat(id) }) }

// Block makes a person block the bot.
func (b *BotAPI) Block(id int64) { b.in(func() { b.chat(id).blocked = true }) }

// Migrate makes a group another one.
func (b *BotAPI) Migrate(from, to int64) {
	b.in(func() {
		b.chat(from).migrate = to
		b.chat(to)
	})
}

// File keeps a file.
func (b *BotAPI) File(id string, data []byte) { b.in(func() { b.files[id] = data }) }

// Fail queues a fault.
func (b *BotAPI) Fail(f BotFault) { b.in(func() { b.faults = append(b.faults, f) }) }

// Sent lists what the bot sent.
func (b *BotAPI) Sent() (out []BotMessage) {
	b.in(func() { out = append(out, b.sent...) })
	return out
}

// Calls lists the calls of a method.
func (b *BotAPI) Calls(method string) (out []BotCall) {
	b.in(func() {
		for _, c := range b.calls {
			if c.Method == method {
				out = append(out, c)
			}
		}
	})
	return out
}

// WaitSent waits until the bot has sent n messages.
func (b *BotAPI) WaitSent(ctx context.Context, n int) (out []BotMessage, err error) {
	err = b.wait(ctx, func() bool {
		out = append([]BotMessage(nil), b.sent...)
		return len(out) >= n
	})
	return out, err
}

// WaitCall waits until a method was called.
func (b *BotAPI) WaitCall(ctx context.Context, method string) error {
	return b.wait(ctx, func() bool {
		return slices.ContainsFunc(b.calls, func(c BotCall) bool { return c.Method == method })
	})
}

// wait asks again after each call, until f is true.
func (b *BotAPI) wait(ctx context.Context, f func() bool) error {
	for {
		var done bool
		var more chan struct{}
		b.in(func() {
			done = f()
			if b.more == nil {
				b.more = make(chan struct{})
			}
			more = b.more
		})
		if done {
			return nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return fmt.Errorf("wait for the bot: %w", context.Cause(ctx))
		}
	}
}

// note keeps a call and wakes who waits. The lock is held.
func (b *BotAPI) note(method string, args map[string]any) {
	b.calls = append(b.calls, BotCall{method, args})
	if b.more != nil {
		close(b.more)
		b.more = nil
	}
}

// Write makes an update of a message of a person: fields are those of the API's Message and go over
// what is made up for them. It returns the update's body, which [BotAPI.Deliver] posts.
func (b *BotAPI) Write(chat int64, fields map[string]any) (body []byte) {
	b.in(func() {
		c := b.chat(chat)
		c.last++
		kind := "private"
		if chat < 0 {
			kind = "supergroup"
		}
		m := map[string]any{
			"message_id": c.last, "date": 1_795_200_000 + c.last,
			"chat": map[string]any{"id": chat, "type": kind},
			"from": map[string]any{"id": chat, "is_bot": false, "first_name": "Ada"},
		}
		for k, v := range fields {
			m[k] = v
		}
		b.update++
		body, _ = json.Marshal(map[string]any{"update_id": b.update, "message": m}) // maps of plain values
		b.updates = append(b.updates, body)
	})
	return body
}

// Repeat posts an update again, as the real one does when an answer was lost.
func (b *BotAPI) Repeat(body []byte) { b.in(func() { b.updates = append(b.updates, body) }) }

// Deliver posts what waits to the webhook, in order. An update that is not answered with 2xx stays and
// ends the round, as the real one tries it again later.
func (b *BotAPI) Deliver(ctx context.Context) error {
	for {
		var body []byte
		var hook BotWebhook
		b.in(func() {
			hook = b.hook
			if len(b.updates) > 0 {
				body = b.updates[0]
			}
		})
		if body == nil || hook.URL == "" {
			return nil
		}
		err := hook.post(ctx, body)
		b.in(func() {
			if err != nil {
				b.hook.Error, b.hook.At = err.Error(), 1_795_200_000
			} else if len(b.updates) > 0 {
				b.updates = b.updates[1:]
			}
		})
		if err != nil {
			return err
		}
	}
}

func (hook BotWebhook) post(ctx context.Context, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, hook.URL, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("post an update: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Telegram-Bot-Api-Secret-Token", hook.Secret)
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return fmt.Errorf("post an update: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return refuse("Wrong response from the webhook: %s", resp.Status)
	}
	return nil
}

func (b *BotAPI) in(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
}

// chat returns a chat, which it opens. The lock is held.
func (b *BotAPI) chat(id int64) *botChat {
	if b.chats[id] == nil {
		b.chats[id] = &botChat{}
	}
	return b.chats[id]
}

// botAnswer is the envelope of all answers.
type botAnswer struct {
	OK         bool           `json:"ok"`
	Result     any            `json:"result,omitempty"`
	Code       int            `json:"error_code,omitempty"`
	Text       string         `json:"description,omitempty"`
	Parameters map[string]any `json:"parameters,omitempty"`
}

func refuseBot(code int, text string) botAnswer { return botAnswer{Code: code, Text: text} }

// ServeHTTP implements http.Handler.
func (b *BotAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Path
	if name, ok := strings.CutPrefix(path, "/file/bot"+b.Token+"/files/"); ok {
		b.serveFile(w, name)
		return
	}
	method, ok := strings.CutPrefix(path, "/bot"+b.Token+"/")
	if !ok {
		answerBot(w, refuseBot(401, "Unauthorized"))
		return
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	args := map[string]any{}
	if err != nil || len(body) > 0 && json.Unmarshal(body, &args) != nil {
		answerBot(w, refuseBot(400, "Bad Request: can't parse request JSON"))
		return
	}
	var f *BotFault
	b.in(func() { f = b.fault(method) })
	if f == nil {
		answerBot(w, b.call(method, args))
		return
	}
	if f.Done {
		b.call(method, args)
	} else {
		b.in(func() { b.note(method, args) })
	}
	b.fail(w, r, f)
}

// fault takes the next fault of a method. The lock is held.
func (b *BotAPI) fault(method string) *BotFault {
	for i, f := range b.faults {
		if f.Method == method || f.Method == "" && method == "sendMessage" {
			b.faults = append(b.faults[:i:i], b.faults[i+1:]...)
			return &f
		}
	}
	return nil
}

func (b *BotAPI) fail(w http.ResponseWriter, r *http.Request, f *BotFault) {
	switch {
	case f.Hang:
		select {
		case <-r.Context().Done():
		case <-b.quit:
		}
		panic(http.ErrAbortHandler)
	case f.Cut:
		panic(http.ErrAbortHandler)
	case f.Raw != "":
		w.WriteHeader(f.Code)
		_, _ = io.WriteString(w, f.Raw) // a fake's answer
	default:
		a := refuseBot(f.Code, f.Text)
		if f.After > 0 {
			a.Parameters = map[string]any{"retry_after": f.After}
		}
		answerBot(w, a)
	}
}

func answerBot(w http.ResponseWriter, a botAnswer) {
	w.Header().Set("Content-Type", "application/json")
	if !a.OK {
		w.WriteHeader(a.Code)
	}
	data, _ := json.Marshal(a) // plain values
	w.Write(data)              // a fake's answer
}

func (b *BotAPI) serveFile(w http.ResponseWriter, name string) {
	var data []byte
	var ok bool
	b.in(func() { data, ok = b.files[name] })
	if !ok {
		answerBot(w, refuseBot(404, "Not Found"))
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Write(data) // a fake's answer
}

// call obeys a method.
func (b *BotAPI) call(method string, args map[string]any) (a botAnswer) {
	b.in(func() {
		defer b.note(method, args)
		switch method {
		case "getMe":
			a.Result = map[string]any{"id": BotID, "is_bot": true, "first_name": "Tidemark", "username": BotName, "can_join_groups": true, "can_read_all_group_messages": false}
		case "setWebhook":
			a = b.setWebhook(args)
		case "deleteWebhook":
			b.hook, a.Result = BotWebhook{}, true
		case "getWebhookInfo":
			hook := b.hook
			hook.Pending = len(b.updates)
			a.Result = hook
		case "setMyCommands":
			a.Result = true
		case "getFile":
			a = b.getFile(args)
		case "sendMessage", "sendChatAction":
			a = b.send(method, args)
		default:
			a = refuseBot(404, "Not Found")
		}
	})
	a.OK = a.Code == 0
	return a
}

func (b *BotAPI) setWebhook(args map[string]any) botAnswer {
	u, err := url.Parse(argText(args, "url"))
	secret := argText(args, "secret_token")
	local := err == nil && u.Hostname() == "127.0.0.1" // the real one takes no such address; tests have no other
	switch {
	case err != nil || u.Scheme != "https" && !local:
		return refuseBot(400, "Bad Request: bad webhook: An HTTPS URL must be provided for webhook")
	case len(secret) > 256 || strings.Trim(secret, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-") != "":
		return refuseBot(400, "Bad Request: secret token contains unallowed characters")
	}
	b.hook = BotWebhook{URL: u.String(), Secret: secret, Max: int(argNumber(args, "max_connections"))}
	list, _ := args["allowed_updates"].([]any)
	for _, k := range list {
		b.hook.Allowed = append(b.hook.Allowed, fmt.Sprint(k))
	}
	if drop, _ := args["drop_pending_updates"].(bool); drop {
		b.updates = nil
	}
	return botAnswer{Result: true}
}

func (b *BotAPI) getFile(args map[string]any) botAnswer {
	id := argText(args, "file_id")
	data, ok := b.files[id]
	switch {
	case !ok:
		return refuseBot(400, "Bad Request: wrong file_id or the file is temporarily unavailable")
	case len(data) > 20<<20:
		return refuseBot(400, "Bad Request: file is too big")
	}
	return botAnswer{Result: map[string]any{"file_id": id, "file_unique_id": "u" + id, "file_size": len(data), "file_path": "files/" + id}}
}

// send obeys sendMessage and sendChatAction.
func (b *BotAPI) send(method string, args map[string]any) botAnswer {
	id := argNumber(args, "chat_id")
	c := b.chats[id]
	switch {
	case c == nil:
		return refuseBot(400, "Bad Request: chat not found")
	case c.migrate != 0:
		a := refuseBot(400, "Bad Request: group chat was upgraded to a supergroup chat")
		a.Parameters = map[string]any{"migrate_to_chat_id": c.migrate}
		return a
	case c.blocked:
		return refuseBot(403, "Forbidden: bot was blocked by the user")
	case method == "sendChatAction":
		return botAnswer{Result: true}
	}
	m := BotMessage{Chat: id, Thread: argNumber(args, "message_thread_id"), Text: argText(args, "text")}
	if argText(args, "parse_mode") == "HTML" {
		plain, tags, err := readBotHTML(m.Text)
		if err != nil {
			return refuseBot(400, "Bad Request: can't parse entities: "+err.Error())
		}
		m.Text, m.Tags = plain, strings.Join(tags, ",")
	}
	switch n := len(utf16.Encode([]rune(m.Text))); {
	case strings.TrimSpace(m.Text) == "":
		return refuseBot(400, "Bad Request: message text is empty")
	case n > 4096:
		return refuseBot(400, "Bad Request: message is too long")
	}
	if reply, ok := args["reply_parameters"].(map[string]any); ok {
		m.Quote = argNumber(reply, "message_id")
	}
	c.last++
	m.ID = c.last
	b.sent = append(b.sent, m)
	return botAnswer{Result: map[string]any{"message_id": m.ID, "date": 1_795_200_000, "chat": map[string]any{"id": id, "type": "private"}, "text": m.Text}}
}

func argText(args map[string]any, name string) string {
	s, _ := args[name].(string)
	return s
}

func argNumber(args map[string]any, name string) int64 {
	switch n := args[name].(type) {
	case float64:
		return int64(n)
	case json.Number:
		i, _ := n.Int64() // 0 is no id
		return i
	}
	return 0
}
