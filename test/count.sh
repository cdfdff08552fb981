#!/usr/bin/env bash
# Tells what came of the suites whose results lie in .cache/tests: the slowest ten tests, the time that all of it took,
# and one line with the counts.
#
#     test/count.sh SECONDS
set -euo pipefail

if [ "$1" = --line ]; then # called by gotestsum, which has counted
	echo "tests: $((TESTS_TOTAL - TESTS_FAILED - TESTS_SKIPPED)) passed, $TESTS_FAILED failed, $TESTS_SKIPPED skipped"
	exit
fi
root=$(cd "$(dirname "$0")/.." && pwd)
sum=$root/.cache/bin/gotestsum
results=("$root"/.cache/tests/*.json)
printf '\n== the slowest ten tests\n'
cat "${results[@]}" | "$sum" tool slowest --num 10
printf '\n== %d suites with tests in %d min %02d s\n' "${#results[@]}" "$(($1 / 60))" "$(($1 % 60))"
"$sum" --raw-command --format none --hide-summary all --post-run-command "$0 --line" -- cat "${results[@]}" | grep '^tests:'
