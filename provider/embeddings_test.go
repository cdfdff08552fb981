package provider

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	tidemark "github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// embedServer answers with what a test says and keeps the last request.
func embedServer(t *testing.T, status int, answer string) (url string, last *http.Request, body *string) {
	t.Helper()
	last, body = new(http.Request), new(string)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		*last, *body = *r, string(raw)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprint(w, answer)
	}))
	t.Cleanup(srv.Close)
	return srv.URL, last, body
}

// TestEmbed: vectors come in the order of the texts, whatever order the endpoint has.
func TestEmbed(t *testing.T) {
	const openai = `{"data":[{"index":1,"embedding":[0,1]},{"index":0,"embedding":[1,0]}]}`
	url, last, body := embedServer(t, 200, openai)
	e := &Embeddings{Model: "m", BaseURL: url + "/v1/", Key: "k", Transport: http.DefaultTransport}
	got, err := e.Embed(t.Context(), []string{"a", strings.Repeat("é", 8000)})
	if err != nil || fmt.Sprint(got) != "[[1 0] [0 1]]" {
		t.Fatal(got, err)
	}
	var sent struct {
		Model string   `json:"model"`
		Input []string `json:"input"`
	}
	if err := json.Unmarshal([]byte(*body), &sent); err != nil || sent.Model != "m" || len(sent.Input) != 2 || len(sent.Input[1]) > maxEmbedBytes {
		t.Error(err, sent.Model, len(sent.Input))
	}
	if last.URL.Path != "/v1/embeddings" || last.Header.Get("Authorization") != "Bearer k" {
		t.Error(last.URL, last.Header)
	}
	for _, answer := range []string{`{"shape":[1,2],"data":[[3,4]]}`, `{"result":{"data":[[3,4]]},"success":true}`} {
		url, last, body = embedServer(t, 200, answer)
		w := &Embeddings{Model: "@cf/baai/bge-m3", BaseURL: url, WorkersAI: true, Transport: http.DefaultTransport}
		if got, err = w.Embed(t.Context(), []string{" "}); err != nil || fmt.Sprint(got) != "[[3 4]]" || last.URL.Path != "/run/@cf/baai/bge-m3" || *body != `{"text":["."]}` {
			t.Error(got, err, last.URL, *body)
		}
	}
}

// TestEmbedRefuses: an answer that is not one vector a text, all of a length, is an error and no vector.
func TestEmbedRefuses(t *testing.T) {
	for _, row := range []struct {
		name   string
		status int
		answer string
		class  tidemark.Class
	}{
		{"none", 200, `{"data":[]}`, tidemark.ClassBadRequest},
		{"one of two", 200, `{"data":[{"index":0,"embedding":[1]}]}`, tidemark.ClassBadRequest},
		{"another place", 200, `{"data":[{"index":7,"embedding":[1]}]}`, tidemark.ClassBadRequest},
		{"two lengths", 200, `{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[1,2]}]}`, tidemark.ClassBadRequest},
		{"no JSON", 200, `<html>`, tidemark.ClassBadRequest},
		{"refused", 401, `{"error":{"message":"no"}}`, tidemark.ClassAuth},
	} {
		url, _, _ := embedServer(t, row.status, row.answer)
		e := &Embeddings{Model: "m", BaseURL: url, Transport: http.DefaultTransport}
		got, err := e.Embed(t.Context(), []string{"a", "b"})
		var api *tidemark.APIError
		if got != nil || !errors.As(err, &api) || api.Class != row.class {
			t.Errorf("%s: %v, %v", row.name, got, err)
		}
	}
	e := &Embeddings{Model: "m"}
	if _, err := e.Embed(t.Context(), make([]string, MaxEmbedTexts+1)); !errors.Is(err, tidemark.ErrInvalid) {
		t.Error(err)
	}
}
