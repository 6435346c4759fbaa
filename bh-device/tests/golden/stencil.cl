// Parameterised.
// 1 groups of 256, numbers [64, 8, 1, 10, 21, 10, 0, 8]
BH_KERNEL(256)
bh(BH_GLOBAL const bh_f32 *BH_RESTRICT b0, BH_GLOBAL bh_f32 *BH_RESTRICT b1, const int n0, const int n1, const int n2, const int n3, const int n4, const int n5, const int n6, const int n7) {
#pragma unroll 4
for (int t = BH_INDEX; t < n0; t += BH_INDICES) {
int rest_i0 = t;
const int i1 = rest_i0 % n1; rest_i0 /= n1;
const int i0 = rest_i0;
const bh_f32 v0 = b0[n2 + n3 * i0 + i1];
const bh_f32 v1 = b0[n4 + n5 * i0 + i1];
const bh_f32 v2 = bh_add_f32(v0, v1);
b1[n6 + n7 * i0 + i1] = v2;
}
}

// Specialised.
// 1 groups of 256, numbers []
BH_KERNEL(256)
bh(BH_GLOBAL const bh_f32 *BH_RESTRICT b0, BH_GLOBAL bh_f32 *BH_RESTRICT b1) {
#pragma unroll 4
for (int t = BH_INDEX; t < 64; t += BH_INDICES) {
int rest_i0 = t;
const int i1 = rest_i0 % 8; rest_i0 /= 8;
const int i0 = rest_i0;
const bh_f32 v0 = b0[1 + 10 * i0 + i1];
const bh_f32 v1 = b0[21 + 10 * i0 + i1];
const bh_f32 v2 = bh_add_f32(v0, v1);
b1[8 * i0 + i1] = v2;
}
}
