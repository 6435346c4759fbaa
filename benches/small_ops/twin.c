/* Two elementwise operations per iteration on n elements: what a library costs when arrays are small.
 * A fused loop per iteration, in one thread below the size at which a second one pays. */
#define TWIN_NAME "small_ops"
#define TWIN_SOURCE "../small_ops/twin.c"
#define TWIN_SMALLEST 1
#include "../common/twin.h"
#ifdef REAL

typedef struct {
    REAL *x;
} STATE;

static void FN(allocate)(STATE *s, int64_t n) { s->x = FN(bench_array)(n); }

static void FN(fill)(STATE *s, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        s->x[i] = R(bench_pseudo(i, 34));
}

static void FN(run)(STATE *s, int64_t n, int64_t iters) {
    REAL *restrict x = s->x;
    for (int64_t step = 0; step < iters; step++) {
        if (n <= 50000) {
#pragma omp simd
            for (int64_t i = 0; i < n; i++)
                x[i] = x[i] * R(0.999) + R(0.001);
        } else {
#pragma omp parallel for simd schedule(static)
            for (int64_t i = 0; i < n; i++)
                x[i] = x[i] * R(0.999) + R(0.001);
        }
        TWIN_BARRIER();
    }
}

static int FN(checksums)(const STATE *s, int64_t n, double *out) {
    out[0] = FN(bench_checksum)(s->x, n);
    return 1;
}

#endif
