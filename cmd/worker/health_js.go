package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/config"
	"github.com/tidemark-ai/tidemark/host/cloudflare"
	"github.com/tidemark-ai/tidemark/worker"
)

// local reports what `make dev` started: its secrets are those of .dev.vars.
func local() bool { return cloudflare.Env("TIDEMARK_DEV") == "1" }

// secretHelp says how a secret is set, tokenWhere where the token is kept: the words of build/front.mjs.
func secretHelp(name string) string {
	if local() {
		return "set " + name + " in .dev.vars and start make dev again, which reads it when it starts"
	}
	return "run: npx --prefix build wrangler secret put " + name
}

func tokenWhere() string {
	if local() {
		return "TIDEMARK_TOKEN as it stood in .dev.vars when make dev was started"
	}
	return "TIDEMARK_TOKEN as it was deployed, by make deploy from .secrets"
}

// keyError is a model whose key is missing.
type keyError struct{ provider, name string }

func (e *keyError) Error() string {
	return fmt.Sprintf("model.provider is %q and %s is not set; %s", e.provider, e.name, secretHelp(e.name))
}

// note keeps why the settings were not taken up, nil when they were.
func (in *instance) note(err error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.bad = err
}

// health reads the settings and says what they are worth.
func (in *instance) health(ctx context.Context, o *cloudflare.Obj) worker.Health {
	cfg, err := in.config(ctx, o)
	in.mu.Lock()
	defer in.mu.Unlock()
	h := worker.Health{Down: err != nil, Problems: problems(in.bad)}
	if cfg != nil {
		h.Model, h.Warnings = cfg.Model.Provider+" "+cfg.Model.ID, cfg.Warnings
	}
	return h
}

// problems tells settings that were not taken up, one by one.
func problems(err error) []worker.Problem {
	var mistakes *config.Error
	var key *keyError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &key):
		return []worker.Problem{{Setting: key.name, Message: fmt.Sprintf("is not set, and model.provider is %q", key.provider), Fix: secretHelp(key.name)}}
	case !errors.As(err, &mistakes):
		text := strings.TrimSuffix(err.Error(), ": "+tidemark.ErrInvalid.Error())
		return []worker.Problem{{Setting: document, Message: "cannot be read from the bucket: " + text, Fix: "check the bucket, and the binding " + bucket + " in wrangler.toml"}}
	}
	var out []worker.Problem
	for _, p := range mistakes.Problems {
		fix := "correct the variable in [vars] of wrangler.toml or in the dashboard, and deploy again"
		if strings.HasPrefix(p.Where, document) {
			fix = "correct " + document + " in the bucket; docs/config.md has every key; it is read again within a minute"
		} else if local() {
			fix = "correct the variable in .dev.vars or wrangler.toml and start make dev again"
		}
		out = append(out, worker.Problem{Setting: cmp.Or(p.Key, p.Where), Message: p.Where + ": " + p.Text, Fix: fix})
	}
	return out
}
