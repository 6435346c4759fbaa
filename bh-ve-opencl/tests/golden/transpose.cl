// Parameterised.
// 12 groups of 256, numbers [100, 70, 12, 3, 0, 100, 0, 70]
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void bh(__global const bh_f64 *restrict b0, __global bh_f64 *restrict b1, const int n0, const int n1, const int n2, const int n3, const int n4, const int n5, const int n6, const int n7) {
__local bh_f64 t0[1056];
const int item = get_local_id(0), x = item % 32, y = item / 32;
for (int t = get_group_id(0); t < n2; t += get_num_groups(0)) {
int rest_down = t;
const int right = rest_down % n3; rest_down /= n3;
const int down = rest_down;
for (int q = y; q < 32; q += 8) {
const int i0 = down * 32 + x, i1 = right * 32 + q;
if (i0 < n0 && i1 < n1) {
t0[q * 33 + x] = b0[n4 + i0 + n5 * i1];
}
}
barrier(CLK_LOCAL_MEM_FENCE);
for (int q = y; q < 32; q += 8) {
const int i0 = down * 32 + q, i1 = right * 32 + x;
if (i0 < n0 && i1 < n1) {
const bh_f64 v0 = t0[x * 33 + q];
const bh_f64 v1 = bh_sqrt_f64(v0);
b1[n6 + n7 * i0 + i1] = v1;
}
}
barrier(CLK_LOCAL_MEM_FENCE);
}
}

// Specialised.
// 12 groups of 256, numbers []
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void bh(__global const bh_f64 *restrict b0, __global bh_f64 *restrict b1) {
__local bh_f64 t0[1056];
const int item = get_local_id(0), x = item % 32, y = item / 32;
for (int t = get_group_id(0); t < 12; t += get_num_groups(0)) {
int rest_down = t;
const int right = rest_down % 3; rest_down /= 3;
const int down = rest_down;
for (int q = y; q < 32; q += 8) {
const int i0 = down * 32 + x, i1 = right * 32 + q;
if (i0 < 100 && i1 < 70) {
t0[q * 33 + x] = b0[i0 + 100 * i1];
}
}
barrier(CLK_LOCAL_MEM_FENCE);
for (int q = y; q < 32; q += 8) {
const int i0 = down * 32 + q, i1 = right * 32 + x;
if (i0 < 100 && i1 < 70) {
const bh_f64 v0 = t0[x * 33 + q];
const bh_f64 v1 = bh_sqrt_f64(v0);
b1[70 * i0 + i1] = v1;
}
}
barrier(CLK_LOCAL_MEM_FENCE);
}
}
