// Parameterised.
// 3907 groups of 256, numbers [1000000, 0, 0, 0]
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void bh(__global const bh_f64 *restrict b0, __global bh_f64 *restrict b1, __global bh_f64 *restrict b2, const bh_f64 c0, const int n0, const int n1, const int n2, const int n3) {
for (int t = get_global_id(0); t < n0; t += get_global_size(0)) {
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
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void bh(__global const bh_f64 *restrict b0, __global bh_f64 *restrict b1, __global bh_f64 *restrict b2, const bh_f64 c0) {
for (int t = get_global_id(0); t < 1000000; t += get_global_size(0)) {
const int i0 = t;
const bh_f64 v0 = b0[i0];
const bh_f64 v1 = bh_mul_f64(v0, c0);
const bh_f64 v2 = bh_sin_f64(v1);
b1[i0] = v1;
b2[i0] = v2;
}
}
