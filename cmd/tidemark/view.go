package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/internal/place"
	"github.com/tidemark-ai/tidemark/worker"
)

// showView prints a view for people, or as JSON.
func showView(ctx context.Context, m *cli.Main, c *client, key string) error {
	path := "/view?messages=0"
	if m.JSON {
		path = "/view"
	}
	return answer(ctx, m, c, http.MethodGet, cli.SessionPath(key, path), nil, func(v worker.View) {
		printView(ctx, m, c, key, v)
	})
}

func printView(ctx context.Context, m *cli.Main, c *client, key string, v worker.View) {
	tools, names := tidemark.Tokens(0), []string{}
	for _, t := range v.Tools {
		tools += t.Tokens
		names = append(names, t.Name)
	}
	onTrack(ctx, m, c, key)
	if isProxied(key) { // nothing is compacted
		v.Limit = 0
	}
	m.Out.Printf("%s (window %s)\n", cli.Towards(v.Size, v.Limit, v.Window), cli.Count(v.Window))
	rows := [][]string{{"TOKENS", "ROLE", "SOURCE", "WHAT"}, {cli.Count(v.System.Tokens), "system", "", "system prompt and memory"}}
	if len(names) > 0 {
		rows = append(rows, []string{cli.Count(tools), "tools", "", strings.Join(names, ", ")})
	}
	for _, it := range v.Items {
		source := it.Source
		if it.Summary {
			source = "summary"
		} else if it.Stubs > 0 {
			stubs := cli.Plural(it.Stubs, "stub")
			if it.Trimmed > 0 {
				stubs += fmt.Sprintf(", %d trimmed", it.Trimmed)
			}
			source += " (" + stubs + ")"
		}
		var parts []string
		for _, b := range it.Blocks {
			parts = append(parts, describe(b.Type, b.Name, b.Text))
		}
		rows = append(rows, []string{cli.Count(it.Tokens), string(it.Role), source, cli.OneLine(strings.Join(parts, " | "), 100)})
	}
	cli.PrintTable(m.Out, rows)
	tellTracks(ctx, m, c, key)
}

// describe writes a block in a few words.
func describe(kind, name, text string) string {
	if kind == tidemark.TypeText {
		return text
	}
	return strings.TrimSpace("[" + strings.TrimSpace(kind+" "+name) + "] " + text)
}

// showEntry prints all text of an entry, or of one block of it, as the stub of what was paged out names it.
func showEntry(ctx context.Context, m *cli.Main, c *client, key, handle string) error {
	id, block, ofBlock := strings.Cut(handle, "#")
	var raw json.RawMessage
	if err := c.Get(ctx, cli.SessionPath(key, "/entries/"+url.PathEscape(id)), &raw); err != nil {
		return err
	}
	var e struct {
		Message *tidemark.Message `json:"message"`
	}
	if err := json.Unmarshal(raw, &e); err != nil {
		return err
	}
	if ofBlock && e.Message != nil {
		return showBlock(m, *e.Message, handle, block)
	}
	if m.JSON || e.Message == nil { // an overlay or an event
		return m.PrintJSON(raw)
	}
	for _, b := range e.Message.Content {
		for _, part := range append([]tidemark.Block{b}, b.Content...) {
			if text := part.Text + string(part.Input); text != "" {
				m.Out.Line(cli.Safe(text))
			}
		}
	}
	return nil
}

// showBlock prints one block of a message, to the byte where nobody reads along.
func showBlock(m *cli.Main, msg tidemark.Message, handle, number string) error {
	n, err := strconv.Atoi(number)
	if err != nil || n < 0 || n >= len(msg.Content) {
		id, _, _ := strings.Cut(handle, "#")
		return cli.Advise(fmt.Errorf("--entry %s: the message has %s, counted from 0: %w", cli.OneLine(handle, 80), cli.Plural(len(msg.Content), "block"), tidemark.ErrInvalid),
			"give a number from 0 on, as a stub has it; --entry "+cli.OneLine(id, 80)+" alone prints the whole message")
	}
	b := msg.Content[n]
	return cli.Either(m, b, func() {
		for _, part := range append([]tidemark.Block{b}, b.Content...) {
			switch text := part.Text + string(part.Input); {
			case m.Terminal && text != "":
				m.Out.Line(cli.Safe(text))
			case text == "" && part.Source != nil:
				m.Out.Put(string(part.AppendJSON(nil)))
			default:
				m.Out.Put(text)
			}
		}
	})
}

// showLog prints a page of a log, oldest first.
func showLog(m *cli.Main, page logPage) {
	if page.Next != 0 {
		m.Out.Printf("… earlier: --before %d\n", page.Next)
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
			text = cli.Plural(len(e.Overlay.Edits), "edit")
		case e.Event != nil:
			who, text = e.Event.Type, e.Event.Text
		}
		rows = append(rows, []string{fmt.Sprint(e.Seq), e.ID, cli.When(e.At), who, cli.Count(e.Tokens), cli.OneLine(text, 120)})
	}
	cli.PrintTable(m.Out, rows)
}

// logPage is a page of a log, newest first.
type logPage struct {
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

func view(ctx context.Context, m *cli.Main, c *client, f *struct{ Messages bool }) error {
	if f.Messages {
		return c.Raw(ctx, cli.SessionPath(m.Args[0], "/view?messages=1"), m.Out)
	}
	return showView(ctx, m, c, m.Args[0])
}

type logFlags struct {
	Limit  int
	Before int64
	Entry  string
}

func logCommand(ctx context.Context, m *cli.Main, c *client, f *logFlags) error {
	key := m.Args[0]
	if f.Entry != "" {
		return showEntry(ctx, m, c, key, f.Entry)
	}
	return answer(ctx, m, c, http.MethodGet, cli.SessionPath(key, fmt.Sprintf("/log?limit=%d&before=%d", f.Limit, f.Before)), nil, func(page logPage) {
		onTrack(ctx, m, c, key)
		showLog(m, page)
		tellTracks(ctx, m, c, key)
	})
}

type historyFlags struct {
	Format, Output string
	All, Force     bool
}

func export(ctx context.Context, m *cli.Main, f *historyFlags) error {
	if !slices.Contains([]string{"jsonl", "md", "steps", "decisions"}, f.Format) {
		return cli.Usagef("--format %s: want jsonl, md, steps or decisions", f.Format)
	}
	path := cli.SessionPath(m.Args[0], "/log?format="+f.Format)
	if f.All {
		path += "&all=1"
	}
	return with(ctx, m, func(c *client) error {
		if f.Output == "" || f.Output == "-" {
			return c.Raw(ctx, path, m.Out)
		}
		const readable = 0o644
		err := place.Write(f.Output, place.Options{Mode: readable, Replace: f.Force}, func(w io.Writer) error { return c.Raw(ctx, path, w) })
		return cmp.Or(placeFix(err, ""), err)
	})
}
