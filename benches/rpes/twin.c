/* Two-electron repulsion integrals between n pairs of contracted s shells, nine primitive pairs each, by Rys quadrature.
 * One loop over the quartets of two pairs, with a branch for large arguments. */
#define TWIN_NAME "rpes"
#define TWIN_SOURCE "../rpes/twin.c"
#define TWIN_SMALLEST 1
#define PRIMITIVES 9
#include "../common/twin.h"
#ifdef REAL

typedef struct {
    REAL *part[5], *integrals;
} STATE;

static void FN(allocate)(STATE *s, int64_t n) {
    for (int part = 0; part < 5; part++)
        s->part[part] = FN(bench_array)(PRIMITIVES * n);
    s->integrals = FN(bench_array)(n * n);
}

static void FN(fill)(STATE *s, int64_t n) {
    for (int64_t i = 0; i < PRIMITIVES * n; i++) {
        s->part[0][i] = R(0.5) + R(2) * R(bench_pseudo(i, 70));
        s->part[1][i] = R(bench_pseudo(i, 71)) / PRIMITIVES;
        for (int part = 2; part < 5; part++)
            s->part[part][i] = R(4) * R(bench_pseudo(i, 70 + part));
    }
}

/* The integral of exp(-t x^2) from 0 to 1. */
static inline REAL FN(boys)(REAL t) {
    REAL safe = t > R(1e-3) ? t : R(1e-3);
    REAL tail = R(0.5) * sqrt(R(3.141592653589793) / safe);
    REAL beyond = t > R(30) ? tail : tail * erf(sqrt(safe));
    return t < R(1e-3) ? 1 - t * (R(1) / 3 - t * (R(1) / 10 - t / 42)) : beyond;
}

static void FN(run)(STATE *s, int64_t n, int64_t iters) {
    const REAL *restrict p = s->part[0], *restrict c = s->part[1];
    const REAL *restrict x = s->part[2], *restrict y = s->part[3], *restrict z = s->part[4];
    for (int64_t step = 0; step < iters; step++) {
        TWIN_BARRIER();
#pragma omp parallel for schedule(static)
        for (int64_t a = 0; a < n; a++)
            for (int64_t b = 0; b < n; b++) {
                REAL sum = 0;
                for (int64_t i = a * PRIMITIVES; i < (a + 1) * PRIMITIVES; i++)
#pragma omp simd reduction(+ : sum)
                    for (int64_t j = b * PRIMITIVES; j < (b + 1) * PRIMITIVES; j++) {
                        REAL product = p[i] * p[j], total = p[i] + p[j];
                        REAL dx = x[i] - x[j], dy = y[i] - y[j], dz = z[i] - z[j];
                        REAL t = product / total * (dx * dx + dy * dy + dz * dz);
                        sum += R(34.986836655249725) * c[i] * c[j] / (product * sqrt(total)) * FN(boys)(t);
                    }
                s->integrals[a * n + b] = sum;
            }
    }
}

static int FN(checksums)(const STATE *s, int64_t n, double *out) {
    out[0] = FN(bench_checksum)(s->integrals, n * n);
    return 1;
}

#endif
