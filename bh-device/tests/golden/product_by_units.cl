// 96 groups of 256
BH_KERNEL(256)
bh(BH_GLOBAL const bh_f64 *BH_RESTRICT b0, BH_GLOBAL const bh_f64 *BH_RESTRICT b1, BH_GLOBAL bh_f64 *BH_RESTRICT b2, const int n0, const int n1, const int n2, const int n3, const int n4, const int n5, const int n6, const int n7, const int n8, const int n9) {
BH_LOCAL bh_f64 all_a[2112];
BH_LOCAL bh_f64 all_b[2112];
const int item = BH_ITEM, lane = item % 32, x = item / 32 % 4 * 32, y = item / 32 / 4 * 64, term_of = lane % 4, line_of = lane / 4;
const int first_column = (BH_GROUP % n3) * 128;
const int first_row = (BH_GROUP / n3) * 128, first_term = 0, end_term = n2;
const int terms = end_term;
bh_f64 next_a[4], next_b[4];
bh_f64 sum[4][4][4];
#pragma unroll
for (int i = 0; i < 4; i++)
#pragma unroll
for (int j = 0; j < 4; j++)
#pragma unroll
for (int q = 0; q < 4; q++) sum[i][j][q] = 0;
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
#pragma unroll
for (int d = 0; d < 8; d += 4) {
bh_f64 a[4][2], b[4];
#pragma unroll
for (int i = 0; i < 4; i++)
#pragma unroll
for (int h = 0; h < 2; h++) a[i][h] = all_a[tile * 1056 + (d + term_of) * 132 + y + i * 16 + h * 8 + line_of];
#pragma unroll
for (int j = 0; j < 4; j++) b[j] = all_b[tile * 1056 + (d + term_of) * 132 + x + j * 8 + line_of];
#pragma unroll
for (int i = 0; i < 4; i++)
#pragma unroll
for (int j = 0; j < 4; j++)
asm volatile("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0,%1,%2,%3},{%4,%5},{%6},{%0,%1,%2,%3};" : "+d"(sum[i][j][0]), "+d"(sum[i][j][1]), "+d"(sum[i][j][2]), "+d"(sum[i][j][3]) : "d"(a[i][0]), "d"(a[i][1]), "d"(b[j]));
}
tile ^= 1;
}
if (t >= terms) break;
#pragma unroll
for (int q = 0; q < 4; q++) {
const int e = item + q * 256;
if (e < 1024) all_a[tile * 1056 + (e % 8) * 132 + e / 8] = next_a[q];
}
#pragma unroll
for (int q = 0; q < 4; q++) {
const int e = item + q * 256;
if (e < 1024) all_b[tile * 1056 + (e / 128) * 132 + e % 128] = next_b[q];
}
BH_BARRIER;
t += 8;
}
#pragma unroll
for (int i = 0; i < 4; i++) {
#pragma unroll
for (int j = 0; j < 4; j++)
#pragma unroll
for (int q = 0; q < 4; q++) {
const int at = 4 * j + q;
const bh_f64 value = sum[i][j][q];
const long row = first_row + y + i * 16 + q / 2 * 8 + line_of, column = first_column + x + j * 8 + term_of * 2 + q % 2;
if (row < n0 && column < n1) {
b2[n8 + n9 * row + column] = value;
}
}
}
}
