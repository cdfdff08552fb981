package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/tidemark-ai/tidemark/config"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/setup"
)

func (m *Main) configCommand() *cobra.Command {
	return group("config", "Show, check and describe the configuration", `  tidemark config show
  tidemark config check --config other.jsonc
  tidemark config schema > config.schema.json`,
		m.configShow(), m.configCheck(), m.configSchema())
}

func (m *Main) configShow() *cobra.Command {
	return m.jsonFlag(&cobra.Command{Use: "show", Short: "Show every setting, and where it was set", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			home, err := m.homeDir()
			if err != nil {
				return err
			}
			c, _, err := m.load(cmd.Context(), home)
			if err != nil {
				return err
			}
			values := c.Values()
			if m.json {
				return m.printJSON(values)
			}
			rows := [][]string{{"KEY", "VALUE", "FROM"}}
			for _, v := range values {
				raw, err := json.Marshal(v.Value)
				if err != nil {
					return err
				}
				text := oneLine(string(raw), 60)
				if v.Value == nil {
					text = "-"
				}
				rows = append(rows, []string{v.Key, text, v.Origin})
			}
			for _, s := range []struct {
				name  string
				value config.Secret
			}{{"ANTHROPIC_API_KEY", c.Secrets.Anthropic}, {"OPENAI_API_KEY", c.Secrets.OpenAI}, {"EMBEDDINGS_API_KEY", c.Secrets.Embedding}, {"TIDEMARK_TOKEN", c.Secrets.Token}} {
				rows = append(rows, []string{s.name, s.value.String(), "environment"})
			}
			table(m.out, rows)
			return nil
		}})
}

func (m *Main) configCheck() *cobra.Command {
	return m.jsonFlag(&cobra.Command{Use: "check", Short: "Read the configuration and name every mistake", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			home, err := m.homeDir()
			if err != nil {
				return err
			}
			c, path, err := m.load(cmd.Context(), home)
			var mistakes *config.Error
			if errors.As(err, &mistakes) && m.json {
				if err := m.printJSON(map[string]any{"ok": false, "file": path, "problems": mistakes.Problems}); err != nil {
					return err
				}
				return errTold
			}
			if err != nil {
				return err
			}
			c.Warnings = append(c.Warnings, refusals(c)...)
			for _, g := range append(setup.ChannelGaps(c), setup.ToolGaps(c, true)...) {
				c.Warnings = append(c.Warnings, g.Setting+" "+g.Message+"; "+gapFix(g))
			}
			if m.json {
				return m.printJSON(map[string]any{"ok": true, "file": path, "problems": []string{}, "warnings": c.Warnings})
			}
			if path == "" {
				path = "no document, all defaults"
			}
			for _, w := range c.Warnings {
				m.err.printf("warning: %s\n", w)
			}
			m.out.printf("ok: %s\n", path)
			return nil
		}})
}

// refusals says what `tidemark serve` would refuse. It is no mistake of the document: secrets may be
// set where the server runs, and not here.
func refusals(c *config.Config) []string {
	var out []string
	c.Resolve()
	for _, err := range []error{mayListen(c.Server.Listen, c), needKey(c)} {
		if own := (*fixed)(nil); errors.As(err, &own) {
			out = append(out, "`tidemark serve` would refuse to start here: "+own.Error()+"; "+own.fix)
		}
	}
	return out
}

func (m *Main) configSchema() *cobra.Command {
	return &cobra.Command{Use: "schema", Short: "Print the JSON Schema of the document", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := m.out.Write(config.Schema())
			return err
		}}
}
