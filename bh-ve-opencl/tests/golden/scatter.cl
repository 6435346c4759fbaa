// Parameterised.
// 1 groups of 256, numbers [100]
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void bh(__global bh_i32 *restrict b0, const int n0) {
for (int t = get_global_id(0); t < n0; t += get_global_size(0)) b0[t] = -1;
}

// 20 groups of 256, numbers [5000, 0, 100]
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void bh(__global bh_i32 *restrict b0, __global const bh_i64 *restrict b1, __global int *restrict b2, const int n0, const int n1, const int n2) {
for (int t = get_global_id(0); t < n0; t += get_global_size(0)) {
const int i0 = t;
const int wanted = 1;
const long given = (long)b1[n1 + i0];
long place = given;
if (place < 0) place += n2;
const int inside = (ulong)place < (ulong)n2, valid = wanted && inside;
if (wanted && !inside && atomic_cmpxchg(b2 + 0, 0, 1) == 0) { b2[1] = (int)(ulong)given; b2[2] = (int)((ulong)given >> 32); }
if (valid) atomic_max(b0 + place, (int)t);
}
}

// 20 groups of 256, numbers [0, 0, 5000, 0, 100]
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void bh(__global const bh_i32 *restrict b0, __global bh_f32 *restrict b1, __global const bh_f32 *restrict b2, __global const bh_i64 *restrict b3, const int n0, const int n1, const int n2, const int n3, const int n4) {
for (int t = get_global_id(0); t < n2; t += get_global_size(0)) {
const int i0 = t;
const int wanted = 1;
const long given = (long)b3[n3 + i0];
long place = given;
if (place < 0) place += n4;
const int inside = (ulong)place < (ulong)n4, valid = wanted && inside;
if (valid && b0[place] == (int)t) {
const int o0 = place;
const int v0 = t;
b1[n0 + o0] = b2[n1 + v0];
}
}
}

// Specialised.
// 1 groups of 256, numbers []
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void bh(__global bh_i32 *restrict b0) {
for (int t = get_global_id(0); t < 100; t += get_global_size(0)) b0[t] = -1;
}

// 20 groups of 256, numbers []
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void bh(__global bh_i32 *restrict b0, __global const bh_i64 *restrict b1, __global int *restrict b2) {
for (int t = get_global_id(0); t < 5000; t += get_global_size(0)) {
const int i0 = t;
const int wanted = 1;
const long given = (long)b1[i0];
long place = given;
if (place < 0) place += 100;
const int inside = (ulong)place < (ulong)100, valid = wanted && inside;
if (wanted && !inside && atomic_cmpxchg(b2 + 0, 0, 1) == 0) { b2[1] = (int)(ulong)given; b2[2] = (int)((ulong)given >> 32); }
if (valid) atomic_max(b0 + place, (int)t);
}
}

// 20 groups of 256, numbers []
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void bh(__global const bh_i32 *restrict b0, __global bh_f32 *restrict b1, __global const bh_f32 *restrict b2, __global const bh_i64 *restrict b3) {
for (int t = get_global_id(0); t < 5000; t += get_global_size(0)) {
const int i0 = t;
const int wanted = 1;
const long given = (long)b3[i0];
long place = given;
if (place < 0) place += 100;
const int inside = (ulong)place < (ulong)100, valid = wanted && inside;
if (valid && b0[place] == (int)t) {
const int o0 = place;
const int v0 = t;
b1[o0] = b2[v0];
}
}
}
