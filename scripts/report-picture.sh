#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Makes docs/report.png anew: records tests/apps/training on the software device, and takes a picture of the page of its
# report. Needs a build, and chromium.
#   scripts/report-picture.sh [BUILD]
set -euo pipefail
. "$(dirname "$0")/usage.sh"
build=${1:-$(dirname "$0")/../build}
[ -d "$build" ] || wrong_call "no directory $build"
command -v chromium >/dev/null || wrong_call "there is no chromium"
build=$(realpath "$build")
picture=$(realpath "$(dirname "$0")/../docs")/report.png
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$build/tests/apps"
# What calls take makes the steps equally long.
LD_LIBRARY_PATH=$build/sim SOMASIM_SEED=1 SOMASIM_DELAY_US=0 SOMASIM_COST=hipStreamSynchronize:800,hipMemsetAsync:200 \
	"$build/cli/somashim" record -o "$work/training.trace" ./training
cd "$work"
"$build/cli/somashim" report -o page.html training.trace
chromium --headless=new --no-sandbox --disable-gpu --hide-scrollbars --window-size=1180,945 --virtual-time-budget=5000 \
	--screenshot="$work/report.png" "file://$work/page.html" 2>/dev/null
[ -s report.png ] || { echo "report-picture.sh: chromium made no picture" >&2; exit 1; }
cp report.png "$picture"
