// Parameterised.
// 1 groups of 256, numbers [100]
BH_KERNEL(256)
bh(BH_GLOBAL bh_i32 *BH_RESTRICT b0, const int n0) {
for (int t = BH_INDEX; t < n0; t += BH_INDICES) b0[t] = -1;
}

// 20 groups of 256, numbers [5000, 0, 100]
BH_KERNEL(256)
bh(BH_GLOBAL bh_i32 *BH_RESTRICT b0, BH_GLOBAL const bh_i64 *BH_RESTRICT b1, BH_GLOBAL int *BH_RESTRICT b2, const int n0, const int n1, const int n2) {
for (int t = BH_INDEX; t < n0; t += BH_INDICES) {
const int i0 = t;
const int wanted = 1;
const long given = (long)b1[n1 + i0];
long place = given;
if (place < 0) place += n2;
const int inside = (ulong)place < (ulong)n2, valid = wanted && inside;
if (wanted && !inside && BH_COMPARE_EXCHANGE(b2 + 0, 0, 1) == 0) { b2[1] = (int)(ulong)given; b2[2] = (int)((ulong)given >> 32); }
if (valid) BH_ATOMIC_MAX(b0 + place, (int)t);
}
}

// 20 groups of 256, numbers [0, 0, 5000, 0, 100]
BH_KERNEL(256)
bh(BH_GLOBAL const bh_i32 *BH_RESTRICT b0, BH_GLOBAL bh_f32 *BH_RESTRICT b1, BH_GLOBAL const bh_f32 *BH_RESTRICT b2, BH_GLOBAL const bh_i64 *BH_RESTRICT b3, const int n0, const int n1, const int n2, const int n3, const int n4) {
for (int t = BH_INDEX; t < n2; t += BH_INDICES) {
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
BH_KERNEL(256)
bh(BH_GLOBAL bh_i32 *BH_RESTRICT b0) {
for (int t = BH_INDEX; t < 100; t += BH_INDICES) b0[t] = -1;
}

// 20 groups of 256, numbers []
BH_KERNEL(256)
bh(BH_GLOBAL bh_i32 *BH_RESTRICT b0, BH_GLOBAL const bh_i64 *BH_RESTRICT b1, BH_GLOBAL int *BH_RESTRICT b2) {
for (int t = BH_INDEX; t < 5000; t += BH_INDICES) {
const int i0 = t;
const int wanted = 1;
const long given = (long)b1[i0];
long place = given;
if (place < 0) place += 100;
const int inside = (ulong)place < (ulong)100, valid = wanted && inside;
if (wanted && !inside && BH_COMPARE_EXCHANGE(b2 + 0, 0, 1) == 0) { b2[1] = (int)(ulong)given; b2[2] = (int)((ulong)given >> 32); }
if (valid) BH_ATOMIC_MAX(b0 + place, (int)t);
}
}

// 20 groups of 256, numbers []
BH_KERNEL(256)
bh(BH_GLOBAL const bh_i32 *BH_RESTRICT b0, BH_GLOBAL bh_f32 *BH_RESTRICT b1, BH_GLOBAL const bh_f32 *BH_RESTRICT b2, BH_GLOBAL const bh_i64 *BH_RESTRICT b3) {
for (int t = BH_INDEX; t < 5000; t += BH_INDICES) {
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
