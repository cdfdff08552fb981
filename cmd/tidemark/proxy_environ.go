package main

import (
	"cmp"
	"fmt"

	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/config"
)

// proxyMain is the program with an environment whose base URLs say where requests of clients go, and nothing of our
// own model.
func proxyMain(m *cli.Main) *cli.Main {
	own := *m
	own.Environ = cli.Without(m.Environ, cli.OpenAIBase)
	return &own
}

// upstreams has requests go on to where they are told, or else to where the client would have sent them
// without us, unless the configuration says so. Where another proxy's door stands in the environment nobody knows
// what was there before, and a key must not go where it was not meant to.
func upstreams(m *cli.Main, c *config.Config, told string) error {
	if told != "" {
		c.Proxy.Upstream, c.Proxy.Chat = told, told+"/v1"
		return nil
	}
	for _, v := range []struct {
		name, version string
		to            *string
	}{{cli.AnthropicBase, "", &c.Proxy.Upstream}, {cli.OpenAIBase, "/v1", &c.Proxy.Chat}} {
		base, err := upstreamURL(m.Env(v.name))
		if err != nil || *v.to != "" {
			continue
		}
		if cli.IsDoor(m.Env(v.name)) {
			return cli.Advise(fmt.Errorf("%s=%s is the address of another `tidemark proxy`", v.name, cli.Safe(m.Env(v.name))),
				"unset it, or say by --upstream where the requests go")
		}
		*v.to = base + v.version
	}
	return nil
}

// tellUpstreams says of the variables that would have had the client go elsewhere that the server, which was there
// before, does not: the client's key goes where its requests go. of is what that server left of itself, if anything.
func tellUpstreams(m *cli.Main, of cli.ServerFile, base string) {
	for _, v := range []struct{ name, goes string }{
		{cli.AnthropicBase, cmp.Or(of.Messages, cli.VendorMessages)}, {cli.OpenAIBase, cmp.Or(of.Chat, cli.VendorChat)},
	} {
		is, err := upstreamURL(m.Env(v.name))
		if err != nil || cli.IsDoor(m.Env(v.name)) {
			continue
		}
		if goes, err := upstreamURL(v.goes); of.URL == "" || err != nil || goes != is {
			to := "an upstream of its own"
			if of.URL != "" && err == nil {
				to = goes
			}
			m.Err.Printf("tidemark proxy: %s=%s is not used: the server at %s sends requests, and the client's key with them, to %s; stop it, or give --home another folder, to have them go there\n", v.name, cli.Safe(is), base, to)
		}
	}
}
