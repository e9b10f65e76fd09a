#!/bin/sh
# SPDX-License-Identifier: MIT
# mpi.sh SHIM PROGRAM: the program's ranks under mpirun, as a user would start them.
set -e
if [ -z "$2" ] || ! command -v mpirun >/dev/null; then
	echo "skipped: no Open MPI (openmpi-bin, libopenmpi-dev)"
	exit 77
fi
export LD_PRELOAD="$1" OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
out=$(mpirun -n 4 --oversubscribe --bind-to none --mca pml ob1 --mca btl self,vader \
	-x LD_PRELOAD -x LD_LIBRARY_PATH -x SOMASIM_HIP_VERSION "$2")
echo "$out"
[ "$out" = "4 ranks shared device memory" ]
