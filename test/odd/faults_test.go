package odd

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
)

// fault is a failure that passes: of the network, of a busy server.
func (a *api) fault(asks *asked) response {
	switch a.r.IntN(10) {
	case 0:
		a.done["429"]++
		out := failure(http.StatusTooManyRequests, "rate_limit_error", "Number of request tokens has exceeded your per-minute rate limit", "")
		if a.r.IntN(2) == 0 {
			out.header = http.Header{"Retry-After": {fmt.Sprint(1 + a.r.IntN(30))}}
		}
		return out
	case 1:
		a.done["500"]++
		return failure(http.StatusInternalServerError, "api_error", "Internal server error", "")
	case 2:
		a.done["529"]++
		return failure(529, "overloaded_error", "Overloaded", "")
	case 3:
		a.done["html"]++
		return response{status: http.StatusBadGateway, body: "<html><body>502 Bad Gateway</body></html>"}
	case 4:
		a.done["html as 200"]++
		return response{status: http.StatusOK, body: "<html><body>Sign in to the hotel's network</body></html>"}
	case 5:
		a.done["no connection"]++
		return response{lost: true}
	case 6:
		a.done["timeout"]++
		out := a.send(asks, a.plain(asks, "It begins "+a.words(9)), "hangs")
		out.body, out.hangs = out.body[:a.r.IntN(len(out.body)/2)], true
		a.spoken = ""
		return out
	case 7:
		a.done["error in a stream"]++
		a.spoken = ""
		return response{status: http.StatusOK, body: "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n"}
	case 8: // of bytes, whatever there are: a window that is too small is told otherwise (https://docs.anthropic.com/en/api/errors)
		a.done["413"]++
		return failure(http.StatusRequestEntityTooLarge, "request_too_large", "Request exceeds the maximum size", "")
	}
	a.done["cut before it began"]++
	return response{status: http.StatusOK, cut: errors.New("unexpected EOF")}
}

// overflow says that a request is too large, in the words of some vendor, with figures or without. Whoever names a limit
// names the model's; one who speaks of the request alone, and not of the reply that is to follow, does so where that is
// too large.
func (a *api) overflow(asks *asked) response {
	a.spoken = ""
	w, n := asks.model.window, asks.tokens
	fits := n <= w && n+asks.most > w
	lie := n+asks.most <= w
	if lie {
		n = w + 1
	}
	both := n + asks.most
	texts := []string{
		fmt.Sprintf("input length and `max_tokens` exceed context limit: %d + %d > %d, decrease input length or `max_tokens` and try again", n, asks.most, w),
		fmt.Sprintf("This model's maximum context length is %d tokens. However, you requested %d tokens (%d in the messages, %d in the completion). Please reduce the length of the messages or completion.", w, both, n, asks.most),
		fmt.Sprintf("The estimated number of input and maximum output tokens (%d) exceeded this model context window limit (%d).", both, w),
	}
	if !lie { // who says no more than that is believed
		texts = append(texts, "Input is too long for requested model.", "context length exceeded", "Please reduce the length of the messages or completion.",
			"Your input exceeds the context window of this model. Please adjust your input and try again.")
	}
	if !fits {
		texts = append(texts, fmt.Sprintf("prompt is too long: %d tokens > %d maximum", n, w),
			fmt.Sprintf("This model's maximum context length is %d tokens. However, your messages resulted in %d tokens. Please reduce the length of the messages.", w, n),
			fmt.Sprintf("request (%d tokens) exceeds the available context size (%d tokens), try increasing it", n, w),
			fmt.Sprintf("The input (%d tokens) is longer than the model's context length (%d tokens).", n, w),
			fmt.Sprintf("Invalid request: Your request exceeded model token limit: %d (requested: %d)", w, n),
			fmt.Sprintf("The input token count (%d) exceeds the maximum number of tokens allowed (%d).", n, w))
	}
	typ := "invalid_request_error"
	if a.r.IntN(8) == 0 {
		typ = "context_length_exceeded"
	}
	a.done["overflow"]++
	return failure(http.StatusBadRequest, typ, texts[a.r.IntN(len(texts))], "messages")
}

// odd400 refuses what breaks no rule: once or for ever, with a place or without.
func (a *api) odd400(asks *asked) response {
	a.spoken = ""
	if len(asks.pieces) == 0 || a.r.IntN(4) == 0 {
		a.done["odd 400 without a place"]++
		return failure(http.StatusBadRequest, "invalid_request_error", "the request could not be processed", "")
	}
	p := asks.pieces[a.r.IntN(len(asks.pieces))]
	if a.r.IntN(3) == 0 {
		a.done["odd 400 once"]++
		return a.refuse(asks, &refusal{at: p.place(a.r.IntN(3) == 0), text: "this is odd"})
	}
	b, ok := a.lasting(asks, p)
	if !ok {
		a.done["odd 400 once"]++
		return a.refuse(asks, &refusal{at: p.at, text: "this is odd"})
	}
	a.done["odd 400 for ever"]++
	a.bans[p.name(asks.model)] = b
	return a.refuse(asks, &refusal{at: p.place(b.vague), text: b.text, sure: true})
}

// lasting decides whether a part may be refused for ever: it came from people, models or servers, and is no note of our
// own, which is plain text that no API refuses. Of a text the place is named: the words of people do not go by guess.
func (a *api) lasting(asks *asked, p piece) (ban, bool) {
	const most = 2 // tools, in all
	speaks := asks.model.dialect == messages
	switch p.kind {
	case "tool":
		if a.tools >= most {
			return ban{}, false
		}
		a.tools++
		return ban{text: "this tool is odd"}, true
	case "image", "document":
		return ban{vague: a.r.IntN(2) == 0, text: "this medium is odd"}, true
	case "text":
		theirs := bytes.Contains(p.raw, []byte(`"text":"`+a.talk+"-")) || speaks && bytes.Contains(p.raw, []byte(`"text":"Said `))
		return ban{text: "this text is odd"}, theirs
	case "user":
		return ban{}, false
	}
	return ban{text: "this block is odd"}, !bytes.Contains(p.raw, []byte(`"content":"[`))
}
