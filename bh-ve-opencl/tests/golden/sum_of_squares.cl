// Parameterised.
// 256 groups of 256, numbers [1, 1048576, 256, 4096, 0, 256]
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void bh(__global const bh_f64 *restrict b0, __global bh_f64 *restrict b1, const int n0, const int n1, const int n2, const int n3, const int n4, const int n5) {
__local bh_f64 l0[256];
const int item = get_local_id(0), lane = item % 256, result = item / 256;
const int split = get_group_id(0) % n2, first = split * n3;
const int end = min((int)(first + n3), (int)n1);
for (int tile = get_group_id(0) / n2; tile * 1 < n0; tile += get_num_groups(0) / n2) {
const int k = tile * 1 + result;
bh_f64 a0 = 0;
if (k < n0) {
#pragma unroll 4
for (int r = first + lane; r < end; r += 256) {
const int i0 = r;
const bh_f64 v0 = b0[n4 + i0];
const bh_f64 v1 = bh_mul_f64(v0, v0);
a0 = bh_add_f64(a0, v1);
}
}
l0[item] = a0;
barrier(CLK_LOCAL_MEM_FENCE);
for (int s = 128; s > 0; s >>= 1) {
if (lane < s) {
l0[item] = bh_add_f64(l0[item], l0[item + s]);
}
barrier(CLK_LOCAL_MEM_FENCE);
}
if (lane == 0 && k < n0) {
b1[k * n5 + split] = l0[item];
}
barrier(CLK_LOCAL_MEM_FENCE);
}
}

// 1 groups of 256, numbers [1, 256, 0, 0]
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void bh(__global const bh_f64 *restrict b0, __global bh_f64 *restrict b1, const int n0, const int n1, const int n2, const int n3) {
__local bh_f64 l0[256];
const int item = get_local_id(0), lane = item % 256, result = item / 256;
const int first = 0, end = n1;
for (int tile = get_group_id(0); tile * 1 < n0; tile += get_num_groups(0)) {
const int k = tile * 1 + result;
bh_f64 a0 = 0;
if (k < n0) {
#pragma unroll 4
for (int r = first + lane; r < end; r += 256) {
const int i0 = r;
const bh_f64 v0 = b0[n2 + i0];
a0 = bh_add_f64(a0, v0);
}
}
l0[item] = a0;
barrier(CLK_LOCAL_MEM_FENCE);
for (int s = 128; s > 0; s >>= 1) {
if (lane < s) {
l0[item] = bh_add_f64(l0[item], l0[item + s]);
}
barrier(CLK_LOCAL_MEM_FENCE);
}
if (lane == 0 && k < n0) {
b1[n3] = l0[item];
}
barrier(CLK_LOCAL_MEM_FENCE);
}
}

// Specialised.
// 256 groups of 256, numbers []
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void bh(__global const bh_f64 *restrict b0, __global bh_f64 *restrict b1) {
__local bh_f64 l0[256];
const int item = get_local_id(0), lane = item % 256, result = item / 256;
const int split = get_group_id(0) % 256, first = split * 4096;
const int end = min((int)(first + 4096), (int)1048576);
for (int tile = get_group_id(0) / 256; tile * 1 < 1; tile += get_num_groups(0) / 256) {
const int k = tile * 1 + result;
bh_f64 a0 = 0;
if (k < 1) {
#pragma unroll 4
for (int r = first + lane; r < end; r += 256) {
const int i0 = r;
const bh_f64 v0 = b0[i0];
const bh_f64 v1 = bh_mul_f64(v0, v0);
a0 = bh_add_f64(a0, v1);
}
}
l0[item] = a0;
barrier(CLK_LOCAL_MEM_FENCE);
for (int s = 128; s > 0; s >>= 1) {
if (lane < s) {
l0[item] = bh_add_f64(l0[item], l0[item + s]);
}
barrier(CLK_LOCAL_MEM_FENCE);
}
if (lane == 0 && k < 1) {
b1[k * 256 + split] = l0[item];
}
barrier(CLK_LOCAL_MEM_FENCE);
}
}

// 1 groups of 256, numbers []
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void bh(__global const bh_f64 *restrict b0, __global bh_f64 *restrict b1) {
__local bh_f64 l0[256];
const int item = get_local_id(0), lane = item % 256, result = item / 256;
const int first = 0, end = 256;
for (int tile = get_group_id(0); tile * 1 < 1; tile += get_num_groups(0)) {
const int k = tile * 1 + result;
bh_f64 a0 = 0;
if (k < 1) {
#pragma unroll 4
for (int r = first + lane; r < end; r += 256) {
const int i0 = r;
const bh_f64 v0 = b0[i0];
a0 = bh_add_f64(a0, v0);
}
}
l0[item] = a0;
barrier(CLK_LOCAL_MEM_FENCE);
for (int s = 128; s > 0; s >>= 1) {
if (lane < s) {
l0[item] = bh_add_f64(l0[item], l0[item + s]);
}
barrier(CLK_LOCAL_MEM_FENCE);
}
if (lane == 0 && k < 1) {
b1[0] = l0[item];
}
barrier(CLK_LOCAL_MEM_FENCE);
}
}
