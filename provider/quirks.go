package provider

import (
	"bytes"
	"context"
	"errors"
	"strings"

	tidemark "github.com/tidemark-ai/tidemark"
)

// quirk is something that a model, its template or its server may not know.
type quirk string

const (
	quirkUsage     quirk = "stream_options" // which asks for figures of usage
	quirkSystem    quirk = "system message" // its words begin the first message of a user
	quirkTools     quirk = "any tool"       // none are offered
	quirkAlternate quirk = "user behind"    // a user's message behind results of tools: its words end the last of these
)

// What is known of a quirk; 0 is nothing.
const (
	quirkTaken   = 1
	quirkRefused = 2
)

// maxGuesses is how often it is tried whether a refusal in words that nobody knows is for a system message.
const maxGuesses = 3

// quirkTexts are what servers say of them.
var quirkTexts = [...]struct {
	says string
	of   quirk
}{
	{"stream_options", quirkUsage},
	{"does not support tools", quirkTools}, // Ollama
	{"does not support function calling", quirkTools},
	{"tool choice requires --enable-auto", quirkTools},    // vLLM, where its server was started without tools
	{"roles must alternate", quirkAlternate},              // Mistral's, which does not count the messages of tools, and older ones
	{"system role not supported", quirkSystem},            // Gemma 2 in vLLM and llama.cpp
	{"only user and assistant roles", quirkSystem},        // the first models of Mistral
	{"developer instruction is not enabled", quirkSystem}, // Gemma at Google's endpoint
	{"roles must alternate", quirkSystem},                 // where it was not the one above
}

// lacks reports whether a model is known not to know something.
func (b *bounds) lacks(model string, q quirk) bool { return b.known(model, string(q)) == quirkRefused }

// named is the quirk that an error names, and that was not tried before; "" for none.
func (b *bounds) named(model string, tried map[quirk]bool, err error) quirk {
	var api *tidemark.APIError
	if !errors.As(err, &api) {
		return ""
	}
	for _, text := range quirkTexts {
		if !tried[text.of] && !b.lacks(model, text.of) && strings.Contains(strings.ToLower(api.Message), text.says) {
			return text.of
		}
	}
	return ""
}

// sent is a request and what came of it.
type sent struct {
	body   []byte
	fit    *sending
	places chatPlaces
	ans    *answer
	err    error
}

// attempt makes a request as the model is known to take it.
func (o *OpenAI) attempt(ctx context.Context, req tidemark.Request) (a sent) {
	a.fit = o.valid(req)
	a.body, a.places = o.encode(a.fit.Request, !o.bounds.lacks(or(req.Model, o.Model), quirkUsage))
	a.ans, a.err = o.call().do(ctx, a.body)
	return a
}

// send makes a request, and again as the endpoint says that it wants it. What is learned is kept only where it helped.
func (o *OpenAI) send(ctx context.Context, req tidemark.Request) sent {
	model := or(req.Model, o.Model)
	a := o.attempt(ctx, req)
	for o.bounds.learnTools(model, a.err) {
		a = o.attempt(ctx, req)
	}
	tried := map[quirk]bool{}
	for q := o.bounds.named(model, tried, a.err); q != ""; q = o.bounds.named(model, tried, a.err) {
		tried[q] = true
		o.bounds.keep(model, string(q), quirkRefused)
		fit := o.valid(req)
		if body, _ := o.encode(fit.Request, !o.bounds.lacks(model, quirkUsage)); bytes.Equal(body, a.body) { // it is not why
			o.bounds.keep(model, string(q), 0)
			continue
		}
		was := a.err
		if a = o.attempt(ctx, req); alike(a.err, was) && o.bounds.named(model, tried, a.err) == "" {
			for q := range tried {
				o.bounds.keep(model, string(q), 0)
			}
		}
	}
	if o.bounds.learn(model, o.bound(req), a.err) {
		a = o.attempt(ctx, req)
	}
	if req.System == "" || o.bounds.known(model, string(quirkSystem)) != 0 {
		return a
	}
	if a.err == nil {
		o.bounds.keep(model, string(quirkSystem), quirkTaken)
	} else if oddMessages(a.err) {
		a = o.guess(ctx, model, req, a)
	}
	return a
}

// alike reports two refusals in the same words.
func alike(a, b error) bool {
	var x, y *tidemark.APIError
	return errors.As(a, &x) && errors.As(b, &y) && x.Message == y.Message
}

// guess tries whether a model that has never taken a system message refuses it: there are many words for that. It does where the
// request is taken without one, and refused with one once more.
func (o *OpenAI) guess(ctx context.Context, model string, req tidemark.Request, refused sent) sent {
	const guesses = "guesses"
	n := o.bounds.known(model, guesses)
	if n >= maxGuesses {
		return refused
	}
	o.bounds.keep(model, guesses, n+1)
	o.bounds.keep(model, string(quirkSystem), quirkRefused)
	without := o.attempt(ctx, req)
	o.bounds.keep(model, string(quirkSystem), 0)
	if without.err != nil {
		return refused
	}
	with := o.attempt(ctx, req)
	if with.err == nil { // it was a moment's
		without.ans.end()
		o.bounds.keep(model, string(quirkSystem), quirkTaken)
		return with
	}
	o.bounds.keep(model, string(quirkSystem), quirkRefused)
	return without
}

// oddMessages reports a refusal that may be for the role of a message.
func oddMessages(err error) bool {
	var api *tidemark.APIError
	return errors.As(err, &api) && api.Class == tidemark.ClassBadRequest && (api.Param == "" || strings.HasPrefix(api.Param, "messages"))
}
