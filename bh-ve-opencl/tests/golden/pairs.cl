// Parameterised.
// 1024 groups of 256, numbers [8192, 4096, 0, 0, 0]
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void bh(__global const bh_f32 *restrict b0, __global const bh_f32 *restrict b1, __global bh_f32 *restrict b2, const int n0, const int n1, const int n2, const int n3, const int n4) {
__local bh_f32 l0[256];
__local bh_f32 t0[1024];
const int item = get_local_id(0), lane = item % 32, result = item / 32;
const int first = 0, end = n1;
for (int tile = get_group_id(0); tile * 8 < n0; tile += get_num_groups(0)) {
const int k = tile * 8 + result;
bh_f32 a0 = 0;
const int i0 = k < n0 ? k : 0;
for (int from = first; from < end; from += 1024) {
const int stop = min((int)(from + 1024), (int)end);
barrier(CLK_LOCAL_MEM_FENCE);
for (int i1 = from + item; i1 < stop; i1 += 256) {
t0[i1 - from] = b0[n2 + i1];
}
barrier(CLK_LOCAL_MEM_FENCE);
if (k < n0) {
#pragma unroll 4
for (int r = from + lane; r < stop; r += 32) {
const int i1 = r;
const bh_f32 v0 = t0[r - from];
const bh_f32 v1 = b1[n3 + i0];
const bh_f32 v2 = bh_sub_f32(v0, v1);
a0 = bh_add_f32(a0, v2);
}
}
}
l0[item] = a0;
barrier(CLK_LOCAL_MEM_FENCE);
for (int s = 16; s > 0; s >>= 1) {
if (lane < s) {
l0[item] = bh_add_f32(l0[item], l0[item + s]);
}
barrier(CLK_LOCAL_MEM_FENCE);
}
if (lane == 0 && k < n0) {
b2[n4 + i0] = l0[item];
}
barrier(CLK_LOCAL_MEM_FENCE);
}
}

// Specialised.
// 1024 groups of 256, numbers []
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void bh(__global const bh_f32 *restrict b0, __global const bh_f32 *restrict b1, __global bh_f32 *restrict b2) {
__local bh_f32 l0[256];
__local bh_f32 t0[1024];
const int item = get_local_id(0), lane = item % 32, result = item / 32;
const int first = 0, end = 4096;
for (int tile = get_group_id(0); tile * 8 < 8192; tile += get_num_groups(0)) {
const int k = tile * 8 + result;
bh_f32 a0 = 0;
const int i0 = k < 8192 ? k : 0;
for (int from = first; from < end; from += 1024) {
const int stop = min((int)(from + 1024), (int)end);
barrier(CLK_LOCAL_MEM_FENCE);
for (int i1 = from + item; i1 < stop; i1 += 256) {
t0[i1 - from] = b0[i1];
}
barrier(CLK_LOCAL_MEM_FENCE);
if (k < 8192) {
#pragma unroll 4
for (int r = from + lane; r < stop; r += 32) {
const int i1 = r;
const bh_f32 v0 = t0[r - from];
const bh_f32 v1 = b1[i0];
const bh_f32 v2 = bh_sub_f32(v0, v1);
a0 = bh_add_f32(a0, v2);
}
}
}
l0[item] = a0;
barrier(CLK_LOCAL_MEM_FENCE);
for (int s = 16; s > 0; s >>= 1) {
if (lane < s) {
l0[item] = bh_add_f32(l0[item], l0[item + s]);
}
barrier(CLK_LOCAL_MEM_FENCE);
}
if (lane == 0 && k < 8192) {
b2[i0] = l0[item];
}
barrier(CLK_LOCAL_MEM_FENCE);
}
}
