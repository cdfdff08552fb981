#!/usr/bin/env bash
# Lists packages as ./folder, one a line, for the Makefile:
#   packages.sh native     all that have tests of their own, run natively
#   packages.sh js         all that build for js/wasm: they do not link the native host
#   packages.sh worker     those that the Worker links, and what tests them: their tests run under js/wasm
#   packages.sh lint-native, lint-js   each to be linted where its code is built
#   packages.sh with TEXT  folders with a test that begins so, such as "func Benchmark"
set -euo pipefail
cd "$(dirname "$0")/.."

module=$(go list -m)

case "${1:-}" in
native)
	# internal/lint is run by `make rules`, test and what is below it by `make e2e`.
	# The longest begin, so that none is left alone at the end.
	go list ./session ./compaction ./... | sed "s,^$module,.," | grep -vxE '\./(internal/lint|test(/.*)?)' ;;
js)
	# What only runs natively. A test under js/wasm that needs it carries the tag !js.
	GOOS=js GOARCH=wasm go list -e -f '{{if .GoFiles}}{{.ImportPath}} {{join .Deps " "}}{{end}}' ./... |
		awk -v module="$module" '
			BEGIN { split("build host/native internal/lint test", no, " ") }
			NF {
				for (i in no) if (index(" " $0 " ", " " module "/" no[i] " ")) next
				sub("^" module, ".", $1); print $1
			}' ;;
worker)
	# The longest begin. What else builds for js/wasm runs natively only: vet is enough for it.
	{
		printf "$module/%s\n" session compaction paging tidemarktest host/hosttest
		GOOS=js GOARCH=wasm go list -deps ./cmd/worker | grep "^$module"
	} | sed "s,^$module,.," | awk '!seen[$0]++' ;;
lint-native)
	go list ./... | sed "s,^$module,.," | grep -vxE '\./(host/cloudflare|host/probe|cmd/worker)' ;;
lint-js)
	# The rest of the code is the same on both targets.
	for dir in host/cloudflare host/probe cmd/worker internal/json; do
		if [ -d "$dir" ]; then echo "./$dir"; fi
	done ;;
with)
	# Without any it fails: a target that quietly runs nothing is worse than one that says so.
	grep -rlE --include='*_test.go' --exclude-dir='.?*' --exclude-dir=node_modules "^${2:?text}" . |
		xargs -r -n1 dirname | sort -u ||
		{ echo "$0: no test begins with \"$2\"" >&2; exit 1; } ;;
*)
	echo "usage: $0 native | js | worker | lint-native | lint-js | with TEXT" >&2
	exit 2 ;;
esac
