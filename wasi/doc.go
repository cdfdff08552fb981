// Package wasi runs tools that are WebAssembly modules of WASI preview 1: a call's input is one JSON object on
// standard input, its result is what the module writes to standard output. It is for native hosts; a Worker can
// neither compile at run time nor end a module that loops.
//
// Goals: a module sees nothing of the machine but what its manifest names; each call has an instance of its own, so
// none knows of another; a module that loops, allocates, writes or sleeps without end is ended; a call of a module
// in use costs well under a millisecond.
//
// Non-goals: state between calls, network, writing files, WASI preview 2.
//
// Begin with the path of a call: [Tools.Call] looks at the folder, checks the input against the schema (schema.go), takes an
// instance that waits for input or starts one (pool.go, instance.go), hands the input over and reads the result
// (output.go). A module is compiled once and kept on disk (engine.go, cache.go).
package wasi
