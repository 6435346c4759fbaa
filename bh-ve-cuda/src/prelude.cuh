#define BH_KERNEL(items) extern "C" __global__ void __launch_bounds__(items)
#define BH_FUNCTION static __device__ __forceinline__
#define BH_M_f32(name) name##f
#define BH_M_f64(name) name
#define BH_GLOBAL
#define BH_LOCAL __shared__
#define BH_TO_LOCAL
#define BH_RESTRICT __restrict__
#define BH_ITEM ((ulong)threadIdx.x)
#define BH_GROUP ((ulong)blockIdx.x)
#define BH_GROUPS ((ulong)gridDim.x)
#define BH_INDEX ((ulong)blockIdx.x * blockDim.x + threadIdx.x)
#define BH_INDICES ((ulong)gridDim.x * blockDim.x)
#define BH_BARRIER __syncthreads()
#define BH_BARRIER_ALL __syncthreads()
#define BH_BARRIER_WARP __syncwarp()
#define BH_COMPARE_EXCHANGE(place, old, new) atomicCAS((int *)(place), old, new)
#define BH_ATOMIC_MAX(place, value) atomicMax((int *)(place), value)
#define BH_ATOMIC_ADD(place, value) atomicAdd((uint *)(place), value)
#define BH_AS(type, value) bh_as<type>(value)
#define BH_SINCOS(x, place) bh_sincos(x, place)
#define BH_VECTOR(type, count) bh_vector<type, count>
#undef INFINITY
#undef NAN
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fc00000)
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef uchar bh_bool;
typedef signed char bh_i8;
typedef short bh_i16;
typedef int bh_i32;
typedef long bh_i64;
typedef uchar bh_u8;
typedef ushort bh_u16;
typedef uint bh_u32;
typedef ulong bh_u64;
typedef float bh_f32;
typedef double bh_f64;
struct __align__(8) bh_c64 { float re, im; };
struct __align__(16) bh_c128 { double re, im; };
template <class To, class From> BH_FUNCTION To bh_as(From from) {
    static_assert(sizeof(To) == sizeof(From), "types of one size");
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}
BH_FUNCTION float bh_sincos(float x, float *cosine) { float sine; sincosf(x, &sine, cosine); return sine; }
BH_FUNCTION double bh_sincos(double x, double *cosine) { double sine; sincos(x, &sine, cosine); return sine; }
// CUDA's result may be one step too large, which is infinite where the largest number is exact.
BH_FUNCTION double bh_hypot(double x, double y) {
    double both = hypot(x, y);
    if (both < INFINITY || !isfinite(x) || !isfinite(y)) return both;
    double most = max(fabs(x), fabs(y)), ratio = min(fabs(x), fabs(y)) / most;
    return most * sqrt(1 + ratio * ratio);
}
#define hypot bh_hypot
template <class T> BH_FUNCTION T clamp(T x, T low, T high) { return min(max(x, low), high); }
template <class T, int count> struct bh_vector;
template <class T> struct __align__(2 * sizeof(T)) bh_vector<T, 2> { T s0, s1; };
template <class T> struct __align__(4 * sizeof(T)) bh_vector<T, 4> { T s0, s1, s2, s3; };
