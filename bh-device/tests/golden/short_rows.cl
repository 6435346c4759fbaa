// Parameterised.
// 8192 groups of 256, numbers [262144, 64, 0, 64, 0]
BH_KERNEL(256)
bh(BH_GLOBAL const bh_f64 *BH_RESTRICT b0, BH_GLOBAL bh_f64 *BH_RESTRICT b1, const int n0, const int n1, const int n2, const int n3, const int n4) {
BH_LOCAL bh_f64 l0[1024];
const int item = BH_ITEM, lane = item % 32, result = item / 32;
for (int tile = BH_GROUP * 4; tile * 8 < n0; tile += BH_GROUPS * 4) {
#pragma unroll
for (int q = 0; q < 4; q++) {
const int own = (tile + q) * 8 + result, k = own < n0 ? own : 0;
bh_f64 a0 = 0;
const int i0 = k;
#pragma unroll 1
for (int r = lane; r < n1; r += 32) {
const int i1 = r;
const bh_f64 v0 = b0[n2 + n3 * i0 + i1];
a0 = bh_add_f64(a0, v0);
}
l0[q * 256 + item] = a0;
}
BH_BARRIER_WARP;
#pragma unroll 1
for (int s = 16; s > 0; s >>= 1) {
if (lane < s) {
#pragma unroll
for (int q = 0; q < 4; q++) {
l0[q * 256 + item] = bh_add_f64(l0[q * 256 + item], l0[q * 256 + item + s]);
}
}
BH_BARRIER_WARP;
}
if (lane == 0) {
#pragma unroll
for (int q = 0; q < 4; q++) {
const int k = (tile + q) * 8 + result;
if (k < n0) {
const int i0 = k;
b1[n4 + i0] = l0[q * 256 + item];
}
}
}
BH_BARRIER_WARP;
}
}

// Specialised.
// 8192 groups of 256, numbers []
BH_KERNEL(256)
bh(BH_GLOBAL const bh_f64 *BH_RESTRICT b0, BH_GLOBAL bh_f64 *BH_RESTRICT b1) {
BH_LOCAL bh_f64 l0[1024];
const int item = BH_ITEM, lane = item % 32, result = item / 32;
for (int tile = BH_GROUP * 4; tile * 8 < 262144; tile += BH_GROUPS * 4) {
#pragma unroll
for (int q = 0; q < 4; q++) {
const int own = (tile + q) * 8 + result, k = own < 262144 ? own : 0;
bh_f64 a0 = 0;
const int i0 = k;
#pragma unroll 1
for (int r = lane; r < 64; r += 32) {
const int i1 = r;
const bh_f64 v0 = b0[64 * i0 + i1];
a0 = bh_add_f64(a0, v0);
}
l0[q * 256 + item] = a0;
}
BH_BARRIER_WARP;
#pragma unroll 1
for (int s = 16; s > 0; s >>= 1) {
if (lane < s) {
#pragma unroll
for (int q = 0; q < 4; q++) {
l0[q * 256 + item] = bh_add_f64(l0[q * 256 + item], l0[q * 256 + item + s]);
}
}
BH_BARRIER_WARP;
}
if (lane == 0) {
#pragma unroll
for (int q = 0; q < 4; q++) {
const int k = (tile + q) * 8 + result;
if (k < 262144) {
const int i0 = k;
b1[i0] = l0[q * 256 + item];
}
}
}
BH_BARRIER_WARP;
}
}
