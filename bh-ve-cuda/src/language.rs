//! CUDA C++ as the language of kernels.

use bh_device::language::Language;

/// CUDA C++, as NVRTC compiles it.
pub static CUDA: Language = Language {
    prelude: include_str!("prelude.cuh"),
    // Every device of CUDA has it.
    f64: "",
    user_kernel: "__global__",
    user_prelude: "",
};

/// An option of the compiler without which it reads declarations that kernels of ours have no use for: a third of the time of a short
/// text. Compilers of CUDA 12 may not know it.
pub const BRIEF: &str = "--minimal";

/// Options of the compiler. Products and sums are not contracted, so that results have the bits of the other drivers; its warnings
/// about generated text are of no use to anybody.
pub static OPTIONS: [&str; 3] = [BRIEF, "--fmad=false", "--disable-warnings"];

/// Options of the compiler where kernels may round differently.
pub static FAST_OPTIONS: [&str; 5] =
    [BRIEF, "--fmad=true", "--prec-div=false", "--prec-sqrt=false", "--disable-warnings"];
