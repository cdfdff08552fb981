// Command probe is a Worker that misbehaves on request: test/worker.mjs builds it in place of
// cmd/worker to prove what the bridge promises (isolation, streams, faults) in workerd. test/bench/library.mjs
// measures in it the bridge beside syumai/workers.
package main
