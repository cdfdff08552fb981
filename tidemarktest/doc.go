// Package tidemarktest holds what tests of Tidemark share: one contract test for every
// implementation of a port of the root package, and fakes that obey the same contracts. It reaches
// tests only, on every host, js/wasm included, so it may wait with real timers. Begin with the contract
// test of the port that you implement.
package tidemarktest
