/* Dense 81-point stencil on an n x n x n x n grid: the mean of the neighbourhood, with delta = sum |new - old|.
 * Double-buffered; the nine planes around a plane are summed once into a cache-resident plane, then rows, then elements. */
#define TWIN_NAME "stencil_4d"
#define TWIN_SOURCE "../stencil_4d/twin.c"
#define TWIN_SMALLEST 3
#include "../common/twin.h"
#ifdef REAL

typedef struct {
    REAL *grid, *next;
    double delta;
} STATE;

static void FN(allocate)(STATE *s, int64_t n) {
    s->grid = FN(bench_array)(n * n * n * n);
    s->next = FN(bench_array)(n * n * n * n);
}

static void FN(fill)(STATE *s, int64_t n) {
    int64_t slab = n * n * n;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < slab; j++)
            s->grid[i * slab + j] = s->next[i * slab + j] = R(bench_pseudo(i * slab + j, 8));
}

static void FN(run)(STATE *s, int64_t n, int64_t iters) {
    int64_t plane = n * n, slab = n * plane;
    for (int64_t step = 0; step < iters; step++) {
        const REAL *restrict grid = s->grid;
        REAL *restrict next = s->next;
        double delta = 0;
#pragma omp parallel reduction(+ : delta)
        {
            REAL *restrict planes = bench_scratch((size_t)plane * sizeof(REAL));
            REAL *restrict line = bench_scratch((size_t)n * sizeof(REAL));
#pragma omp for schedule(static)
            for (int64_t i = 1; i < n - 1; i++)
                for (int64_t j = 1; j < n - 1; j++) {
                    const REAL *b = grid + i * slab + j * plane, *a = b - slab, *c = b + slab;
#pragma omp simd
                    for (int64_t k = 0; k < plane; k++)
                        planes[k] = a[k - plane] + a[k] + a[k + plane] + b[k - plane] + b[k] + b[k + plane] + c[k - plane] + c[k] + c[k + plane];
                    for (int64_t k = 1; k < n - 1; k++) {
                        const REAL *row = planes + k * n, *here = b + k * n;
                        REAL *out = next + i * slab + j * plane + k * n;
                        REAL change = 0;
#pragma omp simd
                        for (int64_t l = 0; l < n; l++)
                            line[l] = row[l - n] + row[l] + row[l + n];
#pragma omp simd reduction(+ : change)
                        for (int64_t l = 1; l < n - 1; l++) {
                            REAL value = (line[l - 1] + line[l] + line[l + 1]) * R(1.0 / 81);
                            change += fabs(value - here[l]);
                            out[l] = value;
                        }
                        delta += change;
                    }
                }
            free(planes);
            free(line);
        }
        s->delta = delta;
        REAL *swap = s->grid;
        s->grid = s->next;
        s->next = swap;
    }
}

static int FN(checksums)(const STATE *s, int64_t n, double *out) {
    out[0] = FN(bench_checksum)(s->grid, n * n * n * n);
    out[1] = s->delta;
    return 2;
}

#endif
