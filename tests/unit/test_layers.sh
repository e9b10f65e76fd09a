#!/bin/sh
# SPDX-License-Identifier: MIT
# Tests scripts/layers.sh on archives that each break one rule. test_layers.sh LAYERS_SH
set -eu
layers=$1
dir=$(mktemp -d "${TMPDIR:-/tmp}/somashim-layers.XXXXXX")
trap 'rm -rf "$dir"' EXIT
printf 'below .\nroom low left,right high .\n' >"$dir/table"

# file FOLDER NAME CALLED...: an object into the library of that folder, or a program if that is "."
file() {
	folder=$1 name=$2
	shift 2
	{ # it defines NAME and wants the others: an assembler is enough, and fast
		printf '.text\n.globl %s\n%s:\n' "$name" "$name"
		for called; do printf '.quad %s\n' "$called"; done
	} >"$dir/$name.s"
	if [ "$folder" = . ]; then
		mkdir -p "$dir/build/room/program.p"
		as "$dir/$name.s" -o "$dir/build/room/program.p/$name.c.o"
		return
	fi
	mkdir -p "$dir/build/room/$folder/lib.a.p"
	object=$dir/build/room/$folder/lib.a.p/$name.c.o
	as "$dir/$name.s" -o "$object"
	ar ${thin:+--thin} -rc "$dir/build/room/$folder/lib.a" "$object"
}

# expect STATUS PATTERN WHAT: what the script says of the build, which is then made anew.
expect() {
	status=0
	LAYERS=$dir/table "$layers" "$dir/build" >"$dir/out" 2>&1 || status=$?
	if [ $status != "$1" ] || ! grep -q "$2" "$dir/out"; then
		echo "$3: status $status, said:"
		cat "$dir/out"
		exit 1
	fi
	rm -rf "$dir/build"
	mkdir "$dir/build"
}

mkdir "$dir/build"
expect 77 'no room is divided' "an empty build"

for thin in '' yes; do # as Meson makes archives, too
	file low a
	file left b a
	file right c a
	file high d b c
	file . main d a
	expect 0 '^room/high  *uses room/left, room/right$' "a sound order"
done
thin=
file low a
file left b a
file . main b
expect 0 '^room  *uses room/left$' "a program above the libraries"

file low a
file left b a
mv "$dir/build/room/left/lib.a" "$dir/build/room/libx-room-left.a"
expect 0 '^room/left  *uses room/low$' "a library in the room"

file low a b
file left b
expect 1 'UPWARDS  room/low/a.c uses b of room/left/b.c' "a use upwards"
file left b c
file right c
expect 1 'UPWARDS  room/left/b.c uses c of room/right/c.c' "a use on one level"
file low a main
file . main
expect 1 'UPWARDS  room/low/a.c uses main of room/main.c' "a use of the program"

mkdir -p "$dir/build/below"
file low a x
file low x
mv "$dir/build/room/low/lib.a" "$dir/build/below/lib.a"
file left b a
expect 0 '^room/left  *uses below$' "a use of a room below all"
mkdir -p "$dir/build/below"
file low x b
mv "$dir/build/room/low/lib.a" "$dir/build/below/lib.a"
file left b
expect 1 'UPWARDS  below/x.c uses b of room/left/b.c' "a use by a room below all"

file low a b
file low b c
file low c a
file low d a
expect 0 'circle of 3: room/low/a.c, room/low/b.c, room/low/c.c$' "a circle of three"
file low a b
file low b c
file low c d
file low d a
expect 1 'circle of 4  TOO LARGE' "a circle of four"
file low a b
file left b c
file right c d
file high d a
expect 1 'circle of 4  TOO LARGE' "a circle across folders"
