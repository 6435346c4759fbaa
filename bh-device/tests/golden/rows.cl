// Parameterised.
// 4096 groups of 256, numbers [4096, 4096, 0, 4096, 0]
BH_KERNEL(256)
bh(BH_GLOBAL const bh_i32 *BH_RESTRICT b0, BH_GLOBAL bh_i32 *BH_RESTRICT b1, const int n0, const int n1, const int n2, const int n3, const int n4) {
BH_LOCAL bh_i32 l0[256];
const int item = BH_ITEM, lane = item % 256, result = item / 256;
const int first = 0, end = n1;
for (int tile = BH_GROUP; tile * 1 < n0; tile += BH_GROUPS) {
const int k = tile * 1 + result;
bh_i32 a0 = (-2147483647L - 1);
const int i0 = k < n0 ? k : 0;
if (k < n0) {
#pragma unroll 4
for (int r = first + lane; r < end; r += 256) {
const int i1 = r;
const bh_i32 v0 = b0[n2 + n3 * i0 + i1];
a0 = bh_max_i32(a0, v0);
}
}
l0[item] = a0;
BH_BARRIER;
#pragma unroll 1
for (int s = 128; s > 0; s >>= 1) {
if (lane < s) {
l0[item] = bh_max_i32(l0[item], l0[item + s]);
}
BH_BARRIER;
}
if (lane == 0 && k < n0) {
b1[n4 + i0] = l0[item];
}
BH_BARRIER;
}
}

// Specialised.
// 4096 groups of 256, numbers []
BH_KERNEL(256)
bh(BH_GLOBAL const bh_i32 *BH_RESTRICT b0, BH_GLOBAL bh_i32 *BH_RESTRICT b1) {
BH_LOCAL bh_i32 l0[256];
const int item = BH_ITEM, lane = item % 256, result = item / 256;
const int first = 0, end = 4096;
for (int tile = BH_GROUP; tile * 1 < 4096; tile += BH_GROUPS) {
const int k = tile * 1 + result;
bh_i32 a0 = (-2147483647L - 1);
const int i0 = k < 4096 ? k : 0;
if (k < 4096) {
#pragma unroll 4
for (int r = first + lane; r < end; r += 256) {
const int i1 = r;
const bh_i32 v0 = b0[4096 * i0 + i1];
a0 = bh_max_i32(a0, v0);
}
}
l0[item] = a0;
BH_BARRIER;
#pragma unroll 1
for (int s = 128; s > 0; s >>= 1) {
if (lane < s) {
l0[item] = bh_max_i32(l0[item], l0[item + s]);
}
BH_BARRIER;
}
if (lane == 0 && k < 4096) {
b1[i0] = l0[item];
}
BH_BARRIER;
}
}
