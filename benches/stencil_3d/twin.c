/* Dense 27-point stencil on an n x n x n grid: the mean of the neighbourhood, with delta = sum |new - old|.
 * Double-buffered; along a row the nine rows around it are summed once into a cache-resident line. */
#define TWIN_NAME "stencil_3d"
#define TWIN_SOURCE "../stencil_3d/twin.c"
#define TWIN_SMALLEST 3
#include "../common/twin.h"
#ifdef REAL

typedef struct {
    REAL *grid, *next;
    double delta;
} STATE;

static void FN(allocate)(STATE *s, int64_t n) {
    s->grid = FN(bench_array)(n * n * n);
    s->next = FN(bench_array)(n * n * n);
}

static void FN(fill)(STATE *s, int64_t n) {
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n * n; j++)
            s->grid[i * n * n + j] = s->next[i * n * n + j] = R(bench_pseudo(i * n * n + j, 6));
}

static void FN(run)(STATE *s, int64_t n, int64_t iters) {
    for (int64_t step = 0; step < iters; step++) {
        const REAL *restrict grid = s->grid;
        REAL *restrict next = s->next;
        double delta = 0;
#pragma omp parallel reduction(+ : delta)
        {
            REAL *restrict line = bench_scratch((size_t)n * sizeof(REAL));
#pragma omp for schedule(static)
            for (int64_t i = 1; i < n - 1; i++)
                for (int64_t j = 1; j < n - 1; j++) {
                    const REAL *b = grid + (i * n + j) * n, *a = b - n * n, *c = b + n * n;
                    REAL *out = next + (i * n + j) * n;
                    REAL change = 0;
#pragma omp simd
                    for (int64_t k = 0; k < n; k++)
                        line[k] = a[k - n] + a[k] + a[k + n] + b[k - n] + b[k] + b[k + n] + c[k - n] + c[k] + c[k + n];
#pragma omp simd reduction(+ : change)
                    for (int64_t k = 1; k < n - 1; k++) {
                        REAL value = (line[k - 1] + line[k] + line[k + 1]) * R(1.0 / 27);
                        change += fabs(value - b[k]);
                        out[k] = value;
                    }
                    delta += change;
                }
            free(line);
        }
        s->delta = delta;
        REAL *swap = s->grid;
        s->grid = s->next;
        s->next = swap;
    }
}

static int FN(checksums)(const STATE *s, int64_t n, double *out) {
    out[0] = FN(bench_checksum)(s->grid, n * n * n);
    out[1] = s->delta;
    return 2;
}

#endif
