//go:build !chaos

package main

import "github.com/tidemark-ai/tidemark/host/cloudflare"

// wrap leaves an object as it is.
func wrap(_ *cloudflare.Obj, app cloudflare.App) cloudflare.App { return app }
