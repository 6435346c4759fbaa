/* Products of an n x n matrix and of its transpose with vectors, added to others: x1 += A y1, x2 += A^T y2.
 * One pass over the matrix: each row gives an element of the first product, and its part of the second one. */
#define TWIN_NAME "mvt"
#define TWIN_SOURCE "../mvt/twin.c"
#define TWIN_SMALLEST 1
#include "../common/twin.h"
#ifdef REAL

typedef struct {
    REAL *a, *x1, *x2, *y1, *y2;
} STATE;

static void FN(allocate)(STATE *s, int64_t n) {
    s->a = FN(bench_array)(n * n);
    s->x1 = FN(bench_array)(n), s->x2 = FN(bench_array)(n);
    s->y1 = FN(bench_array)(n), s->y2 = FN(bench_array)(n);
}

static void FN(fill)(STATE *s, int64_t n) {
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < n * n; i++)
        s->a[i] = R(bench_pseudo(i, 40));
    for (int64_t i = 0; i < n; i++) {
        s->x1[i] = R(bench_pseudo(i, 41)), s->x2[i] = R(bench_pseudo(i, 42));
        s->y1[i] = R(bench_pseudo(i, 43)), s->y2[i] = R(bench_pseudo(i, 44));
    }
}

static void FN(run)(STATE *s, int64_t n, int64_t iters) {
    REAL *restrict x1 = s->x1, *restrict x2 = s->x2;
    const REAL *restrict a = s->a, *restrict y1 = s->y1, *restrict y2 = s->y2;
    for (int64_t step = 0; step < iters; step++) {
#pragma omp parallel
        {
            REAL *restrict part = bench_scratch((size_t)n * sizeof(REAL));
            memset(part, 0, (size_t)n * sizeof(REAL));
#pragma omp for schedule(static)
            for (int64_t i = 0; i < n; i++) {
                const REAL *restrict row = a + i * n;
                REAL sum = 0, factor = y2[i];
#pragma omp simd reduction(+ : sum)
                for (int64_t j = 0; j < n; j++) {
                    sum += row[j] * y1[j];
                    part[j] += row[j] * factor;
                }
                x1[i] += sum;
            }
#pragma omp critical
            for (int64_t j = 0; j < n; j++)
                x2[j] += part[j];
            free(part);
        }
    }
}

static int FN(checksums)(const STATE *s, int64_t n, double *out) {
    out[0] = FN(bench_checksum)(s->x1, n);
    out[1] = FN(bench_checksum)(s->x2, n);
    return 2;
}

#endif
