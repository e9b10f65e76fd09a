# SPDX-License-Identifier: MIT
import os

try:  # Spack 1.0 and later
    from spack_repo.builtin.build_systems.meson import MesonPackage
except ImportError:  # before, it is in spack.package
    pass
from spack.package import *


class Somashim(MesonPackage):
    """Stream-ordered memory pools for unmodified HIP programs, as a library to preload."""

    # The clone that this file is in.
    git = "file://" + os.path.realpath(os.path.join(os.path.dirname(__file__), *4 * [".."]))

    license("MIT")

    version("main", branch="main")

    variant("sim", default=False, description="Install the software device")

    depends_on("c", type="build")
    depends_on("meson@0.61:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("python@3:", type="build")
    # Headers only: the library finds the runtime in the process.
    depends_on("hip@5.2:", type="build")
    depends_on("hsa-rocr-dev", type="build")
    depends_on("uthash", type="build")
    # Of the command only; the library to preload needs libc alone.
    depends_on("jansson")
    depends_on("elfutils")
    depends_on("ncurses")

    def meson_args(self):
        headers = [self.spec[name].prefix.include for name in ("hip", "hsa-rocr-dev", "uthash")]
        return [
            "-Dcommand=enabled",
            "-Dtests=false",
            "-Dbench=false",
            f"-Dinstall_sim={str('+sim' in self.spec).lower()}",
            "-Dc_args=" + " ".join(f"-isystem{path}" for path in headers),
        ]

    def setup_run_environment(self, env):
        env.set("SOMASHIM_PRELOAD", join_path(self.prefix.lib, "libsomashim.so"))
