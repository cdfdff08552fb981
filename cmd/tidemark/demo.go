package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/archive"
	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/cmd/node"
	"github.com/tidemark-ai/tidemark/config"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/setup"
	"github.com/tidemark-ai/tidemark/worker"
)

const demoKey = "main"

// demoDocument is the configuration of the demo: a window small enough to be filled in a second. It
// is left in the home folder, so that whoever looks around finds the same limits.
const demoDocument = `{
  // written by tidemark demo
  "model": { "provider": "offline", "contextWindow": 5000 },
  "compaction": { "reserveTokens": 1500, "keepRecentTokens": 1000 },
}
`

// keepDemoDocument leaves the demo's document in its home folder. One that is there already stays.
func keepDemoDocument(home string) error {
	f, err := os.OpenFile(filepath.Join(home, cli.DocumentName), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		_, err = f.WriteString(demoDocument)
		err = errors.Join(err, f.Close())
	}
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	return err
}

// demo is a scripted conversation with a narrator.
type demo struct {
	m     *cli.Main
	c     *client
	home  string
	step  int
	began time.Time

	said   int // messages of the person
	before sessionView
	whole  archive.Info
}

// newHome makes the home folder of a store of its own: a new one unless --home names it.
func newHome(m *cli.Main, pattern string) (home string, err error) {
	if home = m.Home; home == "" {
		home, err = os.MkdirTemp("", pattern)
	}
	if err == nil {
		home, err = filepath.Abs(home)
	}
	if err != nil {
		return "", err
	}
	const private = 0o700
	return home, os.MkdirAll(home, private)
}

func demoRun(ctx context.Context, m *cli.Main) error {
	home, err := newHome(m, "tidemark-demo-")
	if err != nil {
		return err
	}
	cfg, err := config.Parse(cli.DocumentName, []byte(demoDocument))
	if err != nil {
		return err
	}
	n, err := node.OpenStore(ctx, home, cfg, m.Logger(cfg, true), true)
	if err != nil {
		return err
	}
	d := &demo{m: m, c: inProcess(n), home: home, began: time.Now()}
	for _, step := range []func(context.Context) error{d.open, d.talk, d.look, d.ask, d.remembered, d.archived, d.reset, d.find, d.restore, d.end} {
		if err := step(ctx); err != nil {
			return errors.Join(err, d.c.end())
		}
	}
	return d.c.end()
}

// tell begins a step.
func (d *demo) tell(title string) {
	d.step++
	d.m.Out.Printf("\n%d. %s\n\n", d.step, title)
}

func (d *demo) show(format string, args ...any) {
	d.m.Out.Printf("   "+format+"\n", args...)
}

// path shows where an object of the bucket lies.
func (d *demo) path(key string) string {
	return filepath.Join(d.home, cli.BucketName, filepath.FromSlash(key))
}

func (d *demo) open(ctx context.Context) error {
	there, err := pages[tidemark.SessionInfo](ctx, d.c, "/v1/sessions", "sessions")
	if err != nil {
		return err
	}
	if len(there) > 0 {
		return cli.Advise(fmt.Errorf("%s holds %d sessions already", d.home, len(there)), "give --home a new folder, or none")
	}
	if err := keepDemoDocument(d.home); err != nil {
		return err
	}
	d.m.Out.Printf("Tidemark demo: an offline model with a window of %d tokens, compacted above %d.\nEverything is kept in %s\n",
		setup.Window(d.c.local.Cfg).Tokens, cli.LimitOf(d.c.local.Cfg), d.home)
	return nil
}

// talk holds the conversation and shows how the window fills.
func (d *demo) talk(ctx context.Context) error {
	d.tell("A conversation fills the window. When it is over the limit, it is compacted.")
	for _, line := range demoLines() {
		out, err := d.say(ctx, line)
		if err != nil {
			return err
		}
		for _, e := range out.Events {
			d.show("    » %s", e.Text)
		}
		var s sessionView
		if err := d.c.Get(ctx, cli.SessionPath(demoKey, ""), &s); err != nil {
			return err
		}
		d.before = s
		d.show("%-44s  %s", cli.OneLine(line, 40), cli.Towards(s.ContextTokens, s.Limit, s.Window))
	}
	if d.before.Compactions == 0 {
		return errors.New("the conversation was never compacted")
	}
	return nil
}

