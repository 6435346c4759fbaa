/* Dense 3-point stencil on n elements: the mean of the neighbourhood, with delta = sum |new - old|.
 * One loop per step, double-buffered. */
#define TWIN_NAME "stencil_1d"
#define TWIN_SOURCE "../stencil_1d/twin.c"
#define TWIN_SMALLEST 3
#include "../common/twin.h"
#ifdef REAL

typedef struct {
    REAL *grid, *next;
    double delta;
} STATE;

static void FN(allocate)(STATE *s, int64_t n) {
    s->grid = FN(bench_array)(n);
    s->next = FN(bench_array)(n);
}

static void FN(fill)(STATE *s, int64_t n) {
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < n; i++)
        s->grid[i] = s->next[i] = R(bench_pseudo(i, 4));
}

static void FN(run)(STATE *s, int64_t n, int64_t iters) {
    const int64_t block = 4096; /* sums of one block stay in REAL, their total in f64 */
    for (int64_t step = 0; step < iters; step++) {
        const REAL *restrict grid = s->grid;
        REAL *restrict next = s->next;
        double delta = 0;
#pragma omp parallel for schedule(static) reduction(+ : delta)
        for (int64_t begin = 1; begin < n - 1; begin += block) {
            int64_t end = begin + block < n - 1 ? begin + block : n - 1;
            REAL change = 0;
#pragma omp simd reduction(+ : change)
            for (int64_t i = begin; i < end; i++) {
                REAL value = (grid[i - 1] + grid[i] + grid[i + 1]) * R(1.0 / 3);
                change += fabs(value - grid[i]);
                next[i] = value;
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
    out[0] = FN(bench_checksum)(s->grid, n);
    out[1] = s->delta;
    return 2;
}

#endif
