# SPDX-License-Identifier: (Apache-2.0 OR MIT)
"""bh in Spack: copy the folder to `packages/py_bh` of a repository of Spack's."""

from spack.package import *
from spack_repo.builtin.build_systems.python import PythonPackage


class PyBh(PythonPackage):
    """NumPy's interface on lazily recorded, fused array programs that run on every core, GPU or cluster."""

    homepage = "https://github.com/bh-array/bh"
    git = "https://github.com/bh-array/bh.git"

    license("MIT OR Apache-2.0")

    version("main", branch="main")
    version("0.1.0", tag="v0.1.0")

    variant("compiler", default=True, description="Compile hot kernels, with LLVM")
    variant("mpi", default=True, description="Connect the ranks of a cluster by MPI")

    depends_on("c", type="build")
    depends_on("cxx", type="build", when="+compiler")
    depends_on("rust@1.95:", type="build")
    depends_on("binutils", type="build")
    depends_on("py-setuptools@77:", type="build")
    depends_on("python@3.11:", type=("build", "run"))
    depends_on("py-numpy@2.2:", type=("build", "run"))
    depends_on("llvm@19", type="build", when="+compiler")
    depends_on("zlib-api", type="build", when="+compiler")
    depends_on("zstd", type="build", when="+compiler")
    depends_on("mpi", when="+mpi")
    # The connection to MPI is generated from its header.
    depends_on("llvm@14: +clang", type="build", when="+mpi")

    conflicts("platform=windows", msg="bh needs Linux")

    import_modules = ["bh"]

    def setup_build_environment(self, env):
        if self.spec.satisfies("+compiler"):
            env.set("LLVM_SYS_191_PREFIX", self.spec["llvm"].prefix)
