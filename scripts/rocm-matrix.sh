#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Compares somashim with every release of ROCm that Debian has, or with those named (6.4.3).
#   scripts/rocm-matrix.sh [BUILD [RELEASE...]]
# Each libamdhip64, with the HSA runtime and the libc that it needs, is fetched from the mirror that apt
# uses here into BUILD/rocm-matrix. That needs no root and does not change the system. For each release
# rocm-check.py compares headers and symbols. A preloaded program must start under that release's own
# loader, get hipErrorNoDevice and end cleanly, with and without the auditor. Prints one row per release;
# exits 1 if one disagrees, 77 if none could be fetched.
set -uo pipefail
. "$(dirname "$0")/usage.sh"
build=${1:-${BUILD:-$(dirname "$0")/../build}}
[ -d "$build" ] || wrong_call "no directory $build"
build=$(realpath "$build")
cd "$(dirname "$0")/.." || exit 1
shim=$build/shim/libsomashim.so audit=$build/shim/libsomashim-audit.so
[ -f "$shim" ] || { echo "rocm-matrix: $shim is not built"; exit 1; }

# Release, package, and the suites that may have it. Suites before ":" only supply packages that the last
# one lacks.
releases="5.2.3 libamdhip64-5 bookworm
5.7.1 libamdhip64-5 trixie
6.4.3 libamdhip64-6 forky sid
7.2.4 libamdhip64-7 sid forky:experimental sid:experimental"

keyring=/usr/share/keyrings/debian-archive-keyring.gpg
[ -f "$keyring" ] && signed="[signed-by=$keyring]" || signed=
mirrors=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' \
	'Created-By: Packages' 2>/dev/null |
	awk '$3 == "main" && $2 !~ /-/ && !seen[$1]++ { print $1 }')

rows="" agree=0 disagree=0 skipped=0

# with DIR COMMAND...: runs apt with directories of its own.
with() {
	local dir=$1
	shift
	APT_CONFIG="$dir/apt.conf" nice "$@" >>"$dir/log" 2>&1 </dev/null
}

