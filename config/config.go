// Package config reads Tidemark's one document of settings: tidemark.jsonc in the home folder, or
// config.json in the bucket, JSON with comments and trailing commas. What a setting means belongs to
// the package that obeys it. Begin with the table of keys (keys.txt).
//
// That table holds every key with its type, bounds, default and a line of documentation. The decoder,
// the environment overrides, the JSON Schema and the table in docs/config.md are all made of it, so
// they cannot disagree. Every mistake is reported at once, with its line and the fix. Secrets come from
// the environment only and never leave this package as text by accident.
package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
)

// Config is every setting with its value, and where that came from. Make it with [Parse] or
// [Default], then call [Config.Override]; the zero value is not valid.
type Config struct {
	Model        Model
	SystemPrompt string
	Compaction   Compaction
	Proxy        Proxy
	Recall       Recall
	Session      Session
	Schedules    Schedules
	Agents       []Agent
	Memory       Memory
	Storage      Storage
	Server       Server
	Timeouts     Timeouts
	Log          Log
	Channels     Channels
	Approval     Approval `key:"toolApproval"`
	Delegation   Delegation
	Tools        Tools
	UserTimezone string

	AI      bool // the host is a Worker with models of Cloudflare bound
	Secrets Secrets
	// Origin says where a key was set, by its name: "tidemark.jsonc:3:5" or the name of a variable.
	// Keys that are not in it have their defaults.
	Origin map[string]string
	// Warnings are for people to read; nothing is wrong enough to stop.
	Warnings []string
}

// Recall says how what was said is found again.
type Recall struct {
	PackTokens     tidemark.Tokens // of what is pushed beside the view; 0: nothing is
	TaskState      string          // auto, on, off: whether the model keeps a task card
	Embeddings     string          // off, openai, workers-ai: who makes vectors beside the words
	EmbeddingModel string
	EmbeddingURL   string // other than the provider's own
	Reconcile      string
	Reflection     bool // thresholds of pointers follow how recall goes
}

// Model says who answers.
type Model struct {
	Provider      string // anthropic, openai, workers-ai, offline; empty until [Config.Resolve]
	ID            string
	BaseURL       string
	ContextWindow tidemark.Tokens
	MaxTokens     tidemark.Tokens
}

// Compaction says when and how the context is made smaller.
type Compaction struct {
	Enabled         bool
	ReserveTokens   tidemark.Tokens
	KeepRecent      tidemark.Tokens `key:"keepRecentTokens"`
	ExtractMemories bool
	Model           string
	Strategies      []string
	Paging          Paging
	Episodes        Episodes
}

// Session holds what is common to sessions.
type Session struct {
	DefaultResetPolicy Policy
	ResetPolicies      map[string]Policy // by "channel:kind", channel or kind
	DMScope            string
	MaxRounds          int
}

// Policy says when a session is reset. Fields that are not set are those of the default policy.
type Policy struct {
	Mode        string
	AtHour      *int
	IdleMinutes *int
	Zone        string
}

// Agent is one owner of sessions.
type Agent struct {
	ID           string
	SystemPrompt string
	UserTimezone string
	Tools        []string // globs of tools of others that it may use; nil: all
}

// Memory says who sees what was remembered, and how much of it.
type Memory struct {
	Sharing      string
	PromptTokens tidemark.Tokens
	Digest       bool
	DigestLines  int
}

// Storage says where files go, and how results of tools are stored.
type Storage struct {
	Bucket        Bucket
	ArtifactChars int
}

// Bucket is a folder or an S3 bucket.
type Bucket struct {
	Kind        string
	Path        string
	Endpoint    string
	Region      string
	Bucket      string
	Prefix      string
	PathStyle   bool
	Conditional string
}

// Server is the native server.
type Server struct {
	Listen       string
	Origins      []string // pages of other origins that may call
	GraceSeconds int
	PingSeconds  int
	MaxSessions  int
	IdleMinutes  int
}

// Timeouts bound what is waited for.
type Timeouts struct {
	LLMMs  int
	ToolMs int
	TurnMs int
}

