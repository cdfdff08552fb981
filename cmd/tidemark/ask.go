package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/cmd/node"
	"github.com/tidemark-ai/tidemark/host/native"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/lineage"
)

// ask sends a request and shows what is answered; --json prints it as it came. in may be nil.
func ask[T any](ctx context.Context, m *cli.Main, method, path string, in any, show func(T)) error {
	return with(ctx, m, func(c *client) error { return answer(ctx, m, c, method, path, in, show) })
}

// look is ask for what a GET answers.
func look[T any](ctx context.Context, m *cli.Main, path string, show func(T)) error {
	return ask(ctx, m, http.MethodGet, path, nil, show)
}

// answer is ask with a client that is there.
func answer[T any](ctx context.Context, m *cli.Main, c *client, method, path string, in any, show func(T)) error {
	var raw json.RawMessage
	if err := c.Call(ctx, method, path, in, &raw); err != nil {
		return err
	}
	if m.JSON {
		return m.PrintJSON(raw)
	}
	var out T
	if err := json.Unmarshal(raw, &out); err != nil {
		return fmt.Errorf("answer of %s to %s %s: %w", c.Where, method, path, err)
	}
	show(out)
	return nil
}

// tell is ask for what has fields that --json leaves out: it prints what of the answer T has.
func tell[T any](ctx context.Context, m *cli.Main, method, path string, in any, show func(T)) error {
	return with(ctx, m, func(c *client) error {
		var out T
		if err := c.Call(ctx, method, path, in, &out); err != nil {
			return err
		}
		return cli.Either(m, out, func() { show(out) })
	})
}

// listed shows a whole listing as a table, a row for each.
func listed[T any](ctx context.Context, m *cli.Main, path, name string, head []string, row func(T) []string) error {
	return with(ctx, m, func(c *client) error {
		list, err := pages[T](ctx, c, path, name)
		if err != nil {
			return err
		}
		return cli.Rows(m, list, head, row)
	})
}

// pageSize is how much of a listing is asked for at once.
const pageSize = 500

// pages reads a whole listing, page by page. The list is never nil.
func pages[T any](ctx context.Context, c *client, path, name string) ([]T, error) {
	return pagesOf[T](ctx, c, path, name, nil)
}

// pagesOf is pages with what the first page says beside its list, unless head is nil.
func pagesOf[T any](ctx context.Context, c *client, path, name string, head any) ([]T, error) {
	list := []T{}
	sep := "?"
	if strings.Contains(path, "?") {
		sep = "&"
	}
	for cursor := ""; ; {
		var page map[string]json.RawMessage
		if err := c.Get(ctx, path+sep+"limit="+strconv.Itoa(pageSize)+"&cursor="+url.QueryEscape(cursor), &page); err != nil {
			return nil, err
		}
		var some []T
		next := ""
		err := json.Unmarshal(page[name], &some)
		if err == nil && page["next"] != nil {
			err = json.Unmarshal(page["next"], &next)
		}
		if err == nil && head != nil && cursor == "" {
			var raw []byte
			if raw, err = json.Marshal(page); err == nil {
				err = json.Unmarshal(raw, head)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("listing of %s: %w", name, err)
		}
		if list = append(list, some...); next == "" || next == cursor {
			return list, nil
		}
		cursor = next
	}
}

// client is a caller with what it stands on.
type client struct {
	*cli.Caller
	local *node.Node   // nil when a server has the store
	end   func() error // gives up what the client stands on
}

// serverAt is a client of a server that runs.
func serverAt(m *cli.Main, base string) *client {
	return &client{Caller: m.Remote(base), end: func() error { return nil }}
}

// connect finds the store: a server that is named, the local store, or the server that has it.
func connect(ctx context.Context, m *cli.Main) (*client, error) {
	base, err := m.Named()
	if err != nil {
		return nil, err
	}
	if base != "" {
		return serverAt(m, base), nil
	}
	home, err := m.HomeDir()
	if err != nil {
		return nil, err
	}
	cfg, _, err := m.Load(ctx, home)
	if err != nil {
		return nil, err
	}
	n, err := node.OpenStore(ctx, home, cfg, m.Logger(cfg, true), false)
	var locked *native.LockedError
	if s := cli.ReadServerFile(home); errors.As(err, &locked) && s.PID == locked.PID && s.URL != "" {
		return serverAt(m, s.URL), nil
	}
	if err != nil {
		return nil, err
	}
	return inProcess(n), nil
}

// inProcess speaks to a node of this process.
func inProcess(n *node.Node) *client {
	return &client{&cli.Caller{Base: "http://localhost", RT: node.InThisProcess(n.Handler("")), Where: n.Home}, n, n.Close}
}

// serveStore has other commands reach the store of this process at an address of this machine, until end is called.
func serveStore(ctx context.Context, n *node.Node) (url string, end func() error, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("listen for other commands: %w", err)
	}
	serving, stop := context.WithCancel(ctx)
	done, ready := make(chan error, 1), make(chan string, 1)
	go func() { done <- node.ServeOn(serving, n, l, func(url string) { ready <- url }) }()
	select {
	case url = <-ready:
		return url, func() error { stop(); return <-done }, nil
	case err = <-done:
		stop()
		return "", nil, err
	}
}

