package config

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/clip"
)

// Tools says where tools of others come from, and who may use them.
type Tools struct {
	MCP          map[string]MCP // by the name of the server
	SchemaTokens tidemark.Tokens
	Peers        []string // globs of what others than the owner may have used for them
}

// MCP is a server of tools: over HTTP by URL, or a process by Command.
type MCP struct {
	URL        string
	Command    string
	Args       []string
	Env        []string // NAME, or NAME=TOOL_X
	Secret     string   // name of a variable, which begins with TOOL_
	Allow      []string // nil: all
	Idempotent []string
	TrustHints bool
	TimeoutMs  int
	MaxBytes   int // 0: as the host says
	Parallel   int
	Enabled    bool
}

// toolPrefix begins the names of variables that may be sent to servers of tools. A document may name only such, so
// that whoever writes it cannot have another secret sent to an address of theirs.
const toolPrefix = "TOOL_"

// Bounds of servers.
const (
	maxServers    = 50
	maxServerName = 40
	maxArgument   = 4096
)

// Globs of names, and any texts.
const (
	Globs Type = "globs" // as package approval takes them, none twice
	Texts Type = "texts" // any, also twice
)

// ToolServers are the names of the servers that are enabled, in order.
func (c *Config) ToolServers() []string {
	return slices.DeleteFunc(c.Tools.servers(), func(name string) bool { return !c.Tools.MCP[name].Enabled })
}

func (t Tools) servers() []string { return slices.Sorted(maps.Keys(t.MCP)) }

// checkTools reports servers that cannot be meant.
func (c *Config) checkTools(at func(key string) string) []Problem {
	var out []Problem
	if n := len(c.Tools.MCP); n > maxServers {
		out = append(out, Problem{Where: at("tools.mcp"), Key: "tools.mcp", Text: fmt.Sprintf("%d servers, at most %d", n, maxServers)})
	}
	for _, name := range c.Tools.servers() {
		s, prefix := c.Tools.MCP[name], "tools.mcp."+name+"."
		add := func(key, format string, args ...any) {
			where := at(prefix + key)
			for _, k := range []string{"command", "url"} {
				if o := c.Origin[prefix+k]; o != "" && c.Origin[prefix+key] == "" {
					where = o
				}
			}
			out = append(out, Problem{Where: where, Key: prefix + key, Text: fmt.Sprintf(format, args...)})
		}
		if k := (Key{Type: Name}); !k.fits(name) || len(name) > maxServerName || strings.Contains(name, "__") || strings.HasSuffix(name, "_") {
			out = append(out, Problem{Where: cmp.Or(c.Origin[prefix+"url"], at(prefix+"command")), Key: "tools.mcp", Text: fmt.Sprintf("the name %q: want 1 to %d lower case letters, digits, - and _, without __ and with no _ at the end", clip.To(name, 60), maxServerName)})
			continue
		}
		switch {
		case s.URL != "" && s.Command != "":
			add("command", "is set, and so is url: a server is reached by one of them; take the other away")
		case s.URL == "" && s.Command == "":
			add("url", "missing; set it, or command for a program that is started here")
		case s.URL != "" && len(s.Args)+len(s.Env) > 0:
			add("args", "args and env are of a command, and url is set; take them away")
		case s.Command != "" && s.Secret != "":
			add("secret", "is sent to a url, and this is a command; hand it on by env: [\"NAME=%s\"]", s.Secret)
		}
		if s.Secret != "" && !toolVariable(s.Secret) {
			add("secret", "found %q, want the name of a variable that begins with %s, as TOOL_%s", clip.To(s.Secret, 60), toolPrefix, strings.ToUpper(strings.ReplaceAll(name, "-", "_")))
		}
		for _, e := range s.Env {
			if why := badEnv(e); why != "" {
				add("env", "found %q: %s", clip.To(e, 60), why)
			}
		}
	}
	return out
}

// toolVariable reports the name of a variable that may be sent to servers.
func toolVariable(name string) bool {
	return strings.HasPrefix(name, toolPrefix) && len(name) > len(toolPrefix) && variable(name)
}

func variable(name string) bool {
	return name != "" && len(name) <= 128 && (name[0] < '0' || name[0] > '9') && !strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_'
	})
}

// ourSecrets are variables that no program of others is given.
const ourSecrets = "ANTHROPIC_API_KEY OPENAI_API_KEY EMBEDDINGS_API_KEY TIDEMARK_TOKEN WHATSAPP_TOKEN WHATSAPP_APP_SECRET WHATSAPP_VERIFY_TOKEN TELEGRAM_TOKEN TELEGRAM_WEBHOOK_SECRET AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN"

// badEnv says what is wrong with an element of env, empty for nothing.
func badEnv(e string) string {
	name, from, mapped := strings.Cut(e, "=")
	switch {
	case !variable(name):
		return "want the name of a variable, or NAME=TOOL_X"
	case mapped && !toolVariable(from):
		return "what stands behind = is the name of a variable that begins with " + toolPrefix + ", never a value"
	case !mapped && slices.Contains(strings.Fields(ourSecrets), name):
		return "this secret is not handed on; put the one that the server needs into a variable TOOL_X, and write " + name + "=TOOL_X"
	}
	return ""
}

// toolSecrets are the variables that may be sent to servers.
func toolSecrets(env map[string]string) map[string]Secret {
	out := map[string]Secret{}
	for name, value := range env {
		if toolVariable(name) {
			out[name] = Secret(value)
		}
	}
	return out
}
