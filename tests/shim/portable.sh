#!/bin/bash
# SPDX-License-Identifier: MIT
# The libraries load on every cluster: they need no symbol version newer than glibc 2.17 and
# no library but libc and the loader, and their thread-local variables fit into the static
# block, at most 128 bytes (all libraries of a process share its spare room), without a call of __tls_get_addr.
# The program somashim needs no newer version either, but may have further libraries.
#   portable.sh PROGRAM LIBRARY...
set -u
command -v readelf >/dev/null || { echo "no readelf"; exit 77; }
newest=2.17 tls_most=128 failed=0

fail() { echo "$*"; failed=1; }

program=$1
for library in "$@"; do
	# What it needs. (It defines versions of two functions of glibc, too.)
	versions=$(readelf -VW "$library" | sed -n '/needs section/,$p' | grep -o 'GLIBC_[0-9.]*' | sort -uV)
	highest=$(printf '%s\n' "GLIBC_$newest" $versions | sort -V | tail -1)
	[ "$highest" = "GLIBC_$newest" ] || {
		fail "$library: needs $highest, newer than GLIBC_$newest:"
		readelf --dyn-syms -W "$library" | grep -F "@$highest"
	}
	readelf -VW "$library" | grep -o 'GLIBC_\(PRIVATE\|ABI[A-Z_]*\)' &&
		fail "$library: needs a private version or another loader"
	[ "$library" != "$program" ] || continue
	needed=$(readelf -dW "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' |
		grep -v '^libc\.so\.6$\|^ld-linux-x86-64\.so\.2$')
	[ -z "$needed" ] || fail "$library: needs" $needed
	readelf -rW "$library" | grep -E 'DTPMOD|DTPOFF|TLSDESC|__tls_get_addr' &&
		fail "$library: a thread-local variable is not initial-exec"
	tls=$(readelf -lW "$library" | awk '$1 == "TLS" { print $6 }')
	[ $((${tls:-0})) -le $tls_most ] || fail "$library: $((tls)) bytes of static TLS"
	printf '%s: %s, TLS %d bytes\n' "${library##*/}" \
		"${versions:+$(printf '%s\n' $versions | tail -1)}" $((${tls:-0}))
done
exit $failed
