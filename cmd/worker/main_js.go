package main

import (
	"log/slog"
	"time"
	_ "time/tzdata" // workerd has no zone files

	"github.com/tidemark-ai/tidemark/host/cloudflare"
	"github.com/tidemark-ai/tidemark/worker"
)

func main() {
	logger := cloudflare.NewLogger(slog.LevelInfo)
	in := &instance{logger: logger, env: cloudflare.Environ(), metrics: worker.NewMetrics(time.Now)}
	cloudflare.Serve(logger, func(o *cloudflare.Obj) cloudflare.App { return wrap(o, in.open(o)) })
}
