#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Proves the packages as root: builds them from the last commit, installs them in clean roots, runs
# a HIP program there on the software device, and removes them again.
#   scripts/try-packages.sh [deb] [tarball] [modules] [wheel] [rpm]      nothing named: all
# ROOTS is a folder for the clean roots (bookworm.tar, bullseye.tar), which are made if they are not
# there. Each kind takes some minutes. Nothing is mounted but /proc, in a namespace of its own.
set -euo pipefail
. "$(dirname "$0")/usage.sh"
for kind in "$@"; do
	case $kind in
	-- | deb | tarball | modules | wheel | rpm) ;;
	*) wrong_call "there is no kind $kind" ;;
	esac
done
cd "$(dirname "$0")/.."
. scripts/packages.sh
if [ "$(id -u)" != 0 ]; then
	echo "try-packages.sh: chroot needs root" >&2
	exit 2
fi
if [ "${1:-}" = -- ]; then # inside the namespace
	shift
else
	exec unshare --mount --pid --fork "$PWD/scripts/try-packages.sh" -- "$@"
fi
kinds=${*:-deb tarball modules wheel rpm}
install_packages mmdebstrap debhelper lintian
work=$(mktemp -d)
trap 'cd / && umount "$work"/*/proc 2>/dev/null; rm -rf "$work"' EXIT
ROOTS=$(mkdir -p "${ROOTS:-$work}" && realpath "${ROOTS:-$work}")
multiarch=$(gcc -dumpmachine)
[ -d "/usr/lib/$multiarch" ] || multiarch=x86_64-linux-gnu

fail() { echo "try-packages.sh: $*" >&2; exit 1; }

# clean SUITE NAME: unpacks a clean root as $work/NAME.
clean() {
	[ -r "$ROOTS/$1.tar" ] || mmdebstrap --quiet --variant=apt "$1" "$ROOTS/$1.tar"
	mkdir "$work/$2"
	tar -C "$work/$2" -xf "$ROOTS/$1.tar" --exclude='./dev/*'
	mknod -m 666 "$work/$2/dev/null" c 1 3
	mkdir -p "$work/$2/dev/shm"
	cp /etc/resolv.conf "$work/$2/etc/"
}
with_proc() { mount -t proc proc "$work/$1/proc"; }
# inside NAME COMMAND: a shell command in that root.
inside() {
	env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C DEBIAN_FRONTEND=noninteractive \
		SOMASIM_QUIET=1 chroot "$work/$1" sh -ec "$2"
}
# says NAME PATTERN COMMAND: the command works in that root and prints the pattern.
says() {
	local out
	out=$(inside "$1" "$3" 2>&1) || fail "$1: $3: status $?: $out"
	grep -q "$2" <<<"$out" || fail "$1: $3: no '$2' in: $out"
	echo "$1: $3: $(grep -m 1 "$2" <<<"$out")"
}

source=$work/build/somashim
mkdir -p "$source"
git archive HEAD | tar -C "$source" -x
# The program is as any user has it: compiled against Debian's libamdhip64.
app() { gcc -O1 -D__HIP_PLATFORM_AMD__ tests/apps/alloc_loop.c -o "$1" -lamdhip64; }

try() { # try NAME SIM SOMASHIM
	says "$1" 'wrong=0' "LD_LIBRARY_PATH=$2 /app 6"
	says "$1" 'used in 1 process' "LD_LIBRARY_PATH=$2 $3 run /app 6"
	says "$1" 'verdict: good' "LD_LIBRARY_PATH=$2 $3 doctor"
	says "$1" 'recorded in' "cd /tmp; LD_LIBRARY_PATH=$2 $3 record -o t /app 6"
	says "$1" 'Who held GPU 0' "$3 report /tmp/t"
	says "$1" '.' "$3 report /tmp/t -o /tmp/page.html; grep -c '<svg\|<script' /tmp/page.html; rm /tmp/t /tmp/page.html"
}

