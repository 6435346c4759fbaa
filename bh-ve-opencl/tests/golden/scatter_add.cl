// Parameterised.
// 20 groups of 256, numbers [5000, 0, 100]
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void bh(__global bh_u32 *restrict b0, __global bh_u32 *restrict b1, __global const bh_i64 *restrict b2, __global int *restrict b3, const int n0, const int n1, const int n2) {
for (int t = get_global_id(0); t < n0; t += get_global_size(0)) {
const int i0 = t;
const int wanted = 1;
const long given = (long)b2[n1 + i0];
long place = given;
if (place < 0) place += n2;
const int inside = (ulong)place < (ulong)n2, valid = wanted && inside;
if (wanted && !inside && atomic_cmpxchg(b3 + 0, 0, 1) == 0) { b3[1] = (int)(ulong)given; b3[2] = (int)((ulong)given >> 32); }
b0[t] = valid ? (uint)place : 0;
b1[t] = (uint)t;
}
}

// 16 groups of 256, numbers [4096, 2, 5000, 0, 4096]
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void bh(__global const bh_u32 *restrict b0, __global bh_u32 *restrict b1, const int n0, const int n1, const int n2, const int n3, const int n4) {
for (int s = get_global_id(0); s < n0; s += get_global_size(0)) {
const int first = s * n1, end = min((int)(first + n1), (int)n2);
uint seen[16] = {0};
for (int at = first; at < end; at++) seen[b0[at] >> n3 & 15]++;
for (int d = 0; d < 16; d++) b1[d * n4 + s] = seen[d];
}
}

// 1 groups of 256, numbers [65536]
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void bh(__global bh_u32 *restrict b0, const int n0) {
__local uint all[256];
const int item = get_local_id(0);
uint before = 0;
for (int tile = 0; tile < n0; tile += 256) {
const int at = tile + item;
const uint own = at < n0 ? b0[at] : 0;
uint sum = own;
all[item] = sum;
barrier(CLK_LOCAL_MEM_FENCE);
for (int s = 1; s < 256; s <<= 1) {
if (item >= s) sum += all[item - s];
barrier(CLK_LOCAL_MEM_FENCE);
all[item] = sum;
barrier(CLK_LOCAL_MEM_FENCE);
}
if (at < n0) b0[at] = before + sum - own;
before += all[255];
barrier(CLK_LOCAL_MEM_FENCE);
}
}

// 16 groups of 256, numbers [4096, 2, 5000, 0, 4096]
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void bh(__global const bh_u32 *restrict b0, __global const bh_u32 *restrict b1, __global const bh_u32 *restrict b2, __global bh_u32 *restrict b3, __global bh_u32 *restrict b4, const int n0, const int n1, const int n2, const int n3, const int n4) {
for (int s = get_global_id(0); s < n0; s += get_global_size(0)) {
const int first = s * n1, end = min((int)(first + n1), (int)n2);
uint next[16];
for (int d = 0; d < 16; d++) next[d] = b2[d * n4 + s];
for (int at = first; at < end; at++) {
const uint to = next[b0[at] >> n3 & 15]++;
b3[to] = b0[at];
b4[to] = b1[at];
}
}
}

// 16 groups of 256, numbers [4096, 2, 5000, 4, 4096]
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void bh(__global const bh_u32 *restrict b0, __global bh_u32 *restrict b1, const int n0, const int n1, const int n2, const int n3, const int n4) {
for (int s = get_global_id(0); s < n0; s += get_global_size(0)) {
const int first = s * n1, end = min((int)(first + n1), (int)n2);
uint seen[16] = {0};
for (int at = first; at < end; at++) seen[b0[at] >> n3 & 15]++;
for (int d = 0; d < 16; d++) b1[d * n4 + s] = seen[d];
}
}

// 1 groups of 256, numbers [65536]
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void bh(__global bh_u32 *restrict b0, const int n0) {
__local uint all[256];
const int item = get_local_id(0);
uint before = 0;
for (int tile = 0; tile < n0; tile += 256) {
const int at = tile + item;
const uint own = at < n0 ? b0[at] : 0;
uint sum = own;
all[item] = sum;
barrier(CLK_LOCAL_MEM_FENCE);
for (int s = 1; s < 256; s <<= 1) {
if (item >= s) sum += all[item - s];
barrier(CLK_LOCAL_MEM_FENCE);
all[item] = sum;
barrier(CLK_LOCAL_MEM_FENCE);
}
if (at < n0) b0[at] = before + sum - own;
before += all[255];
barrier(CLK_LOCAL_MEM_FENCE);
}
}

// 16 groups of 256, numbers [4096, 2, 5000, 4, 4096]
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void bh(__global const bh_u32 *restrict b0, __global const bh_u32 *restrict b1, __global const bh_u32 *restrict b2, __global bh_u32 *restrict b3, __global bh_u32 *restrict b4, const int n0, const int n1, const int n2, const int n3, const int n4) {
for (int s = get_global_id(0); s < n0; s += get_global_size(0)) {
const int first = s * n1, end = min((int)(first + n1), (int)n2);
uint next[16];
for (int d = 0; d < 16; d++) next[d] = b2[d * n4 + s];
for (int at = first; at < end; at++) {
const uint to = next[b0[at] >> n3 & 15]++;
b3[to] = b0[at];
b4[to] = b1[at];
}
}
}

// 20 groups of 256, numbers [5000, 0, 0]
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void bh(__global const bh_u32 *restrict b0, __global const bh_u32 *restrict b1, __global bh_f32 *restrict b2, __global const bh_f32 *restrict b3, const int n0, const int n1, const int n2) {
for (int t = get_global_id(0); t < n0; t += get_global_size(0)) {
const uint place = b0[t];
if (t > 0 && b0[t - 1] == place) continue;
const int o0 = place;
bh_f32 sum = b2[n1 + o0];
for (int q = t; q < n0 && b0[q] == place; q++) {
const int n = b1[q];
const int v0 = n;
sum = bh_add_f32(sum, b3[n2 + v0]);
}
b2[n1 + o0] = sum;
}
}

