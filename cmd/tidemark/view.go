package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

func (m *Main) viewCommand() *cobra.Command {
	var messages bool
	c := &cobra.Command{
		Use: "view KEY", Short: "Show what the model would see now", Args: oneKey,
		Long: `Show the view: what the model would see now, item by item, with its tokens.
--messages prints exactly the array of messages that would be sent.`,
		Example: `  tidemark view main
  tidemark view main --messages | jq length`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return m.with(cmd.Context(), func(c *client) error {
				if messages {
					return c.raw(cmd.Context(), sessionPath(args[0], "/view?messages=1"), m.out)
				}
				return m.showView(cmd.Context(), c, args[0])
			})
		},
	}
	c.Flags().BoolVar(&messages, "messages", false, "print the array of messages as it would be sent")
	return m.jsonFlag(c)
}

// viewed is a view as the API shows it; see docs/http.md.
type viewed struct {
	Size   tidemark.Tokens `json:"size"`
	Window tidemark.Tokens `json:"window"`
	Limit  tidemark.Tokens `json:"limit"`
	System struct {
		Tokens tidemark.Tokens `json:"tokens"`
	} `json:"system"`
	Tools []struct {
		Name   string          `json:"name"`
		Tokens tidemark.Tokens `json:"tokens"`
	} `json:"tools"`
	Items []struct {
		ID      string          `json:"id"`
		Role    string          `json:"role"`
		Source  string          `json:"source"`
		Summary bool            `json:"summary"`
		Stubs   int             `json:"stubs"`
		Trimmed int             `json:"trimmed"` // of them
		Tokens  tidemark.Tokens `json:"tokens"`
		Blocks  []struct {
			Type, Name, Text string
		} `json:"blocks"`
	} `json:"items"`
}

// showView prints a view for people, or as JSON.
func (m *Main) showView(ctx context.Context, c *client, key string) error {
	var raw json.RawMessage
	path := "/view?messages=0"
	if m.json {
		path = "/view"
	}
	if err := c.get(ctx, sessionPath(key, path), &raw); err != nil {
		return err
	}
	if m.json {
		return m.printJSON(raw)
	}
	var v viewed
	if err := json.Unmarshal(raw, &v); err != nil {
		return err
	}
	tools, names := tidemark.Tokens(0), []string{}
	for _, t := range v.Tools {
		tools += t.Tokens
		names = append(names, t.Name)
	}
	m.onTrack(ctx, c, key)
	if isProxied(key) { // nothing is compacted
		v.Limit = 0
	}
	m.out.printf("%s (window %s)\n", towards(v.Size, v.Limit, v.Window), count(v.Window))
	rows := [][]string{{"TOKENS", "ROLE", "SOURCE", "WHAT"}, {count(v.System.Tokens), "system", "", "system prompt and memory"}}
	if len(names) > 0 {
		rows = append(rows, []string{count(tools), "tools", "", strings.Join(names, ", ")})
	}
	for _, it := range v.Items {
		source := it.Source
		if it.Summary {
			source = "summary"
		} else if it.Stubs > 0 {
			stubs := plural(it.Stubs, "stub")
			if it.Trimmed > 0 {
				stubs += fmt.Sprintf(", %d trimmed", it.Trimmed)
			}
			source += " (" + stubs + ")"
		}
		var parts []string
		for _, b := range it.Blocks {
			parts = append(parts, describe(b.Type, b.Name, b.Text))
		}
		rows = append(rows, []string{count(it.Tokens), it.Role, source, oneLine(strings.Join(parts, " | "), 100)})
	}
	table(m.out, rows)
	m.tellTracks(ctx, c, key)
	return nil
}

// describe writes a block in a few words.
func describe(kind, name, text string) string {
	if kind == tidemark.TypeText {
		return text
	}
	return strings.TrimSpace("[" + strings.TrimSpace(kind+" "+name) + "] " + text)
}

func (m *Main) logCommand() *cobra.Command {
	var limit int
	var before int64
	var entry string
	c := &cobra.Command{
		Use: "log KEY", Short: "Show the newest entries of a session: messages, overlays, events", Args: oneKey,
		Example: `  tidemark log main
  tidemark log main --limit 500 --json
  tidemark log main --entry 01jx0m2b7k9q
  tidemark log main --entry '01jx0m2b7k9q#0' > original.txt`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return m.with(cmd.Context(), func(c *client) error {
				if entry != "" {
					return m.showEntry(cmd.Context(), c, args[0], entry)
				}
				var raw json.RawMessage
				if err := c.get(cmd.Context(), sessionPath(args[0], fmt.Sprintf("/log?limit=%d&before=%d", limit, before)), &raw); err != nil {
					return err
				}
				if m.json {
					return m.printJSON(raw)
				}
				m.onTrack(cmd.Context(), c, args[0])
				defer m.tellTracks(cmd.Context(), c, args[0])
				return m.showLog(raw)
			})
		},
	}
	c.Flags().IntVar(&limit, "limit", 40, "how many entries, up to 1000")
	c.Flags().Int64Var(&before, "before", 0, "entries before this position")
	c.Flags().StringVar(&entry, "entry", "", "print the entry with this id whole, such as one that recall found; ID#n is its block n from 0, as a stub names it")
	return m.jsonFlag(c)
}

