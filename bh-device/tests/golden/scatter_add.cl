// Parameterised.
// 20 groups of 256, numbers [5000, 0, 100]
BH_KERNEL(256)
bh(BH_GLOBAL bh_u32 *BH_RESTRICT b0, BH_GLOBAL bh_u32 *BH_RESTRICT b1, BH_GLOBAL const bh_i64 *BH_RESTRICT b2, BH_GLOBAL int *BH_RESTRICT b3, const int n0, const int n1, const int n2) {
for (int t = BH_INDEX; t < n0; t += BH_INDICES) {
const int i0 = t;
const int wanted = 1;
const long given = (long)b2[n1 + i0];
long place = given;
if (place < 0) place += n2;
const int inside = (ulong)place < (ulong)n2, valid = wanted && inside;
if (wanted && !inside && BH_COMPARE_EXCHANGE(b3 + 0, 0, 1) == 0) { b3[1] = (int)(ulong)given; b3[2] = (int)((ulong)given >> 32); }
b0[t] = valid ? (uint)place : 0;
b1[t] = (uint)t;
}
}

// 16 groups of 256, numbers [4096, 2, 5000, 0, 4096]
BH_KERNEL(256)
bh(BH_GLOBAL const bh_u32 *BH_RESTRICT b0, BH_GLOBAL bh_u32 *BH_RESTRICT b1, const int n0, const int n1, const int n2, const int n3, const int n4) {
for (int s = BH_INDEX; s < n0; s += BH_INDICES) {
const int first = s * n1, end = min((int)(first + n1), (int)n2);
uint seen[16] = {0};
for (int at = first; at < end; at++) seen[b0[at] >> n3 & 15]++;
for (int d = 0; d < 16; d++) b1[d * n4 + s] = seen[d];
}
}

// 1 groups of 256, numbers [65536]
BH_KERNEL(256)
bh(BH_GLOBAL bh_u32 *BH_RESTRICT b0, const int n0) {
BH_LOCAL uint all[256];
const int item = BH_ITEM;
uint before = 0;
for (int tile = 0; tile < n0; tile += 256) {
const int at = tile + item;
const uint own = at < n0 ? b0[at] : 0;
uint sum = own;
all[item] = sum;
BH_BARRIER;
#pragma unroll 1
for (int s = 1; s < 256; s <<= 1) {
if (item >= s) sum += all[item - s];
BH_BARRIER;
all[item] = sum;
BH_BARRIER;
}
if (at < n0) b0[at] = before + sum - own;
before += all[255];
BH_BARRIER;
}
}