// Specialised.
// 20 groups of 256, numbers []
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void bh(__global bh_u32 *restrict b0, __global bh_u32 *restrict b1, __global const bh_i64 *restrict b2, __global int *restrict b3) {
for (int t = get_global_id(0); t < 5000; t += get_global_size(0)) {
const int i0 = t;
const int wanted = 1;
const long given = (long)b2[i0];
long place = given;
if (place < 0) place += 100;
const int inside = (ulong)place < (ulong)100, valid = wanted && inside;
if (wanted && !inside && atomic_cmpxchg(b3 + 0, 0, 1) == 0) { b3[1] = (int)(ulong)given; b3[2] = (int)((ulong)given >> 32); }
b0[t] = valid ? (uint)place : 0;
b1[t] = (uint)t;
}
}

// 16 groups of 256, numbers []
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void bh(__global const bh_u32 *restrict b0, __global bh_u32 *restrict b1) {
for (int s = get_global_id(0); s < 4096; s += get_global_size(0)) {
const int first = s * 2, end = min((int)(first + 2), (int)5000);
uint seen[16] = {0};
for (int at = first; at < end; at++) seen[b0[at] >> 0 & 15]++;
for (int d = 0; d < 16; d++) b1[d * 4096 + s] = seen[d];
}
}

// 1 groups of 256, numbers []
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void bh(__global bh_u32 *restrict b0) {
__local uint all[256];
const int item = get_local_id(0);
uint before = 0;
for (int tile = 0; tile < 65536; tile += 256) {
const int at = tile + item;
const uint own = at < 65536 ? b0[at] : 0;
uint sum = own;
all[item] = sum;
barrier(CLK_LOCAL_MEM_FENCE);
for (int s = 1; s < 256; s <<= 1) {
if (item >= s) sum += all[item - s];
barrier(CLK_LOCAL_MEM_FENCE);
all[item] = sum;
barrier(CLK_LOCAL_MEM_FENCE);
}
if (at < 65536) b0[at] = before + sum - own;
before += all[255];
barrier(CLK_LOCAL_MEM_FENCE);
}
}

// 16 groups of 256, numbers []
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void bh(__global const bh_u32 *restrict b0, __global const bh_u32 *restrict b1, __global const bh_u32 *restrict b2, __global bh_u32 *restrict b3, __global bh_u32 *restrict b4) {
for (int s = get_global_id(0); s < 4096; s += get_global_size(0)) {
const int first = s * 2, end = min((int)(first + 2), (int)5000);
uint next[16];
for (int d = 0; d < 16; d++) next[d] = b2[d * 4096 + s];
for (int at = first; at < end; at++) {
const uint to = next[b0[at] >> 0 & 15]++;
b3[to] = b0[at];
b4[to] = b1[at];
}
}
}

// 16 groups of 256, numbers []
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void bh(__global const bh_u32 *restrict b0, __global bh_u32 *restrict b1) {
for (int s = get_global_id(0); s < 4096; s += get_global_size(0)) {
const int first = s * 2, end = min((int)(first + 2), (int)5000);
uint seen[16] = {0};
for (int at = first; at < end; at++) seen[b0[at] >> 4 & 15]++;
for (int d = 0; d < 16; d++) b1[d * 4096 + s] = seen[d];
}
}

// 1 groups of 256, numbers []
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void bh(__global bh_u32 *restrict b0) {
__local uint all[256];
const int item = get_local_id(0);
uint before = 0;
for (int tile = 0; tile < 65536; tile += 256) {
const int at = tile + item;
const uint own = at < 65536 ? b0[at] : 0;
uint sum = own;
all[item] = sum;
barrier(CLK_LOCAL_MEM_FENCE);
for (int s = 1; s < 256; s <<= 1) {
if (item >= s) sum += all[item - s];
barrier(CLK_LOCAL_MEM_FENCE);
all[item] = sum;
barrier(CLK_LOCAL_MEM_FENCE);
}
if (at < 65536) b0[at] = before + sum - own;
before += all[255];
barrier(CLK_LOCAL_MEM_FENCE);
}
}

// 16 groups of 256, numbers []
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void bh(__global const bh_u32 *restrict b0, __global const bh_u32 *restrict b1, __global const bh_u32 *restrict b2, __global bh_u32 *restrict b3, __global bh_u32 *restrict b4) {
for (int s = get_global_id(0); s < 4096; s += get_global_size(0)) {
const int first = s * 2, end = min((int)(first + 2), (int)5000);
uint next[16];
for (int d = 0; d < 16; d++) next[d] = b2[d * 4096 + s];
for (int at = first; at < end; at++) {
const uint to = next[b0[at] >> 4 & 15]++;
b3[to] = b0[at];
b4[to] = b1[at];
}
}
}

// 20 groups of 256, numbers []
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void bh(__global const bh_u32 *restrict b0, __global const bh_u32 *restrict b1, __global bh_f32 *restrict b2, __global const bh_f32 *restrict b3) {
for (int t = get_global_id(0); t < 5000; t += get_global_size(0)) {
const uint place = b0[t];
if (t > 0 && b0[t - 1] == place) continue;
const int o0 = place;
bh_f32 sum = b2[o0];
for (int q = t; q < 5000 && b0[q] == place; q++) {
const int n = b1[q];
const int v0 = n;
sum = bh_add_f32(sum, b3[v0]);
}
b2[o0] = sum;
}
}
