//go:build !js

// Command worker is the WASM module of the Worker, in which the parts meet as they do in cmd/tidemark.
// Natively it only says how it is built (go run ./build). Begin with instance_js.go.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "worker runs inside Cloudflare Workers only: build it with `go run ./build`, serve natively with `tidemark serve`")
	os.Exit(2)
}
