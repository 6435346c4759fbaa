/* Shallow water equations on an n x n grid with reflecting walls, by the two-step Lax-Wendroff scheme: a drop falls into
 * a basin. H is the height, U and V the flow along the first and second axis.
 *
 * Double-buffered: each row needs the half steps around it only, so that these live in a few lines per thread and one
 * sweep reads three grids and writes three. */
#define TWIN_NAME "shallow_water"
#define TWIN_SOURCE "../shallow_water/twin.c"
#define TWIN_SMALLEST 3
#include "../common/twin.h"
#ifdef REAL

typedef struct {
    REAL *now[3], *next[3]; /* H, U, V */
} STATE;

/* Three lines of fluxes: of H, of U and of V along one axis, or U*U/H.., U*V/H, V*V/H.. of a row of the grid. */
typedef struct {
    REAL *restrict a, *restrict b, *restrict c;
} FN(lines);

static void FN(allocate)(STATE *s, int64_t n) {
    for (int k = 0; k < 3; k++) {
        s->now[k] = FN(bench_array)(n * n);
        s->next[k] = FN(bench_array)(n * n);
    }
}

static void FN(fill)(STATE *s, int64_t n) {
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            double y = (double)(i - n / 3), x = (double)(j - n / 2);
            REAL height = R(1 + 0.5 / (1 + 100 * (y * y + x * x) / (double)(n * n)));
            s->now[0][i * n + j] = s->next[0][i * n + j] = height;
            for (int k = 1; k < 3; k++)
                s->now[k][i * n + j] = s->next[k][i * n + j] = 0;
        }
}

/* Fluxes of a row: U^2/H + g/2 H^2, U V/H, V^2/H + g/2 H^2. */
static inline void FN(row_flux)(const REAL *restrict h, const REAL *restrict u, const REAL *restrict v, FN(lines) out,
                                int64_t n, REAL half_g) {
#pragma omp simd
    for (int64_t j = 0; j < n; j++) {
        REAL inverse = R(1) / h[j], pressure = half_g * h[j] * h[j];
        out.a[j] = u[j] * u[j] * inverse + pressure;
        out.b[j] = u[j] * v[j] * inverse;
        out.c[j] = v[j] * v[j] * inverse + pressure;
    }
}

/* Fluxes through the faces between a row and the next, n elements on, at the half step. */
static inline void FN(row_face)(const REAL *restrict h, const REAL *restrict u, const REAL *restrict v, FN(lines) here,
                                FN(lines) below, FN(lines) out, int64_t n, REAL half_dt, REAL half_g) {
#pragma omp simd
    for (int64_t j = 1; j < n - 1; j++) {
        REAL height = R(0.5) * (h[j + n] + h[j]) - half_dt * (u[j + n] - u[j]);
        REAL flow_u = R(0.5) * (u[j + n] + u[j]) - half_dt * (below.a[j] - here.a[j]);
        REAL flow_v = R(0.5) * (v[j + n] + v[j]) - half_dt * (below.b[j] - here.b[j]);
        REAL inverse = R(1) / height;
        out.a[j] = flow_u;
        out.b[j] = flow_u * flow_u * inverse + half_g * height * height;
        out.c[j] = flow_u * flow_v * inverse;
    }
}

/* Fluxes through the faces between columns j and j + 1 of a row at the half step. */
static inline void FN(column_face)(const REAL *restrict h, const REAL *restrict u, const REAL *restrict v,
                                   FN(lines) here, FN(lines) out, int64_t n, REAL half_dt, REAL half_g) {
#pragma omp simd
    for (int64_t j = 0; j < n - 1; j++) {
        REAL height = R(0.5) * (h[j + 1] + h[j]) - half_dt * (v[j + 1] - v[j]);
        REAL flow_u = R(0.5) * (u[j + 1] + u[j]) - half_dt * (here.b[j + 1] - here.b[j]);
        REAL flow_v = R(0.5) * (v[j + 1] + v[j]) - half_dt * (here.c[j + 1] - here.c[j]);
        REAL inverse = R(1) / height;
        out.a[j] = flow_v;
        out.b[j] = flow_u * flow_v * inverse;
        out.c[j] = flow_v * flow_v * inverse + half_g * height * height;
    }
}