// 16 groups of 256, numbers [4096, 2, 5000, 0, 4096]
BH_KERNEL(256)
bh(BH_GLOBAL const bh_u32 *BH_RESTRICT b0, BH_GLOBAL const bh_u32 *BH_RESTRICT b1, BH_GLOBAL const bh_u32 *BH_RESTRICT b2, BH_GLOBAL bh_u32 *BH_RESTRICT b3, BH_GLOBAL bh_u32 *BH_RESTRICT b4, const int n0, const int n1, const int n2, const int n3, const int n4) {
for (int s = BH_INDEX; s < n0; s += BH_INDICES) {
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
BH_KERNEL(256)
bh(BH_GLOBAL const bh_u32 *BH_RESTRICT b0, BH_GLOBAL bh_u32 *BH_RESTRICT b1, const int n0, const int n1, const int n2, const int n3, const int n4) {
for (int s = BH_INDEX; s < n0; s += BH_INDICES) {
const int first = s * n1, end = min((int)(first + n1), (int)n2);
uint seen[16] = {0};
for (int at = first; at < end; at++) seen[b0[at] >> n3 & 15]++;
for (int d = 0; d < 16; d++) b1[d * n4 + s] = seen[d];
}
}

// 1 groups of 256, numbers [65536]
BH_KERNEL(256)
bh(BH_GLOBAL bh_u32 *BH_RESTRICT b0, const int n0) {
BH_LOCAL uint all[256];
const int item = BH_ITEM;
uint before = 0;
for (int tile = 0; tile < n0; tile += 256) {
const int at = tile + item;
const uint own = at < n0 ? b0[at] : 0;
uint sum = own;
all[item] = sum;
BH_BARRIER;
#pragma unroll 1
for (int s = 1; s < 256; s <<= 1) {
if (item >= s) sum += all[item - s];
BH_BARRIER;
all[item] = sum;
BH_BARRIER;
}
if (at < n0) b0[at] = before + sum - own;
before += all[255];
BH_BARRIER;
}
}

// 16 groups of 256, numbers [4096, 2, 5000, 4, 4096]
BH_KERNEL(256)
bh(BH_GLOBAL const bh_u32 *BH_RESTRICT b0, BH_GLOBAL const bh_u32 *BH_RESTRICT b1, BH_GLOBAL const bh_u32 *BH_RESTRICT b2, BH_GLOBAL bh_u32 *BH_RESTRICT b3, BH_GLOBAL bh_u32 *BH_RESTRICT b4, const int n0, const int n1, const int n2, const int n3, const int n4) {
for (int s = BH_INDEX; s < n0; s += BH_INDICES) {
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
BH_KERNEL(256)
bh(BH_GLOBAL const bh_u32 *BH_RESTRICT b0, BH_GLOBAL const bh_u32 *BH_RESTRICT b1, BH_GLOBAL bh_f32 *BH_RESTRICT b2, BH_GLOBAL const bh_f32 *BH_RESTRICT b3, const int n0, const int n1, const int n2) {
for (int t = BH_INDEX; t < n0; t += BH_INDICES) {
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
BH_KERNEL(256)
bh(BH_GLOBAL bh_u32 *BH_RESTRICT b0, BH_GLOBAL bh_u32 *BH_RESTRICT b1, BH_GLOBAL const bh_i64 *BH_RESTRICT b2, BH_GLOBAL int *BH_RESTRICT b3) {
for (int t = BH_INDEX; t < 5000; t += BH_INDICES) {
const int i0 = t;
const int wanted = 1;
const long given = (long)b2[i0];
long place = given;
if (place < 0) place += 100;
const int inside = (ulong)place < (ulong)100, valid = wanted && inside;
if (wanted && !inside && BH_COMPARE_EXCHANGE(b3 + 0, 0, 1) == 0) { b3[1] = (int)(ulong)given; b3[2] = (int)((ulong)given >> 32); }
b0[t] = valid ? (uint)place : 0;
b1[t] = (uint)t;
}
}

// 16 groups of 256, numbers []
BH_KERNEL(256)
bh(BH_GLOBAL const bh_u32 *BH_RESTRICT b0, BH_GLOBAL bh_u32 *BH_RESTRICT b1) {
for (int s = BH_INDEX; s < 4096; s += BH_INDICES) {
const int first = s * 2, end = min((int)(first + 2), (int)5000);
uint seen[16] = {0};
for (int at = first; at < end; at++) seen[b0[at] >> 0 & 15]++;
for (int d = 0; d < 16; d++) b1[d * 4096 + s] = seen[d];
}
}

// 1 groups of 256, numbers []
BH_KERNEL(256)
bh(BH_GLOBAL bh_u32 *BH_RESTRICT b0) {
BH_LOCAL uint all[256];
const int item = BH_ITEM;
uint before = 0;
for (int tile = 0; tile < 65536; tile += 256) {
const int at = tile + item;
const uint own = at < 65536 ? b0[at] : 0;
uint sum = own;
all[item] = sum;
BH_BARRIER;
#pragma unroll 1
for (int s = 1; s < 256; s <<= 1) {
if (item >= s) sum += all[item - s];
BH_BARRIER;
all[item] = sum;
BH_BARRIER;
}
if (at < 65536) b0[at] = before + sum - own;
before += all[255];
BH_BARRIER;
}
}

// 16 groups of 256, numbers []
BH_KERNEL(256)
bh(BH_GLOBAL const bh_u32 *BH_RESTRICT b0, BH_GLOBAL const bh_u32 *BH_RESTRICT b1, BH_GLOBAL const bh_u32 *BH_RESTRICT b2, BH_GLOBAL bh_u32 *BH_RESTRICT b3, BH_GLOBAL bh_u32 *BH_RESTRICT b4) {
for (int s = BH_INDEX; s < 4096; s += BH_INDICES) {
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
BH_KERNEL(256)
bh(BH_GLOBAL const bh_u32 *BH_RESTRICT b0, BH_GLOBAL bh_u32 *BH_RESTRICT b1) {
for (int s = BH_INDEX; s < 4096; s += BH_INDICES) {
const int first = s * 2, end = min((int)(first + 2), (int)5000);
uint seen[16] = {0};
for (int at = first; at < end; at++) seen[b0[at] >> 4 & 15]++;
for (int d = 0; d < 16; d++) b1[d * 4096 + s] = seen[d];
}
}

// 1 groups of 256, numbers []
BH_KERNEL(256)
bh(BH_GLOBAL bh_u32 *BH_RESTRICT b0) {
BH_LOCAL uint all[256];
const int item = BH_ITEM;
uint before = 0;
for (int tile = 0; tile < 65536; tile += 256) {
const int at = tile + item;
const uint own = at < 65536 ? b0[at] : 0;
uint sum = own;
all[item] = sum;
BH_BARRIER;
#pragma unroll 1
for (int s = 1; s < 256; s <<= 1) {
if (item >= s) sum += all[item - s];
BH_BARRIER;
all[item] = sum;
BH_BARRIER;
}
if (at < 65536) b0[at] = before + sum - own;
before += all[255];
BH_BARRIER;
}
}

// 16 groups of 256, numbers []
BH_KERNEL(256)
bh(BH_GLOBAL const bh_u32 *BH_RESTRICT b0, BH_GLOBAL const bh_u32 *BH_RESTRICT b1, BH_GLOBAL const bh_u32 *BH_RESTRICT b2, BH_GLOBAL bh_u32 *BH_RESTRICT b3, BH_GLOBAL bh_u32 *BH_RESTRICT b4) {
for (int s = BH_INDEX; s < 4096; s += BH_INDICES) {
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
BH_KERNEL(256)
bh(BH_GLOBAL const bh_u32 *BH_RESTRICT b0, BH_GLOBAL const bh_u32 *BH_RESTRICT b1, BH_GLOBAL bh_f32 *BH_RESTRICT b2, BH_GLOBAL const bh_f32 *BH_RESTRICT b3) {
for (int t = BH_INDEX; t < 5000; t += BH_INDICES) {
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
