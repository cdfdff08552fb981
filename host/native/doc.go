// Package native is what an ordinary machine gives Tidemark: a SQLite file as [tidemark.DB], a
// folder or an S3 bucket as [tidemark.Blobs], the clock and goroutines as [tidemark.Runtime], an
// alarm per key, and an HTTP transport for model APIs.
//
// It does not exist for js/wasm, where package host/cloudflare stands in its place; only this file
// is built there, so that the whole tree can be vetted for that target.
package native
