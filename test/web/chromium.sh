#!/usr/bin/env bash
# Makes sure that there is a Chromium for the tests of the page: $CHROMIUM, one that is installed, or that
# of the distribution, without a window where it has one such: it takes half of the processor time.
set -euo pipefail
for name in ${CHROMIUM:-} chromium-headless-shell chromium chromium-browser google-chrome google-chrome-stable chrome; do
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
install="$sudo apt-get install -y -qq --no-install-recommends fonts-dejavu-core"
$install chromium-headless-shell || $install chromium
