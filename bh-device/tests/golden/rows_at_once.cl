// Parameterised.
// 16000 groups of 256, numbers [16384000, 4000, 0, 4096, 4096, 4096, 8192, 4096, 0, 4096]
BH_KERNEL(256)
bh(BH_GLOBAL const bh_f64 *BH_RESTRICT b0, BH_GLOBAL bh_f64 *BH_RESTRICT b1, const int n0, const int n1, const int n2, const int n3, const int n4, const int n5, const int n6, const int n7, const int n8, const int n9) {
#pragma unroll 4
for (int t = BH_INDEX; t < n0; t += BH_INDICES) {
int rest_i0 = t;
const int i1 = rest_i0 % n1; rest_i0 /= n1;
const int i0 = rest_i0;
const bh_f64 v0 = b0[n2 + n3 * i0 + i1];
const bh_f64 v1 = b0[n4 + n5 * i0 + i1];
const bh_f64 v2 = bh_add_f64(v0, v1);
const bh_f64 v3 = b0[n6 + n7 * i0 + i1];
const bh_f64 v4 = bh_add_f64(v2, v3);
b1[n8 + n9 * i0 + i1] = v4;
}
}

// Specialised.
// 16000 groups of 256, numbers []
BH_KERNEL(256)
bh(BH_GLOBAL const bh_f64 *BH_RESTRICT b0, BH_GLOBAL bh_f64 *BH_RESTRICT b1) {
for (int t = BH_INDEX; t < 4096000; t += BH_INDICES) {
int rest_block = t;
const int i1 = rest_block % 4000; rest_block /= 4000;
const int block = rest_block;
#pragma unroll
for (int row = 0; row < 4; row++) {
const int i0 = block * 4 + row;
const bh_f64 v0 = b0[4096 * i0 + i1];
const bh_f64 v1 = b0[4096 + 4096 * i0 + i1];
const bh_f64 v2 = bh_add_f64(v0, v1);
const bh_f64 v3 = b0[8192 + 4096 * i0 + i1];
const bh_f64 v4 = bh_add_f64(v2, v3);
b1[4096 * i0 + i1] = v4;
}
}
}
