// Declarations of OpenCL's functions that texts of kernels call, for PoCL (see `driver.rs`).
#define BH_DECLARED __attribute__((overloadable, const))
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#define BH_IF_F64(text) text
#else
#define BH_IF_F64(text)
#endif
#define BH_FLOATS(declare, name) declare(name, float) BH_IF_F64(declare(name, double))
#define BH_WHOLE(declare, name) declare(name, char) declare(name, uchar) declare(name, short) declare(name, ushort) \
    declare(name, int) declare(name, uint) declare(name, long) declare(name, ulong)
#define BH_OF_ONE(name, type) type BH_DECLARED name(type);
#define BH_OF_TWO(name, type) type BH_DECLARED name(type, type);
#define BH_OF_THREE(name, type) type BH_DECLARED name(type, type, type);
#define BH_WITH_INT(name, type) type BH_DECLARED name(type, int);
#define BH_TEST(name, type) int BH_DECLARED name(type);
#define BH_TO_PLACE(name, type) type __attribute__((overloadable)) name(type, type *);
#define BH_ATOMIC(name, type) \
    type __attribute__((overloadable)) name(volatile __global type *, type); \
    type __attribute__((overloadable)) name(volatile __local type *, type);
#define BH_EXCHANGE(name, type) \
    type __attribute__((overloadable)) name(volatile __global type *, type, type); \
    type __attribute__((overloadable)) name(volatile __local type *, type, type);
size_t BH_DECLARED get_global_id(uint);
size_t BH_DECLARED get_global_size(uint);
size_t BH_DECLARED get_local_id(uint);
size_t BH_DECLARED get_group_id(uint);
size_t BH_DECLARED get_num_groups(uint);
void __attribute__((overloadable, convergent)) barrier(cl_mem_fence_flags);
BH_FLOATS(BH_OF_ONE, acos) BH_FLOATS(BH_OF_ONE, acosh) BH_FLOATS(BH_OF_ONE, asin) BH_FLOATS(BH_OF_ONE, asinh)
BH_FLOATS(BH_OF_ONE, atan) BH_FLOATS(BH_OF_ONE, atanh) BH_FLOATS(BH_OF_ONE, cbrt) BH_FLOATS(BH_OF_ONE, ceil)
BH_FLOATS(BH_OF_ONE, cos) BH_FLOATS(BH_OF_ONE, cosh) BH_FLOATS(BH_OF_ONE, erf) BH_FLOATS(BH_OF_ONE, erfc)
BH_FLOATS(BH_OF_ONE, exp) BH_FLOATS(BH_OF_ONE, exp2) BH_FLOATS(BH_OF_ONE, expm1) BH_FLOATS(BH_OF_ONE, fabs)
BH_FLOATS(BH_OF_ONE, floor) BH_FLOATS(BH_OF_ONE, lgamma) BH_FLOATS(BH_OF_ONE, log) BH_FLOATS(BH_OF_ONE, log10)
BH_FLOATS(BH_OF_ONE, log1p) BH_FLOATS(BH_OF_ONE, log2) BH_FLOATS(BH_OF_ONE, rint) BH_FLOATS(BH_OF_ONE, round)
BH_FLOATS(BH_OF_ONE, rsqrt) BH_FLOATS(BH_OF_ONE, sin) BH_FLOATS(BH_OF_ONE, sinh) BH_FLOATS(BH_OF_ONE, sqrt)
BH_FLOATS(BH_OF_ONE, cospi) BH_FLOATS(BH_OF_ONE, sinpi)
BH_FLOATS(BH_OF_ONE, tan) BH_FLOATS(BH_OF_ONE, tanh) BH_FLOATS(BH_OF_ONE, tgamma) BH_FLOATS(BH_OF_ONE, trunc)
BH_FLOATS(BH_OF_TWO, atan2) BH_FLOATS(BH_OF_TWO, copysign) BH_FLOATS(BH_OF_TWO, fdim) BH_FLOATS(BH_OF_TWO, fmax)
BH_FLOATS(BH_OF_TWO, fmin) BH_FLOATS(BH_OF_TWO, fmod) BH_FLOATS(BH_OF_TWO, hypot) BH_FLOATS(BH_OF_TWO, nextafter)
BH_FLOATS(BH_OF_TWO, pow) BH_FLOATS(BH_OF_TWO, remainder) BH_FLOATS(BH_OF_THREE, fma) BH_FLOATS(BH_OF_THREE, mad)
BH_FLOATS(BH_WITH_INT, ldexp) BH_FLOATS(BH_WITH_INT, pown) BH_FLOATS(BH_TEST, ilogb)
BH_FLOATS(BH_TEST, isfinite) BH_FLOATS(BH_TEST, isinf) BH_FLOATS(BH_TEST, isnan) BH_FLOATS(BH_TEST, signbit)
BH_FLOATS(BH_TO_PLACE, fract) BH_FLOATS(BH_TO_PLACE, modf) BH_FLOATS(BH_TO_PLACE, sincos)
BH_FLOATS(BH_OF_TWO, max) BH_FLOATS(BH_OF_TWO, min) BH_FLOATS(BH_OF_THREE, clamp)
BH_WHOLE(BH_OF_TWO, max) BH_WHOLE(BH_OF_TWO, min) BH_WHOLE(BH_OF_THREE, clamp)
BH_WHOLE(BH_OF_TWO, mul_hi) BH_WHOLE(BH_OF_ONE, popcount) BH_WHOLE(BH_OF_ONE, clz)
BH_ATOMIC(atomic_add, int) BH_ATOMIC(atomic_add, uint) BH_ATOMIC(atomic_max, int) BH_ATOMIC(atomic_max, uint)
BH_EXCHANGE(atomic_cmpxchg, int) BH_EXCHANGE(atomic_cmpxchg, uint)
