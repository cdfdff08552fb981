package main

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strings"

	"github.com/tidemark-ai/tidemark/config"
	"github.com/tidemark-ai/tidemark/setup"
)

// doorPath is how the path of a client's base URL looks behind a door of ours, see proxyDoor.path.
var doorPath = regexp.MustCompile(`^(/t/[0-9a-f]+)?/p/[A-Za-z0-9._-]+(/v1)?/?$`)

// isDoor reports a base URL that a proxy of ours gave its client.
func isDoor(base string) bool {
	u, err := url.Parse(base)
	if err != nil || !doorPath.MatchString(u.Path) {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return ip != nil && ip.IsLoopback()
}

// settingsEnviron is the environment as the configuration reads it. The endpoint of a proxied client is a door of
// ours, and no setting of Tidemark's own model: its commands run beside that client and within it.
func (m *Main) settingsEnviron() []string {
	if isDoor(m.env(openAIBase)) {
		return without(m.Environ, openAIBase)
	}
	return m.Environ
}

// Variables by which clients find their API.
const (
	anthropicBase = "ANTHROPIC_BASE_URL"
	openAIBase    = "OPENAI_BASE_URL"
)

// without is an environment that lacks a variable.
func without(environ []string, name string) []string {
	var out []string
	for _, v := range environ {
		if n, _, _ := strings.Cut(v, "="); n != name {
			out = append(out, v)
		}
	}
	return out
}

// proxyMain is the program with an environment whose base URLs say where requests of clients go, and nothing of our
// own model.
func (m *Main) proxyMain() *Main {
	own := *m
	own.Environ = without(m.Environ, openAIBase)
	return &own
}

// upstreams has requests go on to where they are told, or else to where the client would have sent them
// without us, unless the configuration says so. Where another proxy's door stands in the environment nobody knows
// what was there before, and a key must not go where it was not meant to.
func (m *Main) upstreams(c *config.Config, told string) error {
	if told != "" {
		c.Proxy.Upstream, c.Proxy.Chat = told, told+"/v1"
		return nil
	}
	for _, v := range []struct {
		name, version string
		to            *string
	}{{anthropicBase, "", &c.Proxy.Upstream}, {openAIBase, "/v1", &c.Proxy.Chat}} {
		base, err := upstreamURL(m.env(v.name))
		if err != nil || *v.to != "" {
			continue
		}
		if isDoor(m.env(v.name)) {
			return &fixed{fmt.Errorf("%s=%s is the address of another `tidemark proxy`", v.name, safe(m.env(v.name))),
				"unset it, or say by --upstream where the requests go"}
		}
		*v.to = base + v.version
	}
	return nil
}

// tellUpstreams says of the variables that would have had the client go elsewhere that the server, which was there
// before, does not: the client's key goes where its requests go. of is what that server left of itself, if anything.
func (m *Main) tellUpstreams(of serverFile, base string) {
	for _, v := range []struct{ name, goes string }{
		{anthropicBase, cmp.Or(of.Messages, vendorMessages)}, {openAIBase, cmp.Or(of.Chat, vendorChat)},
	} {
		is, err := upstreamURL(m.env(v.name))
		if err != nil || isDoor(m.env(v.name)) {
			continue
		}
		if goes, err := upstreamURL(v.goes); of.URL == "" || err != nil || goes != is {
			to := "an upstream of its own"
			if of.URL != "" && err == nil {
				to = goes
			}
			m.err.printf("tidemark proxy: %s=%s is not used: the server at %s sends requests, and the client's key with them, to %s; stop it, or give --home another folder, to have them go there\n", v.name, safe(is), base, to)
		}
	}
}

// Where the APIs are unless something says otherwise.
const (
	vendorMessages = "https://api.anthropic.com"
	vendorChat     = "https://api.openai.com/v1"
)

// bases are the upstreams of a configuration.
func bases(c *config.Config) (messages, chat string) {
	a, b := setup.Upstreams(c)
	return cmp.Or(a.Base, vendorMessages), cmp.Or(b.Base, vendorChat)
}
