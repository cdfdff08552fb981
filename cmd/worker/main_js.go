package main

import (
	"time"
	_ "time/tzdata" // workerd has no zone files

	"github.com/tidemark-ai/tidemark/host/cloudflare"
	"github.com/tidemark-ai/tidemark/recall"
	"github.com/tidemark-ai/tidemark/worker"
)

func main() {
	in := &instance{env: cloudflare.Environ(), bound: cloudflare.Bound("AI"), metrics: worker.NewMetrics(time.Now), stemmer: &recall.Stemmer{}}
	in.ai = in.bound && cloudflare.Env("TIDEMARK_AI") != "off"
	in.server = serverOf(in.env)
	in.logger = cloudflare.NewLogger(&in.level)
	cloudflare.Serve(in.logger, func(o *cloudflare.Obj) cloudflare.App { return wrap(o, in.open(o)) })
}
