-- SPDX-License-Identifier: MIT
-- Module file of somashim for Lmod. It lies in ROOT/modulefiles/somashim.
help([[
somashim serves the GPU memory of unmodified HIP programs from its own pools.

    somashim run ./app            starts a program with it
    srun somashim run ./app

SOMASHIM_PRELOAD is the path for LD_PRELOAD, where that is set by hand.
]])
whatis("Name: somashim")
whatis("Version: @VERSION@")
whatis("Description: stream-ordered memory pools for unmodified HIP programs")

local root = myFileName():match("(.*)/modulefiles/somashim/[^/]*$")

prepend_path("PATH", pathJoin(root, "bin"))
prepend_path("MANPATH", pathJoin(root, "share", "man"))
setenv("SOMASHIM_PRELOAD", pathJoin(root, "lib", "libsomashim.so"))
