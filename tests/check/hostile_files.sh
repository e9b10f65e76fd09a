#!/bin/bash
# SPDX-License-Identifier: MIT
# Files of other people: what they name is not opened unless it is a regular file, nothing of them gets to the
# terminal as it is, and many findings take no longer each than few.
#   hostile_files.sh SOMASHIM CHECK_CORPUS ALLOC_LOOP
set -u
somashim=$(realpath "$1") corpus=$(realpath "$2") loop=$(realpath "$3")
dir=$(mktemp -d "${TMPDIR:-/tmp}/somashim-hostile-test.XXXXXX")
trap 'rm -rf "$dir"' EXIT
export SOMASIM_QUIET=1
unset LD_PRELOAD

fail() { echo "$*"; cat "$dir/out" 2>/dev/null; exit 1; }
# works COMMAND...: it ends, and well.
works() { timeout 30 "$@" >"$dir/out" 2>&1 || fail "$*: status $?"; }
says() { grep -q -- "$1" "$dir/out" || fail "no '$1'"; }

# The program's file has become a FIFO, which nobody writes to, or a device.
cp "$loop" "$dir/program"
cp "$corpus" "$dir/wrong"
works "$somashim" record -o "$dir/trace" "$dir/program" 20
SOMASHIM_CHECK=order SOMASHIM_CHECK_FILE="$dir/found" works "$somashim" run "$dir/wrong" free-without-wait
for kind in fifo device; do
	rm "$dir/program" "$dir/wrong"
	case $kind in
	fifo) mkfifo "$dir/program" "$dir/wrong" ;;
	device) ln -s /dev/tty "$dir/program"; ln -s /dev/zero "$dir/wrong" ;;
	esac
	works "$somashim" report "$dir/trace"
	says "$dir/program"
	works "$somashim" convert --to folded -o /dev/null "$dir/trace"
	works "$somashim" check --merge "$dir/found"
	says 'ERROR SUMMARY: 1 error'
	works "$somashim" report "$dir/found"
done

# Escape sequences of a terminal, and characters that turn the text around.
python3 - "$dir" <<'END' || fail 'python'
import json, sys
evil = 'A\x1b]0;owned\x07B\x9bC\u202eD\nE\x7f'
frame = {'function': evil, 'module': '/nowhere/' + evil, 'offset': 1, 'source': evil, 'line': 1}
site = {'call': evil, 'frames': [frame, {**frame, 'language': evil}],
        'stream': {'kind': evil, 'number': 1, 'device': 0, 'handle': 1}}
finding = {'kind': 'finding', 'number': 1, 'fault': 'double-free', 'text': evil, 'did': evil, 'mend': evil, 'block': 1,
           'base': 4096, 'size': 10, 'address': 4096, 'bytes': 0, 'count': 1, 'use': site, 'alloc': site, 'free': site}
open(sys.argv[1] + '/evil', 'w').write(json.dumps(finding) + '\n')
END
cp "$dir/trace" "$dir/"$'\e[31mred'
for command in 'check --merge' 'report' 'report --json'; do
	works "$somashim" $command "$dir/evil"
	says 'A?\]0;owned?B??C???D?E?'
	grep -qP '[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80\xae' "$dir/out" && fail "$command: something for the terminal"
done
works "$somashim" report "$dir/"$'\e[31mred'
says "$dir/?.31mred"
timeout 30 "$somashim" report "$dir/"$'\e[31mnone' >"$dir/out" 2>&1
grep -q $'\e' "$dir/out" && fail 'an error with something for the terminal'

# Twenty thousand findings. (Each was compared with all before it: minutes of processor time.)
python3 - "$dir" <<'END' || fail 'python'
import json, sys
with open(sys.argv[1] + '/many', 'w') as out:
    for n in range(20000):
        frames = [{'function': 'f%d' % (n // 2), 'module': '/nowhere/m%d' % n, 'offset': 5}] * 3
        out.write(json.dumps({'kind': 'finding', 'number': n + 1, 'fault': 'leak', 'size': 1, 'count': 1,
                              'alloc': {'call': 'hipMalloc', 'frames': frames}}) + '\n')
    for n in range(20000):
        out.write('{"kind": "count", "number": %d, "count": 3}\n' % (n + 1))
END
(ulimit -t 60 && exec "$somashim" check --merge "$dir/many") >"$dir/out" 2>&1 || fail "many: status $?"
says 'ERROR SUMMARY: 20000 errors'
# What is said is no longer than what was read.
python3 - "$dir" <<'END' || fail 'python'
import json, sys
for rank in range(100):
    with open('%s/rank.%d' % (sys.argv[1], rank), 'w') as out:
        for n in range(100):
            out.write(json.dumps({'kind': 'finding', 'number': n + 1, 'fault': 'leak', 'size': 1, 'count': 1,
                                  'alloc': {'call': 'hipMalloc', 'frames': [{'function': 'f%d' % n}]}}) + '\n')
        for n in range(100): # as no process writes them
            out.write('{"kind": "summary", "rank": %d}\n' % (100 * n + rank))
END
works "$somashim" check --merge "$dir"/rank.*
says 'In ranks 0 to 99$'
[ $(wc -c <"$dir/out") -lt 40000 ] || fail "there are $(wc -c <"$dir/out") bytes"