func (d *demo) say(ctx context.Context, text string) (outcome, error) {
	var out outcome
	d.said++
	return out, d.c.Post(ctx, cli.SessionPath(demoKey, "/messages"), map[string]string{"text": text, "channel": "cli"}, &out)
}

// look shows what the model sees now.
func (d *demo) look(ctx context.Context) error {
	d.tell("What the model sees now is a summary of the older part and the newest messages as they were.")
	var v worker.View
	if err := d.c.Get(ctx, cli.SessionPath(demoKey, "/view?messages=0"), &v); err != nil {
		return err
	}
	d.show("%d messages were said, %d are in view: %s", d.before.Messages, len(v.Items), cli.Towards(v.Size, v.Limit, v.Window))
	for _, it := range v.Items {
		if it.Summary && len(it.Blocks) > 0 {
			d.show("the summary (%s tokens) begins: %s", cli.Count(it.Tokens), cli.OneLine(it.Blocks[0].Text, 300))
		}
	}
	return nil
}

// ask asks for what left the view.
func (d *demo) ask(ctx context.Context) error {
	d.tell("It still knows what was said at the beginning.")
	const question = "Which opening day did we decide on?"
	out, err := d.say(ctx, question)
	if err != nil {
		return err
	}
	d.show("you:      %s", question)
	who := "tidemark:"
	for _, line := range strings.Split(cli.Cut(out.Text, 600), "\n") {
		if strings.TrimSpace(line) != "" {
			d.show("%-9s %s", who, cli.OneLine(line, 110))
			who = ""
		}
	}
	return nil
}

// remembered shows the daily memory file.
func (d *demo) remembered(ctx context.Context) error {
	d.tell("What is worth remembering went to a daily file that you can read and edit.")
	var list struct {
		Files []struct{ Path string }
	}
	if err := d.c.Get(ctx, cli.AgentPath(node.MainAgent, "/memory"), &list); err != nil {
		return err
	}
	for _, f := range list.Files {
		var text strings.Builder
		if err := d.c.Raw(ctx, memoryPath(node.MainAgent, f.Path), &text); err != nil {
			return err
		}
		d.show("%s", d.path("agents/main/"+f.Path))
		for _, line := range strings.Split(strings.TrimSpace(text.String()), "\n") {
			line, _, _ = strings.Cut(line, "<!--") // what the machine notes behind a fact
			if strings.TrimSpace(line) != "" {
				d.show("  | %s", cli.OneLine(line, 110))
			}
		}
	}
	if len(list.Files) == 0 {
		d.show("(nothing yet)")
	}
	return nil
}

// archived lists and verifies the archive.
func (d *demo) archived(ctx context.Context) error {
	d.tell("What left the view was archived first: gzipped JSON lines, each with a checksum.")
	return d.verify(ctx)
}

func (d *demo) verify(ctx context.Context) error {
	var out verdicts
	if err := d.c.Post(ctx, cli.AgentPath(node.MainAgent, "/archives-verify"), struct{}{}, &out); err != nil {
		return err
	}
	for _, v := range out.Verdicts {
		d.show("%s", d.path(v.Key))
		d.show("  verified: %t, %d messages, %s", v.OK, v.Messages, cli.Size(v.Bytes))
	}
	if out.Bad > 0 || out.OK == 0 {
		return fmt.Errorf("%d archives ok, %d damaged", out.OK, out.Bad)
	}
	return nil
}