# fetch DIR RELEASE PACKAGE MIRROR SUITES: unpacks into DIR/root, or says why not.
fetch() {
	local dir=$1 release=$2 package=$3 mirror=$4 suites=${5//:/ } suite=${5##*:} version
	mkdir -p "$dir/state/lists/partial" "$dir/state/none" "$dir/cache/archives/partial" "$dir/new" || return 1
	: >"$dir/status"
	cat >"$dir/apt.conf" <<-EOF
		Dir::State "$dir/state";
		Dir::State::status "$dir/status";
		Dir::Cache "$dir/cache";
		Dir::Etc::sourcelist "$dir/sources.list";
		Dir::Etc::sourceparts "-";
		Dir::Etc::preferences "-";
		Dir::Etc::preferencesparts "$dir/state/none";
		APT::Architecture "amd64";
		APT::Architectures "amd64";
		APT::Sandbox::User "$(id -un)";
		APT::Install-Recommends "false";
		APT::Get::Assume-Yes "true";
		APT::Get::Download-Only "true";
		Acquire::Retries "1";
		Acquire::http::Timeout "20";
		Acquire::Languages "none";
	EOF
	for s in $suites; do
		echo "deb $signed $mirror $s main"
	done >"$dir/sources.list"
	if ! with "$dir" timeout 600 apt-get update --error-on=any; then
		reason="no answer from the mirror for $suites"
		return 1
	fi
	version=$(APT_CONFIG="$dir/apt.conf" apt-cache madison "$package" |
		awk -v r="$release" -v s="$suite/" '
			index($3, r) == 1 && substr($3, length(r) + 1) ~ /^[-+]/ &&
			index($6, s) == 1 { print $3; exit }')
	if [ -z "$version" ]; then
		reason="$suite has no $package $release"
		return 1
	fi
	if ! with "$dir" timeout 1800 apt-get install -t "$suite" "$package=$version" ||
		! (cd "$dir/cache/archives" && with "$dir" timeout 600 apt-get download \
			-t "$suite" "libamdhip64-dev=$version" libhsa-runtime-dev); then
		reason="the packages of $suite could not be fetched, see $dir/log"
		return 1
	fi
	rm -rf "$dir/new" && mkdir "$dir/new" && : >"$dir/versions" || return 1
	for deb in "$dir"/cache/archives/*.deb; do
		dpkg-deb -x "$deb" "$dir/new" || { reason="$deb is broken"; return 1; }
		dpkg-deb -W --showformat '${Package} ${Version}\n' "$deb" >>"$dir/versions"
	done
	rm -rf "$dir/new/usr/share" "$dir/new/etc" "$dir/new/var" "$dir/cache" "$dir/state"
	mv "$dir/new" "$dir/root"
}

# starts DIR RELEASE LOADER_OPTIONS...: the program under that release's loader.
starts() {
	local dir=$1 release=$2 loader out status
	shift 2
	for loader in "$dir"/root/{lib64,lib/x86_64-linux-gnu,usr/lib64,usr/lib/x86_64-linux-gnu}/ld-linux-x86-64.so.2; do
		# An absolute link would leave the tree.
		[ -f "$loader" ] && [[ $(readlink -f "$loader") == "$dir"/* ]] && break
	done
	out=$(env -u LD_PRELOAD -u LD_AUDIT -u LD_LIBRARY_PATH -u SOMASHIM_LOG \
		HIP_VISIBLE_DEVICES=-1 SOMASHIM_VERBOSE=1 timeout 120 "$loader" \
		--library-path "$dir/root/usr/lib/x86_64-linux-gnu:$dir/root/lib/x86_64-linux-gnu" \
		--preload "$shim" "$@" "$dir/nodevice" 2>&1)
	status=$?
	if [ $status = 0 ] && grep -q "runtime: $dir/root/.*(${release%.*})$" <<<"$out"; then
		return 0
	fi
	printf '%s: a preloaded program (%s): status %s, said:\n%s\n' "$release" "$*" $status "$out"
	return 1
}

check() {
	local dir=$1 release=$2 lib=$1/root/usr/lib/x86_64-linux-gnu/libamdhip64.so.${2%%.*} ok=0
	python3 scripts/rocm-check.py "$release" "$dir/root" "$shim" || ok=1
	# Its dependencies want a libc that the linker here need not know.
	if ! ${CC:-gcc} -D_GNU_SOURCE -D__HIP_PLATFORM_AMD__ -Wno-deprecated-declarations -I. \
		-isystem "$dir/root/usr/include" tests/shim/nodevice.c "$lib" -o "$dir/nodevice" \
		-Wl,--unresolved-symbols=ignore-in-shared-libs; then
		echo "$release: a program does not link"
		return 1
	fi
	starts "$dir" "$release" || ok=1
	starts "$dir" "$release" --audit "$audit" || ok=1
	return $ok
}

row() {
	rows+=$(printf '%-8s %-10s %s' "$@")$'\n'
}

while read -r release package suites; do
	[ $# -lt 2 ] || [[ " ${*:2} " == *" $release "* ]] || continue
	dir=$build/rocm-matrix/$release
	mkdir -p "$dir"
	reason="apt names no mirror here"
	if [ ! -d "$dir/root" ]; then
		echo "rocm-matrix: fetching $release"
		for mirror in $mirrors; do
			for suite in $suites; do
				fetch "$dir" "$release" "$package" "$mirror" "$suite" && break 2
			done
		done
	fi
	if [ ! -d "$dir/root" ]; then
		skipped=$((skipped + 1))
		row "$release" skipped "$reason"
		continue
	fi
	what=$(awk -v p="$package" '$1 == p || $1 == "libhsa-runtime64-1" || $1 == "libc6" {
		printf "%s%s %s", n++ ? ", " : "", $1, $2 }' "$dir/versions")
	if check "$dir" "$release"; then
		agree=$((agree + 1))
		row "$release" agrees "$what"
	else
		disagree=$((disagree + 1))
		row "$release" DISAGREES "$what"
	fi
done <<<"$releases"

printf '%s' "$rows"
[ $disagree = 0 ] || exit 1
[ $agree != 0 ] || exit 77
