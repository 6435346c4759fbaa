/* Gravity among n bodies, all pairs, softened; velocities then positions advance by one step per iteration.
 * One loop over a body's partners with three sums; the n x n pairs are never stored. */
#define TWIN_NAME "nbody"
#define TWIN_SOURCE "../nbody/twin.c"
#define TWIN_SMALLEST 1
#include "../common/twin.h"
#ifdef REAL

typedef struct {
    REAL *mass, *position[3], *velocity[3];
} STATE;

static void FN(allocate)(STATE *s, int64_t n) {
    s->mass = FN(bench_array)(n);
    for (int k = 0; k < 3; k++) {
        s->position[k] = FN(bench_array)(n);
        s->velocity[k] = FN(bench_array)(n);
    }
}

static void FN(fill)(STATE *s, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        s->mass[i] = R(1) + R(bench_pseudo(i, 15));
        for (int k = 0; k < 3; k++) {
            s->position[k][i] = R(bench_pseudo(i, 16 + k));
            s->velocity[k][i] = 0;
        }
    }
}

static void FN(run)(STATE *s, int64_t n, int64_t iters) {
    const REAL dt = R(0.0001), softening = R(0.01);
    const REAL *restrict m = s->mass;
    REAL *restrict x = s->position[0], *restrict y = s->position[1], *restrict z = s->position[2];
    REAL *restrict vx = s->velocity[0], *restrict vy = s->velocity[1], *restrict vz = s->velocity[2];
    for (int64_t step = 0; step < iters; step++) {
#pragma omp parallel
        {
#pragma omp for schedule(static)
            for (int64_t i = 0; i < n; i++) {
                REAL ax = 0, ay = 0, az = 0, xi = x[i], yi = y[i], zi = z[i];
#pragma omp simd reduction(+ : ax, ay, az)
                for (int64_t j = 0; j < n; j++) {
                    REAL dx = x[j] - xi, dy = y[j] - yi, dz = z[j] - zi;
                    REAL square = dx * dx + dy * dy + dz * dz + softening;
                    REAL pull = m[j] / (square * sqrt(square));
                    ax += pull * dx;
                    ay += pull * dy;
                    az += pull * dz;
                }
                vx[i] += dt * ax;
                vy[i] += dt * ay;
                vz[i] += dt * az;
            }
#pragma omp for simd schedule(static)
            for (int64_t i = 0; i < n; i++) {
                x[i] += dt * vx[i];
                y[i] += dt * vy[i];
                z[i] += dt * vz[i];
            }
        }
    }
}

static int FN(checksums)(const STATE *s, int64_t n, double *out) {
    out[0] = out[1] = 0;
    for (int k = 0; k < 3; k++) {
        out[0] += FN(bench_checksum)(s->position[k], n);
        out[1] += FN(bench_checksum)(s->velocity[k], n);
    }
    return 2;
}

#endif
