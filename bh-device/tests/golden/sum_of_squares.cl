// Parameterised.
// 256 groups of 256, numbers [1, 1048576, 256, 4096, 0, 256]
BH_KERNEL(256)
bh(BH_GLOBAL const bh_f64 *BH_RESTRICT b0, BH_GLOBAL bh_f64 *BH_RESTRICT b1, const int n0, const int n1, const int n2, const int n3, const int n4, const int n5) {
BH_LOCAL bh_f64 l0[256];
const int item = BH_ITEM, lane = item % 256, result = item / 256;
const int split = BH_GROUP % n2, first = split * n3;
const int end = min((int)(first + n3), (int)n1);
for (int tile = BH_GROUP / n2; tile * 1 < n0; tile += BH_GROUPS / n2) {
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
BH_BARRIER;
#pragma unroll 1
for (int s = 128; s > 0; s >>= 1) {
if (lane < s) {
l0[item] = bh_add_f64(l0[item], l0[item + s]);
}
BH_BARRIER;
}
if (lane == 0 && k < n0) {
b1[k * n5 + split] = l0[item];
}
BH_BARRIER;
}
}

// 1 groups of 256, numbers [1, 256, 0, 0]
BH_KERNEL(256)
bh(BH_GLOBAL const bh_f64 *BH_RESTRICT b0, BH_GLOBAL bh_f64 *BH_RESTRICT b1, const int n0, const int n1, const int n2, const int n3) {
BH_LOCAL bh_f64 l0[256];
const int item = BH_ITEM, lane = item % 256, result = item / 256;
const int first = 0, end = n1;
for (int tile = BH_GROUP; tile * 1 < n0; tile += BH_GROUPS) {
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
BH_BARRIER;
#pragma unroll 1
for (int s = 128; s > 0; s >>= 1) {
if (lane < s) {
l0[item] = bh_add_f64(l0[item], l0[item + s]);
}
BH_BARRIER;
}
if (lane == 0 && k < n0) {
b1[n3] = l0[item];
}
BH_BARRIER;
}
}

// Specialised.
// 256 groups of 256, numbers []
BH_KERNEL(256)
bh(BH_GLOBAL const bh_f64 *BH_RESTRICT b0, BH_GLOBAL bh_f64 *BH_RESTRICT b1) {
BH_LOCAL bh_f64 l0[256];
const int item = BH_ITEM, lane = item % 256, result = item / 256;
const int split = BH_GROUP % 256, first = split * 4096;
const int end = min((int)(first + 4096), (int)1048576);
for (int tile = BH_GROUP / 256; tile * 1 < 1; tile += BH_GROUPS / 256) {
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
BH_BARRIER;
#pragma unroll 1
for (int s = 128; s > 0; s >>= 1) {
if (lane < s) {
l0[item] = bh_add_f64(l0[item], l0[item + s]);
}
BH_BARRIER;
}
if (lane == 0 && k < 1) {
b1[k * 256 + split] = l0[item];
}
BH_BARRIER;
}
}

// 1 groups of 256, numbers []
BH_KERNEL(256)
bh(BH_GLOBAL const bh_f64 *BH_RESTRICT b0, BH_GLOBAL bh_f64 *BH_RESTRICT b1) {
BH_LOCAL bh_f64 l0[256];
const int item = BH_ITEM, lane = item % 256, result = item / 256;
const int first = 0, end = 256;
for (int tile = BH_GROUP; tile * 1 < 1; tile += BH_GROUPS) {
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
BH_BARRIER;
#pragma unroll 1
for (int s = 128; s > 0; s >>= 1) {
if (lane < s) {
l0[item] = bh_add_f64(l0[item], l0[item + s]);
}
BH_BARRIER;
}
if (lane == 0 && k < 1) {
b1[0] = l0[item];
}
BH_BARRIER;
}
}
