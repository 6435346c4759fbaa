/* Black-Scholes price of n European call options with the polynomial form of the normal distribution, summed once per
 * iteration while the time to maturity shrinks. One fused loop with a sum. */
#define TWIN_NAME "black_scholes"
#define TWIN_SOURCE "../black_scholes/twin.c"
#define TWIN_SMALLEST 1
#include "../common/twin.h"
#ifdef REAL

typedef struct {
    REAL *spot;
    double total;
} STATE;

static void FN(allocate)(STATE *s, int64_t n) { s->spot = FN(bench_array)(n); }

static void FN(fill)(STATE *s, int64_t n) {
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < n; i++)
        s->spot[i] = R(58) + R(4) * R(bench_pseudo(i, 9));
}

/* Cumulative normal distribution (Abramowitz and Stegun 26.2.17). */
#pragma omp declare simd
static inline REAL FN(normal)(REAL x) {
    REAL size = fabs(x);
    REAL k = R(1) / (R(1) + R(0.2316419) * size);
    REAL series = k * (R(0.31938153) + k * (R(-0.356563782) + k * (R(1.781477937) + k * (R(-1.821255978) + k * R(1.330274429)))));
    REAL tail = R(0.3989422804014327) * exp(R(-0.5) * size * size) * series;
    return x < R(0) ? tail : R(1) - tail;
}

static void FN(run)(STATE *s, int64_t n, int64_t iters) {
    const REAL strike = 65, rate = R(0.08), volatility = R(0.3);
    const int64_t block = 4096; /* sums of one block stay in REAL, their total in f64 */
    const REAL *restrict spot = s->spot;
    s->total = 0;
    for (int64_t step = 0; step < iters; step++) {
        REAL years = R(0.25) - R(step) * R(0.25 / 365);
        REAL spread = volatility * sqrt(years), drift = (rate + volatility * volatility / 2) * years;
        REAL discounted = strike * exp(-rate * years);
        double sum = 0;
#pragma omp parallel for schedule(static) reduction(+ : sum)
        for (int64_t begin = 0; begin < n; begin += block) {
            int64_t end = begin + block < n ? begin + block : n;
            REAL part = 0;
#pragma omp simd reduction(+ : part)
            for (int64_t i = begin; i < end; i++) {
                REAL d1 = (log(spot[i] / strike) + drift) / spread;
                REAL d2 = d1 - spread;
                part += spot[i] * FN(normal)(d1) - discounted * FN(normal)(d2);
            }
            sum += part;
        }
        s->total += sum / (double)n;
    }
}

static int FN(checksums)(const STATE *s, int64_t n, double *out) {
    (void)n;
    out[0] = s->total;
    return 1;
}

#endif
