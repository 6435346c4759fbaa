//! OpenCL C 1.2 as the language of kernels.

use bh_device::language::Language;

/// OpenCL C.
pub(crate) static OPENCL_C: Language = Language {
    prelude: "#pragma OPENCL FP_CONTRACT OFF
#define BH_KERNEL(items) __kernel __attribute__((reqd_work_group_size(items, 1, 1))) void
#define BH_FUNCTION inline __attribute__((always_inline))
#define BH_M_f32(name) name
#define BH_M_f64(name) name
#define BH_GLOBAL __global
#define BH_LOCAL __local
#define BH_TO_LOCAL __local
#define BH_RESTRICT restrict
#define BH_ITEM get_local_id(0)
#define BH_GROUP get_group_id(0)
#define BH_GROUPS get_num_groups(0)
#define BH_INDEX get_global_id(0)
#define BH_INDICES get_global_size(0)
#define BH_BARRIER barrier(CLK_LOCAL_MEM_FENCE)
#define BH_BARRIER_WARP barrier(CLK_LOCAL_MEM_FENCE)
#define BH_BARRIER_ALL barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)
#define BH_COMPARE_EXCHANGE(place, old, new) atomic_cmpxchg(place, old, new)
#define BH_ATOMIC_MAX(place, value) atomic_max(place, value)
#define BH_ATOMIC_ADD(place, value) atomic_add(place, value)
#define BH_AS(type, value) as_##type(value)
#define BH_SINCOS(x, place) sincos(x, place)
#define BH_VECTOR(type, count) type##count
typedef uchar bh_bool;
typedef char bh_i8;
typedef short bh_i16;
typedef int bh_i32;
typedef long bh_i64;
typedef uchar bh_u8;
typedef ushort bh_u16;
typedef uint bh_u32;
typedef ulong bh_u64;
typedef float bh_f32;
typedef struct __attribute__((aligned(8))) { float re, im; } bh_c64;
",
    f64: "#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef double bh_f64;
typedef struct __attribute__((aligned(16))) { double re, im; } bh_c128;
",
    user_kernel: "__kernel",
    user_prelude: "#pragma OPENCL FP_CONTRACT OFF\n",
};

/// A text whose products and sums the compiler may contract.
pub(crate) fn contracted(text: &str) -> String {
    text.replace("FP_CONTRACT OFF", "FP_CONTRACT ON")
}
