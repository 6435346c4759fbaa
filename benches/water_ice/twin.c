/* Water and ice: n x n columns of four ocean layers under sea ice, one day per step. Each layer has a temperature and a
 * salinity, and each column a volume of ice; densities and heat capacities follow sea-water polynomials, heat flows
 * through air, ice and layers, and growing ice leaves its salt behind. Columns are independent.
 * One loop per step updates the nine grids in place. */
#define TWIN_NAME "water_ice"
#define TWIN_SOURCE "../water_ice/twin.c"
#define TWIN_SMALLEST 1
#include "../common/twin.h"
#ifdef REAL

typedef struct {
    REAL *temperature[4], *salinity[4], *ice;
} STATE;

static void FN(allocate)(STATE *s, int64_t n) {
    for (int k = 0; k < 4; k++) {
        s->temperature[k] = FN(bench_array)(n * n);
        s->salinity[k] = FN(bench_array)(n * n);
    }
    s->ice = FN(bench_array)(n * n);
}

static void FN(fill)(STATE *s, int64_t n) {
    static const double temperature[4] = {-1, 0.1, 3, 2}, salinity[4] = {33, 34.5, 34.8, 35};
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < n * n; i++) {
        for (int k = 0; k < 4; k++) {
            s->temperature[k][i] = R(temperature[k]) + R(bench_pseudo(i, 37 + k));
            s->salinity[k][i] = R(salinity[k]);
        }
        s->ice[i] = R(2) * R(bench_pseudo(i, 41));
    }
}

/* Density of sea water at one atmosphere (UNESCO 1981, to second order in salinity), pressed together by `factor`. */
#pragma omp declare simd uniform(factor)
static inline REAL FN(density)(REAL t, REAL s, REAL factor) {
    REAL pure = R(999.842594) + t * (R(6.793952e-2) + t * (R(-9.09529e-3) + t * (R(1.001685e-4) + t * (R(-1.120083e-6) + t * R(6.536332e-9)))));
    REAL linear = R(0.824493) + t * (R(-4.0899e-3) + t * (R(7.6438e-5) + t * (R(-8.2467e-7) + t * R(5.3875e-9))));
    REAL root = R(-5.72466e-3) + t * (R(1.0227e-4) - t * R(1.6546e-6));
    return (pure + s * linear + s * sqrt(s) * root + s * s * R(4.8314e-4)) * factor;
}

/* Specific heat of sea water (Millero, Perron and Desnoyers 1973, to first order in salinity). */
#pragma omp declare simd
static inline REAL FN(heat_capacity)(REAL t, REAL s) {
    REAL pure = R(4217.4) + t * (R(-3.720283) + t * (R(0.1412855) + t * (R(-2.654387e-3) + t * R(2.093236e-5))));
    return pure + s * (R(-7.643575) + t * (R(0.1072763) - t * R(1.38385e-3)));
}

static void FN(run)(STATE *s, int64_t n, int64_t iters) {
    const REAL day = 86400, freezing = R(-1.8), melt = R(917.0 * 334000.0);
    REAL *restrict t0 = s->temperature[0], *restrict t1 = s->temperature[1], *restrict t2 = s->temperature[2];
    REAL *restrict t3 = s->temperature[3], *restrict s0 = s->salinity[0], *restrict s1 = s->salinity[1];
    REAL *restrict s2 = s->salinity[2], *restrict s3 = s->salinity[3], *restrict ice = s->ice;
    for (int64_t step = 0; step < iters; step++) {
        REAL air = R(-10 - 20 * cos(2 * 3.141592653589793 * (double)step / 365));
#pragma omp parallel for simd schedule(static)
        for (int64_t i = 0; i < n * n; i++) {
            REAL a = t0[i], b = t1[i], c = t2[i], d = t3[i], volume = ice[i];
            REAL height = volume > R(0.5) ? volume : sqrt(volume * R(0.5));
            REAL cover = R(2) * height < R(1) ? R(2) * height : R(1);
            REAL density0 = FN(density)(a, s0[i], R(1.0003)), density1 = FN(density)(b, s1[i], R(1.0016));
            REAL density2 = FN(density)(c, s2[i], R(1.0037)), density3 = FN(density)(d, s3[i], R(1.0136));
            REAL capacity0 = R(50) * density0 * FN(heat_capacity)(a, s0[i]);
            REAL capacity1 = R(300) * density1 * FN(heat_capacity)(b, s1[i]);
            REAL capacity2 = R(400) * density2 * FN(heat_capacity)(c, s2[i]);
            REAL capacity3 = R(1800) * density3 * FN(heat_capacity)(d, s3[i]);
            /* Heat flows in W/m2, downwards into the named place; an unstable top layer mixes ten times faster. */
            REAL mixing = density0 > density1 ? R(10) : R(1);
            REAL open_water = (R(1) - cover) * R(20) * (air - a);
            REAL through_ice = cover * R(2) * (air - freezing) / (height + R(0.1));
            REAL into_ice = cover * R(50) * (a - freezing);
            REAL up01 = mixing * R(2) * (b - a), up12 = R(2) * (c - b), up23 = R(2) * (d - c);
            REAL growth = -(through_ice + into_ice) / melt;
            t0[i] = a + day * (open_water - into_ice + up01) / capacity0;
            t1[i] = b + day * (up12 - up01) / capacity1;
            t2[i] = c + day * (up23 - up12) / capacity2;
            t3[i] = d - day * up23 / capacity3;
            REAL exchange01 = mixing * R(1e-6) * (s1[i] - s0[i]), exchange12 = R(1e-6) * (s2[i] - s1[i]);
            REAL exchange23 = R(1e-6) * (s3[i] - s2[i]);
            s0[i] += day * (growth * (s0[i] - R(5)) + exchange01) / R(50);
            s1[i] += day * (exchange12 - exchange01) / R(300);
            s2[i] += day * (exchange23 - exchange12) / R(400);
            s3[i] -= day * exchange23 / R(1800);
            volume += day * growth;
            ice[i] = volume > R(0) ? volume : R(0);
        }
    }
}

static int FN(checksums)(const STATE *s, int64_t n, double *out) {
    out[0] = out[1] = 0;
    for (int k = 0; k < 4; k++) {
        out[0] += FN(bench_checksum)(s->temperature[k], n * n);
        out[1] += FN(bench_checksum)(s->salinity[k], n * n);
    }
    out[2] = FN(bench_checksum)(s->ice, n * n);
    return 3;
}

#endif
