// Package hosttest gives tests the ports of the host they are built for: SQLite, a folder and real
// time natively; under js/wasm the bridge of the Worker, over build/node.mjs. It holds no tests; the
// contracts are in package tidemarktest. Begin with ports_native.go: one set of tests then proves the
// core on both hosts.
package hosttest