/* Mirrors the row that starts at `from` into the wall row that starts at `wall`. */
static inline void FN(wall)(REAL *const *grids, int64_t from, int64_t wall, int64_t n) {
    for (int64_t j = 1; j < n - 1; j++) {
        grids[0][wall + j] = grids[0][from + j];
        grids[1][wall + j] = -grids[1][from + j];
        grids[2][wall + j] = grids[2][from + j];
    }
}

/* One step for the rows first..last; `memory` holds fifteen lines. */
static inline void FN(sweep)(REAL *const *now, REAL *const *next, REAL *memory, int64_t first, int64_t last, int64_t n) {
    const REAL dt = R(0.02), half_dt = dt / 2, half_g = R(9.8 / 2); /* the grid spacing is 1 */
    FN(lines) lines[5];
    for (int k = 0; k < 5; k++)
        lines[k] = (FN(lines)){memory + 3 * k * n, memory + (3 * k + 1) * n, memory + (3 * k + 2) * n};
    FN(lines) here = lines[0], below = lines[1], above = lines[2], under = lines[3], side = lines[4], spare;
    const REAL *h = now[0], *u = now[1], *v = now[2];
    int64_t at = (first - 1) * n;
    FN(row_flux)(h + at, u + at, v + at, here, n, half_g);
    FN(row_flux)(h + at + n, u + at + n, v + at + n, below, n, half_g);
    FN(row_face)(h + at, u + at, v + at, here, below, above, n, half_dt, half_g);
    for (int64_t i = first; i < last; i++) {
        at = i * n;
        spare = here, here = below, below = spare;
        FN(row_flux)(h + at + n, u + at + n, v + at + n, below, n, half_g);
        FN(row_face)(h + at, u + at, v + at, here, below, under, n, half_dt, half_g);
        FN(column_face)(h + at, u + at, v + at, here, side, n, half_dt, half_g);
        REAL *restrict new_h = next[0] + at, *restrict new_u = next[1] + at, *restrict new_v = next[2] + at;
#pragma omp simd
        for (int64_t j = 1; j < n - 1; j++) {
            new_h[j] = h[at + j] - dt * (under.a[j] - above.a[j] + side.a[j] - side.a[j - 1]);
            new_u[j] = u[at + j] - dt * (under.b[j] - above.b[j] + side.b[j] - side.b[j - 1]);
            new_v[j] = v[at + j] - dt * (under.c[j] - above.c[j] + side.c[j] - side.c[j - 1]);
        }
        new_h[0] = new_h[1], new_u[0] = new_u[1], new_v[0] = -new_v[1];
        new_h[n - 1] = new_h[n - 2], new_u[n - 1] = new_u[n - 2], new_v[n - 1] = -new_v[n - 2];
        if (i == 1)
            FN(wall)(next, at, 0, n);
        if (i == n - 2)
            FN(wall)(next, at, at + n, n);
        spare = above, above = under, under = spare;
    }
}

static void FN(run)(STATE *s, int64_t n, int64_t iters) {
#pragma omp parallel
    {
        REAL *memory = bench_scratch((size_t)n * 15 * sizeof(REAL));
        int64_t first, last;
        twin_share(1, n - 1, &first, &last);
        for (int64_t step = 0; step < iters; step++) {
            /* Every thread swaps on its own: even steps read `now`, odd steps `next`. */
            REAL *const *from = step % 2 ? s->next : s->now, *const *to = step % 2 ? s->now : s->next;
            if (first < last)
                FN(sweep)(from, to, memory, first, last, n);
#pragma omp barrier
        }
        free(memory);
    }
    for (int k = 0; k < 3 && iters % 2; k++) {
        REAL *swap = s->now[k];
        s->now[k] = s->next[k];
        s->next[k] = swap;
    }
}

static int FN(checksums)(const STATE *s, int64_t n, double *out) {
    for (int k = 0; k < 3; k++)
        out[k] = FN(bench_checksum)(s->now[k], n * n);
    return 3;
}

#endif
