/* Red-black successive over-relaxation of an n x n grid (n even), held as four compact colour grids:
 *
 *     r0 b0 r0 b0        red points are r0 (even row, even column) and r1 (odd, odd),
 *     b1 r1 b1 r1        black points are b0 (even, odd) and b1 (odd, even)
 *
 * Each step relaxes red, then black, and sums |change|. In place, both colours in one sweep: black follows red one row
 * behind, except the rows at the ends of a thread's share, which wait until every thread has finished its red points. */
#define TWIN_NAME "sor"
#define TWIN_SOURCE "../sor/twin.c"
#define TWIN_SMALLEST 4
#include "../common/twin.h"
#ifdef REAL

typedef struct {
    REAL *r0, *r1, *b0, *b1;
    double delta;
} STATE;

static void FN(allocate)(STATE *s, int64_t n) {
    int64_t m = n / 2;
    s->r0 = FN(bench_array)(m * m);
    s->r1 = FN(bench_array)(m * m);
    s->b0 = FN(bench_array)(m * m);
    s->b1 = FN(bench_array)(m * m);
}

static void FN(fill)(STATE *s, int64_t n) {
    int64_t m = n / 2;
#pragma omp parallel for schedule(static)
    for (int64_t p = 0; p < m; p++)
        for (int64_t q = 0; q < m; q++) {
            int64_t at = p * m + q;
            s->r0[at] = p == 0 ? R(40) : q == 0 ? R(-273.15) : R(bench_pseudo(at, 11));
            s->b0[at] = p == 0 ? R(40) : q == m - 1 ? R(-273.15) : R(bench_pseudo(at, 12));
            s->b1[at] = p == m - 1 || q == 0 ? R(-273.15) : R(bench_pseudo(at, 13));
            s->r1[at] = p == m - 1 || q == m - 1 ? R(-273.15) : R(bench_pseudo(at, 14));
        }
}

/* Relaxes `count` points in place from their four neighbours; returns the sum of |change|. */
static inline REAL FN(relax)(REAL *restrict point, const REAL *restrict north, const REAL *restrict south,
                             const REAL *restrict west, const REAL *restrict east, int64_t count) {
    const REAL omega = R(1.5);
    REAL change = 0;
#pragma omp simd reduction(+ : change)
    for (int64_t q = 0; q < count; q++) {
        REAL value = (R(1) - omega) * point[q] + omega / 4 * (north[q] + south[q] + west[q] + east[q]);
        change += fabs(value - point[q]);
        point[q] = value;
    }
    return change;
}

static void FN(run)(STATE *s, int64_t n, int64_t iters) {
    int64_t m = n / 2, count = m - 1;
    REAL *r0 = s->r0, *r1 = s->r1, *b0 = s->b0, *b1 = s->b1;
/* The points of one colour grid in row p: even rows start at p = 1, odd rows end before m - 1. */
#define RED_EVEN(p) FN(relax)(r0 + (p)*m + 1, b1 + ((p)-1) * m + 1, b1 + (p)*m + 1, b0 + (p)*m, b0 + (p)*m + 1, count)
#define RED_ODD(p) FN(relax)(r1 + (p)*m, b0 + (p)*m, b0 + ((p) + 1) * m, b1 + (p)*m, b1 + (p)*m + 1, count)
#define BLACK_EVEN(p) FN(relax)(b0 + (p)*m, r1 + ((p)-1) * m, r1 + (p)*m, r0 + (p)*m, r0 + (p)*m + 1, count)
#define BLACK_ODD(p) FN(relax)(b1 + (p)*m + 1, r0 + (p)*m + 1, r0 + ((p) + 1) * m + 1, r1 + (p)*m, r1 + (p)*m + 1, count)
    for (int64_t step = 0; step < iters; step++) {
        double delta = 0;
#pragma omp parallel reduction(+ : delta)
        {
            int64_t first, last;
            twin_share(0, m, &first, &last);
            for (int64_t p = first; p < last; p++) {
                if (p > 0)
                    delta += RED_EVEN(p);
                if (p < m - 1)
                    delta += RED_ODD(p);
                if (p > first) {
                    if (p - 1 > first)
                        delta += BLACK_EVEN(p - 1);
                    delta += BLACK_ODD(p - 1);
                }
            }
#pragma omp barrier
            if (first < last) {
                if (first > 0)
                    delta += BLACK_EVEN(first);
                if (last - 1 > first)
                    delta += BLACK_EVEN(last - 1);
                if (last - 1 < m - 1)
                    delta += BLACK_ODD(last - 1);
            }
        }
        s->delta = delta;
    }
#undef RED_EVEN
#undef RED_ODD
#undef BLACK_EVEN
#undef BLACK_ODD
}

static int FN(checksums)(const STATE *s, int64_t n, double *out) {
    int64_t cells = n / 2 * (n / 2);
    out[0] = FN(bench_checksum)(s->r0, cells) + FN(bench_checksum)(s->r1, cells);
    out[1] = FN(bench_checksum)(s->b0, cells) + FN(bench_checksum)(s->b1, cells);
    out[2] = s->delta;
    return 3;
}

#endif
