/* Price of a European call option by the mean pay-off of n random paths; each iteration draws new ones.
 * The normal numbers of iteration t are made of the Philox streams with keys 2t and 2t + 1. One fused loop, nothing stored. */
#define TWIN_NAME "monte_carlo_options"
#define TWIN_SOURCE "../monte_carlo_options/twin.c"
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
    const double rate = 0.08, volatility = 0.3, years = 0.25;
    const REAL drift = R((rate - volatility * volatility / 2) * years), spread = R(volatility * sqrt(years));
    const int64_t block = 4096; /* sums of one block stay in REAL, their total in f64 */
    for (int64_t step = 0; step < iters; step++) {
        uint32_t key = (uint32_t)(2 * step);
        double sum = 0;
#pragma omp parallel for schedule(static) reduction(+ : sum)
        for (int64_t begin = 0; begin < n; begin += block) {
            int64_t end = begin + block < n ? begin + block : n;
            REAL part = 0;
#pragma omp simd reduction(+ : part)
            for (int64_t i = begin; i < end; i++) {
                REAL u = FN(uniform)((uint64_t)i, key), v = FN(uniform)((uint64_t)i, key + 1);
                REAL normal = sqrt(R(-2) * log(R(1) - u)) * cos(R(6.283185307179586) * v);
                REAL gain = R(60) * exp(drift + spread * normal) - R(65);
                part += gain > R(0) ? gain : R(0);
            }
            sum += part;
        }
        s->total += exp(-rate * years) * sum / (double)n;
    }
}

static int FN(checksums)(const STATE *s, int64_t n, double *out) {
    (void)n;
    out[0] = s->total;
    return 1;
}

#endif
