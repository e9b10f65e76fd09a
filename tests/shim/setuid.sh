#!/bin/bash
# SPDX-License-Identifier: MIT
# A setuid program does nothing that its caller's variables say: it makes no file for him.
#   setuid.sh PROGRAM LIBRARY...
set -u
[ "$(id -u)" = 0 ] || { echo 'only root can make such a program'; exit 77; }
dir=$(mktemp -d "${TMPDIR:-/tmp}/somashim-setuid-test.XXXXXX")
trap 'rm -rf "$dir"' EXIT
chmod 755 "$dir"
mkdir -m 777 "$dir/open"
cp "$1" "$dir/program"
shift
for library in "$@"; do libraries+=("$(realpath "$library")"); done
truncate -s 4096 "$dir/page"
chmod 666 "$dir/page"

export SOMASIM_QUIET=1 SOMASHIM_CHECK=order,leak SOMASHIM_STATS=1 SOMASHIM_VERBOSE=1 SOMASHIM_REPORT="$dir/page"
for variable in LOG JOURNAL TRACE METRICS CHECK_FILE; do
	export SOMASHIM_$variable="$dir/open/$variable"
done
export SOMASHIM_LIVE="$dir/open"
as_nobody() { timeout 60 setpriv --reuid 65534 --regid 65534 --clear-groups "$dir/program" "${libraries[@]}" >"$dir/out" 2>&1; }

as_nobody
status=$?
[ $status = 0 ] || { echo "nobody cannot run it: $status, $(cat "$dir/out")"; exit 77; }
[ -e "$dir/open/JOURNAL" ] && [ -e "$dir/open/TRACE" ] || { echo 'the variables make no files'; exit 1; }
rm -f "$dir"/open/*
chmod 4755 "$dir/program"
as_nobody
status=$?
[ $status = 0 ] && { echo 'there are no setuid programs here'; exit 77; }
[ $status = 42 ] || { echo "status $status"; cat "$dir/out"; exit 1; }
[ -z "$(ls -A "$dir/open")" ] || { echo "root made $(ls -l "$dir/open")"; exit 1; }
[ ! -s "$dir/out" ] || { echo 'root said:'; cat "$dir/out"; exit 1; }
