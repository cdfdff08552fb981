package cli

import (
	"cmp"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/config"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/setup"
)

// PrintTable prints rows in columns; the first row is the head.
func PrintTable(w *Output, rows [][]string) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		_, _ = fmt.Fprintln(t, strings.Join(r, "\t")) // w remembers a failure
	}
	_ = t.Flush()
}

// PrintJSON prints a value for programs.
func (m *Main) PrintJSON(v any) error {
	raw, err := json.MarshalIndent(v)
	if err != nil {
		return err
	}
	m.Out.Line(string(raw))
	return nil
}

// Plural writes a number of things.
func Plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprint(n, " ", thing, "s")
}

// Count writes a number of tokens in few characters: 950, 3.1k, 200k, 1.2M.
func Count(n tidemark.Tokens) string {
	const k, m = 1_000, 1_000_000
	switch {
	case n >= m:
		return short(float64(n)/m) + "M"
	case n >= k:
		return short(float64(n)/k) + "k"
	}
	return fmt.Sprint(int64(n))
}

func short(f float64) string {
	const round = 10
	if f >= round {
		return fmt.Sprintf("%.0f", f)
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", f), ".0")
}

// Size writes a number of bytes.
func Size(n int64) string {
	const k, m = 1 << 10, 1 << 20
	switch {
	case n >= m:
		return short(float64(n)/m) + " MB"
	case n >= k:
		return short(float64(n)/k) + " KB"
	}
	return fmt.Sprint(n, " B")
}

// Towards draws how near a context is to its compaction, the figure that /status, anatomy and the page have; one that is
// never compacted (limit 0) is a part of its window.
func Towards(used, limit, window tidemark.Tokens) string {
	if limit > 0 {
		return Gauge(used, limit) + " of the way to compaction"
	}
	return Gauge(used, window) + " of the window"
}

// Gauge draws how full a window is: context 3.1k/200k ▏2%.
func Gauge(used, window tidemark.Tokens) string {
	const cells, eighths = 10, 8
	share := float64(used) / float64(max(window, 1))
	n := min(max(int(share*cells*eighths), 1), cells*eighths)
	bar := strings.Repeat("█", n/eighths)
	if n%eighths > 0 {
		bar += string([]rune(" ▏▎▍▌▋▊▉")[n%eighths])
	}
	return fmt.Sprintf("context %s/%s %s%.0f%%", Count(used), Count(window), bar, share*100)
}

// When writes a time in the local zone, today's without the day.
func When(t time.Time) string {
	switch {
	case t.IsZero():
		return "-"
	case time.Since(t) < 12*time.Hour && time.Since(t) > -time.Minute:
		return t.Local().Format("15:04:05")
	}
	return t.Local().Format("2006-01-02 15:04")
}

// OneLine makes a text fit on a line and keeps control characters off a terminal.
func OneLine(s string, most int) string {
	var b strings.Builder
	for _, r := range s {
		if unicode.IsSpace(r) {
			r = ' '
		}
		if !unicode.IsPrint(r) || r == ' ' && strings.HasSuffix(b.String(), " ") {
			continue
		}
		if b.WriteRune(r); b.Len() > most {
			return Cut(b.String(), most) + "…"
		}
	}
	return strings.TrimSpace(b.String())
}

// Cut cuts a text at a character.
func Cut(s string, most int) string {
	for most > 0 && most < len(s) && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:min(most, len(s))]
}

// Safe takes control characters out of a text that goes to a terminal, line breaks and tabs apart.
func Safe(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, s)
}

// LimitOf is what the context may grow to before it is compacted.
func LimitOf(c *config.Config) tidemark.Tokens {
	return compaction.Budget{Window: setup.Window(c).Tokens, Reserve: c.Compaction.ReserveTokens, Keep: c.Compaction.KeepRecent}.Fit().Limit()
}

// Dim writes a note for people beside the conversation.
func (m *Main) Dim(s string) string {
	if !m.Terminal || m.Env("NO_COLOR") != "" || cmp.Or(m.Env("TERM"), "dumb") == "dumb" {
		return s
	}
	return "\x1b[2m" + s + "\x1b[0m"
}
