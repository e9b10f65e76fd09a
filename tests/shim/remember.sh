#!/bin/sh
# SPDX-License-Identifier: MIT
# remember.sh SOMASHIM LIBRARY PROGRAM: what a self-test proved counts for later processes, as long as nothing
# changes on which it depends, and the file that says so can be trusted.
somashim=$1 library=$2 program=$3
export SOMASIM_QUIET=1 SOMASIM_DELAY_US=0 SOMASIM_HIP_VERSION=7.2
dir=$(mktemp -d "${TMPDIR:-/tmp}/somashim-remember.XXXXXX")
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/state" "$dir/home"
export XDG_STATE_HOME="$dir/state" HOME="$dir/home"

wrong() {
	echo "$*"
	exit 1
}

# backing WHICH TEXT [VARIABLE=VALUE]: what a program gets, and why.
backing() {
	which=$1 text=$2
	shift 2
	out=$(env SOMASHIM_VERBOSE=1 LD_PRELOAD="$library" "$@" "$program" 2>&1)
	printf '%s\n' "$out" | grep -q "backing: $which .*$text" || wrong "$*: not $which, $text: $out"
}

files() {
	find "$1" -type f -name 'verdict-*' | wc -l
}

untried='vmm was not tried' known='the self-test passed earlier' failed='vmm failed earlier'

# Nothing is remembered of a doctor that is not asked to, nor of a process without a self-test.
"$somashim" doctor >"$dir/out" || wrong "$(cat "$dir/out")"
backing hip "$untried" A=1
[ "$(files "$dir")" = 0 ] || wrong "$(find "$dir")"
# A self-test in a program, and one by name.
backing vmm 'the self-test passed' SOMASHIM_SELFTEST=1
backing vmm "$known" A=1
"$somashim" doctor --forget | grep -q '^1 verdict forgotten' || wrong 'not forgotten'
backing hip "$untried" A=1
"$somashim" doctor --save >"$dir/out" || wrong "$(cat "$dir/out")"
backing vmm "$known" A=1
backing hip "$untried" SOMASHIM_REMEMBER=0
file=$(find "$dir/state/somashim" -type f)
[ "$(stat -c %a "$dir/state/somashim" "$file" | tr '\n' ' ')" = '700 600 ' ] || wrong "$(ls -la "$dir/state/somashim")"

# Another runtime, another device, one more device, another user's settings.
backing hip "$untried" SOMASIM_HIP_VERSION=6.4
backing hip "$untried" SOMASIM_ARCH=gfx90a
backing vmm "$known" SOMASIM_DEVICES=2
backing hip "$untried" SOMASIM_DEVICES=2
backing hip 'the device has no vmm' SOMASIM_QUIRKS=no-vmm
backing hip "$untried" XDG_STATE_HOME="$dir/nowhere"
backing hip "$untried" XDG_STATE_HOME=state
backing vmm "$known" A=1

# Files and directories that others could have written, or that say something else.
cp "$file" "$dir/copy"
for mode in 620 602; do
	chmod $mode "$file"
	backing hip "$untried" A=1
done
chmod 600 "$file"
chmod 770 "$dir/state/somashim"
backing hip "$untried" A=1
chmod 700 "$dir/state/somashim"
backing vmm "$known" A=1
sed 's/passed/failed/' "$dir/copy" >"$file"
backing hip "$failed" A=1
for said in begun 'begun again' pass passedd '' 'passed, and much more than that'; do
	sed "s/vmm passed/vmm $said/" "$dir/copy" >"$file"
	backing hip "$untried" A=1
done
sed '$d' "$dir/copy" >"$file"
backing hip "$untried" A=1
{ cat "$dir/copy"; echo more; } >"$file"
backing hip "$untried" A=1
: >"$file"
backing hip "$untried" A=1
ln -sf "$dir/copy" "$file"
backing hip "$untried" A=1
rm "$file" && mkfifo "$file"
backing hip "$untried" A=1
rm "$file" && cp "$dir/copy" "$file"
mv "$dir/state/somashim" "$dir/other" && ln -s "$dir/other" "$dir/state/somashim"
backing hip "$untried" A=1
rm "$dir/state/somashim" && mv "$dir/other" "$dir/state/somashim"
backing vmm "$known" A=1

# A map or a grant that fails later ends the trust.
for call in hipMemMap:%1 hipMemSetAccess:%1; do
	backing vmm "$known" SOMASIM_FAIL=$call
	backing hip "$failed" A=1
	cp "$dir/copy" "$file"
done
# So does a self-test that fails. A device without memory is no reason.
backing vmm "$known" SOMASIM_FAIL=hipMemCreate:%1
backing vmm "$known" A=1
backing hip 'the self-test of vmm failed' SOMASHIM_SELFTEST=1 SOMASIM_QUIRKS=map-fails
backing hip "$failed" A=1

# Without XDG_STATE_HOME it is below the home directory; without either there is no memory.
unset XDG_STATE_HOME
"$somashim" doctor --save >"$dir/out" || wrong "$(cat "$dir/out")"
backing vmm "$known" A=1
[ "$(files "$dir/home/.local/state/somashim")" = 1 ] || wrong "$(find "$dir/home")"
unset HOME
backing hip "$untried" A=1
backing vmm 'the self-test passed' SOMASHIM_SELFTEST=1
"$somashim" doctor --save | grep -q 'the verdict is not remembered: No such file' || wrong 'nobody was told'
"$somashim" doctor --forget | grep -q '^0 verdicts' || wrong 'not nothing forgotten'
exit 0
