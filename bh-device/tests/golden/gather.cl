// Parameterised.
// 2 groups of 256, numbers [500, 0, 1200, 0, 0]
BH_KERNEL(256)
bh(BH_GLOBAL const bh_i64 *BH_RESTRICT b0, BH_GLOBAL int *BH_RESTRICT b1, BH_GLOBAL const bh_c64 *BH_RESTRICT b2, BH_GLOBAL bh_c64 *BH_RESTRICT b3, const int n0, const int n1, const int n2, const int n3, const int n4) {
#pragma unroll 4
for (int t = BH_INDEX; t < n0; t += BH_INDICES) {
const int i0 = t;
const bh_i64 v0 = b0[n1 + i0];
long g0 = (long)v0;
if (g0 < 0) g0 += n2;
const int w0 = (ulong)g0 < (ulong)n2;
if (!w0 && BH_COMPARE_EXCHANGE(b1 + 0, 0, 1) == 0) { b1[1] = (int)(ulong)v0; b1[2] = (int)((ulong)v0 >> 32); }
const long p0 = w0 ? n3 + g0 : 0;
const bh_c64 v1 = b2[p0];
b3[n4 + i0] = v1;
}
}

// Specialised.
// 2 groups of 256, numbers []
BH_KERNEL(256)
bh(BH_GLOBAL const bh_i64 *BH_RESTRICT b0, BH_GLOBAL int *BH_RESTRICT b1, BH_GLOBAL const bh_c64 *BH_RESTRICT b2, BH_GLOBAL bh_c64 *BH_RESTRICT b3) {
#pragma unroll 4
for (int t = BH_INDEX; t < 500; t += BH_INDICES) {
const int i0 = t;
const bh_i64 v0 = b0[i0];
long g0 = (long)v0;
if (g0 < 0) g0 += 1200;
const int w0 = (ulong)g0 < (ulong)1200;
if (!w0 && BH_COMPARE_EXCHANGE(b1 + 0, 0, 1) == 0) { b1[1] = (int)(ulong)v0; b1[2] = (int)((ulong)v0 >> 32); }
const long p0 = w0 ? 0 + g0 : 0;
const bh_c64 v1 = b2[p0];
b3[i0] = v1;
}
}
