#!/bin/bash
# SPDX-License-Identifier: MIT
# Padding of what is live at exit is read, also beside threads that go on: nothing is found, as often
# as it is tried, and at whatever moment the process ends.
#   exit.sh SOMASHIM CHECK_EXIT TIMES
set -u
for ((i = 0; i < $3; i++)); do
	"$1" check --error-exitcode 9 --require-device=no --tool bounds,poison "$2" $((i * 50000 / $3)) || { echo "status $?"; exit 1; }
done
