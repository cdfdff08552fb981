package config

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/approval"
	"github.com/tidemark-ai/tidemark/episodes"
)

// Type says what a value must be.
type Type string

// The types of keys.
const (
	Text    Type = "string"
	Number  Type = "integer"
	Switch  Type = "boolean"
	Choice  Type = "choice" // one of Key.Values
	Choices Type = "list"   // several of Key.Values
	Zone    Type = "zone"   // an IANA time zone
	URL     Type = "url"    // http or https
	Address Type = "address"
	Name    Type = "name" // lower case letters, digits, - and _
	Origins Type = "origins"
	Names   Type = "names" // short texts, none twice

	Percents Type = "percents" // ascending, for each zone one
	Rules    Type = "rules"    // of tool approval, as package approval has them
	Budget   Type = "budget"   // tokens, or a part of the window, as episodes.ParseBudget reads it
)

// Key is one setting that can be made.
type Key struct {
	Name    string // "*" stands for a name of one's own, or for each element of a list
	Type    Type
	Default string // as JSON; empty when there is none
	Values  string // allowed ones, separated by blanks; of Names an example
	Min     int64
	Max     int64
	Doc     string // one line

	at func(c *Config, star string) any // a pointer to where the value goes
}

// Bounds that several keys share.
const (
	maxTokens = 10_000_000
	maxText   = 32 << 10 // bytes of a string
	maxNamed  = 200      // policies, agents
	yearMins  = 366 * 24 * 60
)

// Keys returns every key, in the order of the documentation.
func Keys() []Key {
	var all []Key
	for _, group := range [][]Key{modelKeys(), contextKeys(), pagingKeys(), episodeKeys(), proxyKeys(), recallKeys(), sessionKeys(), delegationKeys(), scheduleKeys(), memoryKeys(), storageKeys(), serverKeys(), channelKeys(), toolKeys(), approvalKeys()} {
		all = append(all, group...)
	}
	return all
}

func modelKeys() []Key {
	return []Key{
		{Name: "model.provider", Type: Choice, Values: "anthropic openai workers-ai offline", at: func(c *Config, _ string) any { return &c.Model.Provider },
			Doc: "Who answers. When it is not set: anthropic if ANTHROPIC_API_KEY is set, else openai if OPENAI_API_KEY is, else on Workers workers-ai if [ai] is bound, else the built-in offline model. workers-ai works on Cloudflare only."},
		{Name: "model.id", Type: Text, at: func(c *Config, _ string) any { return &c.Model.ID },
			Doc: "Name of the model, as the provider knows it. When it is not set: " + DefaultAnthropicModel + ", " + DefaultOpenAIModel + " or " + DefaultWorkersAIModel + "."},
		{Name: "model.baseUrl", Type: URL, at: func(c *Config, _ string) any { return &c.Model.BaseURL },
			Doc: "Endpoint other than the provider's own: OpenRouter, Ollama, llama.cpp, vLLM, a proxy. OPENAI_BASE_URL sets it too, for openai."},
		{Name: "model.contextWindow", Type: Number, Default: "200000", Min: 4_000, Max: maxTokens, at: func(c *Config, _ string) any { return &c.Model.ContextWindow },
			Doc: "Tokens of the model's window that are used at most, its reply included. Where the model takes less, as its endpoint, its maker or a refusal says, less."},
		{Name: "model.maxTokens", Type: Number, Default: "0", Max: maxTokens, at: func(c *Config, _ string) any { return &c.Model.MaxTokens },
			Doc: "Bound on a reply, in tokens; 0 leaves it to the provider."},
		{Name: "systemPrompt", Type: Text, at: func(c *Config, _ string) any { return &c.SystemPrompt },
			Doc: "Base of the system prompt; persona and memory are added to it. When it is not set: a short one of ours."},
	}
}

