/* Lattice Boltzmann, D2Q9, on n x n cells: flow along the second axis past a round obstacle that bounces it back. The
 * outermost cells keep their starting values.
 * One loop per step that pulls the nine populations from the neighbours, collides them and writes them, double-buffered. */
#define TWIN_NAME "lattice_boltzmann_d2q9"
#define TWIN_SOURCE "../lattice_boltzmann_d2q9/twin.c"
#define TWIN_SMALLEST 3
#include "../common/twin.h"
#ifdef REAL

/* Number, number of the opposite, velocity and weight of each population. */
#define REST (4.0 / 9)
#define FACE (1.0 / 9)
#define EDGE (1.0 / 36)
#define POPULATIONS(X)                                                                                                  \
    X(0, 0, 0, 0, REST)                                                                                                 \
    X(1, 3, 0, 1, FACE) X(2, 4, 1, 0, FACE) X(3, 1, 0, -1, FACE) X(4, 2, -1, 0, FACE)                                   \
    X(5, 7, 1, 1, EDGE) X(6, 8, 1, -1, EDGE) X(7, 5, -1, -1, EDGE) X(8, 6, -1, 1, EDGE)

typedef struct {
    REAL *now[9], *next[9];
    uint8_t *solid;
} STATE;

static void FN(allocate)(STATE *s, int64_t n) {
    for (int q = 0; q < 9; q++) {
        s->now[q] = FN(bench_array)(n * n);
        s->next[q] = FN(bench_array)(n * n);
    }
    s->solid = bench_alloc((size_t)(n * n));
}

static void FN(fill)(STATE *s, int64_t n) {
    const double stream = 0.1;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            int64_t at = i * n + j, y = i - n / 2, x = j - n / 4;
            s->solid[at] = y * y + x * x < n * n / 100;
            double density = 1 + 0.1 * bench_pseudo(at, 36);
#define FILL(q, opposite, ey, ex, weight)                                                                               \
    s->now[q][at] = s->next[q][at] =                                                                                    \
        R(weight * density * (1 + 3 * (ex) * stream + 4.5 * (ex) * (ex) * stream * stream - 1.5 * stream * stream));
            POPULATIONS(FILL)
#undef FILL
        }
}

static void FN(run)(STATE *s, int64_t n, int64_t iters) {
    const REAL omega = R(1.2);
    for (int64_t step = 0; step < iters; step++) {
#pragma omp parallel for schedule(static)
        for (int64_t i = 1; i < n - 1; i++) {
            const uint8_t *restrict solid = s->solid + i * n;
#define POINTERS(q, opposite, ey, ex, weight)                                                                           \
    const REAL *restrict from##q = s->now[q] + (i - (ey)) * n - (ex);                                                   \
    REAL *restrict to##q = s->next[q] + i * n;
            POPULATIONS(POINTERS)
#undef POINTERS
#pragma omp simd
            for (int64_t j = 1; j < n - 1; j++) {
                REAL density = 0, y = 0, x = 0;
#define PULL(q, opposite, ey, ex, weight)                                                                               \
    REAL f##q = from##q[j];                                                                                             \
    density += f##q;                                                                                                    \
    y += R(ey) * f##q;                                                                                                  \
    x += R(ex) * f##q;
                POPULATIONS(PULL)
#undef PULL
                REAL inverse = R(1) / density;
                y *= inverse;
                x *= inverse;
                REAL still = R(1) - R(1.5) * (y * y + x * x);
#define COLLIDE(q, opposite, ey, ex, weight)                                                                            \
    {                                                                                                                   \
        REAL along = R(ey) * y + R(ex) * x;                                                                             \
        REAL equilibrium = R(weight) * density * (still + R(3) * along + R(4.5) * along * along);                       \
        to##q[j] = solid[j] ? f##opposite : f##q + omega * (equilibrium - f##q);                                        \
    }
                POPULATIONS(COLLIDE)
#undef COLLIDE
            }
        }
        for (int q = 0; q < 9; q++) {
            REAL *swap = s->now[q];
            s->now[q] = s->next[q];
            s->next[q] = swap;
        }
    }
}

static int FN(checksums)(const STATE *s, int64_t n, double *out) {
    out[0] = out[1] = 0;
    for (int q = 0; q < 9; q++)
        out[q % 2] += FN(bench_checksum)(s->now[q], n * n);
    return 2;
}

#undef REST
#undef FACE
#undef EDGE
#undef POPULATIONS
#endif
