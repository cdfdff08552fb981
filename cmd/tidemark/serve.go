package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"

	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/cmd/node"
	"github.com/tidemark-ai/tidemark/config"
	"github.com/tidemark-ai/tidemark/setup"
)

// serve opens the store, wakes what an earlier process left and answers requests until it is told
// to stop.
func serve(ctx context.Context, m *cli.Main, f *struct{ Listen string }) error {
	listen := f.Listen
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	home, err := m.HomeDir()
	if err != nil {
		return err
	}
	cfg, document, err := m.Load(ctx, home)
	if err != nil {
		return err
	}
	if listen == "" {
		listen = cfg.Server.Listen
	}
	if err := mayListen(listen, cfg); err != nil {
		return err
	}
	log := m.Logger(cfg, false)
	reason := cfg.Resolve()
	if err := cli.NeedKey(cfg); err != nil {
		return err
	}
	n, err := node.OpenStore(ctx, home, cfg, log, true)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return errors.Join(cli.Advise(fmt.Errorf("listen at %s: %w", listen, err), listenFix(err)), n.Close())
	}
	err = node.ServeOn(ctx, n, l, func(url string) { greet(m, url, reason, home, document, cfg) })
	return errors.Join(err, n.Close())
}

// listenFix says what to do about an address that cannot be had.
func listenFix(err error) string {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return "stop what is using the port, or give --listen another; port 0 takes any free one"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return "give --listen an address that this machine has, such as 127.0.0.1:8787"
	case errors.Is(err, os.ErrPermission):
		return "give --listen a port above 1023"
	}
	return "give --listen an address such as 127.0.0.1:8787"
}

// mayListen refuses to be reached from other machines without a token.
func mayListen(listen string, cfg *config.Config) error {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return cli.Usagef("--listen %s: want host and port such as 127.0.0.1:8787", listen)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return cli.Usagef("--listen %s: port %q: want 0 to 65535; 0 takes any free one", listen, port)
	}
	ip := net.ParseIP(host)
	if host == "localhost" || ip != nil && ip.IsLoopback() || cfg.Secrets.Token != "" {
		return nil
	}
	return cli.Advise(fmt.Errorf("%s can be reached from other machines, and there is no token", listen),
		"set TIDEMARK_TOKEN to a secret of your own, or listen at 127.0.0.1")
}

// greet says what a person wants to know at the start.
func greet(m *cli.Main, url, reason, home, document string, cfg *config.Config) {
	token, header := "none, only this machine may call", ""
	if cfg.Secrets.Token != "" {
		token, header = "required (TIDEMARK_TOKEN)", `-H "Authorization: Bearer $TIDEMARK_TOKEN" `
	}
	if document == "" {
		document = "none, all defaults"
	}
	bucket := cfg.Storage.Bucket
	where := "folder " + cli.BucketPath(home, cfg)
	if bucket.Kind == "s3" {
		where = "s3 " + bucket.Endpoint + " " + bucket.Bucket + "/" + bucket.Prefix
	}
	m.Out.Printf("Tidemark %s serves at %s\n", node.VersionText(), url)
	window := setup.Window(cfg)
	for _, row := range [][2]string{
		{"model", cfg.Model.Provider + " " + cfg.Model.ID + " (" + reason + ")"},
		{"window", fmt.Sprintf("%d tokens, compacted above %d; less where the model says so", window.Tokens, cli.LimitOf(cfg))},
		{"home", home}, {"bucket", where}, {"config", document}, {"token", token},
		{"channels", setup.ChannelLine(cfg)},
		{"talk", "tidemark chat, or curl " + header + url + `/v1/sessions/main/messages -d '{"text":"hello"}'`},
	} {
		m.Out.Printf("  %-8s %s\n", row[0], row[1])
	}
	for _, w := range cfg.Warnings {
		m.Err.Printf("warning: %s\n", w)
	}
	for _, g := range append(setup.ChannelGaps(cfg), setup.ToolGaps(cfg, true)...) {
		m.Err.Printf("warning: %s %s\n  what to do: %s\n", g.Setting, g.Message, node.GapFix(g))
	}
}

func printVersion(_ context.Context, m *cli.Main) error {
	return cli.Either(m, map[string]string{"version": node.VersionText(), "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH}, func() error {
		m.Out.Line("tidemark", node.VersionText())
		return nil
	})
}
