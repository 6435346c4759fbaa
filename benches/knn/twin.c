/* The four nearest of n points in three dimensions for each of n / 10 queries; the result is the four squared distances.
 * One pass over the points for a block of queries: each query is a vector lane that keeps its four smallest sorted. */
#define TWIN_NAME "knn"
#define TWIN_SOURCE "../knn/twin.c"
#define TWIN_SMALLEST 10
#include "../common/twin.h"
#ifdef REAL
#define NEAREST 4
#define LANES 32

typedef struct {
    REAL *point[3], *query[3], *nearest[NEAREST];
} STATE;

static void FN(allocate)(STATE *s, int64_t n) {
    for (int k = 0; k < 3; k++) {
        s->point[k] = FN(bench_array)(n);
        s->query[k] = FN(bench_array)(n / 10);
    }
    for (int k = 0; k < NEAREST; k++)
        s->nearest[k] = FN(bench_array)(n / 10);
}

static void FN(fill)(STATE *s, int64_t n) {
    for (int k = 0; k < 3; k++) {
        for (int64_t i = 0; i < n; i++)
            s->point[k][i] = R(bench_pseudo(i, 28 + k));
        for (int64_t i = 0; i < n / 10; i++)
            s->query[k][i] = R(bench_pseudo(i, 31 + 2 * k));
    }
}

static void FN(run)(STATE *s, int64_t n, int64_t iters) {
    int64_t queries = n / 10;
    const REAL *restrict px = s->point[0], *restrict py = s->point[1], *restrict pz = s->point[2];
    for (int64_t step = 0; step < iters; step++) {
#pragma omp parallel for schedule(dynamic, 1)
        for (int64_t begin = 0; begin < queries; begin += LANES) {
            int64_t count = begin + LANES < queries ? LANES : queries - begin;
            REAL x[LANES] = {0}, y[LANES] = {0}, z[LANES] = {0}, best0[LANES], best1[LANES], best2[LANES], best3[LANES];
            for (int64_t q = 0; q < count; q++) {
                x[q] = s->query[0][begin + q];
                y[q] = s->query[1][begin + q];
                z[q] = s->query[2][begin + q];
            }
            for (int q = 0; q < LANES; q++)
                best0[q] = best1[q] = best2[q] = best3[q] = R(1e30);
            for (int64_t i = 0; i < n; i++) {
                REAL xi = px[i], yi = py[i], zi = pz[i];
#pragma omp simd
                for (int q = 0; q < LANES; q++) {
                    REAL dx = xi - x[q], dy = yi - y[q], dz = zi - z[q];
                    REAL far = dx * dx + dy * dy + dz * dz, near;
                    /* Insert into the sorted four: the larger of each pair moves on. */
                    near = far < best0[q] ? far : best0[q], far = far < best0[q] ? best0[q] : far, best0[q] = near;
                    near = far < best1[q] ? far : best1[q], far = far < best1[q] ? best1[q] : far, best1[q] = near;
                    near = far < best2[q] ? far : best2[q], far = far < best2[q] ? best2[q] : far, best2[q] = near;
                    best3[q] = far < best3[q] ? far : best3[q];
                }
            }
            for (int64_t q = 0; q < count; q++) {
                s->nearest[0][begin + q] = best0[q];
                s->nearest[1][begin + q] = best1[q];
                s->nearest[2][begin + q] = best2[q];
                s->nearest[3][begin + q] = best3[q];
            }
        }
        TWIN_BARRIER();
    }
}

static int FN(checksums)(const STATE *s, int64_t n, double *out) {
    for (int k = 0; k < NEAREST; k++)
        out[k] = FN(bench_checksum)(s->nearest[k], n / 10);
    return NEAREST;
}

#undef NEAREST
#undef LANES
#endif
