/* Heat equation on an n x n grid: Jacobi steps of the 5-point mean with delta = sum |new - old|.
 * One loop reads a grid, writes the other and sums delta; the grids swap after each step. */
#define TWIN_NAME "heat_equation"
#define TWIN_SOURCE "../heat_equation/twin.c"
#define TWIN_SMALLEST 3
#include "../common/twin.h"
#ifdef REAL

typedef struct {
    REAL *grid, *next;
    double delta;
} STATE;

static void FN(allocate)(STATE *s, int64_t n) {
    s->grid = FN(bench_array)(n * n);
    s->next = FN(bench_array)(n * n);
}

static void FN(fill)(STATE *s, int64_t n) {
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            REAL value = i == 0 ? R(40) : i == n - 1 || j == 0 || j == n - 1 ? R(-273.15) : R(bench_pseudo(i * n + j, 1));
            s->grid[i * n + j] = s->next[i * n + j] = value;
        }
}

static void FN(run)(STATE *s, int64_t n, int64_t iters) {
    for (int64_t step = 0; step < iters; step++) {
        const REAL *restrict grid = s->grid;
        REAL *restrict next = s->next;
        double delta = 0;
#pragma omp parallel for schedule(static) reduction(+ : delta)
        for (int64_t i = 1; i < n - 1; i++) {
            const REAL *up = grid + (i - 1) * n, *row = up + n, *down = row + n;
            REAL *out = next + i * n;
            REAL change = 0;
#pragma omp simd reduction(+ : change)
            for (int64_t j = 1; j < n - 1; j++) {
                REAL value = R(0.2) * (row[j] + up[j] + down[j] + row[j - 1] + row[j + 1]);
                change += fabs(value - row[j]);
                out[j] = value;
            }
            delta += change;
        }
        s->delta = delta;
        REAL *swap = s->grid;
        s->grid = s->next;
        s->next = swap;
    }
}

static int FN(checksums)(const STATE *s, int64_t n, double *out) {
    out[0] = FN(bench_checksum)(s->grid, n * n);
    out[1] = s->delta;
    return 2;
}

#endif
