#!/usr/bin/env bash
# Runs one suite of tests and keeps what came of each for the count at the end (test/count.sh):
#
#     test/suite.sh NAME go [ARGUMENTS OF go test…]
#     test/suite.sh NAME node [ARGUMENTS OF node…]
#     test/suite.sh NAME run COMMAND [ARGUMENTS…]     counts nothing
#
# The suite has a temporary folder of its own, which is removed whatever becomes of the suite.
set -uo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
name=$1 kind=$2
shift 2
mkdir -p "$root/.cache/tests"
printf '\n== %s\n' "$name"
tmp=$(mktemp -d "${TMPDIR:-/tmp}/tidemark-XXXXXX")
# A process that is about to end may still write there.
clean() {
	times >"$tmp/times" # of this shell, not of one in a pipe
	printf '%s: %s of a processor (its own, the kernel'"'"'s)\n' "$name" "$(tail -1 "$tmp/times")"
	rm -rf "$tmp" || { sleep 1 && rm -rf "$tmp"; }
}
trap clean EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
export TMPDIR=$tmp

sum=("$root/.cache/bin/gotestsum" --format pkgname --hide-summary skipped,errors --jsonfile "$root/.cache/tests/$name.json")
case $kind in
go)
	# Compilers and tests are short of time, not of memory: this takes a third of their time away.
	GOGC=${GOGC:-400} "${sum[@]}" -- "$@"
	;;
node)
	# gotestsum counts each line on standard error as an error of the build; node's has notes and warnings, and goes past it.
	"${sum[@]}" --raw-command --ignore-non-json-output-lines -- \
		bash -c 'exec node "$@" 2>&3' node --test-reporter="$root/test/reporter.mjs" "$@" 3>&2 || exit
	# A program that ends before its tests has no failure to tell.
	grep -q '"Action":"\(pass\|skip\)"' "$root/.cache/tests/$name.json" || { echo "$name: no test has run" >&2 && exit 1; }
	;;
run) "$@" ;;
*) echo "$0: $kind: want go, node or run" >&2 && exit 2 ;;
esac
