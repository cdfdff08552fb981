//go:build !js

package native

import "strings"

// knownNames are the metadata keys of the archive format. A bucket that was written through R2's
// own binding has them in camel case, which its S3 face gives back in lower case.
var knownNames = func() map[string]string {
	m := make(map[string]string)
	for _, name := range []string{
		"sessionKey", "sessionId", "agentId", "messageCount", "archivedAt",
		"inputTokens", "outputTokens", "totalTokens", "partNumber",
	} {
		m[strings.ToLower(name)] = name
	}
	return m
}()

// toHeaders spells sessionKey as session-key. Empty values are left out: some stores lose them.
func toHeaders(m map[string]string) map[string]string {
	out := make(map[string]string, len(m))
	for k, v := range m {
		if v != "" {
			out[toHeader(k)] = v
		}
	}
	return out
}

func toHeader(k string) string {
	var b strings.Builder
	for _, r := range k {
		if r >= 'A' && r <= 'Z' {
			b.WriteByte('-')
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}

// fromHeaders is the way back.
func fromHeaders(m map[string]string) map[string]string {
	if len(m) == 0 {
		return nil
	}
	out := make(map[string]string, len(m))
	for k, v := range m {
		out[fromHeader(strings.ToLower(k))] = v
	}
	return out
}

func fromHeader(k string) string {
	if name, ok := knownNames[k]; ok {
		return name
	}
	var b strings.Builder
	up := false
	for _, r := range k {
		switch {
		case r == '-':
			up = true
			continue
		case up && r >= 'a' && r <= 'z':
			r -= 'a' - 'A'
		}
		up = false
		b.WriteRune(r)
	}
	return b.String()
}
