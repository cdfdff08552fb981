package config_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/config"
	"github.com/tidemark-ai/tidemark/internal/json"
)

var update = flag.Bool("update", false, "write the generated documents")

// TestGenerated holds the committed schema and table against the keys.
func TestGenerated(t *testing.T) {
	doc, err := os.ReadFile("../docs/config.md")
	if err != nil && !*update {
		t.Fatal(err)
	}
	const begin, end = "<!-- keys -->\n", "<!-- /keys -->\n"
	head, rest, ok := strings.Cut(string(doc), begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("docs/config.md has no %q … %q", begin, end)
	}
	for _, r := range []struct{ path, want string }{
		{"../docs/config.schema.json", string(config.Schema())},
		{"../docs/config.md", head + begin + string(config.Markdown()) + end + tail},
	} {
		if *update {
			if err := os.WriteFile(r.path, []byte(r.want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(r.path)
		if err != nil || string(got) != r.want {
			t.Errorf("%s is not what the keys say (%v); run: go test ./config -run TestGenerated -update", r.path, err)
		}
	}
	if !json.Valid(config.Schema()) {
		t.Error("the schema is no JSON")
	}
}

func TestParse(t *testing.T) {
	c, err := config.Parse("tidemark.jsonc", []byte(`{
		// comments, and commas at the end
		"$schema": "config.schema.json",
		"model": {"provider": "openai", "id": "m", "baseUrl": "http://localhost:11434/v1", "contextWindow": 8000},
		"compaction": {"reserveTokens": 100, "enabled": null},
		"server": {"origins": ["http://localhost:3000", "https://chat.example.com", "tauri://localhost"]},
		"session": {"resetPolicies": {"whatsapp": {"mode": "daily", "atHour": 5}, "whatsapp:group": {"mode": "idle"}, "dm": {"mode": "both"}}},
		"agents": {"list": [{"id": "work", "userTimezone": "Europe/Berlin"}, {"id": "home"}]},
		"storage": {"bucket": {"kind": "s3", "bucket": "b", "pathStyle": true}},
	}`))
	if err != nil {
		t.Fatal(err)
	}
	five, sixty := 5, 60
	for _, r := range []struct {
		name      string
		got, want any
	}{
		{"provider", c.Model.Provider, "openai"},
		{"window", c.Model.ContextWindow, tidemark.Tokens(8000)},
		{"reserve", c.Compaction.ReserveTokens, tidemark.Tokens(100)},
		{"null is the default", c.Compaction.Enabled, true},
		{"default", c.Compaction.KeepRecent, tidemark.Tokens(20000)},
		{"origins", strings.Join(c.Server.Origins, " "), "http://localhost:3000 https://chat.example.com tauri://localhost"},
		{"path style", c.Storage.Bucket.PathStyle, true},
		{"origin", c.Origin["compaction.reserveTokens"], "tidemark.jsonc:5:35"},
		{"channel", fmt.Sprint(c.Reset("agent:main:whatsapp:dm:anna").Mode), "daily"},
		{"channel hour", *c.Reset("agent:main:whatsapp:dm:anna").AtHour, five},
		{"inherited minutes", *c.Reset("agent:main:whatsapp:dm:anna").IdleMinutes, sixty},
		{"channel and kind", c.Reset("agent:main:whatsapp:group:x").Mode, "idle"},
		{"kind", c.Reset("agent:main:local:dm:x").Mode, "both"},
		{"main", c.Reset("agent:main:main").Mode, "manual"},
		{"agent zone", c.Agent("work").UserTimezone, "Europe/Berlin"},
		{"agent without", c.Agent("home").UserTimezone, "UTC"},
		{"agent not listed", c.Agent("other").UserTimezone, "UTC"},
	} {
		if !reflect.DeepEqual(r.got, r.want) {
			t.Errorf("%s: %v, want %v", r.name, r.got, r.want)
		}
	}
}

func TestMistakes(t *testing.T) {
	for _, r := range []struct{ name, doc, want string }{
		{"misspelt", `{"compaction": {"reserveToken": 1}}`, `c.jsonc:1:17: compaction.reserveToken: unknown key; did you mean "compaction.reserveTokens"?`},
		{"misspelt group", `{"compactions": {}}`, `compactions: unknown key; did you mean "compaction"?`},
		{"misplaced", `{"reserveTokens": 1}`, `did you mean "compaction.reserveTokens"?`},
		{"nothing near", `{"server": {"qqqqqqqqqq": 1}}`, `unknown key; server has listen, origins, graceSeconds`},
		{"line", "{\n  // x\n  \"model\": {\n    \"ids\": \"x\"\n  }\n}", `c.jsonc:4:5: model.ids: unknown key; did you mean "model.id"?`},
		{"type", `{"compaction": {"reserveTokens": "a lot"}}`, `compaction.reserveTokens: found the string "a lot", want a whole number from 1 to 10000000`},
		{"fraction", `{"compaction": {"reserveTokens": 1.5}}`, `found the number 1.5, want a whole number`},
		{"bounds", `{"model": {"contextWindow": 1}}`, `found the number 1, want a whole number from 4000 to 10000000`},
		{"switch", `{"compaction": {"enabled": "yes"}}`, `found the string "yes", want true or false`},
		{"choice", `{"model": {"provider": "claude"}}`, `want one of "anthropic", "openai", "workers-ai", "offline"`},
		{"group as text", `{"model": "gpt"}`, `model: found the string "gpt", want an object { … } with provider, id,`},
		{"document as list", `[]`, `found the list [], want an object`},
		{"list", `{"compaction": {"strategies": []}}`, `want a list of "summary", "pointer", "paging", "episodes", at least one and none twice`},
		{"trim is none", `{"compaction": {"strategies": ["paging", "trim"]}}`, `at least one and none twice: trim is used when a branch is made`},
		{"list twice", `{"compaction": {"strategies": ["pointer", "pointer"]}}`, "none twice"},
		{"agents", `{"agents": {"list": {}}}`, `agents.list: found an object, want a list of objects`},
		{"agent without id", `{"agents": {"list": [{}]}}`, `agents.list[0].id: missing`},
		{"agent twice", `{"agents": {"list": [{"id": "a"}, {"id": "a"}]}}`, `c.jsonc:1:42: agents.list[1].id: "a" is there twice`},
		{"agent name", `{"agents": {"list": [{"id": "A b"}]}}`, `want 1 to 64 lower case letters`},
		{"policy", `{"session": {"resetPolicies": {"dm": {"mood": "daily"}}}}`, `did you mean "session.resetPolicies.*.mode"?`},
		{"hour", `{"session": {"defaultResetPolicy": {"atHour": 24}}}`, `want a whole number from 0 to 23`},
		{"zone", `{"userTimezone": "Mars/Olympus"}`, `want an IANA time zone`},
		{"address", `{"server": {"listen": "8787"}}`, `want host and port such as "127.0.0.1:8787"`},
		{"url", `{"model": {"baseUrl": "ftp://x"}}`, `want a URL`},
		{"origin with a slash", `{"server": {"origins": ["http://localhost:3000/"]}}`, `server.origins: found the list ["http://localhost:3000/"], want a list of origins such as`},
		{"origin in capitals", `{"server": {"origins": ["https://Chat.example.com"]}}`, `want a list of origins`},
		{"origin with its scheme's port", `{"server": {"origins": ["https://chat.example.com:443"]}}`, `want a list of origins`},
		{"origin of every page", `{"server": {"origins": ["*"]}}`, `want a list of origins`},
		{"origin as text", `{"server": {"origins": "http://localhost:3000"}}`, `want a list of origins`},
		{"secret in url", `{"model": {"baseUrl": "https://user:pass@x/"}}`, `want a URL`},
		{"twice", `{"userTimezone": "UTC", "userTimezone": "UTC"}`, `set twice, first at c.jsonc:1:2`},
		{"syntax", "{\n  \"model\": }", `c.jsonc:2:12: no JSON with comments`},
		{"cut off", `{"model": {`, `no JSON with comments`},
		{"key", `{"apiKeys": {"anthropic": "sk-1"}}`, `apiKeys: a secret does not belong in the document; set ANTHROPIC_API_KEY or OPENAI_API_KEY in the environment instead`},
		{"key of a model", `{"model": {"apiKey": "sk-1"}}`, `model.apiKey: a secret does not belong`},
		{"token", `{"server": {"token": "x"}}`, `set TIDEMARK_TOKEN in the environment`},
		{"s3 key", `{"storage": {"bucket": {"secretKey": "x"}}}`, `AWS_SECRET_ACCESS_KEY`},
		{"s3 without bucket", `{"storage": {"bucket": {"kind": "s3"}}}`, `storage.bucket.bucket: missing`},
		{"bucket of a folder", `{"storage": {"bucket": {"bucket": "b"}}}`, `set it to "s3"`},
		{"endpoint of a binding", `{"model": {"provider": "workers-ai", "baseUrl": "https://x/v1"}}`, `set model.provider to "openai"`},
		{"model of an endpoint", `{"model": {"provider": "openai", "baseUrl": "http://x/v1"}}`, `model.id: missing`},
		{"too long", `{"systemPrompt": "` + strings.Repeat("x", 300<<10) + `"}`, `at most 262144`},
	} {
		t.Run(r.name, func(t *testing.T) {
			_, err := config.Parse("c.jsonc", []byte(r.doc))
			if !errors.Is(err, tidemark.ErrInvalid) || !strings.Contains(fmt.Sprint(err), r.want) {
				t.Errorf("got  %v\nwant … %s", err, r.want)
			}
			if strings.Contains(fmt.Sprint(err), "sk-1") {
				t.Error("the message shows the secret")
			}
		})
	}
}

// TestEveryKeyRefuses gives each key a value of every wrong type: the message names the key.
func TestEveryKeyRefuses(t *testing.T) {
	for _, k := range config.Keys() {
		for _, v := range []string{`{"a": 1}`, `[1]`, `-1`, `1e99`, `true`, `"\u0000"`} {
			if k.Type == config.Switch && v == "true" {
				continue
			}
			parts := strings.Split(k.Name, ".")
			doc := v
			for i := len(parts) - 1; i >= 0; i-- {
				switch {
				case parts[i] != "*":
					doc = fmt.Sprintf("{%q: %s}", parts[i], doc)
				case parts[i-1] == "list":
					doc = "[" + doc + "]"
				default:
					doc = fmt.Sprintf("{%q: %s}", "dm", doc)
				}
			}
			_, err := config.Parse("c.jsonc", []byte(doc))
			last := parts[len(parts)-1]
			if last == "*" {
				last = "dm"
			}
			if err == nil || !strings.Contains(err.Error(), "."+last+": found") && !strings.Contains(err.Error(), " "+last+": found") {
				t.Errorf("%s: %v", doc, err)
			}
		}
	}
}

func TestOverride(t *testing.T) {
	for _, r := range []struct {
		name string
		doc  string
		env  []string
		want string // of the key, or of the error
		key  string
	}{
		{"number", ``, []string{"TIDEMARK_COMPACTION_RESERVETOKENS=7"}, "7", "compaction.reserveTokens"},
		{"over the document", `{"userTimezone": "UTC"}`, []string{"TIDEMARK_USERTIMEZONE=Asia/Tokyo"}, "Asia/Tokyo", "userTimezone"},
		{"switch", ``, []string{"TIDEMARK_COMPACTION_ENABLED=false"}, "false", "compaction.enabled"},
		{"list", ``, []string{"TIDEMARK_COMPACTION_STRATEGIES=summary"}, "[summary]", "compaction.strategies"},
		{"list, two", ``, []string{"TIDEMARK_COMPACTION_STRATEGIES=pointer, summary"}, "[pointer summary]", "compaction.strategies"},
		{"list as JSON", ``, []string{`TIDEMARK_COMPACTION_STRATEGIES= ["pointer", "summary"] `}, "[pointer summary]", "compaction.strategies"},
		{"list as JSON, empty", ``, []string{"TIDEMARK_CHANNELS_TELEGRAM_ALLOW=[]"}, "[]", "channels.telegram.allow"},
		{"list as JSON, broken", ``, []string{`TIDEMARK_COMPACTION_STRATEGIES=["pointer"`}, `found "[\"pointer\"", want a list of "summary", "pointer", "paging", "episodes", at least one and none twice; write A,B or ["A","B"]`, ""},
		{"list, wrong", ``, []string{`TIDEMARK_COMPACTION_STRATEGIES=pointer;summary`}, `none twice; write A,B or ["A","B"]`, ""},
		{"empty is none", ``, []string{"TIDEMARK_COMPACTION_RESERVETOKENS="}, "20000", "compaction.reserveTokens"},
		{"wrong", ``, []string{"TIDEMARK_COMPACTION_RESERVETOKENS=many"}, `TIDEMARK_COMPACTION_RESERVETOKENS: compaction.reserveTokens: found "many", want a whole number`, ""},
		{"wrong switch", ``, []string{"TIDEMARK_COMPACTION_ENABLED=yes"}, `want true or false`, ""},
		{"endpoint", ``, []string{"OPENAI_BASE_URL=http://localhost:1/v1", "TIDEMARK_MODEL_ID=m"}, "http://localhost:1/v1", "model.baseUrl"},
		{"endpoint of another", `{"model": {"provider": "anthropic"}}`, []string{"OPENAI_BASE_URL=http://localhost:1/v1"}, "<nil>", "model.baseUrl"},
		{"endpoint without a model", ``, []string{"OPENAI_BASE_URL=http://localhost:1/v1"}, `TIDEMARK_MODEL_ID: model.id: missing; OPENAI_BASE_URL is set, and`, ""},
		{"our endpoint without a model", ``, []string{"TIDEMARK_MODEL_BASEURL=http://localhost:1/v1", "TIDEMARK_MODEL_PROVIDER=openai"}, `TIDEMARK_MODEL_ID: model.id: missing; TIDEMARK_MODEL_BASEURL is set`, ""},
		{"endpoint, wrong", ``, []string{"OPENAI_BASE_URL=localhost"}, `OPENAI_BASE_URL: model.baseUrl: found "localhost"`, ""},
	} {
		t.Run(r.name, func(t *testing.T) {
			c, err := config.Parse("c.jsonc", []byte(r.doc))
			if err != nil {
				t.Fatal(err)
			}
			if err = c.Override(r.env); r.key == "" {
				if !errors.Is(err, tidemark.ErrInvalid) || !strings.Contains(fmt.Sprint(err), r.want) {
					t.Errorf("got %v, want %s", err, r.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range c.Values() {
				if v.Key == r.key && fmt.Sprint(v.Value) != r.want {
					t.Errorf("%s = %v, want %s", v.Key, v.Value, r.want)
				}
			}
		})
	}
}

// TestLoad: mistakes of the document and of variables are told together, without what only follows from
// the document not being read.
func TestLoad(t *testing.T) {
	for _, r := range []struct {
		name, doc string
		env       []string
		want      []string
	}{
		{"both", `{"model": {"maxTokens": "many"}}`, []string{"TIDEMARK_LOG_LEVEL=loud"}, []string{"c:1:25: model.maxTokens: found", "TIDEMARK_LOG_LEVEL: log.level: found"}},
		{"a secret", `{"model": {"apiKey": "sk-1"}}`, []string{"TIDEMARK_LOG_LEVEL=loud"}, []string{"in the environment instead", "TIDEMARK_LOG_LEVEL: log.level: found"}},
		{"what the document may have said", `{"model": {"id": "m", "x": 1}}`, []string{"OPENAI_BASE_URL=http://localhost:1/v1"}, []string{"model.x: unknown key"}},
		{"the variable", `{}`, []string{"TIDEMARK_LOG_LEVEL=loud"}, []string{"TIDEMARK_LOG_LEVEL: log.level: found"}},
		{"together", `{"model": {"id": "m"}}`, []string{"OPENAI_BASE_URL=http://localhost:1/v1"}, nil},
	} {
		t.Run(r.name, func(t *testing.T) {
			_, err := config.Load("c", []byte(r.doc), r.env)
			var lines []string
			if err != nil {
				lines = strings.Split(err.Error(), "\n")
			}
			if len(lines) != len(r.want) {
				t.Fatalf("got %v, want %d lines", err, len(r.want))
			}
			for i, want := range r.want {
				if !strings.Contains(lines[i], want) {
					t.Errorf("got %s, want … %s", lines[i], want)
				}
			}
		})
	}
}

func TestUnknownVariable(t *testing.T) {
	c := config.Default()
	if err := c.Override([]string{"TIDEMARK_SERVER_LISTN=x", "TIDEMARK_HOME=/x"}); err != nil {
		t.Fatal(err)
	}
	if len(c.Warnings) != 1 || !strings.Contains(c.Warnings[0], "did you mean TIDEMARK_SERVER_LISTEN?") {
		t.Errorf("warnings: %q", c.Warnings)
	}
}

func TestResolve(t *testing.T) {
	for _, r := range []struct {
		name, doc           string
		env                 []string
		provider, id, lacks string
	}{
		{"nothing", ``, nil, "offline", "offline", ""},
		{"anthropic", ``, []string{"ANTHROPIC_API_KEY=k", "OPENAI_API_KEY=k"}, "anthropic", config.DefaultAnthropicModel, ""},
		{"openai", ``, []string{"OPENAI_API_KEY=k"}, "openai", config.DefaultOpenAIModel, ""},
		{"set", `{"model": {"provider": "offline"}}`, []string{"OPENAI_API_KEY=k"}, "offline", "offline", ""},
		{"bound", ``, nil, "workers-ai", config.DefaultWorkersAIModel, ""},
		{"bound, and a key", ``, []string{"ANTHROPIC_API_KEY=k"}, "anthropic", config.DefaultAnthropicModel, ""},
		{"bound, and offline is asked for", `{"model": {"provider": "offline"}}`, nil, "offline", "offline", ""},
		{"no key", `{"model": {"provider": "anthropic", "id": "x"}}`, nil, "anthropic", "x", "ANTHROPIC_API_KEY"},
		{"workers ai", `{"model": {"provider": "workers-ai"}}`, []string{"OPENAI_API_KEY=k", "OPENAI_BASE_URL=http://x/v1"}, "workers-ai", config.DefaultWorkersAIModel, ""},
		{"endpoint without key", `{"model": {"provider": "openai", "id": "x", "baseUrl": "http://x"}}`, nil, "openai", "x", ""},
	} {
		t.Run(r.name, func(t *testing.T) {
			c, err := config.Parse("c", []byte(r.doc))
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Override(r.env); err != nil {
				t.Fatal(err)
			}
			c.AI = strings.HasPrefix(r.name, "bound")
			c.Resolve()
			if c.Model.Provider != r.provider || c.Model.ID != r.id || c.KeyMissing() != r.lacks {
				t.Errorf("%s %s, lacks %q", c.Model.Provider, c.Model.ID, c.KeyMissing())
			}
		})
	}
}

// TestSecretsStay prints a configuration in every way there is.
func TestSecretsStay(t *testing.T) {
	c := config.Default()
	if err := c.Override([]string{"ANTHROPIC_API_KEY=hush", "OPENAI_API_KEY=hush", "TIDEMARK_TOKEN=hush"}); err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{string(raw), fmt.Sprintf("%v %+v %#v %s", c.Secrets, c.Secrets, c.Secrets, c.Secrets.Token), fmt.Sprint(c.Values())} {
		if strings.Contains(s, "hush") {
			t.Errorf("a secret stands in %s", s)
		}
	}
	if c.Secrets.Token.Reveal() != "hush" {
		t.Error("the secret is lost")
	}
}

// FuzzParse: what is taken is taken again when its values are written out as a document.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"model": {"id": "x"}, "session": {"resetPolicies": {"dm": {"atHour": 3}}}} // x`))
	f.Add([]byte(`{"agents": {"list": [{"id": "a", "userTimezone": "UTC"}]}}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		c, err := config.Parse("c", doc)
		if err != nil {
			if !errors.Is(err, tidemark.ErrInvalid) {
				t.Fatalf("%v is not ErrInvalid", err)
			}
			return
		}
		var env []string
		for _, k := range config.Keys() {
			for _, v := range c.Values() {
				if s, ok := v.Value.(string); v.Key == k.Name && k.Variable() != "" && v.Value != nil && (!ok || s != "") {
					env = append(env, k.Variable()+"="+strings.Trim(fmt.Sprint(v.Value), "[]"))
				}
			}
		}
		again := config.Default()
		again.Agents, again.Session.ResetPolicies = c.Agents, c.Session.ResetPolicies
		if err := again.Override(env); err != nil {
			t.Fatalf("%s\nas variables %q: %v", doc, env, err)
		}
		again.Origin, c.Origin = nil, nil
		again.Warnings, c.Warnings = nil, nil
		if a, b := fmt.Sprintf("%+v", again.Values()), fmt.Sprintf("%+v", c.Values()); a != b {
			t.Fatalf("as variables it is\n%s\nnot\n%s", a, b)
		}
	})
}

// TestRecallWarnings: vectors that nobody will make are told of.
func TestRecallWarnings(t *testing.T) {
	for _, row := range []struct {
		name, doc string
		env       []string
		want      bool
	}{
		{"off", `{}`, nil, false},
		{"no key", `{"recall":{"embeddings":"openai"}}`, nil, true},
		{"a key", `{"recall":{"embeddings":"openai"}}`, []string{"OPENAI_API_KEY=k"}, false},
		{"an endpoint", `{"recall":{"embeddings":"openai","embeddingUrl":"http://127.0.0.1:1/v1"}}`, nil, false},
		{"no binding", `{"recall":{"embeddings":"workers-ai"}}`, nil, true},
	} {
		c, err := config.Parse("tidemark.jsonc", []byte(row.doc))
		if err == nil {
			err = c.Override(row.env)
		}
		if err != nil {
			t.Fatalf("%s: %v", row.name, err)
		}
		c.Resolve()
		if got := strings.Contains(strings.Join(c.Warnings, "\n"), "recall.embeddings"); got != row.want {
			t.Errorf("%s: %q", row.name, c.Warnings)
		}
	}
}
