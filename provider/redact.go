package provider

import (
	"strings"

	"github.com/tidemark-ai/tidemark/internal/clip"
)

// redacted stands where a key stood.
const redacted = "[redacted]"

// keyPrefixes begin the keys of the APIs we know. Some servers echo a key in part
// ("sk-ab***yz"), so the literal key is not enough.
var keyPrefixes = [...]string{"sk-", "sk_", "gsk_", "xai-", "AIza", "hf_", "Bearer ", "bearer ", "Basic ", "x-api-key: ", "api_key=", "api-key=", "key=", "token="}

// redact removes our key, and whatever looks like one, from a text that people will see, and
// bounds its length in bytes.
func redact(s, key string, limit int) string {
	if len(key) >= 4 {
		s = strings.ReplaceAll(s, key, redacted)
	}
	for _, p := range keyPrefixes {
		s = redactPrefix(s, p)
	}
	return clip.To(strings.ToValidUTF8(s, "\uFFFD"), limit)
}

func redactPrefix(s, prefix string) string {
	if !strings.Contains(s, prefix) {
		return s
	}
	var out strings.Builder
	for {
		i := strings.Index(s, prefix)
		if i < 0 {
			break
		}
		end := i + len(prefix)
		for end < len(s) && keyByte(s[end]) {
			end++
		}
		inWord := i > 0 && keyByte(s[i-1]) && s[i-1] != '.'
		if inWord || end-i-len(prefix) < 6 { // "risk-free", "Bearer of"
			out.WriteString(s[:end])
		} else {
			out.WriteString(s[:i])
			out.WriteString(redacted)
		}
		s = s[end:]
	}
	out.WriteString(s)
	return out.String()
}

func keyByte(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '-' || c == '_' || c == '*' || c == '.'
}
