/* The vector F^H d of a reconstruction of magnetic resonance images: for n voxels a sum over 512 samples.
 * One loop over a voxel's samples with two sums; nothing of voxels times samples is stored. */
#define TWIN_NAME "mri_fhd"
#define TWIN_SOURCE "../mri_fhd/twin.c"
#define TWIN_SMALLEST 1
#define SAMPLES 512
#include "../common/twin.h"
#ifdef REAL

typedef struct {
    REAL *voxel[3], *re, *im, sample[3][SAMPLES], phi[2][SAMPLES], d[2][SAMPLES];
} STATE;

static void FN(allocate)(STATE *s, int64_t n) {
    for (int axis = 0; axis < 3; axis++)
        s->voxel[axis] = FN(bench_array)(n);
    s->re = FN(bench_array)(n), s->im = FN(bench_array)(n);
}

static void FN(fill)(STATE *s, int64_t n) {
    for (int axis = 0; axis < 3; axis++) {
        for (int64_t i = 0; i < n; i++)
            s->voxel[axis][i] = R(bench_pseudo(i, 50 + axis));
        for (int64_t k = 0; k < SAMPLES; k++)
            s->sample[axis][k] = R(bench_pseudo(k, 53 + axis));
    }
    for (int part = 0; part < 2; part++)
        for (int64_t k = 0; k < SAMPLES; k++)
            s->phi[part][k] = R(bench_pseudo(k, 56 + part)), s->d[part][k] = R(bench_pseudo(k, 58 + part));
}

static void FN(run)(STATE *s, int64_t n, int64_t iters) {
    const REAL *restrict x = s->voxel[0], *restrict y = s->voxel[1], *restrict z = s->voxel[2];
    const REAL *restrict kx = s->sample[0], *restrict ky = s->sample[1], *restrict kz = s->sample[2];
    for (int64_t step = 0; step < iters; step++) {
        REAL mu_re[SAMPLES], mu_im[SAMPLES];
        for (int k = 0; k < SAMPLES; k++) {
            mu_re[k] = s->phi[0][k] * s->d[0][k] + s->phi[1][k] * s->d[1][k];
            mu_im[k] = s->phi[0][k] * s->d[1][k] - s->phi[1][k] * s->d[0][k];
        }
        TWIN_BARRIER();
#pragma omp parallel for schedule(static)
        for (int64_t i = 0; i < n; i++) {
            REAL re = 0, im = 0;
#pragma omp simd reduction(+ : re, im)
            for (int k = 0; k < SAMPLES; k++) {
                REAL angle = R(6.283185307179586) * (x[i] * kx[k] + y[i] * ky[k] + z[i] * kz[k]);
                REAL cosine = cos(angle), sine = sin(angle);
                re += mu_re[k] * cosine - mu_im[k] * sine;
                im += mu_im[k] * cosine + mu_re[k] * sine;
            }
            s->re[i] = re, s->im[i] = im;
        }
    }
}

static int FN(checksums)(const STATE *s, int64_t n, double *out) {
    out[0] = FN(bench_checksum)(s->re, n);
    out[1] = FN(bench_checksum)(s->im, n);
    return 2;
}

#endif
