#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Breaks each ordering rule of the core on purpose, one build per rule, and shows which test catches it.
# Fails if a broken rule survives, or if the unbroken core does not pass. A rule is broken by a patch in
# tests/mutants.
#
# The directed tests come first. A mutant that they catch runs a few random programs, to find a seed. A
# mutant that they do not catch, and the unbroken core, run all of them.
#
#   scripts/mutants.sh [--programs N] [--jobs J] [NUMBER...]
set -u
. "$(dirname "$0")/usage.sh"
few=5000
programs=200000
jobs=$(nproc)
list=
while [ $# -gt 0 ]; do
	case $1 in
	--programs) needs_number "$@"; programs=$2; shift 2 ;;
	--jobs) needs_number "$@"; jobs=$2; shift 2 ;;
	*[!0-9]*) wrong_call "$1 is neither an option nor a number" ;;
	*) list="$list $1"; shift ;;
	esac
done
cd "$(dirname "$0")/.." || exit 1
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
cc="${CC:-cc} -std=gnu11 -D_GNU_SOURCE -DSOMASHIM_VERSION=\"mutant\" -O1"
# The tests keep the mappings of the core: see tests/oracle/mappings.c.
cc="$cc -fno-strict-aliasing -I. -D_FILE_OFFSET_BITS=64 -Wl,--wrap=mmap64,--wrap=munmap"
# Works on a copy, so that edits during the run have no effect.
cp -r config core trace "$dir" && mkdir "$dir/tests" && cp -r tests/{oracle,mutants} "$dir/tests/" || exit 1
cd "$dir" || exit 1
table=$(for f in tests/mutants/*.patch; do basename "$f" .patch; done | sed 's/^0*\([0-9]*\)_/\1 /' | sort -n)
[ -n "$list" ] || list="0 $(echo "$table" | cut -d' ' -f1)"

object() { echo "$(echo "${1%.c}" | tr / _).o"; }

# What a mutant does not change is compiled once for all: the tests, the settings, the recording,
writer=$(sed -n "/trace-writer'/,/include/s/'\([a-z_]*\.c\)'/\n\1\n/gp" trace/meson.build | grep '^[a-z_]*\.c$')
for f in tests/oracle/*.c config/*.c $(printf 'trace/%s ' $writer); do
	$cc -O2 -c "$f" -o "$dir/t_$(basename "$f" .c).o" || exit 1
done
# and most of the core.
mkdir "$dir/unbroken"
for f in core/*.c core/*/*.c; do
	$cc -c "$f" -o "$dir/unbroken/$(object "$f")" || exit 1
done

one() {
	n=$1
	name=$(echo "$table" | sed -n "s/^$n //p")
	cp -r "$dir/unbroken" "$dir/$n"
	patch=$(printf 'tests/mutants/%02d_%s.patch' "$n" "$name")
	if [ -e "$patch" ]; then
		changed=$(sed -n 's,^+++ b/,,p' "$patch")
		mkdir "$dir/$n/tree" && cp -r core "$dir/$n/tree/" &&
			(cd "$dir/$n/tree" && python3 "$dir/tests/mutants/apply.py" "$dir/$patch" >/dev/null) ||
			{ : >"$dir/bad"; return; }
	else
		changed=
		[ "$n" = 0 ] || { echo "$n: no such mutant" >&2; : >"$dir/bad"; return; }
	fi
	tests=$dir
	case $changed in
	*.h*) # The tests inline what headers of the core say.
		changed=$(ls core/*.c core/*/*.c) tests=$dir/$n/tests
		mkdir "$tests" && cp "$dir"/t_*.o "$tests/" || { : >"$dir/bad"; return; }
		for f in tests/oracle/*.c; do
			(cd "$dir/$n/tree" 2>/dev/null; $cc -I"$dir" -O2 -c "$dir/$f" \
				-o "$tests/t_$(basename "$f" .c).o") || { : >"$dir/bad"; return; }
		done
	esac
	for f in $changed; do
		(cd "$dir/$n/tree" 2>/dev/null; $cc -I"$dir" -c "$f" -o "$dir/$n/$(object "$f")") ||
			{ : >"$dir/bad"; return; }
	done
	common=$(ls "$tests"/t_*.o | grep -v -e t_main -e t_shrink -e t_directed)
	$cc -o "$dir/$n/directed" "$dir/$n"/*.o $common "$tests"/t_directed*.o -lpthread -ldl &&
		$cc -o "$dir/$n/oracle" "$dir/$n"/*.o $common "$tests/t_main.o" \
			"$tests/t_shrink.o" -lpthread -ldl || { : >"$dir/bad"; return; }
	by=
	timeout 60 "$dir/$n/directed" >"$dir/$n/log" 2>&1 ||
		by="directed $(grep -m1 -o '^[a-z_]*' "$dir/$n/log" || echo crashed)"
	count=$programs
	[ -z "$by" ] || [ "$count" -lt "$few" ] || count=$few
	timeout 3600 "$dir/$n/oracle" --count "$count" --jobs 1 --no-shrink \
		>"$dir/$n/log" 2>&1 || {
		said=$(sed -n 's/^FAILED //p' "$dir/$n/log" | sed 's/op [0-9]*: //' |
			cut -c1-80)
		[ -z "$said" ] && echo "oracle of $n: $(tail -1 "$dir/$n/log")" >&2 &&
			: >"$dir/bad"
		by="${by:+$by, }${said:+oracle $said}"
	}
	if [ "$n" = 0 ]; then
		printf '%3d  %-28s %s\n' 0 '(none)' "${by:-passes}"
		[ -z "$by" ] || : >"$dir/bad"
	elif [ -n "$by" ]; then
		printf '%3d  %-28s %s\n' "$n" "$name" "$by"
	else
		printf '%3d  %-28s SURVIVES %s programs\n' "$n" "$name" "$programs"
		: >"$dir/bad"
	fi
	rm -rf "${dir:?}/$n"
}

printf ' no  %-28s %s\n' 'rule broken' 'caught by'
running=0
for n in $list; do
	one "$n" &
	running=$((running + 1))
	[ $running -lt "$jobs" ] || wait -n
done
wait
[ ! -e "$dir/bad" ]
