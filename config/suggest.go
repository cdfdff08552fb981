package config

import "strings"

// nearest returns the candidate that s was probably meant to be, empty if none is near.
func nearest(s string, candidates []string) string {
	best, least := "", 1+max(2, len(s)/3)
	for _, c := range candidates {
		if c == "*" {
			continue
		}
		if n := distance(strings.ToLower(s), strings.ToLower(c)); n < least {
			best, least = c, n
		}
	}
	return best
}

// sameEnding returns the key whose last part is a name: someone forgot where it stands.
func sameEnding(name string, keys []string) string {
	for _, k := range keys {
		if strings.EqualFold(k[strings.LastIndexByte(k, '.')+1:], name) && !strings.Contains(k, "*") {
			return k
		}
	}
	return ""
}

// distance is the number of letters to put in, take out, change or swap with the next one.
func distance(a, b string) int {
	const longest = 100
	a, b = a[:min(len(a), longest)], b[:min(len(b), longest)]
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

// secretVariable returns the variable for a key that looks like a secret, empty for any other.
func secretVariable(key string) string {
	low := strings.NewReplacer("_", "", "-", "", ".", "").Replace(strings.ToLower(key))
	secret := false
	for _, word := range []string{"apikey", "secret", "password", "credential", "authtoken", "accesskey", "bearer"} {
		secret = secret || strings.Contains(low, word)
	}
	if !secret && low != "token" && !strings.HasSuffix(low, "servertoken") && !strings.HasSuffix(low, "sessiontoken") {
		return ""
	}
	switch {
	case strings.Contains(low, "whatsapp"):
		return "WHATSAPP_TOKEN, WHATSAPP_APP_SECRET or WHATSAPP_VERIFY_TOKEN"
	case strings.Contains(low, "telegram"):
		return "TELEGRAM_TOKEN or TELEGRAM_WEBHOOK_SECRET"
	case strings.Contains(low, "storage") || strings.Contains(low, "accesskey") || strings.Contains(low, "bucket") || strings.Contains(low, "aws"):
		return "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
	case strings.Contains(low, "openai") || strings.Contains(low, "openrouter"):
		return "OPENAI_API_KEY"
	case strings.Contains(low, "anthropic"):
		return "ANTHROPIC_API_KEY"
	case strings.Contains(low, "key"):
		return "ANTHROPIC_API_KEY or OPENAI_API_KEY"
	}
	return "TIDEMARK_TOKEN"
}
