/* Leibnitz' series for pi, n pairs of terms, summed anew in each iteration. One fused loop, nothing stored. */
#define TWIN_NAME "leibnitz_pi"
#define TWIN_SOURCE "../leibnitz_pi/twin.c"
#define TWIN_SMALLEST 1
#include "../common/twin.h"
#ifdef REAL

typedef struct {
    double pi;
} STATE;

static void FN(allocate)(STATE *s, int64_t n) { (void)s, (void)n; }

static void FN(fill)(STATE *s, int64_t n) {
    (void)n;
    s->pi = 0;
}

static void FN(run)(STATE *s, int64_t n, int64_t iters) {
    const int64_t block = 4096; /* sums of one block stay in REAL, their total in f64 */
    for (int64_t step = 0; step < iters; step++) {
        double sum = 0;
#pragma omp parallel for schedule(static) reduction(+ : sum)
        for (int64_t begin = 0; begin < n; begin += block) {
            int32_t length = (int32_t)(begin + block < n ? block : n - begin);
            REAL first = R(begin), part = 0;
#pragma omp simd reduction(+ : part)
            for (int32_t i = 0; i < length; i++) {
                REAL k = R(4) * (first + R(i));
                part += R(1) / (k + R(1)) - R(1) / (k + R(3));
            }
            sum += part;
        }
        s->pi = 4 * sum;
        TWIN_BARRIER();
    }
}

static int FN(checksums)(const STATE *s, int64_t n, double *out) {
    (void)n;
    out[0] = s->pi;
    return 1;
}

#endif
