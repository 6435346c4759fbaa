// Parameterised.
// 2 groups of 256, numbers [500, 0, 1200, 0, 0]
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void bh(__global const bh_i64 *restrict b0, __global int *restrict b1, __global const bh_c64 *restrict b2, __global bh_c64 *restrict b3, const int n0, const int n1, const int n2, const int n3, const int n4) {
#pragma unroll 4
for (int t = get_global_id(0); t < n0; t += get_global_size(0)) {
const int i0 = t;
const bh_i64 v0 = b0[n1 + i0];
long g0 = (long)v0;
if (g0 < 0) g0 += n2;
const int w0 = (ulong)g0 < (ulong)n2;
if (!w0 && atomic_cmpxchg(b1 + 0, 0, 1) == 0) { b1[1] = (int)(ulong)v0; b1[2] = (int)((ulong)v0 >> 32); }
const long p0 = w0 ? n3 + g0 : 0;
const bh_c64 v1 = b2[p0];
b3[n4 + i0] = v1;
}
}

// Specialised.
// 2 groups of 256, numbers []
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void bh(__global const bh_i64 *restrict b0, __global int *restrict b1, __global const bh_c64 *restrict b2, __global bh_c64 *restrict b3) {
#pragma unroll 4
for (int t = get_global_id(0); t < 500; t += get_global_size(0)) {
const int i0 = t;
const bh_i64 v0 = b0[i0];
long g0 = (long)v0;
if (g0 < 0) g0 += 1200;
const int w0 = (ulong)g0 < (ulong)1200;
if (!w0 && atomic_cmpxchg(b1 + 0, 0, 1) == 0) { b1[1] = (int)(ulong)v0; b1[2] = (int)((ulong)v0 >> 32); }
const long p0 = w0 ? 0 + g0 : 0;
const bh_c64 v1 = b2[p0];
b3[i0] = v1;
}
}
