/* Heat equation on an n x n grid, Jacobi steps of the 5-point mean that nobody looks at in between: tiled in time.
 * Rows are cut into bands, one thread each. A band does DEPTH steps on what shrinks by a row at either side with each (an
 * upright trapezoid); then what lies between two bands is done, which grows by as much (a hanging one). Within a trapezoid,
 * columns go by in parallelograms that lean to the left by one column a step and fit the second-level cache. */
#define TWIN_NAME "heat_steps"
#define TWIN_SOURCE "../heat_steps/twin.c"
#define TWIN_SMALLEST 3
#include "../common/twin.h"
#ifdef REAL
#ifndef DEPTH
#define DEPTH 16
#define BAND 96
#define WIDTH 512
#endif

typedef struct {
    REAL *grid[2];
    int last;
} STATE;

static void FN(allocate)(STATE *s, int64_t n) {
    s->grid[0] = FN(bench_array)(n * n);
    s->grid[1] = FN(bench_array)(n * n);
}

static void FN(fill)(STATE *s, int64_t n) {
    s->last = 0;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            REAL value = i == 0 ? R(40) : i == n - 1 || j == 0 || j == n - 1 ? R(-273.15) : R(bench_pseudo(i * n + j, 1));
            s->grid[0][i * n + j] = s->grid[1][i * n + j] = value;
        }
}

/* The rows first..end of the step into `next`, columns from..to. */
static void FN(rows)(const REAL *restrict grid, REAL *restrict next, int64_t n, int64_t first, int64_t end, int64_t from,
                     int64_t to) {
    for (int64_t i = first; i < end; i++) {
        const REAL *up = grid + (i - 1) * n, *row = up + n, *down = row + n;
        REAL *out = next + i * n;
#pragma omp simd
        for (int64_t j = from; j < to; j++)
            out[j] = R(0.2) * (row[j] + up[j] + down[j] + row[j - 1] + row[j + 1]);
    }
}

/* `steps` steps of a trapezoid whose rows are first..end at step 0, and move by `lean` at the top, and by -lean at the
 * bottom, with each step. */
static void FN(trapezoid)(STATE *s, int64_t n, int64_t steps, int64_t first, int64_t end, int64_t lean) {
    for (int64_t left = 1; left < n - 1 + steps; left += WIDTH)
        for (int64_t step = 0; step < steps; step++) {
            int64_t top = first + lean * step, bottom = end - lean * step, from = left - step, to = from + WIDTH;
            /* The grid's own border does not move. */
            top = first <= 1 || top < 1 ? 1 : top;
            bottom = end >= n - 1 || bottom > n - 1 ? n - 1 : bottom;
            from = from < 1 ? 1 : from;
            to = to > n - 1 ? n - 1 : to;
            if (from < to)
                FN(rows)(s->grid[(s->last + step) & 1], s->grid[(s->last + step + 1) & 1], n, top, bottom, from, to);
        }
}

static void FN(run)(STATE *s, int64_t n, int64_t iters) {
    int64_t bands = (n - 2 + BAND - 1) / BAND, last = n - 2 - (bands - 1) * BAND;
    /* Bands are at least twice as high as steps are deep. */
    if (bands > 1 && last < 2 * DEPTH)
        bands--;
    for (int64_t done = 0; done < iters; done += DEPTH) {
        int64_t steps = iters - done < DEPTH ? iters - done : DEPTH;
#pragma omp parallel
        {
#pragma omp for schedule(dynamic)
            for (int64_t band = 0; band < bands; band++)
                FN(trapezoid)(s, n, steps, 1 + band * BAND, band + 1 == bands ? n - 1 : 1 + (band + 1) * BAND, 1);
#pragma omp for schedule(dynamic)
            for (int64_t band = 1; band < bands; band++)
                FN(trapezoid)(s, n, steps, 1 + band * BAND, 1 + band * BAND, -1);
        }
        s->last = (s->last + steps) & 1;
    }
}

static int FN(checksums)(const STATE *s, int64_t n, double *out) {
    out[0] = FN(bench_checksum)(s->grid[s->last], n * n);
    return 1;
}

#endif
