// Parameterised.
// 12 groups of 256, numbers [100, 70, 12, 3, 0, 100, 0, 70]
BH_KERNEL(256)
bh(BH_GLOBAL const bh_f64 *BH_RESTRICT b0, BH_GLOBAL bh_f64 *BH_RESTRICT b1, const int n0, const int n1, const int n2, const int n3, const int n4, const int n5, const int n6, const int n7) {
BH_LOCAL bh_f64 t0[1056];
const int item = BH_ITEM, x = item % 32, y = item / 32;
for (int t = BH_GROUP; t < n2; t += BH_GROUPS) {
int rest_down = t;
const int right = rest_down % n3; rest_down /= n3;
const int down = rest_down;
for (int q = y; q < 32; q += 8) {
const int i0 = down * 32 + x, i1 = right * 32 + q;
if (i0 < n0 && i1 < n1) {
t0[q * 33 + x] = b0[n4 + i0 + n5 * i1];
}
}
BH_BARRIER;
for (int q = y; q < 32; q += 8) {
const int i0 = down * 32 + q, i1 = right * 32 + x;
if (i0 < n0 && i1 < n1) {
const bh_f64 v0 = t0[x * 33 + q];
const bh_f64 v1 = bh_sqrt_f64(v0);
b1[n6 + n7 * i0 + i1] = v1;
}
}
BH_BARRIER;
}
}

// Specialised.
// 12 groups of 256, numbers []
BH_KERNEL(256)
bh(BH_GLOBAL const bh_f64 *BH_RESTRICT b0, BH_GLOBAL bh_f64 *BH_RESTRICT b1) {
BH_LOCAL bh_f64 t0[1056];
const int item = BH_ITEM, x = item % 32, y = item / 32;
for (int t = BH_GROUP; t < 12; t += BH_GROUPS) {
int rest_down = t;
const int right = rest_down % 3; rest_down /= 3;
const int down = rest_down;
for (int q = y; q < 32; q += 8) {
const int i0 = down * 32 + x, i1 = right * 32 + q;
if (i0 < 100 && i1 < 70) {
t0[q * 33 + x] = b0[i0 + 100 * i1];
}
}
BH_BARRIER;
for (int q = y; q < 32; q += 8) {
const int i0 = down * 32 + q, i1 = right * 32 + x;
if (i0 < 100 && i1 < 70) {
const bh_f64 v0 = t0[x * 33 + q];
const bh_f64 v1 = bh_sqrt_f64(v0);
b1[70 * i0 + i1] = v1;
}
}
BH_BARRIER;
}
}
