/* Pi from the share of n random points that fall into the quarter circle; each iteration draws new points.
 * The coordinates of iteration t are the Philox streams with keys 2t and 2t + 1. One fused loop, nothing stored. */
#define TWIN_NAME "montecarlo_pi"
#define TWIN_SOURCE "../montecarlo_pi/twin.c"
#define TWIN_SMALLEST 1
#include "../common/philox.h"
#include "../common/twin.h"
#ifdef REAL

typedef struct {
    double total;
} STATE;

static void FN(allocate)(STATE *s, int64_t n) { (void)s, (void)n; }

static void FN(fill)(STATE *s, int64_t n) {
    (void)n;
    s->total = 0;
}

static inline REAL FN(uniform)(uint64_t counter, uint32_t key) {
    uint64_t bits = philox2x32(counter, key);
    return sizeof(REAL) == sizeof(double) ? R((double)(int64_t)(bits >> 11) * 0x1p-53)
                                          : R((float)(int32_t)((uint32_t)bits >> 8) * 0x1p-24f);
}

static void FN(run)(STATE *s, int64_t n, int64_t iters) {
    for (int64_t step = 0; step < iters; step++) {
        uint32_t key = (uint32_t)(2 * step);
        int64_t inside = 0;
#pragma omp parallel for simd schedule(static) reduction(+ : inside)
        for (int64_t i = 0; i < n; i++) {
            REAL x = FN(uniform)((uint64_t)i, key), y = FN(uniform)((uint64_t)i, key + 1);
            inside += x * x + y * y <= R(1);
        }
        s->total += 4.0 * (double)inside / (double)n;
    }
}

static int FN(checksums)(const STATE *s, int64_t n, double *out) {
    (void)n;
    out[0] = s->total;
    return 1;
}

#endif
