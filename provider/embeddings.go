package provider

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	tidemark "github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// Bounds of one request for vectors: what OpenAI and Workers AI both take.
const (
	MaxEmbedTexts = 64
	maxEmbedBytes = 8 << 10 // of a text; models read 512 to 8,192 tokens
	maxDimensions = 4096
	embedFirst    = 30 * time.Second
)

// Embeddings makes vectors of texts, by any endpoint of the shape of OpenAI's
// (https://platform.openai.com/docs/api-reference/embeddings/create) or by Workers AI
// (https://developers.cloudflare.com/workers-ai/models/bge-m3/). Only Model and Transport must be set. The
// fields may not change after the first call.
type Embeddings struct {
	Model     string
	BaseURL   string // in front of /embeddings; OpenAI's own when empty
	Key       string // bearer token; none is sent when empty
	WorkersAI bool   // the shape of Workers AI, at /run/{model}; the binding when BaseURL is empty
	Transport http.RoundTripper
	Runtime   tidemark.Runtime // nil: no deadlines
}

// Name is the model: vectors of two models do not compare.
func (e *Embeddings) Name() string { return e.Model }

// Embed returns a vector for each text, in their order, all of one length. Long texts are cut. Errors are
// *tidemark.APIError, and too many texts are ErrInvalid.
func (e *Embeddings) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	if len(texts) == 0 {
		return nil, nil
	}
	if len(texts) > MaxEmbedTexts {
		return nil, fmt.Errorf("embed %d texts, at most %d: %w", len(texts), MaxEmbedTexts, tidemark.ErrInvalid)
	}
	ans, err := e.call().do(ctx, e.body(texts))
	if err != nil {
		return nil, err
	}
	defer ans.end()
	raw, err := ans.all()
	if err != nil {
		return nil, ans.fault(err)
	}
	out, err := e.vectors(raw, len(texts))
	if err != nil {
		return nil, &tidemark.APIError{Class: tidemark.ClassBadRequest, Status: http.StatusOK, RequestID: requestID(ans.header), Message: "embeddings: " + err.Error()}
	}
	return out, nil
}

func (e *Embeddings) call() call {
	h := http.Header{}
	h.Set("Accept", "application/json")
	if e.Key != "" {
		h.Set("Authorization", "Bearer "+e.Key)
	}
	to := strings.TrimSuffix(or(e.BaseURL, openaiURL), "/") + "/embeddings"
	if e.WorkersAI {
		to = strings.TrimSuffix(or(e.BaseURL, WorkersAIURL), "/") + (&url.URL{Path: "/run/" + e.Model}).EscapedPath()
	}
	return call{url: to, header: h, key: e.Key, transport: e.Transport, runtime: e.Runtime, first: embedFirst, idle: embedFirst}
}

func (e *Embeddings) body(texts []string) []byte {
	b := append(make([]byte, 0, 4096), '{')
	field := `"text":[`
	if !e.WorkersAI {
		b = append(json.AppendString(append(b, `"model":`...), e.Model), `,"encoding_format":"float",`...)
		field = `"input":[`
	}
	b = append(b, field...)
	for i, t := range texts {
		if i > 0 {
			b = append(b, ',')
		}
		if len(t) > maxEmbedBytes {
			t = strings.ToValidUTF8(t[:maxEmbedBytes], "")
		}
		if strings.TrimSpace(t) == "" { // both refuse an empty text
			t = "."
		}
		b = json.AppendString(b, t)
	}
	return append(b, "]}"...)
}

// vectors reads an answer of either shape, and holds that it is one vector a text, all of one length.
func (e *Embeddings) vectors(raw []byte, want int) ([][]float32, error) {
	out := make([][]float32, want)
	if e.WorkersAI {
		var a struct {
			Data   [][]float32 `json:"data"`
			Result *struct {   // the REST API wraps it
				Data [][]float32 `json:"data"`
			} `json:"result"`
		}
		if err := json.Unmarshal(raw, &a); err != nil {
			return nil, fmt.Errorf("read the answer: %w", err)
		}
		if a.Result != nil {
			a.Data = a.Result.Data
		}
		if len(a.Data) == want {
			out = a.Data
		}
	} else {
		var a struct {
			Data []struct {
				Index     int       `json:"index"`
				Embedding []float32 `json:"embedding"`
			} `json:"data"`
		}
		if err := json.Unmarshal(raw, &a); err != nil {
			return nil, fmt.Errorf("read the answer: %w", err)
		}
		for _, d := range a.Data {
			if d.Index < 0 || d.Index >= want {
				return nil, fmt.Errorf("a vector for text %d of %d", d.Index, want)
			}
			out[d.Index] = d.Embedding
		}
	}
	for i, v := range out {
		if len(v) == 0 || len(v) > maxDimensions || len(v) != len(out[0]) {
			return nil, fmt.Errorf("text %d of %d has a vector of %d numbers, want 1 to %d and as many as the others", i, want, len(v), maxDimensions)
		}
	}
	return out, nil
}
