// Package native is what an ordinary machine gives Tidemark: a SQLite file as [tidemark.DB], a
// folder or an S3 bucket as [tidemark.Blobs], the clock and goroutines as [tidemark.Runtime], an
// alarm per key, and an HTTP transport for model APIs. For js/wasm package host/cloudflare stands in
// its place, and only this file is built. Begin with db.go.
package native
