package main

import (
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host/cloudflare"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// open gives the handler of one object.
func open(o *cloudflare.Obj, logger *slog.Logger) cloudflare.App {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintln(w, `{"ok":true}`)
	})
	mux.HandleFunc("POST /v1/sessions/{key}/messages", func(w http.ResponseWriter, r *http.Request) {
		if err := echo(w, r, o); err != nil {
			logger.Error("message", "object", o.Name(), "err", err)
			panic(http.ErrAbortHandler)
		}
	})
	return cloudflare.App{HTTP: mux}
}

// echo stores the body as a row and streams what the object holds.
func echo(w http.ResponseWriter, r *http.Request, o *cloudflare.Obj) error {
	var in struct {
		Text string `json:"text"`
	}
	raw := make([]byte, 0, 1024)
	buf := make([]byte, 1024)
	for len(raw) < 1<<20 {
		n, err := r.Body.Read(buf)
		raw = append(raw, buf[:n]...)
		if err != nil {
			break
		}
	}
	if err := json.Unmarshal(raw, &in); err != nil {
		http.Error(w, "body: "+err.Error(), http.StatusBadRequest)
		return nil
	}
	err := o.DB().Tx(r.Context(), []tidemark.Stmt{
		{SQL: `CREATE TABLE IF NOT EXISTS skeleton(id INTEGER PRIMARY KEY, text TEXT NOT NULL)`},
		{SQL: `INSERT INTO skeleton(text) VALUES (?)`, Args: []any{in.Text}, Want: 1},
	})
	if err != nil {
		return err
	}
	rows, err := o.DB().Query(r.Context(), `SELECT id, text FROM skeleton ORDER BY id DESC LIMIT 10`)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/event-stream")
	flush := http.NewResponseController(w)
	for _, row := range rows {
		raw, err := json.Marshal(map[string]any{"object": o.Name(), "id": row.Int(0), "text": row.Text(1)})
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "data: %s\n\n", raw)
		if err := flush.Flush(); err != nil {
			return err
		}
		if err := o.Sleep(r.Context(), 5*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}
