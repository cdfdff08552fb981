#!/usr/bin/env bash
# Runs every fuzz target for a while: fuzz.sh 20s. An input that breaks one is written below its
# package's testdata/fuzz; commit it with the fix.
set -euo pipefail
cd "$(dirname "$0")/.."

time=${1:?usage: $0 DURATION}
folders=$(build/packages.sh with 'func Fuzz')
for dir in $folders; do
	for name in $(grep -ohE '^func Fuzz[A-Za-z0-9_]*' "$dir"/*_test.go | awk '{ print $2 }'); do
		printf '\n== %s %s for %s\n' "$dir" "$name" "$time"
		go test -run '^$' -fuzz "^$name\$" -fuzztime "$time" -fuzzminimizetime 5x "$dir"
	done
done
