/* Forces among bodies in C, all pairs, rows shared among the cores: what NumPy has no memory for. */
#include <math.h>

void forces(long n, const float *restrict mass, const float *restrict p, float *restrict force) {
#pragma omp parallel for schedule(static)
    for (long i = 0; i < n; i++) {
        const float x = p[i], y = p[n + i], z = p[2 * n + i];
        float fx = 0, fy = 0, fz = 0;
#pragma omp simd reduction(+ : fx, fy, fz)
        for (long k = 0; k < n; k++) {
            const float dx = p[k] - x, dy = p[n + k] - y, dz = p[2 * n + k] - z;
            const float apart = dx * dx + dy * dy + dz * dz + 0.01f, pull = mass[k] / (apart * sqrtf(apart));
            fx += pull * dx, fy += pull * dy, fz += pull * dz;
        }
        force[i] = fx, force[n + i] = fy, force[2 * n + i] = fz;
    }
}
