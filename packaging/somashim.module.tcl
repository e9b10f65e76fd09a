#%Module1.0
# SPDX-License-Identifier: MIT
# Module file of somashim for Environment Modules. It lies in ROOT/modulefiles/somashim.
proc ModulesHelp { } {
	puts stderr "somashim serves the GPU memory of unmodified HIP programs from its own pools."
	puts stderr ""
	puts stderr "    somashim run ./app            starts a program with it"
	puts stderr "    srun somashim run ./app"
	puts stderr ""
	puts stderr "SOMASHIM_PRELOAD is the path for LD_PRELOAD, where that is set by hand."
}
module-whatis "somashim @VERSION@: stream-ordered memory pools for unmodified HIP programs"

set root [file dirname [file dirname [file dirname [file normalize $ModulesCurrentModulefile]]]]

prepend-path PATH $root/bin
prepend-path MANPATH $root/share/man
setenv SOMASHIM_PRELOAD $root/lib/libsomashim.so
