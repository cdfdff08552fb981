package approvals

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/room"
)

// shownInput is the arguments of a call as the owner sees them, in about so many bytes: every argument is there, and long
// values are shortened, so that none can hide behind another.
func shownInput(raw []byte, most int) string {
	if len(raw) <= most {
		return visible(string(raw))
	}
	v, err := json.DecodeAny(raw)
	if err == nil {
		for value := most / 2; value >= 16; value /= 2 {
			if out := visible(room.JSON(shorter(v, value, 0))); len(out) <= most {
				return out
			}
		}
	}
	return visible(strings.ToValidUTF8(string(raw[:most/2]), "")) + fmt.Sprintf("… (%d bytes in all: more than can be shown)", len(raw))
}

// visible writes characters that are not seen, or turn a line around, as their numbers.
func visible(s string) string {
	if !strings.ContainsFunc(s, hiddenRune) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if hiddenRune(r) {
			fmt.Fprintf(&b, "\\u%04x", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func hiddenRune(r rune) bool { return unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Co, r) }

// Bounds of what is shown of one value.
const (
	shownElements = 20
	shownDepth    = 6
)

// shorter is a value with long texts, lists and depths cut, each with a word of how much there is.
func shorter(v any, most, depth int) any {
	switch v := v.(type) {
	case string:
		text, size := v, fmt.Sprintf("… (%d bytes)", len(v))
		if i := strings.LastIndex(v, "… ("); i >= 0 && strings.HasSuffix(v, " bytes)") { // it was shortened before
			text, size = v[:i], v[i:]
		}
		if len(v) > most {
			return strings.ToValidUTF8(text[:min(most, len(text))], "") + size
		}
	case []any:
		if depth > shownDepth {
			return fmt.Sprintf("… (%d elements)", len(v))
		}
		out := make([]any, 0, min(len(v), shownElements+1))
		for i, e := range v {
			if i == shownElements {
				out = append(out, fmt.Sprintf("… (%d elements)", len(v)))
				break
			}
			out = append(out, shorter(e, most, depth+1))
		}
		return out
	case map[string]any:
		if depth > shownDepth {
			return fmt.Sprintf("… (%d members)", len(v))
		}
		out := make(map[string]any, len(v))
		for name, e := range v {
			out[name] = shorter(e, most, depth+1)
		}
		return out
	}
	return v
}
