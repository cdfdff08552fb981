package main

import (
	"log/slog"
	_ "time/tzdata" // workerd has no zone files

	"github.com/tidemark-ai/tidemark/host/cloudflare"
)

func main() {
	logger := cloudflare.NewLogger(slog.LevelInfo)
	in := &instance{logger: logger, env: cloudflare.Environ()}
	cloudflare.Serve(logger, func(o *cloudflare.Obj) cloudflare.App { return wrap(o, in.open(o)) })
}