// Proxy says what becomes of requests of clients that keep their history themselves.
type Proxy struct {
	Treatment string // off, observe, trim, page, page+trim, episodes, episodes+trim
	Cooperate bool
	Window    tidemark.Tokens
	Upstream  string // of the Messages API; empty: where the model is, else Anthropic's own
	Chat      string `key:"chatUpstream"` // of chat completions; empty: where the model is, else OpenAI's own
}

// Delegation bounds what an agent may hand to conversations of its own.
type Delegation struct {
	Enabled     bool
	MaxDepth    int
	MaxChildren int // in one turn
	TimeoutMs   int
	Budget      tidemark.Tokens // of each
}

// Schedules holds what agents may do by themselves, at times.
type Schedules struct {
	Enabled bool
}

// Log says what is logged and how.
type Log struct {
	Level  string
	Format string
}

// Secret is a value that is never printed. Its zero value is none.
type Secret string

// Reveal returns the secret itself, for the one place that uses it.
func (s Secret) Reveal() string { return string(s) }

// String says only whether there is one.
func (s Secret) String() string {
	if s == "" {
		return "not set"
	}
	return "set"
}

// GoString is String, for %#v.
func (s Secret) GoString() string { return s.String() }

// MarshalJSON is String, for everything that is written down.
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + s.String() + `"`), nil }

// Secrets come from the environment, or the Worker's secret bindings.
type Secrets struct {
	Anthropic Secret // ANTHROPIC_API_KEY
	OpenAI    Secret // OPENAI_API_KEY
	Token     Secret // TIDEMARK_TOKEN
	Embedding Secret // EMBEDDINGS_API_KEY: of recall.embeddingUrl

	WhatsAppToken  Secret // WHATSAPP_TOKEN: of the system user that sends
	WhatsAppSecret Secret // WHATSAPP_APP_SECRET: signs webhooks
	WhatsAppVerify Secret // WHATSAPP_VERIFY_TOKEN: of the handshake
	TelegramToken  Secret // TELEGRAM_TOKEN: of the bot
	TelegramSecret Secret // TELEGRAM_WEBHOOK_SECRET: comes with webhooks

	Tools map[string]Secret // by the names of variables, TOOL_…: sent to servers of tools that name them
}

// Providers of model.provider.
const (
	Anthropic = "anthropic"
	OpenAI    = "openai"
	WorkersAI = "workers-ai"
	Offline   = "offline"
)

// Models that are called when none is named.
const (
	DefaultAnthropicModel = "claude-sonnet-5-5"
	DefaultOpenAIModel    = "gpt-5-mini"
	DefaultWorkersAIModel = "@cf/zai-org/glm-4.7-flash" // calls tools, in many languages

	DefaultEmbeddingModel     = "text-embedding-3-small"
	DefaultWorkersAIEmbedding = "@cf/baai/bge-m3" // many languages
)

// Resolve chooses a provider and a model when none is set: whichever has a key, else the built-in
// offline model. The reason is for people.
func (c *Config) Resolve() (reason string) {
	switch {
	case c.Model.Provider != "":
		reason = "model.provider, " + cmp.Or(c.Origin["model.provider"], "default")
	case c.Secrets.Anthropic != "":
		c.Model.Provider, reason = Anthropic, "ANTHROPIC_API_KEY is set"
	case c.Secrets.OpenAI != "":
		c.Model.Provider, reason = OpenAI, "OPENAI_API_KEY is set"
	case c.AI:
		c.Model.Provider, reason = WorkersAI, "no key is set, and [ai] is bound"
	default:
		c.Model.Provider, reason = Offline, "no ANTHROPIC_API_KEY or OPENAI_API_KEY in the environment"
	}
	if c.Model.ID == "" {
		c.Model.ID = map[string]string{Anthropic: DefaultAnthropicModel, OpenAI: DefaultOpenAIModel, WorkersAI: DefaultWorkersAIModel, Offline: Offline}[c.Model.Provider]
	}
	c.channelWarnings()
	c.recallWarnings()
	return reason
}

