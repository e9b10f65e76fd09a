#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The tests of scripts/gpu.sh without its figures, as long as they can be, for a job on a machine with a GPU:
#   scripts/conformance.sh [--quick] [--only REGEX] [--runtime PATH] [-o FILE.json] [BUILD]
# Writes one JSON (conformance.json). Exits 1 if a test failed, 77 if there is no device. docs/hardware.md says how to
# run it as a job.
. "$(dirname "$0")/usage.sh"
exec "$(dirname "$0")/gpu.sh" --tests --long -o conformance.json "$@"
