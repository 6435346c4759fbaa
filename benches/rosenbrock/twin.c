/* Rosenbrock's function of n variables, evaluated anew in each iteration. One fused loop reads x once. */
#define TWIN_NAME "rosenbrock"
#define TWIN_SOURCE "../rosenbrock/twin.c"
#define TWIN_SMALLEST 2
#include "../common/twin.h"
#ifdef REAL

typedef struct {
    REAL *x;
    double value;
} STATE;

static void FN(allocate)(STATE *s, int64_t n) { s->x = FN(bench_array)(n); }

static void FN(fill)(STATE *s, int64_t n) {
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < n; i++)
        s->x[i] = R(bench_pseudo(i, 10));
}

static void FN(run)(STATE *s, int64_t n, int64_t iters) {
    const int64_t block = 4096; /* sums of one block stay in REAL, their total in f64 */
    const REAL *restrict x = s->x;
    for (int64_t step = 0; step < iters; step++) {
        double sum = 0;
#pragma omp parallel for schedule(static) reduction(+ : sum)
        for (int64_t begin = 0; begin < n - 1; begin += block) {
            int64_t end = begin + block < n - 1 ? begin + block : n - 1;
            REAL part = 0;
#pragma omp simd reduction(+ : part)
            for (int64_t i = begin; i < end; i++) {
                REAL valley = x[i + 1] - x[i] * x[i], rest = R(1) - x[i];
                part += R(100) * valley * valley + rest * rest;
            }
            sum += part;
        }
        s->value = sum;
        TWIN_BARRIER();
    }
}

static int FN(checksums)(const STATE *s, int64_t n, double *out) {
    (void)n;
    out[0] = s->value;
    return 1;
}

#endif
