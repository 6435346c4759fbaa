// Parameterised.
// 64 groups of 256, numbers [64, 1048576, 16384, 0]
BH_KERNEL(256)
bh(BH_GLOBAL const bh_f64 *BH_RESTRICT b0, BH_GLOBAL bh_f64 *BH_RESTRICT b1, const int n0, const int n1, const int n2, const int n3) {
BH_LOCAL bh_f64 all[256];
const int item = BH_ITEM;
const int row = BH_GROUP / n0;
const int first = BH_GROUP % n0 * n2;
const int end = min((int)(first + n2), (int)n1);
const int run = (end - first + 256 - 1) / 256;
const int from = first + item * run, to = min((int)(from + run), end);
bh_f64 sum = 0;
for (int at = from; at < to; at++) {
const bh_f64 value = b0[n3 + at];
sum = bh_add_f64(sum, value);
}
all[item] = sum;
BH_BARRIER;
for (int s = 1; s < 256; s <<= 1) {
if (item % (2 * s) == 0) all[item] = bh_add_f64(all[item], all[item + s]);
BH_BARRIER;
}
if (item == 0) b1[BH_GROUP] = all[0];
}

// 1 groups of 256, numbers [1, 64]
BH_KERNEL(256)
bh(BH_GLOBAL bh_f64 *BH_RESTRICT b0, const int n0, const int n1) {
for (int row = BH_INDEX; row < n0; row += BH_INDICES) {
bh_f64 sum = 0;
for (int part = 0; part < n1; part++) {
const bh_f64 total = b0[row * n1 + part];
b0[row * n1 + part] = sum;
sum = bh_add_f64(sum, total);
}
}
}

// 64 groups of 256, numbers [64, 1048576, 16384, 0, 0]
BH_KERNEL(256)
bh(BH_GLOBAL const bh_f64 *BH_RESTRICT b0, BH_GLOBAL bh_f64 *BH_RESTRICT b1, BH_GLOBAL const bh_f64 *BH_RESTRICT b2, const int n0, const int n1, const int n2, const int n3, const int n4) {
BH_LOCAL bh_f64 all[256];
const int item = BH_ITEM;
const int row = BH_GROUP / n0;
const int first = BH_GROUP % n0 * n2;
const int end = min((int)(first + n2), (int)n1);
bh_f64 before = b2[BH_GROUP];
for (int tile = first; tile < end; tile += 256) {
const int at = tile + item;
bh_f64 sum = 0;
if (at < end) sum = b0[n3 + at];
all[item] = sum;
BH_BARRIER;
for (int s = 1; s < 256; s <<= 1) {
if (item >= s) sum = bh_add_f64(all[item - s], sum);
BH_BARRIER;
all[item] = sum;
BH_BARRIER;
}
if (at < end) b1[n4 + at] = bh_add_f64(before, sum);
before = bh_add_f64(before, all[255]);
BH_BARRIER;
}
}

// Specialised.
// 64 groups of 256, numbers []
BH_KERNEL(256)
bh(BH_GLOBAL const bh_f64 *BH_RESTRICT b0, BH_GLOBAL bh_f64 *BH_RESTRICT b1) {
BH_LOCAL bh_f64 all[256];
const int item = BH_ITEM;
const int row = BH_GROUP / 64;
const int first = BH_GROUP % 64 * 16384;
const int end = min((int)(first + 16384), (int)1048576);
const int run = (end - first + 256 - 1) / 256;
const int from = first + item * run, to = min((int)(from + run), end);
bh_f64 sum = 0;
for (int at = from; at < to; at++) {
const bh_f64 value = b0[at];
sum = bh_add_f64(sum, value);
}
all[item] = sum;
BH_BARRIER;
for (int s = 1; s < 256; s <<= 1) {
if (item % (2 * s) == 0) all[item] = bh_add_f64(all[item], all[item + s]);
BH_BARRIER;
}
if (item == 0) b1[BH_GROUP] = all[0];
}

// 1 groups of 256, numbers []
BH_KERNEL(256)
bh(BH_GLOBAL bh_f64 *BH_RESTRICT b0) {
for (int row = BH_INDEX; row < 1; row += BH_INDICES) {
bh_f64 sum = 0;
for (int part = 0; part < 64; part++) {
const bh_f64 total = b0[row * 64 + part];
b0[row * 64 + part] = sum;
sum = bh_add_f64(sum, total);
}
}
}

// 64 groups of 256, numbers []
BH_KERNEL(256)
bh(BH_GLOBAL const bh_f64 *BH_RESTRICT b0, BH_GLOBAL bh_f64 *BH_RESTRICT b1, BH_GLOBAL const bh_f64 *BH_RESTRICT b2) {
BH_LOCAL bh_f64 all[256];
const int item = BH_ITEM;
const int row = BH_GROUP / 64;
const int first = BH_GROUP % 64 * 16384;
const int end = min((int)(first + 16384), (int)1048576);
bh_f64 before = b2[BH_GROUP];
for (int tile = first; tile < end; tile += 256) {
const int at = tile + item;
bh_f64 sum = 0;
if (at < end) sum = b0[at];
all[item] = sum;
BH_BARRIER;
for (int s = 1; s < 256; s <<= 1) {
if (item >= s) sum = bh_add_f64(all[item - s], sum);
BH_BARRIER;
all[item] = sum;
BH_BARRIER;
}
if (at < end) b1[at] = bh_add_f64(before, sum);
before = bh_add_f64(before, all[255]);
BH_BARRIER;
}
}