try_deb() {
	(cd "$source" && DEB_BUILD_OPTIONS=nocheck dpkg-buildpackage -b -us -uc >../log 2>&1) ||
		{ tail -40 "$work/build/log"; fail "dpkg-buildpackage"; }
	lintian --fail-on warning "$work"/build/*.changes
	clean bookworm deb
	with_proc deb
	inside deb 'apt-get -qq update'
	inside deb 'dpkg-query -W; find / -xdev ! -path "/proc/*" | sort' >"$work/before"
	cp "$work"/build/somashim_*.deb "$work"/build/somashim-sim_*.deb "$work/deb/"
	app "$work/deb/app"
	# The root of a container leaves out man pages; here they are looked at.
	rm -f "$work"/deb/etc/dpkg/dpkg.cfg.d/*
	inside deb 'apt-get -qq install --no-install-recommends /*.deb >/dev/null'
	try deb "/usr/lib/$multiarch/somashim/sim" somashim
	says deb 'install.md' 'dpkg -L somashim; for n in somashim.1 libsomashim.7; do
		test -s $(dpkg -L somashim | grep /$n.gz); done'
	inside deb 'apt-get -qq purge somashim somashim-sim >/dev/null; rm /*.deb /app
		apt-get -qq autoremove --purge >/dev/null'
	inside deb 'dpkg-query -W; find / -xdev ! -path "/proc/*" | sort' >"$work/after"
	left=$(comm -13 <(sort "$work/before") <(sort "$work/after") | grep somashim || true)
	[ -z "$left" ] || fail "purge leaves $left"
	echo "deb: after purge nothing of somashim is left"
}

try_tarball() {
	[ -n "${tarball:-}" ] || tarball=$source/$(cd "$source" && scripts/dist.sh --sim | tail -1)
	local name=${tarball##*/} at
	name=${name%.tar.gz}
	clean bookworm tarball
	app "$work/tarball/app"
	tar -C "$work/tarball/opt" -xzf "$tarball"
	try tarball "/opt/$name/lib/somashim/sim" "/opt/$name/bin/somashim"
	echo "tarball: that was without /proc; now with it, from another place, by a relative name"
	with_proc tarball
	mv "$work/tarball/opt/$name" "$work/tarball/srv/moved"
	says tarball 'used in 1 process' \
		'cd /srv; LD_LIBRARY_PATH=/srv/moved/lib/somashim/sim moved/bin/somashim run /app 6'
	try tarball /srv/moved/lib/somashim/sim /srv/moved/bin/somashim
	says tarball 'recorded in' 'LD_LIBRARY_PATH=/srv/moved/lib/somashim/sim \
		/srv/moved/bin/somashim record -o /app.trace /app 6'

	# The oldest glibc that Debian's archive has. The software device and a program that is
	# built here need the glibc of this machine. So the command runs there, and the preload and the auditor
	# in a program of that root, with all symbols bound at once.
	clean bullseye old
	tar -C "$work/old/opt" -xzf "$tarball"
	cp "$work/tarball/app.trace" "$work/tarball/app" "$work/old/"
	at=/opt/$name
	says old 'GLIBC 2.31' 'ldd --version'
	says old 'SOMASHIM_BACKING' "$at/bin/somashim options"
	says old '"hit_rate"' "$at/bin/somashim generate -o /log.csv serving
		$at/bin/somashim replay --json /log.csv"
	says old 'Who held GPU 0' "$at/bin/somashim report /app.trace"
	says old '^bin' "LD_BIND_NOW=1 LD_PRELOAD=$at/lib/libsomashim.so ls /"
	says old '^bin' "LD_BIND_NOW=1 LD_AUDIT=$at/lib/libsomashim-audit.so ls /"
	says old 'verdict: no runtime' "$at/bin/somashim doctor || true"
}

