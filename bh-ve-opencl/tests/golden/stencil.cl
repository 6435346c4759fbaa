// Parameterised.
// 1 groups of 256, numbers [64, 8, 1, 10, 21, 10, 0, 8]
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void bh(__global const bh_f32 *restrict b0, __global bh_f32 *restrict b1, const int n0, const int n1, const int n2, const int n3, const int n4, const int n5, const int n6, const int n7) {
#pragma unroll 4
for (int t = get_global_id(0); t < n0; t += get_global_size(0)) {
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
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void bh(__global const bh_f32 *restrict b0, __global bh_f32 *restrict b1) {
#pragma unroll 4
for (int t = get_global_id(0); t < 64; t += get_global_size(0)) {
int rest_i0 = t;
const int i1 = rest_i0 % 8; rest_i0 /= 8;
const int i0 = rest_i0;
const bh_f32 v0 = b0[1 + 10 * i0 + i1];
const bh_f32 v1 = b0[21 + 10 * i0 + i1];
const bh_f32 v2 = bh_add_f32(v0, v1);
b1[8 * i0 + i1] = v2;
}
}
