// Command whatsapp runs the fake Graph API for tests that are not in Go. It prints its address and
// what it trusts as one line of JSON, and ends when its standard input does. It tests nothing itself. Begin with
// internal/graph, which it serves.
package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/tidemark-ai/tidemark/internal/graph"
	"github.com/tidemark-ai/tidemark/internal/json"
)

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer) error {
	const gap = 100 * time.Millisecond // between tries of a webhook; Meta's are longer
	gaps := make([]time.Duration, 300)
	for i := range gaps {
		gaps[i] = gap
	}
	s, err := graph.New(graph.Config{Gaps: gaps, Burst: -1, Files: os.Getenv("FAKE_FILES"), Window: os.Getenv("FAKE_WINDOW") != "", Disorder: os.Getenv("FAKE_DISORDER") != ""})
	if err != nil {
		return err
	}
	defer s.Close()
	line, err := json.Marshal(map[string]string{
		"url": s.URL, "token": graph.DefaultToken, "appSecret": graph.DefaultAppSecret, "verifyToken": graph.DefaultVerifyToken,
		"version": graph.DefaultVersion, "account": graph.DefaultAccount, "number": graph.DefaultNumber,
	})
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(out, "%s\n", line); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, in)
	return err
}