// ready refuses what needs the model when this process would call it without a key. A server has
// looked at its start.
func (c *client) ready() error {
	if c.local == nil {
		return nil
	}
	return cli.NeedKey(c.local.Cfg)
}

// with connects, carries f out and gives the store up again. A turn that the store had in work
// before, or that f left in work, may end first.
func with(ctx context.Context, m *cli.Main, f func(*client) error) error {
	c, err := connect(ctx, m)
	if err != nil {
		return err
	}
	err = f(c)
	if c.local != nil && err == nil && c.local.Working() {
		if m.Progress {
			m.Err.Line("(a turn is in work here; waiting for its end, Ctrl-C leaves it for the next command)")
		}
		c.local.Drain(ctx)
	}
	return errors.Join(err, c.end())
}

// served carries a command out that needs the store, as [cli.Does].
func served[F any](do func(context.Context, *cli.Main, *client, *F) error) cli.Run {
	return cli.Does(func(ctx context.Context, m *cli.Main, f *F) error {
		return with(ctx, m, func(c *client) error { return do(ctx, m, c, f) })
	})
}

// servedPlain is served without flags, as [cli.Plain].
func servedPlain(do func(context.Context, *cli.Main, *client) error) cli.Run {
	return served(func(ctx context.Context, m *cli.Main, c *client, _ *struct{}) error { return do(ctx, m, c) })
}

// isProxied reports the key of a conversation whose client keeps the history itself, or of a track of it.
func isProxied(key string) bool {
	k, err := tidemark.ParseKey(keyOfTrack(key))
	return err == nil && lineage.Tracked(k)
}

// keyOfTrack is the key of the conversation that a track is of.
func keyOfTrack(key string) string {
	root, _, _ := strings.Cut(key, "#")
	return root
}

// tracksOf lists the tracks of a proxied conversation; of any other key there are none.
func tracksOf(ctx context.Context, c *client, key string) ([]lineage.Track, error) {
	if !isProxied(key) {
		return nil, nil
	}
	var info struct {
		Tracks []lineage.Track `json:"tracks"`
	}
	err := c.Get(ctx, cli.SessionPath(keyOfTrack(key), ""), &info)
	return info.Tracks, err
}

// onTrack prints as a first line which track of a proxied conversation is shown for a key, where there are several.
func onTrack(ctx context.Context, m *cli.Main, c *client, key string) {
	if list, err := tracksOf(ctx, c, key); err == nil && len(list) > 1 { // an error is told by what is shown
		m.Out.Line(tellTrack(key, list))
	}
}

// tellTrack says which of some tracks a key means.
func tellTrack(key string, list []lineage.Track) string {
	longest := slices.IndexFunc(list, func(t lineage.Track) bool { return t.Main })
	name := func(key string) string {
		_, n, _ := strings.Cut(key, "#t")
		return "track " + n
	}
	if longest >= 0 && (key == keyOfTrack(key) || strings.EqualFold(key, ownKey(list[longest]))) {
		return fmt.Sprintf("%s, the longest of %d", name(ownKey(list[longest])), len(list))
	}
	return fmt.Sprintf("%s of %d", name(strings.ToLower(key)), len(list))
}

// mostTracks bounds how many tracks are told beside another one.
const mostTracks = 20

// tellTracks says on standard error that a proxied conversation has several tracks, and how each is asked for: its own
// key means the longest.
func tellTracks(ctx context.Context, m *cli.Main, c *client, key string) {
	if m.JSON {
		return
	}
	list, err := tracksOf(ctx, c, key)
	if err != nil || len(list) < 2 {
		return // they are only told beside something else
	}
	m.Err.Line("tracks of the client's; the key without one means the longest:")
	rows := [][]string{{"TRACK", "MESSAGES", "CONTEXT", "UPDATED", "TITLE"}}
	for _, t := range list[:min(len(list), mostTracks)] {
		longest := ""
		if t.Main {
			longest = " (the longest)"
		}
		rows = append(rows, []string{"'" + cli.PlainKey(ownKey(t)) + "'", fmt.Sprint(t.Messages), cli.Count(t.Tokens), cli.When(t.Active), cli.OneLine(t.Title, 60) + longest})
	}
	cli.PrintTable(m.Err, rows)
	if more := len(list) - mostTracks; more > 0 {
		m.Err.Line("and " + cli.Plural(more, "more track"))
	}
}

// ownKey names a track and no other.
func ownKey(t lineage.Track) string {
	if key := string(t.Key); key != keyOfTrack(key) {
		return key
	}
	return string(t.Key) + "#t1"
}