// showEntry prints all text of an entry, or of one block of it, as the stub of what was paged out names it.
func (m *Main) showEntry(ctx context.Context, c *client, key, handle string) error {
	id, block, ofBlock := strings.Cut(handle, "#")
	var raw json.RawMessage
	if err := c.get(ctx, sessionPath(key, "/entries/"+url.PathEscape(id)), &raw); err != nil {
		return err
	}
	var e struct {
		Message *tidemark.Message `json:"message"`
	}
	if err := json.Unmarshal(raw, &e); err != nil {
		return err
	}
	if ofBlock && e.Message != nil {
		return m.showBlock(*e.Message, handle, block)
	}
	if m.json || e.Message == nil { // an overlay or an event
		return m.printJSON(raw)
	}
	for _, b := range e.Message.Content {
		for _, part := range append([]tidemark.Block{b}, b.Content...) {
			if text := part.Text + string(part.Input); text != "" {
				m.out.line(safe(text))
			}
		}
	}
	return nil
}

// showBlock prints one block of a message, to the byte where nobody reads along.
func (m *Main) showBlock(msg tidemark.Message, handle, number string) error {
	n, err := strconv.Atoi(number)
	if err != nil || n < 0 || n >= len(msg.Content) {
		id, _, _ := strings.Cut(handle, "#")
		return &fixed{fmt.Errorf("--entry %s: the message has %s, counted from 0: %w", oneLine(handle, 80), plural(len(msg.Content), "block"), tidemark.ErrInvalid),
			"give a number from 0 on, as a stub has it; --entry " + oneLine(id, 80) + " alone prints the whole message"}
	}
	b := msg.Content[n]
	if m.json {
		return m.printJSON(b)
	}
	for _, part := range append([]tidemark.Block{b}, b.Content...) {
		switch text := part.Text + string(part.Input); {
		case m.Terminal && text != "":
			m.out.line(safe(text))
		case text == "" && part.Source != nil:
			m.out.put(string(part.AppendJSON(nil)))
		default:
			m.out.put(text)
		}
	}
	return nil
}

// showLog prints a page of a log, oldest first.
func (m *Main) showLog(raw []byte) error {
	var page struct {
		Entries []struct {
			ID      string            `json:"id"`
			Seq     int64             `json:"seq"`
			Kind    tidemark.Kind     `json:"kind"`
			At      time.Time         `json:"at"`
			Tokens  tidemark.Tokens   `json:"tokens"`
			Message *tidemark.Message `json:"message"`
			Overlay *tidemark.Overlay `json:"overlay"`
			Event   *tidemark.Event   `json:"event"`
		} `json:"entries"`
		Next int64 `json:"next"`
	}
	if err := json.Unmarshal(raw, &page); err != nil {
		return err
	}
	if page.Next != 0 {
		m.out.printf("… earlier: --before %d\n", page.Next)
	}
	rows := make([][]string, 0, len(page.Entries))
	for i := len(page.Entries) - 1; i >= 0; i-- {
		e := page.Entries[i]
		who, text := string(e.Kind), ""
		switch {
		case e.Message != nil:
			who = string(e.Message.Role)
			var parts []string
			for _, b := range e.Message.Content {
				parts = append(parts, describe(b.Type, b.Name, b.Text))
			}
			text = strings.Join(parts, " | ")
		case e.Overlay != nil:
			text = plural(len(e.Overlay.Edits), "edit")
		case e.Event != nil:
			who, text = e.Event.Type, e.Event.Text
		}
		rows = append(rows, []string{fmt.Sprint(e.Seq), e.ID, when(e.At), who, count(e.Tokens), oneLine(text, 120)})
	}
	table(m.out, rows)
	return nil
}

func (m *Main) exportCommand() *cobra.Command {
	var format, output string
	var all bool
	c := &cobra.Command{
		Use: "export KEY", Short: "Write a session's whole history", Args: oneKey,
		Long: `Write every message of a session in order, whatever was compacted meanwhile.

jsonl is one {"role","content"} a line, with time and id behind; md is for
people. steps is what tidemark replay reads: the requests to the model, a line for
each track of a proxied conversation, or for each session of any other;
decisions is what was decided with them in a proxied conversation, as replay
--decisions tells it. --all includes the sessions before a reset.`,
		Example: `  tidemark export main --format md -o main.md
  tidemark export main --format jsonl | jq -r .role
  tidemark export main --format steps | tidemark replay -`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if format != "jsonl" && format != "md" && format != "steps" && format != "decisions" {
				return usagef("--format %s: want jsonl, md, steps or decisions", format)
			}
			path := sessionPath(args[0], "/log?format="+format)
			if all {
				path += "&all=1"
			}
			return m.with(cmd.Context(), func(c *client) error {
				if output == "" || output == "-" {
					return c.raw(cmd.Context(), path, m.out)
				}
				return toFile(output, func(w io.Writer) error { return c.raw(cmd.Context(), path, w) })
			})
		},
	}
	c.Flags().StringVar(&format, "format", "jsonl", "jsonl, md, steps or decisions")
	c.Flags().StringVarP(&output, "output", "o", "", "file to write instead of standard output")
	c.Flags().BoolVar(&all, "all", false, "with the sessions before a reset")
	return c
}

// toFile writes a file whole or not at all. What fails names the file that was asked for.
func toFile(path string, write func(io.Writer) error) error {
	err := replaceFile(path, write)
	var wrote *fs.PathError
	var moved *os.LinkError
	switch {
	case errors.As(err, &wrote) && strings.HasPrefix(wrote.Path, filepath.Clean(path)+"."):
		return fmt.Errorf("write %s: %w", path, wrote.Err)
	case errors.As(err, &moved):
		return fmt.Errorf("write %s: %w", path, moved.Err)
	}
	return err
}

// replaceFile writes beside a file and moves what came of it to its place.
func replaceFile(path string, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // gone already when all went well
	if err := write(f); err != nil {
		f.Close()
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	const readable = 0o644
	if err := os.Chmod(f.Name(), readable); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
