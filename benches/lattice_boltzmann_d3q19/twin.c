/* Lattice Boltzmann, D3Q19, on n x n x n cells with a single relaxation time. The outermost cells keep their starting
 * values; those of the first plane slide sideways and drag the fluid.
 * One loop per step that pulls the 19 populations from the neighbours, collides them and writes them, double-buffered. */
#define TWIN_NAME "lattice_boltzmann_d3q19"
#define TWIN_SOURCE "../lattice_boltzmann_d3q19/twin.c"
#define TWIN_SMALLEST 3
#include "../common/twin.h"
#ifdef REAL

/* Number, velocity and weight of each population. */
#define REST (1.0 / 3)
#define FACE (1.0 / 18)
#define EDGE (1.0 / 36)
#define POPULATIONS(X)                                                                                                  \
    X(0, 0, 0, 0, REST)                                                                                                 \
    X(1, 1, 0, 0, FACE) X(2, -1, 0, 0, FACE) X(3, 0, 1, 0, FACE)                                                        \
    X(4, 0, -1, 0, FACE) X(5, 0, 0, 1, FACE) X(6, 0, 0, -1, FACE)                                                       \
    X(7, 1, 1, 0, EDGE) X(8, -1, -1, 0, EDGE) X(9, 1, -1, 0, EDGE) X(10, -1, 1, 0, EDGE)                                \
    X(11, 1, 0, 1, EDGE) X(12, -1, 0, -1, EDGE) X(13, 1, 0, -1, EDGE) X(14, -1, 0, 1, EDGE)                             \
    X(15, 0, 1, 1, EDGE) X(16, 0, -1, -1, EDGE) X(17, 0, 1, -1, EDGE) X(18, 0, -1, 1, EDGE)

typedef struct {
    REAL *now[19], *next[19];
} STATE;

static void FN(allocate)(STATE *s, int64_t n) {
    for (int q = 0; q < 19; q++) {
        s->now[q] = FN(bench_array)(n * n * n);
        s->next[q] = FN(bench_array)(n * n * n);
    }
}

static void FN(fill)(STATE *s, int64_t n) {
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < n; i++)
        for (int64_t at = i * n * n; at < (i + 1) * n * n; at++) {
            double density = 1 + 0.1 * bench_pseudo(at, 35), slide = i == 0 ? 0.1 : 0.0;
#define FILL(q, ez, ey, ex, weight)                                                                                     \
    s->now[q][at] = s->next[q][at] =                                                                                    \
        R(weight * density * (1 + 3 * (ey) * slide + 4.5 * (ey) * (ey) * slide * slide - 1.5 * slide * slide));
            POPULATIONS(FILL)
#undef FILL
        }
}

static void FN(run)(STATE *s, int64_t n, int64_t iters) {
    const REAL omega = R(1.2);
    for (int64_t step = 0; step < iters; step++) {
#pragma omp parallel for schedule(static)
        for (int64_t i = 1; i < n - 1; i++)
            for (int64_t j = 1; j < n - 1; j++) {
                int64_t row = (i * n + j) * n;
#define POINTERS(q, ez, ey, ex, weight)                                                                                 \
    const REAL *restrict from##q = s->now[q] + row - ((ez) * n + (ey)) * n - (ex);                                      \
    REAL *restrict to##q = s->next[q] + row;
                POPULATIONS(POINTERS)
#undef POINTERS
#pragma omp simd
                for (int64_t k = 1; k < n - 1; k++) {
                    REAL density = 0, z = 0, y = 0, x = 0;
#define PULL(q, ez, ey, ex, weight)                                                                                     \
    REAL f##q = from##q[k];                                                                                             \
    density += f##q;                                                                                                    \
    z += R(ez) * f##q;                                                                                                  \
    y += R(ey) * f##q;                                                                                                  \
    x += R(ex) * f##q;
                    POPULATIONS(PULL)
#undef PULL
                    REAL inverse = R(1) / density;
                    z *= inverse;
                    y *= inverse;
                    x *= inverse;
                    REAL still = R(1) - R(1.5) * (z * z + y * y + x * x);
#define COLLIDE(q, ez, ey, ex, weight)                                                                                  \
    {                                                                                                                   \
        REAL along = R(ez) * z + R(ey) * y + R(ex) * x;                                                                 \
        REAL equilibrium = R(weight) * density * (still + R(3) * along + R(4.5) * along * along);                       \
        to##q[k] = f##q + omega * (equilibrium - f##q);                                                                 \
    }
                    POPULATIONS(COLLIDE)
#undef COLLIDE
                }
            }
        for (int q = 0; q < 19; q++) {
            REAL *swap = s->now[q];
            s->now[q] = s->next[q];
            s->next[q] = swap;
        }
    }
}

static int FN(checksums)(const STATE *s, int64_t n, double *out) {
    out[0] = out[1] = 0;
    for (int q = 0; q < 19; q++)
        out[q % 2] += FN(bench_checksum)(s->now[q], n * n * n);
    return 2;
}

#undef REST
#undef FACE
#undef EDGE
#undef POPULATIONS
#endif
