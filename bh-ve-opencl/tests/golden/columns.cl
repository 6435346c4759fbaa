// Parameterised.
// 256 groups of 256, numbers [4096, 4096, 16, 256, 0, 4096, 16]
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void bh(__global const bh_i32 *restrict b0, __global bh_i32 *restrict b1, const int n0, const int n1, const int n2, const int n3, const int n4, const int n5, const int n6) {
const int item = get_local_id(0), lane = item / 256, result = item % 256;
const int split = get_group_id(0) % n2, first = split * n3;
const int end = min((int)(first + n3), (int)n1);
for (int tile = get_group_id(0) / n2; tile * 256 < n0; tile += get_num_groups(0) / n2) {
const int k = tile * 256 + result;
bh_i32 a0 = (-2147483647L - 1);
const int i1 = k < n0 ? k : 0;
if (k < n0) {
#pragma unroll 4
for (int r = first + lane; r < end; r += 1) {
const int i0 = r;
const bh_i32 v0 = b0[n4 + n5 * i0 + i1];
a0 = bh_max_i32(a0, v0);
}
}
if (lane == 0 && k < n0) {
b1[k * n6 + split] = a0;
}
}
}

// 256 groups of 256, numbers [4096, 16, 0, 16, 0]
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void bh(__global const bh_i32 *restrict b0, __global bh_i32 *restrict b1, const int n0, const int n1, const int n2, const int n3, const int n4) {
__local bh_i32 l0[256];
const int item = get_local_id(0), lane = item % 16, result = item / 16;
const int first = 0, end = n1;
for (int tile = get_group_id(0); tile * 16 < n0; tile += get_num_groups(0)) {
const int k = tile * 16 + result;
bh_i32 a0 = (-2147483647L - 1);
const int i0 = k < n0 ? k : 0;
if (k < n0) {
#pragma unroll 4
for (int r = first + lane; r < end; r += 16) {
const int i1 = r;
const bh_i32 v0 = b0[n2 + n3 * i0 + i1];
a0 = bh_max_i32(a0, v0);
}
}
l0[item] = a0;
barrier(CLK_LOCAL_MEM_FENCE);
for (int s = 8; s > 0; s >>= 1) {
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
// 256 groups of 256, numbers []
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void bh(__global const bh_i32 *restrict b0, __global bh_i32 *restrict b1) {
const int item = get_local_id(0), lane = item / 256, result = item % 256;
const int split = get_group_id(0) % 16, first = split * 256;
const int end = min((int)(first + 256), (int)4096);
for (int tile = get_group_id(0) / 16; tile * 256 < 4096; tile += get_num_groups(0) / 16) {
const int k = tile * 256 + result;
bh_i32 a0 = (-2147483647L - 1);
const int i1 = k < 4096 ? k : 0;
if (k < 4096) {
#pragma unroll 4
for (int r = first + lane; r < end; r += 1) {
const int i0 = r;
const bh_i32 v0 = b0[4096 * i0 + i1];
a0 = bh_max_i32(a0, v0);
}
}
if (lane == 0 && k < 4096) {
b1[k * 16 + split] = a0;
}
}
}

// 256 groups of 256, numbers []
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void bh(__global const bh_i32 *restrict b0, __global bh_i32 *restrict b1) {
__local bh_i32 l0[256];
const int item = get_local_id(0), lane = item % 16, result = item / 16;
const int first = 0, end = 16;
for (int tile = get_group_id(0); tile * 16 < 4096; tile += get_num_groups(0)) {
const int k = tile * 16 + result;
bh_i32 a0 = (-2147483647L - 1);
const int i0 = k < 4096 ? k : 0;
if (k < 4096) {
#pragma unroll 4
for (int r = first + lane; r < end; r += 16) {
const int i1 = r;
const bh_i32 v0 = b0[16 * i0 + i1];
a0 = bh_max_i32(a0, v0);
}
}
l0[item] = a0;
barrier(CLK_LOCAL_MEM_FENCE);
for (int s = 8; s > 0; s >>= 1) {
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
