// The programs of scalars.py as one writes them by hand for a GPU, an item for each element. CUDA C, and OpenCL C by the names at the top.
#ifdef __OPENCL_VERSION__
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL FP_CONTRACT OFF
#define KERNEL __kernel void
#define READ __global const
#define WRITTEN __global
#define ITEM ((int)get_global_id(0))
#define SINE_AND_COSINE(x, s, c) s = sincos(x, &c)
typedef long whole;
#else
#define KERNEL extern "C" __global__ void
#define READ const
#define WRITTEN
#define ITEM ((int)(blockIdx.x * blockDim.x + threadIdx.x))
#define SINE_AND_COSINE(x, s, c) sincos(x, &s, &c)
typedef long long whole;
#endif

KERNEL mandelbrot(READ double *x, READ double *y, WRITTEN whole *out, int n) {
    int i = ITEM;
    if (i >= n) return;
    double a = x[i], b = y[i], zx = 0, zy = 0;
    int turns = 0;
    while (zx * zx + zy * zy <= 4.0 && turns < 256) {
        double next = zx * zx - zy * zy + a;
        zy = 2 * zx * zy + b;
        zx = next;
        turns++;
    }
    out[i] = turns;
}

KERNEL julia(READ double2 *z, WRITTEN whole *out, int n) {
    int i = ITEM;
    if (i >= n) return;
    double x = z[i].x, y = z[i].y;
    int turn = 0;
    for (; turn < 100; turn++) {
        if (x * x + y * y > 4) break;
        double next = x * x - y * y - 0.4;
        y = x * y + y * x + 0.6;
        x = next;
    }
    out[i] = turn;
}

KERNEL newton(READ double *x, WRITTEN double *out, int n) {
    int i = ITEM;
    if (i >= n) return;
    double a = x[i], guess = a > 1 ? a : 1.0;
    if (a <= 0) {
        out[i] = 0;
        return;
    }
    for (int turn = 0; turn < 100; turn++) {
        double better = 0.5 * (guess + a / guess);
        if (fabs(better - guess) < 1e-12 * guess) break;
        guess = better;
    }
    out[i] = guess;
}

KERNEL kepler(READ double *anomaly, READ double *eccentricity, WRITTEN double *out, int n) {
    int i = ITEM;
    if (i >= n) return;
    double m = anomaly[i], e = eccentricity[i], angle = m, error = 1;
    while (fabs(error) > 1e-13) {
        double sine, cosine;
        SINE_AND_COSINE(angle, sine, cosine);
        error = (angle - e * sine - m) / (1 - e * cosine);
        angle -= error;
    }
    out[i] = angle;
}

KERNEL bisection(READ double *target, WRITTEN double *out, int n) {
    int i = ITEM;
    if (i >= n) return;
    double t = target[i], low = 0, high = 100;
    while (high - low > 1e-10) {
        double middle = (low + high) / 2;
        if (middle * middle * middle + middle < t) low = middle;
        else high = middle;
    }
    out[i] = (low + high) / 2;
}

KERNEL collatz(READ whole *start, WRITTEN whole *out, int count) {
    int i = ITEM;
    if (i >= count) return;
    whole n = start[i], steps = 0;
    while (n != 1) {
        n = n % 2 == 0 ? n / 2 : 3 * n + 1;
        steps++;
    }
    out[i] = steps;
}

KERNEL digit_sum(READ whole *start, WRITTEN whole *out, int count) {
    int i = ITEM;
    if (i >= count) return;
    whole n = start[i], largest = 0;
    for (int k = 1; k <= 20; k++) {
        whole m = n * k, digits = 0;
        while (m) {
            digits += m % 10;
            m /= 10;
        }
        if (digits > largest) largest = digits;
    }
    out[i] = largest;
}

KERNEL divisor(READ whole *first, READ whole *second, WRITTEN whole *out, int count) {
    int i = ITEM;
    if (i >= count) return;
    whole a = first[i], b = second[i];
    while (b) {
        whole rest = a % b;
        a = b;
        b = rest;
    }
    out[i] = a;
}

KERNEL legendre(READ double *x, READ whole *degree, WRITTEN double *out, int count) {
    int i = ITEM;
    if (i >= count) return;
    double at = x[i], before = 1, value = at;
    whole last = degree[i];
    for (whole n = 2; n <= last; n++) {
        double next = ((2 * n - 1) * at * value - (n - 1) * before) / n;
        before = value;
        value = next;
    }
    out[i] = last == 0 ? 1.0 : value;
}