# The module files, with the two programs that read them; they cannot be installed together.
try_modules() {
	[ -n "${tarball:-}" ] || tarball=$source/$(cd "$source" && scripts/dist.sh --sim | tail -1)
	local kind
	for kind in environment-modules lmod; do
		clean bookworm "$kind"
		with_proc "$kind"
		app "$work/$kind/app"
		tar -C "$work/$kind/opt" -xzf "$tarball"
		inside "$kind" "apt-get -qq update
			apt-get -qq install --no-install-recommends $kind man-db >/dev/null 2>&1"
		cat >"$work/$kind/try" <<-'END'
			for f in /etc/profile.d/modules.sh /etc/profile.d/lmod.sh; do
				[ ! -r $f ] || . $f
			done
			module use /opt/somashim-*/modulefiles
			module avail
			module whatis somashim
			module load somashim
			export LD_LIBRARY_PATH=$(dirname $SOMASHIM_PRELOAD)/somashim/sim
			somashim run /app 6
			LD_PRELOAD=$SOMASHIM_PRELOAD SOMASHIM_VERBOSE=1 /app 6
			man -w somashim
			module unload somashim
			[ -z "${SOMASHIM_PRELOAD:-}" ] && ! command -v somashim && echo unloaded
		END
		says "$kind" 'used in 1 process' 'bash /try'
		says "$kind" 'share/man/man1/somashim.1' 'bash /try'
		says "$kind" 'unloaded' 'bash /try'
	done
}

# pip, in an environment of its own and for one user.
try_wheel() {
	local wheel
	wheel=$source/$(cd "$source" && scripts/dist.sh --sim --wheel | tail -1)
	clean bookworm wheel
	with_proc wheel
	app "$work/wheel/app"
	cp "$wheel" "$work/wheel/"
	inside wheel 'apt-get -qq update
		apt-get -qq install --no-install-recommends python3-venv python3-pip man-db >/dev/null 2>&1
		python3 -m venv /venv; /venv/bin/pip install --quiet --no-index /*.whl
		pip install --quiet --no-index --break-system-packages --target /elsewhere /*.whl'
	local sim=/venv/lib/python3.11/site-packages/somashim/tree/lib/somashim/sim
	try wheel "$sim" /venv/bin/somashim
	try wheel "$sim" '/venv/bin/python -m somashim'
	try wheel "$sim" 'env PYTHONPATH=/elsewhere python3 -m somashim'
	says wheel 'wrong=0' "LD_LIBRARY_PATH=$sim LD_PRELOAD=\$(/venv/bin/somashim --preload) /app 6"
	says wheel 'man1/somashim.1' 'MANPATH=/venv/share/man man -w somashim'
	inside wheel '/venv/bin/pip uninstall --quiet --yes somashim'
	[ -z "$(inside wheel 'find /venv -name "*somashim*"')" ] || fail "pip uninstall leaves files"
}

# Debian has rpm, but not the packages of the distributions that use it. So what the package needs is not looked at, and it
# is unpacked in a root of its own that holds Debian's libraries.
try_rpm() {
	install_packages rpm
	(cd "$source" && scripts/rpm.sh --nodeps "$work/rpms" >"$work/build/log" 2>&1) ||
		{ tail -40 "$work/build/log"; fail "rpmbuild"; }
	clean bookworm rpm
	with_proc rpm
	app "$work/rpm/app"
	inside rpm 'apt-get -qq update; apt-get -qq install --no-install-recommends libjansson4 libdw1 libncursesw6 >/dev/null 2>&1'
	rpm --root "$work/rpm" --initdb
	rpm --root "$work/rpm" -i --nodeps "$work"/rpms/*/somashim-[0-9]*.rpm "$work"/rpms/*/somashim-sim-*.rpm
	try rpm /usr/lib64/somashim/sim /usr/bin/somashim
	[ -n "$(rpm --root "$work/rpm" -ql somashim | grep 'man1/somashim.1')" ] || fail "rpm: no man page"
	rpm --root "$work/rpm" -e --nodeps somashim somashim-sim
	[ -z "$(find "$work/rpm/usr" -name '*somashim*')" ] || fail "rpm -e leaves files"
}

for kind in $kinds; do
	case $kind in
	deb | tarball | modules | wheel | rpm) "try_$kind" ;;
	*) fail "unknown: $kind" ;;
	esac
done
echo "all passed: $kinds"
