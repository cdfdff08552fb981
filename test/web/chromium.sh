#!/usr/bin/env bash
# Makes sure that there is a Chromium for the tests of the page: $CHROMIUM, one that is installed, or that
# of the distribution.
set -euo pipefail
for name in ${CHROMIUM:-} chromium chromium-browser google-chrome google-chrome-stable chrome; do
	if command -v "$name" >/dev/null; then
		exit 0
	fi
done
if ! command -v apt-get >/dev/null; then
	echo "no Chromium here: install one, or set CHROMIUM to it" >&2
	exit 1
fi
sudo=""
if [ "$(id -u)" != 0 ]; then
	sudo=sudo
fi
$sudo apt-get update -qq
$sudo apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core
