package main

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark/cmd/cli"
)

// TestShownAround: what was found is printed, wherever it stands in a long text, and is bold on a terminal alone.
func TestShownAround(t *testing.T) {
	filler := strings.Repeat("The ferry leaves at nine — always. ", 40)
	needle := "Cut a walnut\ndowel of 12mm, then glue it."
	for name, text := range map[string]string{"front": needle + filler, "middle": filler + needle + filler, "back": filler + needle, "alone": needle} {
		got := shownAround(text, "walnut dowel 12mm", false)
		if !strings.Contains(got, "walnut dowel of 12mm") || len(got) > shownBytes+2*len("…") || !utf8.ValidString(got) || strings.Contains(got, "\x1b") {
			t.Errorf("%s: %q", name, got)
		}
		if bold := shownAround(text, "walnut dowels 12mm", true); !strings.Contains(bold, boldOn+"walnut"+boldOff+" "+boldOn+"dowel"+boldOff+" of "+boldOn+"12mm"+boldOff+",") {
			t.Errorf("%s: %q", name, bold)
		}
	}
	for _, text := range []string{"", "\x1b[31mred", strings.Repeat("東京", 400), filler} {
		got := shownAround(text, "walnut 東京", true)
		if !utf8.ValidString(got) || strings.Contains(got, "\x1b[31m") || len(got) > 3*shownBytes {
			t.Errorf("%q: %q", text, got)
		}
	}
}

func FuzzShownAround(f *testing.F) {
	f.Add("The port is 8443.", "port")
	f.Fuzz(func(t *testing.T, text, query string) {
		if got := shownAround(text, query, true); !utf8.ValidString(got) && utf8.ValidString(text) {
			t.Errorf("%q", got)
		}
	})
}

// TestRecallFlags: flags that mean nothing together are refused before anything is asked.
func TestRecallFlags(t *testing.T) {
	var out, errs strings.Builder
	m := &cli.Main{Stdout: &out, Stderr: &errs, Stdin: strings.NewReader("")}
	if code := m.Run(t.Context(), commands(), []string{"recall", "port", "--peer", "whatsapp:+49"}); code == 0 || !strings.Contains(errs.String(), "--scope peer") {
		t.Errorf("%d: %s", code, errs.String())
	}
}
