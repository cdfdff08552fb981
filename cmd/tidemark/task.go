package main

import (
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidemark-ai/tidemark/internal/json"
)

// taskShown is what GET …/task answers, as far as it is printed.
type taskShown struct {
	Kept  bool   `json:"kept"`
	Phase string `json:"phase"`
	Items []struct {
		Name  string    `json:"name"`
		Kind  string    `json:"kind"`
		Text  string    `json:"text"`
		By    string    `json:"by"`
		Entry string    `json:"entry"`
		At    time.Time `json:"at"`
	} `json:"items"`
	Pinned     []string `json:"pinned"`
	Superseded []struct {
		Entry  string `json:"entry"`
		By     string `json:"by"`
		Reason string `json:"reason"`
	} `json:"superseded"`
	Cut   []string `json:"cut"`
	Notes []string `json:"notes"`
}

// taskFlags are the changes that a person asks for.
type taskFlags struct {
	goals, loops, constraints, events []string
	done, pin, unpin                  []string
	phase                             string
	fresh                             bool
}

func (m *Main) taskCommand() *cobra.Command {
	var f taskFlags
	c := &cobra.Command{
		Use: "task KEY", Short: "Show or change what a conversation works on", Args: oneKey,
		Long: `Show the task card of a conversation: goals, open loops, constraints, key events
and phase, who keeps each line and in which entry it was said. Where neither the
agent nor a person keeps one, it has what was said last and the calls of tools that
failed or are open, and says so.

With flags it is changed on your behalf. The model cannot drop a constraint that
you set.`,
		Example: `  tidemark task main
  tidemark task main --constraint "never push to main" --phase executing
  tidemark task main --done g1 --pin 01JAX6V2M3N4P5Q6R7S8T9V0W1`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return m.with(cmd.Context(), func(c *client) error {
				var raw json.RawMessage
				path := sessionPath(args[0], "/task")
				body := f.change()
				var err error
				if len(body) == 0 {
					err = c.get(cmd.Context(), path, &raw)
				} else {
					err = c.post(cmd.Context(), path, body, &raw)
				}
				if err != nil {
					return err
				}
				if m.json {
					return m.printJSON(raw)
				}
				var shown taskShown
				if err := json.Unmarshal(raw, &shown); err != nil {
					return err
				}
				m.printTask(shown)
				return nil
			})
		},
	}
	fl := c.Flags()
	fl.StringArrayVar(&f.goals, "goal", nil, "add a goal")
	fl.StringArrayVar(&f.loops, "loop", nil, "add what is begun and not ended")
	fl.StringArrayVar(&f.constraints, "constraint", nil, "add what must or must not be")
	fl.StringArrayVar(&f.events, "event", nil, "add what happened")
	fl.StringArrayVar(&f.done, "done", nil, "close an item by its name, such as g1")
	fl.StringArrayVar(&f.pin, "pin", nil, "keep an entry in view")
	fl.StringArrayVar(&f.unpin, "unpin", nil, "let an entry go")
	fl.StringVar(&f.phase, "phase", "", "idle, planning, executing, debugging or reviewing")
	fl.BoolVar(&f.fresh, "new", false, "another task begins: only constraints stay")
	return m.jsonFlag(c)
}

// change is the body of the request; it is empty when nothing is to be changed.
func (f taskFlags) change() map[string]any {
	out := map[string]any{}
	type added struct {
		Kind string `json:"kind"`
		Text string `json:"text"`
	}
	var add []added
	for _, k := range []struct {
		kind  string
		texts []string
	}{{"goal", f.goals}, {"loop", f.loops}, {"constraint", f.constraints}, {"event", f.events}} {
		for _, text := range k.texts {
			add = append(add, added{k.kind, text})
		}
	}
	if len(add) > 0 {
		out["add"] = add
	}
	for name, list := range map[string][]string{"close": f.done, "pin": f.pin, "unpin": f.unpin} {
		if len(list) > 0 {
			out[name] = list
		}
	}
	if f.phase != "" {
		out["phase"] = f.phase
	}
	if f.fresh {
		out["new"] = true
	}
	return out
}

func (m *Main) printTask(v taskShown) {
	for _, i := range v.Items {
		m.out.printf("%-4s  %-10s  %-6s  %s  %s  %s\n", i.Name, i.Kind, i.By, when(i.At), i.Entry, oneLine(i.Text, 200))
	}
	for _, id := range v.Pinned {
		m.out.printf("pinned  %s\n", id)
	}
	for _, x := range v.Superseded {
		m.out.printf("superseded  %s by %s: %s\n", x.Entry, x.By, oneLine(x.Reason, 200))
	}
	how := "kept by the agent or a person"
	if !v.Kept {
		how = "what was said last, and open calls; nobody keeps a card here"
	}
	m.err.line("phase: " + v.Phase + "; " + how)
	if len(v.Cut) > 0 {
		m.err.line("without room on the card that the model is shown: " + strings.Join(v.Cut, ", "))
	}
	for _, n := range v.Notes {
		m.err.line("not done: " + n)
	}
}
