#!/usr/bin/env bash
# Runs a command, and once more if it failed because workerd itself crashed: the pinned version has a race
# in its local server between a request and the eviction of its object (a SIGSEGV in
# ActorContainer::startRequest, seen at many times the usual load), in code that Cloudflare does not run.
# Every other failure stands.
set -uo pipefail

log=$(mktemp)
trap 'rm -f "$log"' EXIT
"$@" 2>&1 | tee "$log" && exit
status=$?
grep -q 'Received signal #11: Segmentation fault' "$log" || exit "$status"
printf '\n== workerd crashed: once more\n'
exec "$@"
