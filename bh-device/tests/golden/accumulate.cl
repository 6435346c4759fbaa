// Parameterised.
// 256 groups of 256, numbers [256, 1048576, 4096, 0]
BH_KERNEL(256)
bh(BH_GLOBAL const bh_f64 *BH_RESTRICT b0, BH_GLOBAL bh_f64 *BH_RESTRICT b1, const int n0, const int n1, const int n2, const int n3) {
BH_LOCAL bh_f64 all[256];
const int item = BH_ITEM;
const int row = BH_GROUP / n0;
const int first = BH_GROUP % n0 * n2;
const int end = min((int)(first + n2), (int)n1);
bh_f64 sum = 0;
#pragma unroll 8
for (int at = first + item; at < end; at += 256) {
const bh_f64 value = b0[n3 + at];
sum = bh_add_f64(sum, value);
}
all[item] = sum;
BH_BARRIER;
#pragma unroll 1
for (int s = 128; s > 0; s >>= 1) {
if (item < s) all[item] = bh_add_f64(all[item], all[item + s]);
BH_BARRIER;
}
if (item == 0) b1[BH_GROUP] = all[0];
}

// 1 groups of 1024, numbers [1, 256]
BH_KERNEL(1024)
bh(BH_GLOBAL bh_f64 *BH_RESTRICT b0, const int n0, const int n1) {
BH_LOCAL bh_f64 all[1024];
const int item = BH_ITEM;
for (int row = BH_GROUP; row < n0; row += BH_GROUPS) {
bh_f64 before = 0;
for (int tile = 0; tile < n1; tile += 1024) {
const int part = tile + item;
bh_f64 sum = 0;
if (part < n1) sum = b0[row * n1 + part];
all[item] = sum;
BH_BARRIER;
#pragma unroll 1
for (int s = 1; s < 1024; s <<= 1) {
if (item >= s) sum = bh_add_f64(all[item - s], sum);
BH_BARRIER;
all[item] = sum;
BH_BARRIER;
}
bh_f64 own = before;
if (item > 0) own = bh_add_f64(before, all[item - 1]);
if (part < n1) b0[row * n1 + part] = own;
before = bh_add_f64(before, all[1023]);
BH_BARRIER;
}
}
}

// 256 groups of 256, numbers [256, 1048576, 4096, 0, 0]
BH_KERNEL(256)
bh(BH_GLOBAL const bh_f64 *BH_RESTRICT b0, BH_GLOBAL bh_f64 *BH_RESTRICT b1, BH_GLOBAL const bh_f64 *BH_RESTRICT b2, const int n0, const int n1, const int n2, const int n3, const int n4) {
BH_LOCAL bh_f64 kept[2304], all[256];
const int item = BH_ITEM;
const int row = BH_GROUP / n0;
const int first = BH_GROUP % n0 * n2;
const int end = min((int)(first + n2), (int)n1);
BH_TO_LOCAL bh_f64 *own = kept + item * 9;
bh_f64 before = b2[BH_GROUP];
for (int tile = first; tile < end; tile += 2048) {
#pragma unroll
for (int q = 0; q < 8; q++) {
const int e = item + q * 256, place = e + e / 8;
const int at = tile + e;
bh_f64 value = 0;
if (at < end) value = b0[n3 + at];
kept[place] = value;
}
BH_BARRIER;
bh_f64 sum = own[0];
#pragma unroll
for (int q = 1; q < 8; q++) {
sum = bh_add_f64(sum, own[q]);
own[q] = sum;
}
all[item] = sum;
BH_BARRIER;
#pragma unroll 1
for (int s = 1; s < 256; s <<= 1) {
if (item >= s) sum = bh_add_f64(all[item - s], sum);
BH_BARRIER;
all[item] = sum;
BH_BARRIER;
}
bh_f64 base = before;
if (item > 0) base = bh_add_f64(before, all[item - 1]);
#pragma unroll
for (int q = 0; q < 8; q++) own[q] = bh_add_f64(base, own[q]);
before = bh_add_f64(before, all[255]);
BH_BARRIER;
#pragma unroll
for (int q = 0; q < 8; q++) {
const int e = item + q * 256, place = e + e / 8;
const int at = tile + e;
if (at < end) b1[n4 + at] = kept[place];
}
BH_BARRIER;
}
}

