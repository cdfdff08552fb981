// Package cloudflare is what a Worker gives to the core: the database, bucket, alarm, clock and
// network of one Durable Object, and the bridge over which events reach Go. The HTTP routes are package
// worker's. Begin with object_js.go and bridge_js.go.
//
// One Go instance serves all objects of an isolate. Three rules follow, and the bridge keeps them:
//
//   - An [Obj] is known by its generation, not by its name. Once its Durable Object is gone, every
//     call fails with tidemark.ErrDead before it touches JavaScript.
//   - All work of an object begins in an event of that object, and whatever it waits for is answered
//     in one. The JavaScript side notes whose event runs and refuses calls of another object.
//   - What has an I/O context (readers, writers, timers) stays in JavaScript; Go holds numbers.
//
// The other half is build/host.mjs and build/ops.mjs. Only the codec between the two builds
// natively; everything else is js/wasm.
package cloudflare
