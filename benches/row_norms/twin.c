/* Softmax of each row of an n x m matrix, then the rows normalised to mean zero and variance one, then a little of that
 * added to the matrix. All that a row needs is done before the next one, in a buffer that stays in the cache. */
#define TWIN_NAME "row_norms"
#define TWIN_SOURCE "../row_norms/twin.c"
#define TWIN_SMALLEST 1
#include "../common/twin.h"
#ifdef REAL
#define COLUMNS 4096

typedef struct {
    REAL *x;
} STATE;

static void FN(allocate)(STATE *s, int64_t n) { s->x = FN(bench_array)(n * COLUMNS); }

static void FN(fill)(STATE *s, int64_t n) {
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < n * COLUMNS; i++)
        s->x[i] = R(bench_pseudo(i, 41));
}

static void FN(run)(STATE *s, int64_t n, int64_t iters) {
    for (int64_t step = 0; step < iters; step++) {
#pragma omp parallel for schedule(static)
        for (int64_t i = 0; i < n; i++) {
            REAL *restrict x = s->x + i * COLUMNS;
            REAL row[COLUMNS], most = x[0], sum = 0, total = 0, squares = 0;
#pragma omp simd reduction(max : most)
            for (int64_t j = 0; j < COLUMNS; j++)
                most = x[j] > most ? x[j] : most;
#pragma omp simd reduction(+ : sum)
            for (int64_t j = 0; j < COLUMNS; j++)
                sum += row[j] = exp(x[j] - most);
            REAL part = 1 / sum;
#pragma omp simd reduction(+ : total)
            for (int64_t j = 0; j < COLUMNS; j++)
                total += row[j] *= part;
            REAL mean = total / COLUMNS;
#pragma omp simd reduction(+ : squares)
            for (int64_t j = 0; j < COLUMNS; j++)
                squares += (row[j] - mean) * (row[j] - mean);
            REAL scale = R(0.125) / sqrt(squares / COLUMNS + R(1e-12));
#pragma omp simd
            for (int64_t j = 0; j < COLUMNS; j++)
                x[j] += (row[j] - mean) * scale;
        }
        TWIN_BARRIER();
    }
}

static int FN(checksums)(const STATE *s, int64_t n, double *out) {
    out[0] = FN(bench_checksum)(s->x, n * COLUMNS);
    return 1;
}

#undef COLUMNS
#endif
