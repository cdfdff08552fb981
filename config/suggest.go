package config

import (
	"strings"

	"github.com/tidemark-ai/tidemark/internal/near"
)

// nearest returns the candidate that s was probably meant to be, empty if none is near.
func nearest(s string, candidates []string) string {
	return strings.TrimPrefix(near.Name(s, candidates), "*") // which stands for any name
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
	case strings.HasPrefix(key, "tools."):
		return "TOOL_X, named by tools.mcp.*.secret,"
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
