package setup

import (
	"testing"

	"github.com/tidemark-ai/tidemark/config"
	"github.com/tidemark-ai/tidemark/proxy"
	"github.com/tidemark-ai/tidemark/reset"
)

// TestUpstreams: requests of clients go where the model is, and a key of ours nowhere else.
func TestUpstreams(t *testing.T) {
	for _, row := range []struct {
		name           string
		document       string
		messages, chat Upstream
	}{
		{"no model", `{"model":{"provider":"offline"}}`, Upstream{}, Upstream{}},
		{"Anthropic", `{"model":{"provider":"anthropic"}}`, Upstream{"", "k-a"}, Upstream{}},
		{"Anthropic elsewhere", `{"model":{"provider":"anthropic","baseUrl":"http://a.test"}}`, Upstream{"http://a.test", "k-a"}, Upstream{}},
		{"OpenAI", `{"model":{"provider":"openai","id":"m","baseUrl":"http://o.test/v1"}}`, Upstream{}, Upstream{"http://o.test/v1", "k-o"}},
		{"upstreams of their own", `{"model":{"provider":"anthropic","baseUrl":"http://a.test"},"proxy":{"upstream":"http://u.test","chatUpstream":"http://c.test/v1"}}`,
			Upstream{"http://u.test", ""}, Upstream{"http://c.test/v1", ""}},
	} {
		t.Run(row.name, func(t *testing.T) {
			c, err := config.Load("c", []byte(row.document), []string{"ANTHROPIC_API_KEY=k-a", "OPENAI_API_KEY=k-o"})
			if err != nil {
				t.Fatal(err)
			}
			if messages, chat := Upstreams(c); messages != row.messages || chat != row.chat {
				t.Errorf("%+v and %+v", messages, chat)
			}
		})
	}
}

// TestProxySettings: what the configuration says of clients that keep their history.
func TestProxySettings(t *testing.T) {
	if s := Proxy(config.Default()); s.Treatment != proxy.Page || s.Alone || s.Window != 200_000 || s.Paging.Tau != 4 || s.Tools != nil {
		t.Errorf("by default %+v", s)
	}
	c, err := config.Load("c", []byte(`{"proxy":{"treatment":"off","cooperate":false,"window":1000000},"compaction":{"paging":{"minBytes":0,"tools":{"peek":{"kind":"reads"}}}},"session":{"defaultResetPolicy":{"mode":"both"}}}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	if s := Proxy(c); s.Treatment != "" || !s.Alone || s.Window != 1_000_000 || s.Paging.MinBytes != -1 || s.Tools == nil {
		t.Errorf("%+v", s)
	}
	kept, err := Session(c, "agent:main:proxy:dm:0123456789abcdef0123456789abcdef")
	if err != nil || kept.Reset.Mode != reset.Manual {
		t.Errorf("%v: reset by %v, though the client has the history", err, kept.Reset.Mode)
	}
}