// recallWarnings says what will make no vectors.
func (c *Config) recallWarnings() {
	text := ""
	switch {
	case c.Recall.Embeddings == WorkersAI && !c.AI && c.Recall.EmbeddingURL == "":
		text = `recall.embeddings is "workers-ai", and no [ai] is bound here: words alone find; set recall.embeddingUrl, or "openai" with an endpoint of yours`
	case c.Recall.Embeddings == OpenAI && c.Recall.EmbeddingURL == "" && c.Secrets.OpenAI == "" && c.Secrets.Embedding == "":
		text = `recall.embeddings is "openai", and no OPENAI_API_KEY is set: words alone find; set the key, or recall.embeddingUrl`
	}
	if text != "" && !slices.Contains(c.Warnings, text) {
		c.Warnings = append(c.Warnings, text)
	}
}

// KeyMissing names the variable that the provider needs and that is not set, empty for none. An
// endpoint of one's own may need no key.
func (c *Config) KeyMissing() string {
	switch {
	case c.Model.Provider == Anthropic && c.Secrets.Anthropic == "":
		return "ANTHROPIC_API_KEY"
	case c.Model.Provider == OpenAI && c.Secrets.OpenAI == "" && c.Model.BaseURL == "":
		return "OPENAI_API_KEY"
	}
	return ""
}

// Agent returns the settings of an agent, with the general ones where it has none of its own.
func (c *Config) Agent(id string) Agent {
	out := Agent{ID: id, SystemPrompt: c.SystemPrompt, UserTimezone: c.UserTimezone}
	for _, a := range c.Agents {
		if a.ID == id {
			out.SystemPrompt = cmp.Or(a.SystemPrompt, out.SystemPrompt)
			out.UserTimezone = cmp.Or(a.UserTimezone, out.UserTimezone)
			out.Tools = a.Tools
		}
	}
	return out
}

// Zone returns the agent's time zone.
func (a Agent) Zone() (*time.Location, error) {
	z, err := time.LoadLocation(a.UserTimezone)
	if err != nil {
		return nil, fmt.Errorf("userTimezone %.60q of agent %s: want an IANA name such as \"Europe/Berlin\": %w", a.UserTimezone, a.ID, tidemark.ErrInvalid)
	}
	return z, nil
}

// Reset returns the policy of a session: that of its channel and kind, else of its channel, else of
// its kind, else the default. The main session's channel is "main".
func (c *Config) Reset(key tidemark.Key) Policy {
	channel := cmp.Or(key.Channel(), "main")
	out := c.Session.DefaultResetPolicy
	for _, name := range []string{channel + ":" + key.Kind(), channel, key.Kind()} {
		if p, ok := c.Session.ResetPolicies[name]; ok && name != "" {
			out.Mode = cmp.Or(p.Mode, out.Mode)
			out.AtHour = cmp.Or(p.AtHour, out.AtHour)
			out.IdleMinutes = cmp.Or(p.IdleMinutes, out.IdleMinutes)
			out.Zone = cmp.Or(p.Zone, out.Zone)
			break
		}
	}
	return out
}

// Problem is one mistake.
type Problem struct {
	Where string `json:"where"` // file:line:column, or the variable
	Key   string `json:"key,omitempty"`
	Text  string `json:"text"` // what was found, what is wanted
	// Secret is the variable that takes what does not belong in the document. Where it is set differs by
	// host: of this problem Text is without the fix.
	Secret string `json:"secret,omitempty"`
}

// String is the problem with the fix for a process that has an environment.
func (p Problem) String() string {
	out := p.Where + ": "
	if p.Key != "" {
		out += p.Key + ": "
	}
	out += p.Text
	if p.Secret != "" {
		out += "; set " + p.Secret + " in the environment instead"
	}
	return out
}

// Error is every mistake that was found. It is tidemark.ErrInvalid.
type Error struct{ Problems []Problem }

// Error gives a line for each problem.
func (e *Error) Error() string {
	var b strings.Builder
	for i, p := range e.Problems {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(p.String())
	}
	return b.String()
}

// Unwrap makes it bad input.
func (e *Error) Unwrap() error { return tidemark.ErrInvalid }
