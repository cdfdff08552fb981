package main

import (
	"context"
	"os"
	"os/signal"
)

// untilInterrupt is ctx up to the first Ctrl-C, for commands that put things in order then. A second one ends the
// process at once: what it waits for may never come.
func untilInterrupt(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}