func contextKeys() []Key {
	return []Key{
		{Name: "compaction.enabled", Type: Switch, Default: "true", at: func(c *Config, _ string) any { return &c.Compaction.Enabled },
			Doc: "Make the context smaller when it passes the window less the reserve."},
		{Name: "compaction.reserveTokens", Type: Number, Default: "20000", Min: 1, Max: maxTokens, at: func(c *Config, _ string) any { return &c.Compaction.ReserveTokens },
			Doc: "Tokens of the window that are left free for the next reply. Scaled down on windows too small for it."},
		{Name: "compaction.keepRecentTokens", Type: Number, Default: "20000", Min: 1, Max: maxTokens, at: func(c *Config, _ string) any { return &c.Compaction.KeepRecent },
			Doc: "Tokens of the newest messages that a compaction leaves as they are. Scaled down on windows too small for it."},
		{Name: "compaction.extractMemories", Type: Switch, Default: "true", at: func(c *Config, _ string) any { return &c.Compaction.ExtractMemories },
			Doc: "Write what is worth remembering to the daily memory file: at compaction, with pointer soon behind the turn, and at reset."},
		{Name: "compaction.model", Type: Text, at: func(c *Config, _ string) any { return &c.Compaction.Model },
			Doc: "Model that writes summaries, of the same provider. When it is not set: model.id."},
		{Name: "compaction.strategies", Type: Choices, Default: `["summary"]`, Values: "summary pointer paging episodes", at: func(c *Config, _ string) any { return &c.Compaction.Strategies },
			Doc: "Strategies that make the context smaller: paging has old results of tools leave a stub, long before the limit, see compaction.paging; episodes has the agent mark its work with a tool, and finished work leave above a budget of its own, see compaction.episodes; pointer leaves pointers and markers that recall follows, summary has a model write one. In whatever order they are named, paging goes first, then episodes, then pointer, and summary only takes over in a compaction where the others alone cannot bring the context below its limit."},
	}
}

func recallKeys() []Key {
	return []Key{
		{Name: "recall.packTokens", Type: Number, Default: "4096", Max: maxTokens, at: func(c *Config, _ string) any { return &c.Recall.PackTokens },
			Doc: "Budget of what is pushed to the model beside the messages, of which the task card has 3 and what was evicted and fits the input 47 of 100; the rest stands in the view. With the strategy pointer only; 0 pushes nothing."},
		{Name: "recall.taskState", Type: Choice, Default: `"auto"`, Values: "auto on off", at: func(c *Config, _ string) any { return &c.Recall.TaskState },
			Doc: "Whether the model has a tool that keeps goals, open loops, constraints and key events. auto: with the strategy pointer."},
		{Name: "recall.embeddings", Type: Choice, Default: `"off"`, Values: "off openai workers-ai", at: func(c *Config, _ string) any { return &c.Recall.Embeddings },
			Doc: "Who makes vectors of messages, beside the index of words: openai is any endpoint of the shape of /embeddings, workers-ai the binding of a Worker. Messages are sent there, some at a time, after they were logged; a failing endpoint only means that words alone find."},
		{Name: "recall.embeddingModel", Type: Text, at: func(c *Config, _ string) any { return &c.Recall.EmbeddingModel },
			Doc: "Model that makes vectors. When it is not set: " + DefaultEmbeddingModel + " or " + DefaultWorkersAIEmbedding + ". Another one makes all vectors anew."},
		{Name: "recall.embeddingUrl", Type: URL, at: func(c *Config, _ string) any { return &c.Recall.EmbeddingURL },
			Doc: "Endpoint other than OpenAI's own, in front of /embeddings. Its key is EMBEDDINGS_API_KEY; that of OpenAI is not sent there."},
		{Name: "recall.reflection", Type: Switch, Default: "false", at: func(c *Config, _ string) any { return &c.Recall.Reflection },
			Doc: "With the strategy pointer: record how recalls go, and after each compaction let more or less stay accordingly, within bounds. Each change is an event that says why."},
		{Name: "recall.reconcile", Type: Choice, Default: `"off"`, Values: "off size model", at: func(c *Config, _ string) any { return &c.Recall.Reconcile },
			Doc: "What recall leaves out and memory takes back: size leaves out turns of low importance in which nobody asked for anything, once a conversation is over 500 messages or 50 MB; with model the model that draws facts from conversations also says which older ones they replace or end. Nothing is removed (docs/memory.md)."},
	}
}

