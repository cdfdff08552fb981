package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/config"
	"github.com/tidemark-ai/tidemark/host/cloudflare"
	"github.com/tidemark-ai/tidemark/provider"
	"github.com/tidemark-ai/tidemark/setup"
	"github.com/tidemark-ai/tidemark/worker"
)

// local reports what `make dev` started: its secrets are those of .dev.vars.
func local() bool { return cloudflare.Env("TIDEMARK_DEV") == "1" }

// secretHelp says how a secret is set, tokenWhere where the token is kept: the words of build/front.mjs.
func secretHelp(name string) string {
	if local() {
		return "set " + name + " in .dev.vars and start make dev again, which reads it when it starts"
	}
	return "run: npx --prefix build wrangler secret put " + name + " " + environment()
}

func tokenWhere() string {
	if local() {
		return "TIDEMARK_TOKEN as it stood in .dev.vars when make dev was started"
	}
	by := "make deploy"
	if env := cloudflare.Env("TIDEMARK_ENV"); env != "" {
		by += " ENV=" + env
	}
	return "TIDEMARK_TOKEN as it was deployed, by " + by + " from " + secretsFile()
}

// secretsFile is what make deploy reads.
func secretsFile() string {
	if env := cloudflare.Env("TIDEMARK_ENV"); env != "" {
		return ".secrets." + env
	}
	return ".secrets"
}

// environment names to wrangler the environment of wrangler.toml that runs. It warns when none is named
// where there are several.
func environment() string {
	if env := cloudflare.Env("TIDEMARK_ENV"); env != "" {
		return "--env " + env
	}
	return `--env=""`
}

// settingError is a model that cannot be called as it is set.
type settingError struct{ worker.Problem }

func (e *settingError) Error() string { return e.Setting + " " + e.Message }

// callable refuses a model that cannot be called: for want of its key, or of the binding.
func (in *instance) callable(cfg *config.Config) error {
	if name := cfg.KeyMissing(); name != "" {
		return &settingError{worker.Problem{Setting: name, Message: fmt.Sprintf("is not set, and model.provider is %q", cfg.Model.Provider), Fix: secretHelp(name)}}
	}
	if cfg.Model.Provider != config.WorkersAI || cfg.AI {
		return nil
	}
	out := worker.Problem{Setting: "model.provider", Message: `is "workers-ai", and wrangler.toml binds no AI`, Fix: `add [ai] with binding = "AI" to wrangler.toml and deploy again`}
	switch {
	case local():
		out.Message = `is "workers-ai", and make dev has none of Cloudflare's models`
		out.Fix = "set TIDEMARK_MODEL_PROVIDER=offline in .dev.vars and start make dev again"
	case in.bound:
		out.Message, out.Fix = `is "workers-ai", and TIDEMARK_AI is "off"`, "take the variable TIDEMARK_AI away and deploy again"
	}
	out.Fix += "; or " + provider.WorkersAIByAPI
	return &settingError{out}
}

// tell is settings that were not taken up, in one text.
func tell(err error) string {
	var said, fixes []string
	for _, p := range problems(err) {
		between := ": "
		if strings.HasPrefix(p.Message, "is ") {
			between = " "
		}
		said = append(said, p.Setting+between+p.Message)
		if !slices.Contains(fixes, p.Fix) {
			fixes = append(fixes, p.Fix)
		}
	}
	return strings.Join(append(said, fixes...), "; ")
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
		for _, g := range append(setup.ChannelGaps(cfg), setup.ToolGaps(cfg, false)...) {
			if g.Odd {
				h.Warnings = append(slices.Clone(h.Warnings), g.Setting+" "+g.Message+"; "+g.Fix)
				continue
			}
			h.Problems = append(h.Problems, worker.Problem{Setting: g.Setting, Message: g.Message, Fix: cmp.Or(g.Fix, secretHelp(g.Setting))})
		}
		for _, st := range setup.ChannelStates(cfg) {
			h.Channels = append(h.Channels, worker.Channel(st))
		}
	}
	return h
}

// problems tells settings that were not taken up, one by one.
func problems(err error) []worker.Problem {
	var mistakes *config.Error
	var setting *settingError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &setting):
		return []worker.Problem{setting.Problem}
	case !errors.As(err, &mistakes):
		text := strings.TrimSuffix(err.Error(), ": "+tidemark.ErrInvalid.Error())
		return []worker.Problem{{Setting: document, Message: "cannot be read from the bucket: " + text, Fix: "check the bucket, and the binding " + bucket + " in wrangler.toml"}}
	}
	var out []worker.Problem
	for _, p := range mistakes.Problems {
		one := worker.Problem{Setting: p.Where, Message: p.Text, Fix: fixOf(p)}
		if p.Key != "" {
			one.Setting, one.Message = p.Key, p.Where+": "+p.Text
		}
		out = append(out, one)
	}
	return out
}

// fixOf says where a mistake is mended on this host.
func fixOf(p config.Problem) string {
	switch {
	case p.Secret != "" && local():
		return "take it out of " + document + "; " + secretHelp(p.Secret)
	case p.Secret != "":
		return "take it out of " + document + "; " + secretHelp(p.Secret) + ", or put it into " + secretsFile() + " and deploy again"
	case strings.HasPrefix(p.Where, document):
		return "correct " + document + " in the bucket; docs/config.md has every key; it is read again within a minute"
	case local():
		return "set it right in .dev.vars or wrangler.toml and start make dev again"
	}
	return "set it right in [vars] of wrangler.toml or in the dashboard, and deploy again"
}
