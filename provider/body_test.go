package provider

import tidemark "github.com/tidemark-ai/tidemark"

// body is what is sent of a request.
func (a *Anthropic) body(req tidemark.Request) []byte { return a.encode(a.valid(req).Request) }

// body is what is sent of a request.
func (o *OpenAI) body(req tidemark.Request, usage bool) []byte {
	b, _ := o.encode(o.valid(req).Request, usage)
	return b
}

// body is what is sent of a request; it reports whether images are among it.
func (w *WorkersAI) body(req tidemark.Request, how attempt) (body []byte, images bool) {
	body, images, _ = w.encode(valid(req, chatRules(chatID)).Request, how)
	return body, images
}