func sessionKeys() []Key {
	keys := policyKeys("session.defaultResetPolicy", `"manual"`, "Every session without a policy of its own: ",
		func(c *Config, _ string, f func(*Policy) any) any { return f(&c.Session.DefaultResetPolicy) })
	keys = append(keys, policyKeys("session.resetPolicies.*", "", `By channel and kind ("whatsapp:group"), by channel ("whatsapp", "main") or by kind ("dm"): `,
		func(c *Config, star string, f func(*Policy) any) any {
			p := c.Session.ResetPolicies[star]
			return &inMap{ptr: f(&p), store: func() {
				if c.Session.ResetPolicies == nil {
					c.Session.ResetPolicies = map[string]Policy{}
				}
				c.Session.ResetPolicies[star] = p
			}}
		})...)
	return append(keys,
		Key{Name: "session.dmScope", Type: Choice, Default: `"per-channel-peer"`, Values: "main per-peer per-channel-peer per-account-channel-peer", at: func(c *Config, _ string) any { return &c.Session.DMScope },
			Doc: "Who shares a conversation in direct messages. main puts everyone who writes into the owner's own."},
		Key{Name: "session.maxRounds", Type: Number, Default: "50", Min: 1, Max: 1000, at: func(c *Config, _ string) any { return &c.Session.MaxRounds },
			Doc: "Model calls in one turn at most."},
		Key{Name: "agents.list.*.id", Type: Name, at: func(c *Config, star string) any { return &agentAt(c, star).ID },
			Doc: "Name of an agent, as in agent:{id}:main. Agents that are not listed have the general settings."},
		Key{Name: "agents.list.*.systemPrompt", Type: Text, at: func(c *Config, star string) any { return &agentAt(c, star).SystemPrompt },
			Doc: "The agent's own systemPrompt."},
		Key{Name: "agents.list.*.userTimezone", Type: Zone, at: func(c *Config, star string) any { return &agentAt(c, star).UserTimezone },
			Doc: "The agent's own userTimezone."},
		Key{Name: "agents.list.*.tools", Type: Globs, Values: "files__*", at: func(c *Config, star string) any { return &agentAt(c, star).Tools },
			Doc: "Tools of servers and modules that the agent may use. When it is not set: all."},
	)
}

// inMap is a pointer into a copy of a map's value, put back when it has been written.
type inMap struct {
	ptr   any
	store func()
}

func policyKeys(prefix, mode, doc string, at func(*Config, string, func(*Policy) any) any) []Key {
	field := func(f func(*Policy) any) func(*Config, string) any {
		return func(c *Config, star string) any { return at(c, star, f) }
	}
	hour, idle := "4", "60"
	if mode == "" {
		hour, idle = "", ""
	}
	return []Key{
		{Name: prefix + ".mode", Type: Choice, Default: mode, Values: "manual daily idle both", at: field(func(p *Policy) any { return &p.Mode }),
			Doc: doc + "what begins the conversation anew."},
		{Name: prefix + ".atHour", Type: Number, Default: hour, Max: 23, at: field(func(p *Policy) any { return &p.AtHour }),
			Doc: doc + "hour of the daily reset."},
		{Name: prefix + ".idleMinutes", Type: Number, Default: idle, Max: yearMins, at: field(func(p *Policy) any { return &p.IdleMinutes }),
			Doc: doc + "pause after which an idle reset is due; 0 ends the session as soon as nothing waits for an answer."},
		{Name: prefix + ".zone", Type: Zone, at: field(func(p *Policy) any { return &p.Zone }),
			Doc: doc + "time zone of atHour. When it is not set: userTimezone."},
	}
}

// agentAt returns the element of agents.list at a place, which is made when it is the next.
func agentAt(c *Config, star string) *Agent {
	i, err := strconv.Atoi(star)
	if err != nil || i < 0 || i >= maxNamed {
		return &Agent{}
	}
	for len(c.Agents) <= i {
		c.Agents = append(c.Agents, Agent{})
	}
	return &c.Agents[i]
}

func memoryKeys() []Key {
	return []Key{
		{Name: "memory.sharing", Type: Choice, Default: `"peer"`, Values: "peer agent", at: func(c *Config, _ string) any { return &c.Memory.Sharing },
			Doc: "Who sees a daily memory file: peer keeps what was learned from someone to their own sessions and the owner's, agent shares one file among all."},
		{Name: "memory.promptTokens", Type: Number, Default: "12000", Min: 200, Max: maxTokens, at: func(c *Config, _ string) any { return &c.Memory.PromptTokens },
			Doc: "Tokens of the system prompt that persona and memory may take."},
		{Name: "memory.digest", Type: Switch, Default: "false", at: func(c *Config, _ string) any { return &c.Memory.Digest },
			Doc: "Write memory/DIGEST.md at night: the owner's facts that count still, sittings and compactions, a line each. What a person wrote there is never overwritten."},
		{Name: "memory.digestLines", Type: Number, Default: "200", Min: 1, Max: 10_000, at: func(c *Config, _ string) any { return &c.Memory.DigestLines },
			Doc: "Lines of the digest at most, headings and links included. What does not fit stands in files of memory/digest/."},
		{Name: "userTimezone", Type: Zone, Default: `"UTC"`, at: func(c *Config, _ string) any { return &c.UserTimezone },
			Doc: "Time zone of memory files and daily resets."},
	}
}

