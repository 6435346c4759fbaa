// Parameterised.
// 256 groups of 256, numbers [4096, 4096, 16, 256, 0, 4096, 16]
BH_KERNEL(256)
bh(BH_GLOBAL const bh_i32 *BH_RESTRICT b0, BH_GLOBAL bh_i32 *BH_RESTRICT b1, const int n0, const int n1, const int n2, const int n3, const int n4, const int n5, const int n6) {
const int item = BH_ITEM, lane = item / 256, result = item % 256;
const int split = BH_GROUP % n2, first = split * n3;
const int end = min((int)(first + n3), (int)n1);
for (int tile = BH_GROUP / n2; tile * 256 < n0; tile += BH_GROUPS / n2) {
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
BH_KERNEL(256)
bh(BH_GLOBAL const bh_i32 *BH_RESTRICT b0, BH_GLOBAL bh_i32 *BH_RESTRICT b1, const int n0, const int n1, const int n2, const int n3, const int n4) {
BH_LOCAL bh_i32 l0[256];
const int item = BH_ITEM, lane = item % 16, result = item / 16;
const int first = 0, end = n1;
for (int tile = BH_GROUP; tile * 16 < n0; tile += BH_GROUPS) {
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
BH_BARRIER_WARP;
#pragma unroll 1
for (int s = 8; s > 0; s >>= 1) {
if (lane < s) {
l0[item] = bh_max_i32(l0[item], l0[item + s]);
}
BH_BARRIER_WARP;
}
if (lane == 0 && k < n0) {
b1[n4 + i0] = l0[item];
}
BH_BARRIER_WARP;
}
}

// Specialised.
// 256 groups of 256, numbers []
BH_KERNEL(256)
bh(BH_GLOBAL const bh_i32 *BH_RESTRICT b0, BH_GLOBAL bh_i32 *BH_RESTRICT b1) {
const int item = BH_ITEM, lane = item / 256, result = item % 256;
const int split = BH_GROUP % 16, first = split * 256;
const int end = min((int)(first + 256), (int)4096);
for (int tile = BH_GROUP / 16; tile * 256 < 4096; tile += BH_GROUPS / 16) {
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
BH_KERNEL(256)
bh(BH_GLOBAL const bh_i32 *BH_RESTRICT b0, BH_GLOBAL bh_i32 *BH_RESTRICT b1) {
BH_LOCAL bh_i32 l0[256];
const int item = BH_ITEM, lane = item % 16, result = item / 16;
const int first = 0, end = 16;
for (int tile = BH_GROUP; tile * 16 < 4096; tile += BH_GROUPS) {
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
BH_BARRIER_WARP;
#pragma unroll 1
for (int s = 8; s > 0; s >>= 1) {
if (lane < s) {
l0[item] = bh_max_i32(l0[item], l0[item + s]);
}
BH_BARRIER_WARP;
}
if (lane == 0 && k < 4096) {
b1[i0] = l0[item];
}
BH_BARRIER_WARP;
}
}