// reset begins anew.
func (d *demo) reset(ctx context.Context) error {
	d.tell("A reset archives the whole session, remembers and begins anew.")
	if err := d.c.Get(ctx, cli.SessionPath(demoKey, ""), &d.before); err != nil {
		return err
	}
	var out outcome
	if err := d.c.Post(ctx, cli.SessionPath(demoKey, "/reset"), struct{}{}, &out); err != nil {
		return err
	}
	for _, e := range out.Events {
		d.show("» %s", e.Text)
	}
	var s sessionView
	if err := d.c.Get(ctx, cli.SessionPath(demoKey, ""), &s); err != nil {
		return err
	}
	d.show("the session now: %d messages, %s", s.Messages, cli.Towards(s.ContextTokens, s.Limit, s.Window))
	list, err := pages[archive.Info](ctx, d.c, cli.AgentPath(node.MainAgent, "/archives"), "archives")
	if err != nil {
		return err
	}
	for _, a := range list {
		if a.Whole() {
			d.whole = a
		}
	}
	if d.whole.Key == "" {
		return errors.New("the whole session is not in the archive")
	}
	return nil
}

// find searches the archive.
func (d *demo) find(ctx context.Context) error {
	d.tell("Nothing is lost: the originals are found by words.")
	const words = "oven Lahti"
	var out struct {
		Hits []archive.Hit `json:"hits"`
	}
	if err := d.c.Get(ctx, cli.AgentPath(node.MainAgent, "/archives-search?limit=3&q=oven+Lahti"), &out); err != nil {
		return err
	}
	d.show("tidemark archive search %s", words)
	for _, h := range out.Hits {
		d.show("  %s:%d  %s: %s", filepath.Base(h.Key), h.Line, h.Role, cli.OneLine(h.Snippet, 110))
	}
	if len(out.Hits) == 0 {
		return fmt.Errorf("search %s: nothing was found", words)
	}
	return nil
}

// restore brings the archived session back under another name and compares.
func (d *demo) restore(ctx context.Context) error {
	d.tell("And an archive can be brought back as a session.")
	var out struct {
		Messages int             `json:"messages"`
		Context  tidemark.Tokens `json:"contextTokens"`
		Window   tidemark.Tokens `json:"window"`
	}
	if err := d.c.Post(ctx, cli.SessionPath("found", "/restore"), map[string]string{"archive": d.whole.Key}, &out); err != nil {
		return err
	}
	d.show("tidemark archive restore %s --session found", filepath.Base(d.whole.Key))
	d.show("%d of %d messages are back, %s", out.Messages, d.before.Messages, cli.Towards(out.Context, 0, out.Window))
	same, err := d.compare(ctx)
	if err != nil {
		return err
	}
	d.show("compared with the original, message by message: %d equal", same)
	if same != d.before.Messages {
		return fmt.Errorf("%d of %d messages are equal", same, d.before.Messages)
	}
	return nil
}

// compare counts the messages that are the same in the archive and in the restored session.
func (d *demo) compare(ctx context.Context) (same int, err error) {
	var a, b strings.Builder
	if err := d.c.Raw(ctx, cli.AgentPath(node.MainAgent, "/archives/"+filepath.Base(d.whole.Key)+"?format=jsonl"), &a); err != nil {
		return 0, err
	}
	if err := d.c.Raw(ctx, cli.SessionPath("found", "/log?format=jsonl"), &b); err != nil {
		return 0, err
	}
	old, back := strings.Split(strings.TrimSpace(a.String()), "\n"), strings.Split(strings.TrimSpace(b.String()), "\n")
	for i := range min(len(old), len(back)) {
		var x, y tidemark.Message
		if err := errors.Join(json.Unmarshal([]byte(old[i]), &x), json.Unmarshal([]byte(back[i]), &y)); err != nil {
			return same, err
		}
		if string(x.AppendJSON(nil)) == string(y.AppendJSON(nil)) {
			same++
		}
	}
	return same, nil
}

func (d *demo) end(context.Context) error {
	d.m.Out.Printf("\nThat took %.1f s. Look around:\n\n", time.Since(d.began).Seconds())
	for _, c := range []string{"sessions ls", "view found", "archive ls", "memory cat", "chat"} {
		d.show("tidemark --home %s %s", d.home, c)
	}
	d.m.Out.Line("\nOr start for real: tidemark serve, then tidemark chat.")
	return nil
}

//go:embed demo.txt
var demoText string

// demoLines is what the person says.
func demoLines() []string { return strings.Split(strings.TrimSpace(demoText), "\n") }
