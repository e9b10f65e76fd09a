# SPDX-License-Identifier: MIT
# Sourced before any change of directory, as `. "$(dirname "$0")/usage.sh"`. The comment at the head of a script is its
# manual: with -h or --help as its first argument the script prints it and ends. A line with three blanks is the usage.

manual() { awk 'NR > 2 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$0"; }

# wrong_call MESSAGE: says what is wrong and how it would be right, and ends the script.
wrong_call() {
	echo "${0##*/}: $*" >&2
	manual | sed -n 's/^  /usage: /p' >&2
	exit 2
}

# needs_value OPTION VALUE...: is there a value behind the option?
needs_value() { [ $# -gt 1 ] || wrong_call "$1 needs a value"; }

# needs_number OPTION VALUE...: is it a number?
needs_number() {
	needs_value "$@"
	case $2 in
	'' | *[!0-9]*) wrong_call "$1: '$2' is not a number" ;;
	esac
}

case ${1:-} in
-h | --help)
	manual
	exit 0
	;;
esac
