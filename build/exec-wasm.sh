#!/bin/sh
# Runs exec-wasm.mjs on the Node 22 that `npm ci` puts into build/node_modules: older ones have no
# SQLite. The stack is that of Go's own runner.
here=$(cd "$(dirname "$0")" && pwd)
for node in "$here"/node_modules/node-*/bin/node; do
	[ -x "$node" ] && exec "$node" --no-warnings --stack-size=8192 "$here/exec-wasm.mjs" "$@"
done
echo "exec-wasm: no Node 22 in build/node_modules: run npm ci --ignore-scripts in build/" >&2
exit 2
