/* Gaussian elimination of an n x n matrix without pivoting, started anew from the same matrix in each iteration.
 * Right-looking: one parallel loop per column over the rows below, each updated by one fused line. */
#define TWIN_NAME "gauss"
#define TWIN_SOURCE "../gauss/twin.c"
#define TWIN_SMALLEST 2
#include "../common/twin.h"
#ifdef REAL

typedef struct {
    REAL *start, *a;
} STATE;

static void FN(allocate)(STATE *s, int64_t n) {
    s->start = FN(bench_array)(n * n);
    s->a = FN(bench_array)(n * n);
}

static void FN(fill)(STATE *s, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            s->start[i * n + j] = R(bench_pseudo(i * n + j, 26)) + (i == j ? R(n) : R(0));
}

static void FN(run)(STATE *s, int64_t n, int64_t iters) {
    REAL *a = s->a;
    for (int64_t step = 0; step < iters; step++) {
        memcpy(a, s->start, (size_t)(n * n) * sizeof(REAL));
#pragma omp parallel
        {
            for (int64_t c = 1; c < n; c++) {
                const REAL *pivot = a + (c - 1) * n;
/* Rows go round the threads, so that each keeps its own rows and an equal share of the shrinking work. */
#pragma omp for schedule(static, 1)
                for (int64_t i = c; i < n; i++) {
                    REAL *restrict row = a + i * n;
                    REAL factor = row[c - 1] / pivot[c - 1];
#pragma omp simd
                    for (int64_t j = c - 1; j < n; j++)
                        row[j] -= factor * pivot[j];
                }
            }
#pragma omp for schedule(static)
            for (int64_t i = 0; i < n; i++) {
                REAL *restrict row = a + i * n;
                REAL diagonal = row[i];
                for (int64_t j = 0; j < n; j++)
                    row[j] /= diagonal;
            }
        }
    }
}

static int FN(checksums)(const STATE *s, int64_t n, double *out) {
    out[0] = FN(bench_checksum)(s->a, n * n);
    return 1;
}

#endif
