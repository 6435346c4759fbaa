// Parameterised.
// 64 groups of 256, numbers [64, 1048576, 16384, 0]
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void bh(__global const bh_f64 *restrict b0, __global bh_f64 *restrict b1, const int n0, const int n1, const int n2, const int n3) {
__local bh_f64 all[256];
const int item = get_local_id(0);
const int row = get_group_id(0) / n0;
const int first = get_group_id(0) % n0 * n2;
const int end = min((int)(first + n2), (int)n1);
const int run = (end - first + 256 - 1) / 256;
const int from = first + item * run, to = min((int)(from + run), end);
bh_f64 sum = 0;
for (int at = from; at < to; at++) {
const bh_f64 value = b0[n3 + at];
sum = bh_add_f64(sum, value);
}
all[item] = sum;
barrier(CLK_LOCAL_MEM_FENCE);
for (int s = 1; s < 256; s <<= 1) {
if (item % (2 * s) == 0) all[item] = bh_add_f64(all[item], all[item + s]);
barrier(CLK_LOCAL_MEM_FENCE);
}
if (item == 0) b1[get_group_id(0)] = all[0];
}

// 1 groups of 256, numbers [1, 64]
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void bh(__global bh_f64 *restrict b0, const int n0, const int n1) {
for (int row = get_global_id(0); row < n0; row += get_global_size(0)) {
bh_f64 sum = 0;
for (int part = 0; part < n1; part++) {
const bh_f64 total = b0[row * n1 + part];
b0[row * n1 + part] = sum;
sum = bh_add_f64(sum, total);
}
}
}

// 64 groups of 256, numbers [64, 1048576, 16384, 0, 0]
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void bh(__global const bh_f64 *restrict b0, __global bh_f64 *restrict b1, __global const bh_f64 *restrict b2, const int n0, const int n1, const int n2, const int n3, const int n4) {
__local bh_f64 all[256];
const int item = get_local_id(0);
const int row = get_group_id(0) / n0;
const int first = get_group_id(0) % n0 * n2;
const int end = min((int)(first + n2), (int)n1);
bh_f64 before = b2[get_group_id(0)];
for (int tile = first; tile < end; tile += 256) {
const int at = tile + item;
bh_f64 sum = 0;
if (at < end) sum = b0[n3 + at];
all[item] = sum;
barrier(CLK_LOCAL_MEM_FENCE);
for (int s = 1; s < 256; s <<= 1) {
if (item >= s) sum = bh_add_f64(all[item - s], sum);
barrier(CLK_LOCAL_MEM_FENCE);
all[item] = sum;
barrier(CLK_LOCAL_MEM_FENCE);
}
if (at < end) b1[n4 + at] = bh_add_f64(before, sum);
before = bh_add_f64(before, all[255]);
barrier(CLK_LOCAL_MEM_FENCE);
}
}

// Specialised.
// 64 groups of 256, numbers []
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void bh(__global const bh_f64 *restrict b0, __global bh_f64 *restrict b1) {
__local bh_f64 all[256];
const int item = get_local_id(0);
const int row = get_group_id(0) / 64;
const int first = get_group_id(0) % 64 * 16384;
const int end = min((int)(first + 16384), (int)1048576);
const int run = (end - first + 256 - 1) / 256;
const int from = first + item * run, to = min((int)(from + run), end);
bh_f64 sum = 0;
for (int at = from; at < to; at++) {
const bh_f64 value = b0[at];
sum = bh_add_f64(sum, value);
}
all[item] = sum;
barrier(CLK_LOCAL_MEM_FENCE);
for (int s = 1; s < 256; s <<= 1) {
if (item % (2 * s) == 0) all[item] = bh_add_f64(all[item], all[item + s]);
barrier(CLK_LOCAL_MEM_FENCE);
}
if (item == 0) b1[get_group_id(0)] = all[0];
}

// 1 groups of 256, numbers []
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void bh(__global bh_f64 *restrict b0) {
for (int row = get_global_id(0); row < 1; row += get_global_size(0)) {
bh_f64 sum = 0;
for (int part = 0; part < 64; part++) {
const bh_f64 total = b0[row * 64 + part];
b0[row * 64 + part] = sum;
sum = bh_add_f64(sum, total);
}
}
}

// 64 groups of 256, numbers []
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void bh(__global const bh_f64 *restrict b0, __global bh_f64 *restrict b1, __global const bh_f64 *restrict b2) {
__local bh_f64 all[256];
const int item = get_local_id(0);
const int row = get_group_id(0) / 64;
const int first = get_group_id(0) % 64 * 16384;
const int end = min((int)(first + 16384), (int)1048576);
bh_f64 before = b2[get_group_id(0)];
for (int tile = first; tile < end; tile += 256) {
const int at = tile + item;
bh_f64 sum = 0;
if (at < end) sum = b0[at];
all[item] = sum;
barrier(CLK_LOCAL_MEM_FENCE);
for (int s = 1; s < 256; s <<= 1) {
if (item >= s) sum = bh_add_f64(all[item - s], sum);
barrier(CLK_LOCAL_MEM_FENCE);
all[item] = sum;
barrier(CLK_LOCAL_MEM_FENCE);
}
if (at < end) b1[at] = bh_add_f64(before, sum);
before = bh_add_f64(before, all[255]);
barrier(CLK_LOCAL_MEM_FENCE);
}
}
