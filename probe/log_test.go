package probe

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/transcript"
)

// A log of the tests is written line by line. Blocks have exactly the bytes that they are asked to have, so that figures can
// be computed by hand.
type log struct {
	name  string
	lines []string
	n     int
}

func (l *log) add(line string) *log {
	l.lines = append(l.lines, line)
	return l
}

// fill makes a block of n bytes, given what stands before and behind a text of it.
func fill(n int, head, tail string) string {
	if n < len(head)+len(tail) {
		panic(fmt.Sprintf("a block of %d bytes needs %d", n, len(head)+len(tail)))
	}
	return head + strings.Repeat("x", n-len(head)-len(tail)) + tail
}

func text(n int) string { return fill(n, `{"type":"text","text":"`, `"}`) }

func result(id string, n int) string {
	return fill(n, `{"type":"tool_result","tool_use_id":"`+id+`","content":"`, `"}`)
}

func failed(id string, n int) string {
	return fill(n, `{"type":"tool_result","tool_use_id":"`+id+`","is_error":true,"content":"`, `"}`)
}

// ask is a call of 150 bytes.
func ask(id, tool, field, value string) string {
	return fill(150, fmt.Sprintf(`{"type":"tool_use","id":"%s","name":"%s","input":{"%s":"%s"},"pad":"`, id, tool, field, value), `"}`)
}

// user adds a line of a person or of tools.
func (l *log) user(blocks ...string) *log { return l.line("", "user", "", "", blocks) }

// model adds a message: its usage is input tokens, all of them read from the cache, and output tokens.
func (l *log) model(id string, input, output int, blocks ...string) *log {
	return l.line("", "assistant", id, fmt.Sprintf(`,"usage":{"cache_read_input_tokens":%d,"output_tokens":%d}`, input, output), blocks)
}

func (l *log) line(fields, role, id, more string, blocks []string) *log {
	l.n++
	if id != "" {
		more = `,"id":"` + id + `"` + more
	}
	return l.add(fmt.Sprintf(`{"type":"%s","uuid":"%s-%d","timestamp":"2026-03-0%dT00:00:00Z"%s,"message":{"role":"%s","content":[%s]%s}}`,
		role, l.name, l.n, 1+l.n%7, fields, role, strings.Join(blocks, ","), more))
}

func (l *log) text() string { return strings.Join(l.lines, "\n") + "\n" }

// addLog reads a log into a corpus, as the command does.
func addLog(c *Corpus, name, text string) error {
	return c.Add(Log{Name: name + ".jsonl", Size: int64(len(text)), Sum: sha256.Sum256([]byte(text)),
		Items: transcript.Messages(strings.NewReader(text), transcript.Options{Chain: transcript.AllChains})})
}

// report reads logs; every size counts.
func report(t testing.TB, o Options, logs ...*log) Report {
	t.Helper()
	if o.MinSize == 0 {
		o.MinSize = -1
	}
	c := New(o)
	for _, l := range logs {
		if err := addLog(c, l.name, l.text()); err != nil {
			t.Fatal(err)
		}
	}
	return c.Report()
}

func bytesOf(of []Share, name string) int64 {
	for _, s := range of {
		if s.Name == name {
			return s.Bytes
		}
	}
	return -1
}

// wantBytes compares shares with figures computed by hand; those that are not named are 0.
func wantBytes(t *testing.T, of []Share, want map[string]int64) {
	t.Helper()
	for _, s := range of {
		if s.Bytes != want[s.Name] {
			t.Errorf("%s: %d bytes, want %d", s.Name, s.Bytes, want[s.Name])
		}
	}
}
