// Parameterised.
// 3907 groups of 256, numbers [1000000, 0, 0, 0]
BH_KERNEL(256)
bh(BH_GLOBAL const bh_f64 *BH_RESTRICT b0, BH_GLOBAL bh_f64 *BH_RESTRICT b1, BH_GLOBAL bh_f64 *BH_RESTRICT b2, const bh_f64 c0, const int n0, const int n1, const int n2, const int n3) {
#pragma unroll 1
for (int t = BH_INDEX; t < n0; t += BH_INDICES) {
const int i0 = t;
const bh_f64 v0 = b0[n1 + i0];
const bh_f64 v1 = bh_mul_f64(v0, c0);
const bh_f64 v2 = bh_sin_f64(v1);
b1[n2 + i0] = v1;
b2[n3 + i0] = v2;
}
}

// Specialised.
// 3907 groups of 256, numbers []
BH_KERNEL(256)
bh(BH_GLOBAL const bh_f64 *BH_RESTRICT b0, BH_GLOBAL bh_f64 *BH_RESTRICT b1, BH_GLOBAL bh_f64 *BH_RESTRICT b2, const bh_f64 c0) {
#pragma unroll 1
for (int t = BH_INDEX; t < 1000000; t += BH_INDICES) {
const int i0 = t;
const bh_f64 v0 = b0[i0];
const bh_f64 v1 = bh_mul_f64(v0, c0);
const bh_f64 v2 = bh_sin_f64(v1);
b1[i0] = v1;
b2[i0] = v2;
}
}
