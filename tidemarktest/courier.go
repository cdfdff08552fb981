package tidemarktest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark"
)

var _ tidemark.Courier = (*Courier)(nil)

// Courier is a [tidemark.Courier] whose platform is its memory. Its zero value takes every message, whole.
type Courier struct {
	// Most bounds a part in characters; 0: none is too long.
	Most int
	// Fail, if set, says how the n-th try to send ends, from 1: nil sends, a *SendError fails. With
	// class unknown the message arrives all the same when n is even.
	Fail func(n int, m tidemark.Outgoing) error
	// Hold, if set, is waited for within each try; a try whose context ends meanwhile is unknown.
	Hold chan struct{}

	mu      sync.Mutex // guards the following
	tries   int
	arrived []Arrived
	shown   []string
	changed chan struct{} // closed at the next change
}

// Arrived is a message that a person has.
type Arrived struct {
	tidemark.Outgoing
	ID string
}

// Parts implements [tidemark.Courier]: pieces of Most characters.
func (c *Courier) Parts(_ tidemark.Address, markdown string) []string {
	var out []string
	rest := []rune(strings.TrimSpace(strings.ToValidUTF8(markdown, "\uFFFD")))
	for len(rest) > 0 {
		n := len(rest)
		if c.Most > 0 {
			n = min(n, c.Most)
		}
		if part := strings.TrimSpace(string(rest[:n])); part != "" {
			out = append(out, part)
		}
		rest = rest[n:]
	}
	return out
}

// Send implements [tidemark.Courier].
func (c *Courier) Send(ctx context.Context, m tidemark.Outgoing) (string, error) {
	c.mu.Lock()
	c.tries++
	n := c.tries
	c.change()
	c.mu.Unlock()
	if c.Hold != nil {
		select {
		case <-c.Hold:
		case <-ctx.Done():
			return "", &tidemark.SendError{Class: tidemark.SendUnknown, Text: context.Cause(ctx).Error()}
		}
	}
	var err error
	if c.Fail != nil {
		err = c.Fail(n, m)
	}
	var se *tidemark.SendError
	if errors.As(err, &se) && (se.Class != tidemark.SendUnknown || n%2 == 1) {
		return "", err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	id := fmt.Sprintf("mid.%d", n)
	c.arrived = append(c.arrived, Arrived{m, id})
	c.change()
	if err != nil {
		return "", err
	}
	return id, nil
}

// Working implements [tidemark.Courier].
func (c *Courier) Working(_ context.Context, _ tidemark.Address, message string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shown = append(c.shown, message)
	c.change()
	return nil
}

// change is called with the lock held.
func (c *Courier) change() {
	if c.changed != nil {
		close(c.changed)
		c.changed = nil
	}
}

// Changed is closed when a try begins or ends, or work is shown.
func (c *Courier) Changed() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.changed == nil {
		c.changed = make(chan struct{})
	}
	return c.changed
}

// Arrived returns the messages that people have, in order.
func (c *Courier) Arrived() []Arrived {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.arrived)
}

// Texts returns what people read, in order.
func (c *Courier) Texts() []string {
	var out []string
	for _, a := range c.Arrived() {
		out = append(out, a.Text)
	}
	return out
}

// Tries is how often sending was begun.
func (c *Courier) Tries() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tries
}

// Shown returns the messages that were shown to be answered, in order.
func (c *Courier) Shown() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.shown)
}

// Couriers is what every [tidemark.Courier] keeps of its contract without a platform: the laws of Parts.
// most bounds a part as size measures it.
func Couriers(t *testing.T, c tidemark.Courier, to tidemark.Address, most int, size func(string) int) {
	t.Helper()
	words := strings.Repeat("wave after wave the water rises and falls back again. ", 400)
	for name, text := range map[string]string{
		"empty": "", "blank": " \n\t\n", "short": "The ferry leaves at seven.", "words": words,
		"one long word": strings.Repeat("x", 3*most+7), "wide": strings.Repeat("🌊", most+5), "letters": strings.Repeat("ü", 2*most),
		"code":       "Look:\n```go\n" + strings.Repeat("x := compute(1, 2)\n", most/8) + "```\nDone.",
		"open fence": "```\n" + words, "list": strings.Repeat("- one **bold** thing\n  - and _another_\n", most/16),
		"table":  "| a | b |\n| --- | --- |\n" + strings.Repeat("| 1 | 2 |\n", most/4),
		"quotes": strings.Repeat("> so it was said\n", most/8),
		"bad":    "broken \xff\xfe bytes", "zero": "a\x00b", "joined": strings.Repeat("e\u0301\u200d", most),
		"unclosed": "**bold _and `code " + words, "at the bound": strings.Repeat("y", most), "just over": strings.Repeat("z", most+1),
	} {
		t.Run(name, func(t *testing.T) { CheckParts(t, c, to, most, size, text) })
	}
}

// CheckParts holds the laws of Parts for one text: the same each time, nothing empty, nothing beyond the
// bound, UTF-8, and something for all who wrote something. It is the body of a fuzz target too.
func CheckParts(t testing.TB, c tidemark.Courier, to tidemark.Address, most int, size func(string) int, text string) {
	t.Helper()
	parts := c.Parts(to, text)
	if again := c.Parts(to, text); !slices.Equal(parts, again) {
		t.Errorf("%d parts, then %d: the same text must give the same", len(parts), len(again))
	}
	for i, p := range parts {
		if strings.TrimSpace(p) == "" {
			t.Errorf("part %d of %d is blank", i+1, len(parts))
		}
		if n := size(p); n > most {
			t.Errorf("part %d of %d has %d, at most %d", i+1, len(parts), n, most)
		}
		if !utf8.ValidString(p) {
			t.Errorf("part %d of %d is no UTF-8: %.80q", i+1, len(parts), p)
		}
	}
	word := strings.ContainsFunc(text, func(r rune) bool { return r >= 'a' && r <= 'z' })
	if word && len(parts) == 0 {
		t.Errorf("nothing is sent of %.80q", text)
	}
	if strings.TrimSpace(text) == "" && len(parts) > 0 {
		t.Errorf("%d parts of nothing", len(parts))
	}
}
