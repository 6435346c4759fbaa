// 96 groups of 256
BH_KERNEL(256)
bh(BH_GLOBAL const bh_f64 *BH_RESTRICT b0, BH_GLOBAL const bh_f64 *BH_RESTRICT b1, BH_GLOBAL bh_f64 *BH_RESTRICT b2, const int n0, const int n1, const int n2, const int n3, const int n4, const int n5, const int n6, const int n7, const int n8, const int n9) {
BH_LOCAL bh_f64 all_a[2064];
BH_LOCAL bh_f64 all_b[2064];
const int item = BH_ITEM, lane = item % 32, warp = item / 32, x = warp % 2 * 8 + lane % 8, y = warp / 2 * 4 + lane / 8;
const int first_column = (BH_GROUP % n3) * 128;
const int first_row = (BH_GROUP / n3) * 128, first_term = 0, end_term = n2;
const int terms = end_term;
bh_f64 next_a[4], next_b[4];
bh_f64 sum[8][8];
#pragma unroll
for (int i = 0; i < 8; i++)
#pragma unroll
for (int j = 0; j < 8; j++) sum[i][j] = 0;
int t = first_term;
int tile = 0;
for (;;) {
if (t < terms) {
#pragma unroll
for (int q = 0; q < 4; q++) {
const int e = item + q * 256;
const int line = first_row + e / 8, term = t + e % 8;
next_a[q] = 0;
if (e < 1024 && line < n0 && term < terms) {
next_a[q] = b0[n4 + n5 * line + term];
}
}
#pragma unroll
for (int q = 0; q < 4; q++) {
const int e = item + q * 256;
const int line = first_column + e % 128, term = t + e / 128;
next_b[q] = 0;
if (e < 1024 && line < n1 && term < terms) {
next_b[q] = b1[n6 + n7 * term + line];
}
}
}
if (t > first_term) {
#pragma unroll 2
for (int d = 0; d < 8; d++) {
bh_f64 a[8], b[8];
#pragma unroll
for (int i = 0; i < 8; i++) a[i] = all_a[tile * 1032 + d * 129 + y + i * 16];
#pragma unroll
for (int j = 0; j < 8; j++) b[j] = all_b[tile * 1032 + d * 129 + x + j * 16];
#pragma unroll
for (int i = 0; i < 8; i++)
#pragma unroll
for (int j = 0; j < 8; j++) sum[i][j] = fma(a[i], b[j], sum[i][j]);
}
tile ^= 1;
}
if (t >= terms) break;
#pragma unroll
for (int q = 0; q < 4; q++) {
const int e = item + q * 256;
if (e < 1024) all_a[tile * 1032 + (e % 8) * 129 + e / 8] = next_a[q];
}
#pragma unroll
for (int q = 0; q < 4; q++) {
const int e = item + q * 256;
if (e < 1024) all_b[tile * 1032 + (e / 128) * 129 + e % 128] = next_b[q];
}
BH_BARRIER;
t += 8;
}
#pragma unroll
for (int i = 0; i < 8; i++) {
#pragma unroll
for (int j = 0; j < 8; j++) {
const int at = j;
const bh_f64 value = sum[i][j];
const int row = first_row + y + i * 16, column = first_column + x + j * 16;
if (row < n0 && column < n1) {
b2[n8 + n9 * row + column] = value;
}
}
}
}
