/* Synthetic stencil of n rows of 1024 elements: new = old + 0.2 * (sum of the four neighbours), nothing else.
 * One loop per step, double-buffered. */
#define TWIN_NAME "synthetic_stencil"
#define TWIN_SOURCE "../synthetic_stencil/twin.c"
#define TWIN_SMALLEST 3
#include "../common/twin.h"
#ifdef REAL
#define WIDTH ((int64_t)1024)

typedef struct {
    REAL *full, *next;
} STATE;

static void FN(allocate)(STATE *s, int64_t n) {
    s->full = FN(bench_array)(n * WIDTH);
    s->next = FN(bench_array)(n * WIDTH);
}

static void FN(fill)(STATE *s, int64_t n) {
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < n * WIDTH; i++)
        s->full[i] = s->next[i] = R(bench_pseudo(i, 2));
}

static void FN(run)(STATE *s, int64_t n, int64_t iters) {
    for (int64_t step = 0; step < iters; step++) {
        const REAL *restrict full = s->full;
        REAL *restrict next = s->next;
#pragma omp parallel for schedule(static)
        for (int64_t i = 1; i < n - 1; i++) {
            const REAL *up = full + (i - 1) * WIDTH, *row = up + WIDTH, *down = row + WIDTH;
            REAL *out = next + i * WIDTH;
#pragma omp simd
            for (int64_t j = 1; j < WIDTH - 1; j++)
                out[j] = row[j] + R(0.2) * (up[j] + down[j] + row[j - 1] + row[j + 1]);
        }
        REAL *swap = s->full;
        s->full = s->next;
        s->next = swap;
    }
}

static int FN(checksums)(const STATE *s, int64_t n, double *out) {
    out[0] = FN(bench_checksum)(s->full, n * WIDTH);
    return 1;
}

#endif
