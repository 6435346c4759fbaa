//! The levels that loops of plain Rust are compiled for: the architecture's baseline (with SSE2 on x86-64,
//! with NEON on AArch64), AVX2, AVX-512.

/// Calls `$level!(module, bytes of a vector, "features")` for each level, without features for the baseline.
macro_rules! for_each_level {
    ($level:ident) => {
        $level!(baseline, 16);
        #[cfg(target_arch = "x86_64")]
        $level!(avx2, 32, "avx2,fma");
        #[cfg(target_arch = "x86_64")]
        $level!(avx512, 64, "avx512f,avx512dq,avx512bw,avx512vl,avx2,fma");
    };
}

/// The item of this name in the module of a level.
macro_rules! at_level {
    ($isa:expr, $($item:tt)+) => {
        match $isa {
            #[cfg(target_arch = "x86_64")]
            crate::simd::Isa::Avx2 => avx2::$($item)+,
            #[cfg(target_arch = "x86_64")]
            crate::simd::Isa::Avx512 => avx512::$($item)+,
            _ => baseline::$($item)+,
        }
    };
}

/// A function of C's calling convention for a level, by one that is inlined there:
/// `["features"] name [parameters](arguments) -> result = function`.
macro_rules! entry {
    (
        [$($feature:literal)?] $name:ident [$($parameters:tt)*]
        ($($argument:ident: $type:ty),* $(,)?) $(-> $result:ty)? = $function:expr
    ) => {
        $(#[target_feature(enable = $feature)])?
        pub(super) unsafe extern "C" fn $name<$($parameters)*>($($argument: $type),*) $(-> $result)? {
            // SAFETY: the function asks for what the type of this one asks.
            unsafe { $function($($argument),*) }
        }
    };
}

pub(super) use {at_level, entry, for_each_level};