// Specialised.
// 256 groups of 256, numbers []
BH_KERNEL(256)
bh(BH_GLOBAL const bh_f64 *BH_RESTRICT b0, BH_GLOBAL bh_f64 *BH_RESTRICT b1) {
BH_LOCAL bh_f64 all[256];
const int item = BH_ITEM;
const int row = BH_GROUP / 256;
const int first = BH_GROUP % 256 * 4096;
const int end = min((int)(first + 4096), (int)1048576);
bh_f64 sum = 0;
#pragma unroll 8
for (int at = first + item; at < end; at += 256) {
const bh_f64 value = b0[at];
sum = bh_add_f64(sum, value);
}
all[item] = sum;
BH_BARRIER;
#pragma unroll 1
for (int s = 128; s > 0; s >>= 1) {
if (item < s) all[item] = bh_add_f64(all[item], all[item + s]);
BH_BARRIER;
}
if (item == 0) b1[BH_GROUP] = all[0];
}

// 1 groups of 1024, numbers []
BH_KERNEL(1024)
bh(BH_GLOBAL bh_f64 *BH_RESTRICT b0) {
BH_LOCAL bh_f64 all[1024];
const int item = BH_ITEM;
for (int row = BH_GROUP; row < 1; row += BH_GROUPS) {
bh_f64 before = 0;
for (int tile = 0; tile < 256; tile += 1024) {
const int part = tile + item;
bh_f64 sum = 0;
if (part < 256) sum = b0[row * 256 + part];
all[item] = sum;
BH_BARRIER;
#pragma unroll 1
for (int s = 1; s < 1024; s <<= 1) {
if (item >= s) sum = bh_add_f64(all[item - s], sum);
BH_BARRIER;
all[item] = sum;
BH_BARRIER;
}
bh_f64 own = before;
if (item > 0) own = bh_add_f64(before, all[item - 1]);
if (part < 256) b0[row * 256 + part] = own;
before = bh_add_f64(before, all[1023]);
BH_BARRIER;
}
}
}

// 256 groups of 256, numbers []
BH_KERNEL(256)
bh(BH_GLOBAL const bh_f64 *BH_RESTRICT b0, BH_GLOBAL bh_f64 *BH_RESTRICT b1, BH_GLOBAL const bh_f64 *BH_RESTRICT b2) {
BH_LOCAL bh_f64 kept[2304], all[256];
const int item = BH_ITEM;
const int row = BH_GROUP / 256;
const int first = BH_GROUP % 256 * 4096;
const int end = min((int)(first + 4096), (int)1048576);
BH_TO_LOCAL bh_f64 *own = kept + item * 9;
bh_f64 before = b2[BH_GROUP];
for (int tile = first; tile < end; tile += 2048) {
#pragma unroll
for (int q = 0; q < 8; q++) {
const int e = item + q * 256, place = e + e / 8;
const int at = tile + e;
bh_f64 value = 0;
if (at < end) value = b0[at];
kept[place] = value;
}
BH_BARRIER;
bh_f64 sum = own[0];
#pragma unroll
for (int q = 1; q < 8; q++) {
sum = bh_add_f64(sum, own[q]);
own[q] = sum;
}
all[item] = sum;
BH_BARRIER;
#pragma unroll 1
for (int s = 1; s < 256; s <<= 1) {
if (item >= s) sum = bh_add_f64(all[item - s], sum);
BH_BARRIER;
all[item] = sum;
BH_BARRIER;
}
bh_f64 base = before;
if (item > 0) base = bh_add_f64(before, all[item - 1]);
#pragma unroll
for (int q = 0; q < 8; q++) own[q] = bh_add_f64(base, own[q]);
before = bh_add_f64(before, all[255]);
BH_BARRIER;
#pragma unroll
for (int q = 0; q < 8; q++) {
const int e = item + q * 256, place = e + e / 8;
const int at = tile + e;
if (at < end) b1[at] = kept[place];
}
BH_BARRIER;
}
}
