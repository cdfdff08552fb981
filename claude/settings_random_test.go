package claude

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/tailscale/hujson"
)

// settingsWriter makes settings as people write them: with comments, commas at the end, odd spaces, and hooks of others.
type settingsWriter struct {
	r     *rand.Rand
	lines bool
	eol   string
	depth int
	count int
}

func (w *settingsWriter) comment() string {
	w.count++
	switch w.r.IntN(12) {
	case 0:
		return fmt.Sprintf("/* c%d, { */", w.count)
	case 1:
		if w.lines {
			return fmt.Sprintf(" // c%d \"hooks\": [", w.count) + w.eol + strings.Repeat("\t", w.r.IntN(3))
		}
	}
	return strings.Repeat(" ", w.r.IntN(2))
}

func (w *settingsWriter) list(open, end string, items []string) string {
	var b strings.Builder
	b.WriteString(open)
	w.depth++
	for i, item := range items {
		if w.lines && w.r.IntN(4) > 0 {
			b.WriteString(w.eol + strings.Repeat("  ", w.depth))
		}
		b.WriteString(w.comment() + item + w.comment())
		if i < len(items)-1 || w.r.IntN(3) == 0 {
			b.WriteString("," + w.comment())
		}
	}
	w.depth--
	if w.lines && w.r.IntN(4) > 0 {
		b.WriteString(w.eol + strings.Repeat("  ", w.depth))
	}
	b.WriteString(w.comment() + end)
	return b.String()
}

func (w *settingsWriter) group() string {
	var hooks []string
	for range w.r.IntN(3) {
		hooks = append(hooks, w.list("{", "}", []string{`"type":` + w.comment() + `"command"`, fmt.Sprintf(`"command": "their %d"`, w.r.IntN(99))}))
	}
	return w.list("{", "}", []string{`"matcher": "*"`, `"hooks":` + w.comment() + w.list("[", "]", hooks)})
}

func (w *settingsWriter) document() string {
	var members []string
	if w.r.IntN(3) > 0 {
		members = append(members, `"model": "opus"`)
	}
	if w.r.IntN(3) > 0 {
		var events []string
		for _, event := range []string{"Stop", EventPreCompact, EventPostToolUse, "Notification"} {
			if w.r.IntN(2) == 0 {
				continue
			}
			var groups []string
			for range w.r.IntN(3) {
				groups = append(groups, w.group())
			}
			events = append(events, fmt.Sprintf("%q: ", event)+w.list("[", "]", groups))
		}
		members = append(members, `"hooks":`+w.comment()+w.list("{", "}", events))
	}
	if w.r.IntN(2) == 0 {
		members = append(members, `"n": 1.0`)
	}
	return w.comment() + w.list("{", "}", members) + w.comment()
}

// TestInstallRandom: of any settings, installing keeps every byte, and taking out without a backup leaves every comment
// and every hook of others where it was.
func TestInstallRandom(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 1000 {
		w := &settingsWriter{r: r, lines: r.IntN(3) > 0, eol: []string{"\n", "\r\n"}[r.IntN(2)]}
		raw := []string{"", "\ufeff"}[r.IntN(2)] + w.document()
		s := Settings{Command: ownCommand}
		with, err := s.install([]byte(raw))
		if err != nil {
			t.Fatalf("%v\n%q", err, raw)
		}
		if !contains(raw, string(with)) {
			t.Fatalf("bytes are gone of\n%s\nleft\n%s", raw, with)
		}
		if again, err := s.install(with); err != nil || string(again) != string(with) {
			t.Fatalf("twice: %v\n%s", err, again)
		}
		if w.eol == "\r\n" && strings.Contains(raw, "\n") && strings.Count(string(with), "\n") != strings.Count(string(with), "\r\n") {
			t.Fatalf("mixed line breaks in %q", with)
		}
		back, err := s.uninstall(with)
		if err != nil {
			t.Fatalf("%v\n%s", err, with)
		}
		if got, want := theirs(t, string(back)), theirs(t, raw); got != want {
			t.Fatalf("of\n%s\nis left\n%s\nby way of\n%s", raw, back, with)
		}
	}
}

// theirs is a document without white space, commas and empty hooks: what nobody may miss.
func theirs(t *testing.T, raw string) string {
	t.Helper()
	_, err := hujson.Parse([]byte(strings.TrimPrefix(raw, "\ufeff")))
	must(t, err)
	for _, cut := range []string{" ", "\t", "\r", "\n", ",", `"PreCompact":[]`, `"PostToolUse":[]`, `"hooks":{}`} {
		raw = strings.ReplaceAll(raw, cut, "")
	}
	return raw
}
