// Command probe is a Worker that misbehaves on request: test/worker.mjs builds it in place of
// cmd/worker to prove what the bridge promises (isolation, streams, faults) in workerd. It holds no
// conversation. Begin with main_js.go; library_js.go is measured, not tested (make bench-worker).
package main