func storageKeys() []Key {
	return []Key{
		{Name: "storage.artifactChars", Type: Number, Default: "1024", Max: 1_000_000, at: func(c *Config, _ string) any { return &c.Storage.ArtifactChars },
			Doc: "Characters over which the result of a tool is stored compressed, once for all equal ones. What is sent to the model is the same. 0: never."},
		{Name: "storage.bucket.kind", Type: Choice, Default: `"folder"`, Values: "folder s3", at: func(c *Config, _ string) any { return &c.Storage.Bucket.Kind },
			Doc: "Where files go: a folder, or any S3 bucket (AWS, R2, MinIO). Credentials of S3 come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."},
		{Name: "storage.bucket.path", Type: Text, at: func(c *Config, _ string) any { return &c.Storage.Bucket.Path },
			Doc: "The folder. When it is not set: bucket, in the home folder."},
		{Name: "storage.bucket.endpoint", Type: URL, at: func(c *Config, _ string) any { return &c.Storage.Bucket.Endpoint },
			Doc: "Endpoint of S3, for R2 https://{account}.r2.cloudflarestorage.com. When it is not set: AWS itself."},
		{Name: "storage.bucket.region", Type: Text, at: func(c *Config, _ string) any { return &c.Storage.Bucket.Region },
			Doc: "Region of S3. When it is not set: AWS_REGION, else auto."},
		{Name: "storage.bucket.bucket", Type: Text, at: func(c *Config, _ string) any { return &c.Storage.Bucket.Bucket },
			Doc: "Name of the S3 bucket, which must exist."},
		{Name: "storage.bucket.prefix", Type: Text, at: func(c *Config, _ string) any { return &c.Storage.Bucket.Prefix },
			Doc: "Put before every key in the S3 bucket, as it is; end it with a slash to get a folder."},
		{Name: "storage.bucket.pathStyle", Type: Switch, Default: "false", at: func(c *Config, _ string) any { return &c.Storage.Bucket.PathStyle },
			Doc: "Put the bucket's name into the path instead of the host name; MinIO wants it."},
		{Name: "storage.bucket.conditional", Type: Choice, Default: `"native"`, Values: "native none", at: func(c *Config, _ string) any { return &c.Storage.Bucket.Conditional },
			Doc: "Who holds the conditions of a write: the store (native), or this process (none), for stores that ignore If-None-Match; run one process then."},
	}
}

// Variable is the name of the environment variable that overrides a key, empty for keys with names
// of one's own in them.
func (k Key) Variable() string {
	if strings.Contains(k.Name, "*") {
		return ""
	}
	return "TIDEMARK_" + strings.ToUpper(strings.ReplaceAll(k.Name, ".", "_"))
}

// want says what a value must be, in words.
func (k Key) want() string {
	switch k.Type {
	case Number:
		return "a whole number from " + strconv.FormatInt(k.Min, 10) + " to " + strconv.FormatInt(k.Max, 10)
	case Switch:
		return "true or false"
	case Choice:
		return "one of " + quoted(k.Values)
	case Choices:
		return "a list of " + quoted(k.Values) + ", at least one and none twice"
	case Zone:
		return `an IANA time zone such as "Europe/Berlin"`
	case URL:
		return `a URL such as "https://example.com/v1"`
	case Address:
		return `host and port such as "127.0.0.1:8787"`
	case Origins:
		return `a list of origins such as "http://localhost:3000", with no path and no slash at the end`
	case Names:
		return "a list of names such as " + strconv.Quote(cmp.Or(k.Values, "+49 151 23456789"))
	case Globs:
		return "a list of names with * and ? such as " + strconv.Quote(k.Values) + ", none twice"
	case Texts:
		return "a list of strings"
	case Percents:
		return "a list of three ascending percents of the window such as [30,50,60]"
	case Budget:
		return fmt.Sprintf(`tokens from %d to %d as 80000 or "80k", or "50%%" of the window`, episodes.MinBudget, episodes.MaxBudget)
	case Rules:
		return `a list of rules such as [{"tool": "files__*", "action": "ask"}]`
	case Name:
		return "1 to 64 lower case letters, digits, - and _"
	}
	return "a string"
}

func quoted(values string) string {
	return `"` + strings.ReplaceAll(values, " ", `", "`) + `"`
}

// value returns what a key has in a configuration, by its pointer.
func (k Key) value(c *Config, star string) any {
	p := k.at(c, star)
	if m, ok := p.(*inMap); ok {
		p = m.ptr
	}
	switch p := p.(type) {
	case *string:
		return *p
	case *int:
		return *p
	case **int:
		if *p == nil {
			return nil
		}
		return **p
	case *tidemark.Tokens:
		return int64(*p)
	case *bool:
		return *p
	case *[]string:
		return *p
	case *[]int:
		return *p
	case *[]approval.Rule:
		return *p
	}
	return nil
}
