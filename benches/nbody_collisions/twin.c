/* Gravity among n bodies, all pairs, with collisions: bodies that touch push each other apart instead, and are counted.
 * One loop over a body's partners with four sums; the n x n pairs are never stored. */
#define TWIN_NAME "nbody_collisions"
#define TWIN_SOURCE "../nbody_collisions/twin.c"
#define TWIN_SMALLEST 2
#include "../common/twin.h"
#ifdef REAL

typedef struct {
    REAL *mass, *radius, *position[3], *velocity[3];
    int64_t touched;
} STATE;

static void FN(allocate)(STATE *s, int64_t n) {
    s->mass = FN(bench_array)(n), s->radius = FN(bench_array)(n);
    for (int k = 0; k < 3; k++)
        s->position[k] = FN(bench_array)(n), s->velocity[k] = FN(bench_array)(n);
}

static void FN(fill)(STATE *s, int64_t n) {
    s->touched = 0;
    for (int64_t i = 0; i < n; i++) {
        s->mass[i] = R(1) + R(bench_pseudo(i, 60));
        s->radius[i] = R(0.05) + R(0.1) * R(bench_pseudo(i, 61));
        for (int k = 0; k < 3; k++)
            s->position[k][i] = R(bench_pseudo(i, 62 + k)), s->velocity[k][i] = 0;
    }
}

static void FN(run)(STATE *s, int64_t n, int64_t iters) {
    const REAL dt = R(0.0001), softening = R(0.01), stiffness = R(100);
    const REAL *restrict m = s->mass, *restrict r = s->radius;
    REAL *restrict x = s->position[0], *restrict y = s->position[1], *restrict z = s->position[2];
    REAL *restrict vx = s->velocity[0], *restrict vy = s->velocity[1], *restrict vz = s->velocity[2];
    for (int64_t step = 0; step < iters; step++) {
        int64_t all = 0;
#pragma omp parallel reduction(+ : all)
        {
#pragma omp for schedule(static)
            for (int64_t i = 0; i < n; i++) {
                REAL ax = 0, ay = 0, az = 0, xi = x[i], yi = y[i], zi = z[i], ri = r[i], count = 0;
#pragma omp simd reduction(+ : ax, ay, az, count)
                for (int64_t j = 0; j < n; j++) {
                    REAL dx = x[j] - xi, dy = y[j] - yi, dz = z[j] - zi, reach = ri + r[j];
                    REAL square = dx * dx + dy * dy + dz * dz, soft = square + softening;
                    int touching = square < reach * reach;
                    REAL push = touching ? -stiffness : m[j] / (soft * sqrt(soft));
                    count += touching ? R(1) : R(0);
                    ax += push * dx;
                    ay += push * dy;
                    az += push * dz;
                }
                all += (int64_t)count - 1;
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
        s->touched += all;
    }
}

static int FN(checksums)(const STATE *s, int64_t n, double *out) {
    out[0] = out[1] = 0;
    for (int k = 0; k < 3; k++) {
        out[0] += FN(bench_checksum)(s->position[k], n);
        out[1] += FN(bench_checksum)(s->velocity[k], n);
    }
    out[2] = (double)s->touched;
    return 3;
}

#endif
