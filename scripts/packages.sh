# SPDX-License-Identifier: MIT
# Sourced: installs the packages that the build needs, and those that are named, if they are missing.

packages="meson ninja-build gcc libc6-dev pkg-config libamdhip64-dev libhsa-runtime-dev
	libjansson-dev libdw-dev libncurses-dev uthash-dev libcmocka-dev python3 xz-utils"

install_packages() {
	command -v dpkg-query >/dev/null || return 0 # not Debian: Meson says what is missing
	local missing="" package
	for package in $packages "$@"; do
		dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null |
			grep -qx installed || missing="$missing $package"
	done
	[ -n "$missing" ] || return 0
	echo "installing:$missing"
	local sudo=""
	if [ "$(id -u)" != 0 ]; then
		sudo="sudo"
		command -v sudo >/dev/null || {
			echo "neither root nor sudo; as root: apt-get install$missing" >&2
			return 1
		}
	fi
	$sudo apt-get update -qq || return 1
	# shellcheck disable=SC2086
	$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
		--no-install-recommends $missing >/dev/null
}
