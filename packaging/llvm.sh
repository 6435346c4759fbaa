#!/bin/sh
# Builds of LLVM what the kernel compiler is linked with: archives for x86 without libraries of the system, and llvm-config.
# For systems without a package of it: `packaging/llvm.sh 19.1.7 /opt/llvm-19`, then LLVM_SYS_191_PREFIX=/opt/llvm-19.
set -eu
version=$1 prefix=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
curl -fsSL "https://github.com/llvm/llvm-project/releases/download/llvmorg-$version/llvm-project-$version.src.tar.xz" |
    tar -xJ -C "$folder" --strip-components 1 --wildcards '*/llvm' '*/cmake' '*/third-party'
cmake -S "$folder/llvm" -B "$folder/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$prefix" \
    -DLLVM_TARGETS_TO_BUILD=X86 -DLLVM_INCLUDE_TESTS=OFF -DLLVM_INCLUDE_BENCHMARKS=OFF -DLLVM_INCLUDE_EXAMPLES=OFF \
    -DLLVM_ENABLE_ZLIB=OFF -DLLVM_ENABLE_ZSTD=OFF -DLLVM_ENABLE_LIBXML2=OFF -DLLVM_ENABLE_LIBEDIT=OFF \
    -DLLVM_ENABLE_Z3_SOLVER=OFF -DLLVM_ENABLE_BINDINGS=OFF \
    -DLLVM_DISTRIBUTION_COMPONENTS="llvm-config;llvm-headers;llvm-libraries"
cmake --build "$folder/build" --target install-distribution
