package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark/internal/json"
)

// own are variables that are read elsewhere and are no overrides.
const own = "TIDEMARK_HOME TIDEMARK_TOKEN TIDEMARK_CONFIG TIDEMARK_SERVER TIDEMARK_CRASH_AT TIDEMARK_DEBUG TIDEMARK_LIMITS TIDEMARK_AI TIDEMARK_DEV TIDEMARK_ENV"

// Override takes the environment into account: an override for each key, named after it (compaction.
// reserveTokens is TIDEMARK_COMPACTION_RESERVETOKENS), and the secrets. environ is as os.Environ
// gives it. An empty variable is as good as none. What begins with TIDEMARK_ and is not known is a
// warning, not an error: it may be meant for another version.
func (c *Config) Override(environ []string) error {
	problems := c.override(environ)
	if len(problems) == 0 {
		problems = c.check(func(key string) string { return cmp.Or(c.Origin[key], "environment") })
	}
	if len(problems) > 0 {
		return &Error{Problems: problems}
	}
	return nil
}

// override reports the mistakes of single variables.
func (c *Config) override(environ []string) []Problem {
	env := map[string]string{}
	var names []string
	for _, e := range environ {
		if name, value, ok := strings.Cut(e, "="); ok && value != "" {
			env[name] = value
			names = append(names, name)
		}
	}
	slices.Sort(names)
	c.Secrets = Secrets{Anthropic: Secret(env["ANTHROPIC_API_KEY"]), OpenAI: Secret(env["OPENAI_API_KEY"]), Token: Secret(env["TIDEMARK_TOKEN"]),
		Embedding:     Secret(env["EMBEDDINGS_API_KEY"]),
		WhatsAppToken: Secret(env["WHATSAPP_TOKEN"]), WhatsAppSecret: Secret(env["WHATSAPP_APP_SECRET"]), WhatsAppVerify: Secret(env["WHATSAPP_VERIFY_TOKEN"]),
		TelegramToken: Secret(env["TELEGRAM_TOKEN"]), TelegramSecret: Secret(env["TELEGRAM_WEBHOOK_SECRET"]),
		Tools: toolSecrets(env)}

	var problems []Problem
	known := map[string]bool{}
	keys := Keys()
	for _, k := range keys {
		name := k.Variable()
		known[name] = true
		value, ok := env[name]
		if name == "" || !ok {
			continue
		}
		if err := k.set(c, "", k.decode(value)); err != nil {
			problems = append(problems, Problem{Where: name, Key: k.Name, Text: fmt.Sprintf("found %q, want %s", clip(k.shown(value)), k.want()) + fix(err) + k.form()})
			continue
		}
		c.Origin[k.Name] = name
	}
	for _, name := range names {
		if strings.HasPrefix(name, "TIDEMARK_") && !known[name] && !slices.Contains(strings.Fields(own), name) {
			c.warnUnknown(name, keys)
		}
	}
	if url := env["OPENAI_BASE_URL"]; url != "" && c.Model.BaseURL == "" && c.Model.Provider != Anthropic && c.Model.Provider != WorkersAI && c.Model.Provider != Offline {
		problems = append(problems, c.openAIBase(url)...)
	}
	return problems
}

// openAIBase sets the endpoint that clients of OpenAI share a variable for. Where Anthropic would be
// chosen, it means something else.
func (c *Config) openAIBase(url string) []Problem {
	if c.Model.Provider == "" && c.Secrets.Anthropic != "" {
		return nil
	}
	k := Key{Type: URL}
	if !k.fits(url) {
		return []Problem{{Where: "OPENAI_BASE_URL", Key: "model.baseUrl", Text: fmt.Sprintf("found %q, want %s", clip(k.shown(url)), k.want())}}
	}
	c.Model.BaseURL = url
	c.Origin["model.baseUrl"] = "OPENAI_BASE_URL"
	if c.Model.Provider == "" {
		c.Model.Provider = OpenAI
		c.Origin["model.provider"] = "OPENAI_BASE_URL"
	}
	return nil
}

func (c *Config) warnUnknown(name string, keys []Key) {
	candidates := strings.Fields(own)
	for _, k := range keys {
		if v := k.Variable(); v != "" {
			candidates = append(candidates, v)
		}
	}
	text := name + " is no setting and is ignored"
	if best := nearest(name, candidates); best != "" {
		text += "; did you mean " + best + "?"
	}
	c.Warnings = append(c.Warnings, text)
}

// decode turns the text of a variable into what the document would hold.
func (k Key) decode(value string) any {
	switch k.Type {
	case Number:
		return json.Number(value)
	case Switch:
		switch value {
		case "true":
			return true
		case "false":
			return false
		}
	case Percents:
		var list []any
		for _, s := range strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune("[], ", r) }) {
			list = append(list, json.Number(s))
		}
		return list
	case Rules:
		if v, err := json.DecodeAny([]byte(value)); err == nil {
			return v
		}
	case Choices, Origins, Names, Globs, Texts:
		if list := strings.TrimSpace(value); strings.HasPrefix(list, "[") { // as the document has it; no element begins so
			v, err := json.DecodeAny([]byte(list))
			if err != nil {
				return value
			}
			return v
		}
		var list []any
		for _, s := range strings.Split(value, ",") {
			list = append(list, strings.TrimSpace(s))
		}
		return list
	}
	return value
}

// form is how a variable writes a list, for messages; empty for what is none.
func (k Key) form() string {
	switch k.Type {
	case Choices, Origins, Names, Globs, Texts:
		return `; write A,B or ["A","B"]`
	case Rules:
		return `; write the list as it stands in the document`
	case Percents:
		return `; write A,B,C or [A,B,C]`
	}
	return ""
}
