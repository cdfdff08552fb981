//go:build !js

// Command worker is the WASM module of the Worker. Build it with: go run ./build
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "worker runs inside Cloudflare Workers only: build it with `go run ./build`, serve natively with `tidemark serve`")
	os.Exit(2)
}
