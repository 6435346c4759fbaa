// Parameterised.
// 1024 groups of 256, numbers [8192, 4096, 0, 0, 0]
BH_KERNEL(256)
bh(BH_GLOBAL const bh_f32 *BH_RESTRICT b0, BH_GLOBAL const bh_f32 *BH_RESTRICT b1, BH_GLOBAL bh_f32 *BH_RESTRICT b2, const int n0, const int n1, const int n2, const int n3, const int n4) {
BH_LOCAL bh_f32 l0[256];
BH_LOCAL bh_f32 t0[1024];
const int item = BH_ITEM, lane = item % 32, result = item / 32;
const int first = 0, end = n1;
for (int tile = BH_GROUP; tile * 8 < n0; tile += BH_GROUPS) {
const int k = tile * 8 + result;
bh_f32 a0 = 0;
const int i0 = k < n0 ? k : 0;
for (int from = first; from < end; from += 1024) {
const int stop = min((int)(from + 1024), (int)end);
BH_BARRIER;
for (int i1 = from + item; i1 < stop; i1 += 256) {
t0[i1 - from] = b0[n2 + i1];
}
BH_BARRIER;
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
BH_BARRIER;
#pragma unroll 1
for (int s = 16; s > 0; s >>= 1) {
if (lane < s) {
l0[item] = bh_add_f32(l0[item], l0[item + s]);
}
BH_BARRIER;
}
if (lane == 0 && k < n0) {
b2[n4 + i0] = l0[item];
}
BH_BARRIER;
}
}

// Specialised.
// 1024 groups of 256, numbers []
BH_KERNEL(256)
bh(BH_GLOBAL const bh_f32 *BH_RESTRICT b0, BH_GLOBAL const bh_f32 *BH_RESTRICT b1, BH_GLOBAL bh_f32 *BH_RESTRICT b2) {
BH_LOCAL bh_f32 l0[256];
BH_LOCAL bh_f32 t0[1024];
const int item = BH_ITEM, lane = item % 32, result = item / 32;
const int first = 0, end = 4096;
for (int tile = BH_GROUP; tile * 8 < 8192; tile += BH_GROUPS) {
const int k = tile * 8 + result;
bh_f32 a0 = 0;
const int i0 = k < 8192 ? k : 0;
for (int from = first; from < end; from += 1024) {
const int stop = min((int)(from + 1024), (int)end);
BH_BARRIER;
for (int i1 = from + item; i1 < stop; i1 += 256) {
t0[i1 - from] = b0[i1];
}
BH_BARRIER;
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
BH_BARRIER;
#pragma unroll 1
for (int s = 16; s > 0; s >>= 1) {
if (lane < s) {
l0[item] = bh_add_f32(l0[item], l0[item + s]);
}
BH_BARRIER;
}
if (lane == 0 && k < 8192) {
b2[i0] = l0[item];
}
BH_BARRIER;
}
}
