package main

import (
	"bytes"
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/config"
	"github.com/tidemark-ai/tidemark/host/native"
	"github.com/tidemark-ai/tidemark/session"
	"github.com/tidemark-ai/tidemark/setup"
)

// unsound tells of compactions that their self-check took back.
func (d *doctor) unsound(ctx context.Context, db tidemark.DB) error {
	const most, old = 3, 30 * 24 * time.Hour
	list, err := session.Unsounds(ctx, db, most)
	if err != nil {
		return err
	}
	for _, u := range list {
		if time.Since(u.At) < old {
			d.add("self-check", odd, "the messages are in view as before; put back what is missing, then `tidemark compact "+cli.PlainKey(string(u.Key))+"`",
				"a compaction of %s was taken back %s: %s", cli.PlainKey(string(u.Key)), cli.When(u.At), cli.Safe(u.Text))
		}
	}
	return nil
}

// vectors tells whether messages have them, where they are asked for.
func (d *doctor) vectors(ctx context.Context, db tidemark.DB) error {
	made, failing, err := session.VectorState(ctx, db)
	switch {
	case err != nil || made == 0 && failing == 0:
		return err
	case failing > 0:
		d.add("vectors", odd, "look for \"vectors put off\" in the log of the server: the endpoint of recall.embeddings failed; it is asked again",
			"%d messages have one; %s waits for the endpoint", made, cli.Plural(failing, "conversation"))
	default:
		d.add("vectors", fine, "", "%d messages have one", made)
	}
	return nil
}

// embedder asks the endpoint of recall.embeddings for one vector: what was made before says nothing of it.
func (d *doctor) embedder(ctx context.Context) {
	if d.cfg.Recall.Embeddings == config.WorkersAI && d.cfg.Recall.EmbeddingURL == "" {
		return // a warning of the configuration has told
	}
	by := setup.Embedder(d.cfg, native.NewRuntime(nil), native.Transport())
	if by == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, providerTimeout)
	defer cancel()
	if _, err := by.Embed(ctx, []string{"tidemark"}); err != nil {
		d.add("vectors", odd, "check recall.embeddingUrl, its key and recall.embeddingModel; until then words alone find", "%s makes no vector: %s", cli.Safe(by.Name()), cli.Safe(err.Error()))
		return
	}
	d.add("vectors", fine, "", "%s makes them", cli.Safe(by.Name()))
}

// checks tells what a server counted of self-checks and of vectors.
func (d *doctor) checks(ctx context.Context, c *client) {
	var text bytes.Buffer
	if err := c.Raw(ctx, "/metrics", &text); err != nil {
		return // it was told above what it answers
	}
	if failed := metric(text.Bytes(), `tidemark_vectors_total{result="failed"}`); failed > 0 {
		d.add("vectors", odd, "look for \"vectors put off\" in the log of the server: the endpoint of recall.embeddings failed; it is asked again",
			"%d texts got none since the server started; words alone find them", failed)
	}
	made, broken := metric(text.Bytes(), "tidemark_selfcheck_checks_total"), metric(text.Bytes(), "tidemark_selfcheck_violations_total")
	switch {
	case broken > 0:
		d.add("self-check", odd, "look for selfcheck events: `tidemark log KEY`, and in the log of the server",
			"%d of %d checks behind compactions failed since the server started; these compactions were taken back", broken, made)
	case made > 0:
		d.add("self-check", fine, "", "%d checks behind compactions since the server started, none failed", made)
	}
}

// metric reads a counter, with its labels in braces when it has some, from the text of /metrics, 0 when it is not there.
func metric(text []byte, name string) int64 {
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			if f, err := strconv.ParseFloat(strings.TrimSpace(value), 64); err == nil {
				return int64(f)
			}
		}
	}
	return 0
}
