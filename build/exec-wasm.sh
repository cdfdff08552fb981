#!/bin/sh
# Runs exec-wasm.mjs on the Node 22 that `npm ci` puts into build/node_modules: older ones have no
# SQLite. It is called by the bare name: from that net/http knows Node, and takes package net's network
# in memory, so that tests can serve and call in one process. The stack is that of Go's own runner.
here=$(cd "$(dirname "$0")" && pwd)
for bin in "$here"/node_modules/node-*/bin; do
	[ -x "$bin/node" ] || continue
	PATH="$bin:$PATH"
	export PATH
	exec node --no-warnings --stack-size=8192 "$here/exec-wasm.mjs" "$@"
done
echo "exec-wasm: no Node 22 in build/node_modules: run npm ci --ignore-scripts in build/" >&2
exit 2
