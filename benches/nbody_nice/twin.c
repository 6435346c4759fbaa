/* Forty planets and n massless asteroids: the planets pull each other and the asteroids.
 * The asteroids advance in blocks that stay in cache while the planets pass by; nothing of size planets x n is stored. */
#define TWIN_NAME "nbody_nice"
#define TWIN_SOURCE "../nbody_nice/twin.c"
#define TWIN_SMALLEST 1
#include "../common/twin.h"
#ifdef REAL
#define PLANETS 40
#define BLOCK 256

typedef struct {
    REAL mass[PLANETS], planet[3][PLANETS], planet_velocity[3][PLANETS];
    REAL *position[3], *velocity[3];
} STATE;

static void FN(allocate)(STATE *s, int64_t n) {
    for (int k = 0; k < 3; k++) {
        s->position[k] = FN(bench_array)(n);
        s->velocity[k] = FN(bench_array)(n);
    }
}

static void FN(fill)(STATE *s, int64_t n) {
    for (int64_t p = 0; p < PLANETS; p++) {
        s->mass[p] = R(1) + R(bench_pseudo(p, 19));
        for (int k = 0; k < 3; k++) {
            s->planet[k][p] = R(bench_pseudo(p, 20 + k));
            s->planet_velocity[k][p] = 0;
        }
    }
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < n; i++)
        for (int k = 0; k < 3; k++) {
            s->position[k][i] = R(bench_pseudo(i, 23 + k));
            s->velocity[k][i] = 0;
        }
}

/* Accelerates `count` bodies by the pull of the planets. */
static inline void FN(pull)(const STATE *s, const REAL *restrict x, const REAL *restrict y, const REAL *restrict z,
                            REAL *restrict vx, REAL *restrict vy, REAL *restrict vz, int64_t count) {
    const REAL dt = R(0.0001), softening = R(0.01);
    for (int p = 0; p < PLANETS; p++) {
        REAL m = s->mass[p] * dt, px = s->planet[0][p], py = s->planet[1][p], pz = s->planet[2][p];
#pragma omp simd
        for (int64_t i = 0; i < count; i++) {
            REAL dx = px - x[i], dy = py - y[i], dz = pz - z[i];
            REAL square = dx * dx + dy * dy + dz * dz + softening;
            REAL force = m / (square * sqrt(square));
            vx[i] += force * dx;
            vy[i] += force * dy;
            vz[i] += force * dz;
        }
    }
}

static void FN(run)(STATE *s, int64_t n, int64_t iters) {
    const REAL dt = R(0.0001);
    REAL *x = s->position[0], *y = s->position[1], *z = s->position[2];
    REAL *vx = s->velocity[0], *vy = s->velocity[1], *vz = s->velocity[2];
    for (int64_t step = 0; step < iters; step++) {
#pragma omp parallel for schedule(static)
        for (int64_t begin = 0; begin < n; begin += BLOCK) {
            int64_t count = begin + BLOCK < n ? BLOCK : n - begin;
            FN(pull)(s, x + begin, y + begin, z + begin, vx + begin, vy + begin, vz + begin, count);
#pragma omp simd
            for (int64_t i = begin; i < begin + count; i++) {
                x[i] += dt * vx[i];
                y[i] += dt * vy[i];
                z[i] += dt * vz[i];
            }
        }
        FN(pull)(s, s->planet[0], s->planet[1], s->planet[2], s->planet_velocity[0], s->planet_velocity[1], s->planet_velocity[2], PLANETS);
        for (int k = 0; k < 3; k++)
            for (int p = 0; p < PLANETS; p++)
                s->planet[k][p] += dt * s->planet_velocity[k][p];
    }
}

static int FN(checksums)(const STATE *s, int64_t n, double *out) {
    out[0] = out[1] = out[2] = 0;
    for (int k = 0; k < 3; k++) {
        out[0] += FN(bench_checksum)(s->position[k], n);
        out[1] += FN(bench_checksum)(s->velocity[k], n);
        out[2] += FN(bench_checksum)(s->planet[k], PLANETS);
    }
    return 3;
}

#undef PLANETS
#undef BLOCK
#endif
