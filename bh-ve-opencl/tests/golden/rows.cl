// Parameterised.
// 512 groups of 256, numbers [4096, 4096, 0, 4096, 0]
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void bh(__global const bh_i32 *restrict b0, __global bh_i32 *restrict b1, const int n0, const int n1, const int n2, const int n3, const int n4) {
__local bh_i32 l0[256];
const int item = get_local_id(0), lane = item % 32, result = item / 32;
const int first = 0, end = n1;
for (int tile = get_group_id(0); tile * 8 < n0; tile += get_num_groups(0)) {
const int k = tile * 8 + result;
bh_i32 a0 = (-2147483647L - 1);
const int i0 = k < n0 ? k : 0;
if (k < n0) {
#pragma unroll 4
for (int r = first + lane; r < end; r += 32) {
const int i1 = r;
const bh_i32 v0 = b0[n2 + n3 * i0 + i1];
a0 = bh_max_i32(a0, v0);
}
}
l0[item] = a0;
barrier(CLK_LOCAL_MEM_FENCE);
for (int s = 16; s > 0; s >>= 1) {
if (lane < s) {
l0[item] = bh_max_i32(l0[item], l0[item + s]);
}
barrier(CLK_LOCAL_MEM_FENCE);
}
if (lane == 0 && k < n0) {
b1[n4 + i0] = l0[item];
}
barrier(CLK_LOCAL_MEM_FENCE);
}
}

// Specialised.
// 512 groups of 256, numbers []
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void bh(__global const bh_i32 *restrict b0, __global bh_i32 *restrict b1) {
__local bh_i32 l0[256];
const int item = get_local_id(0), lane = item % 32, result = item / 32;
const int first = 0, end = 4096;
for (int tile = get_group_id(0); tile * 8 < 4096; tile += get_num_groups(0)) {
const int k = tile * 8 + result;
bh_i32 a0 = (-2147483647L - 1);
const int i0 = k < 4096 ? k : 0;
if (k < 4096) {
#pragma unroll 4
for (int r = first + lane; r < end; r += 32) {
const int i1 = r;
const bh_i32 v0 = b0[4096 * i0 + i1];
a0 = bh_max_i32(a0, v0);
}
}
l0[item] = a0;
barrier(CLK_LOCAL_MEM_FENCE);
for (int s = 16; s > 0; s >>= 1) {
if (lane < s) {
l0[item] = bh_max_i32(l0[item], l0[item + s]);
}
barrier(CLK_LOCAL_MEM_FENCE);
}
if (lane == 0 && k < 4096) {
b1[i0] = l0[item];
}
barrier(CLK_LOCAL_MEM_FENCE);
}
}
