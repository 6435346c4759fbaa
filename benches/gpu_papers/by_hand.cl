// The programs of the papers on GPU compilers as one writes them by hand, without tuning: an item for each result, loops in
// registers, neighbours beside each other; rows of matrices are folded by groups. The host is benches/by_hand.py.
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#define G __global
#define IN __global const float *restrict
#define OUT __global float *restrict
#define X get_global_id(0)
#define Y get_global_id(1)

// A square tile of a product for each group, through local memory.
__kernel void matmul(IN a, IN b, OUT c, const int n) {
    __local float left[16][16], right[16][16];
    const int x = get_local_id(0), y = get_local_id(1), column = X, row = Y;
    float sum = 0;
    for (int tile = 0; tile < n; tile += 16) {
        left[y][x] = a[row * n + tile + x];
        right[y][x] = b[(tile + y) * n + column];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < 16; k++) sum += left[y][k] * right[k][x];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    c[row * n + column] = sum;
}

__kernel void coulomb(IN atoms, OUT potential, const int count) {
    const float x = 0.5f * Y, y = 0.5f * X;
    float sum = 0;
    for (int k = 0; k < count; k++) {
        const float dx = x - 256 * atoms[k], dy = y - 256 * atoms[count + k], dz = 1 + atoms[2 * count + k];
        sum += atoms[3 * count + k] / sqrt(dx * dx + dy * dy + dz * dz);
    }
    potential[X * get_global_size(1) + Y] = sum;
}

#define NBODY(name, real)                                                                                              \
    __kernel void name(G const real *restrict mass, G const real *restrict p, G real *restrict force) {               \
        const int i = X, n = get_global_size(0);                                                                       \
        const real x = p[i], y = p[n + i], z = p[2 * n + i];                                                           \
        real fx = 0, fy = 0, fz = 0;                                                                                   \
        for (int k = 0; k < n; k++) {                                                                                  \
            const real dx = p[k] - x, dy = p[n + k] - y, dz = p[2 * n + k] - z;                                        \
            const real apart = dx * dx + dy * dy + dz * dz + (real)0.01;                                               \
            const real pull = mass[k] / (apart * sqrt(apart));                                                         \
            fx += pull * dx, fy += pull * dy, fz += pull * dz;                                                         \
        }                                                                                                              \
        force[i] = fx, force[n + i] = fy, force[2 * n + i] = fz;                                                       \
    }
NBODY(nbody, float)
NBODY(nbody_f64, double)

float normal(const float x) {
    const float k = 1 / (1 + 0.2316419f * fabs(x));
    const float series = k * (0.31938153f + k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f))));
    const float tail = 0.3989422804f * exp(-0.5f * x * x) * series;
    return x < 0 ? tail : 1 - tail;
}
__kernel void black_scholes(IN spot, OUT call, OUT put) {
    const float s = spot[X], d1 = (log(s / 60) + (0.02f + 0.3f * 0.3f / 2) * 2) / (0.3f * sqrt(2.0f)), d2 = d1 - 0.3f * sqrt(2.0f);
    const float discount = 60 * exp(-0.02f * 2), value = s * normal(d1) - discount * normal(d2);
    call[X] = value, put[X] = value - s + discount;
}

__kernel void mandelbrot(OUT steps) {
    const int n = get_global_size(0);
    const float re = 3 * ((float)X / n) - 2, im = 2 * ((float)Y / n) - 1;
    float x = re, y = im;
    int step = 0;
    for (; step < 64 && x * x + y * y < 4; step++) {
        const float moved = x * x - y * y + re;
        y = 2 * x * y + im, x = moved;
    }
    steps[Y * n + X] = step;
}

__kernel void transpose(IN a, OUT b) {
    __local float tile[16][17];
    const int n = get_global_size(0), x = get_local_id(0), y = get_local_id(1);
    tile[y][x] = a[Y * n + X];
    barrier(CLK_LOCAL_MEM_FENCE);
    b[(get_group_id(0) * 16 + y) * n + get_group_id(1) * 16 + x] = tile[x][y];
}

__kernel void stencil(IN grid, OUT out) {
    const int n = get_global_size(0), x = X, y = Y, at = y * n + x;
    const bool inner = x > 0 && y > 0 && x < n - 1 && y < n - 1;
    out[at] = inner ? 0.2f * (grid[at] + grid[at - n] + grid[at + n] + grid[at - 1] + grid[at + 1]) : grid[at];
}

// Sums of a group, for folds in two stages.
float folded(float sum, __local float *part) {
    const int i = get_local_id(0);
    part[i] = sum;
    for (int k = get_local_size(0) / 2; k > 0; k /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (i < k) part[i] += part[i + k];
    }
    return part[0];
}
__kernel void reduce(IN x, OUT sums, const int n) {
    __local float part[256];
    float sum = 0;
    for (int i = X; i < n; i += get_global_size(0)) sum += x[i];
    sum = folded(sum, part);
    if (get_local_id(0) == 0) sums[get_group_id(0)] = sum;
}
// A row for each group.
__kernel void mv(IN a, IN x, OUT y, const int columns) {
    __local float part[256];
    const int row = get_group_id(0);
    float sum = 0;
    for (int k = get_local_id(0); k < columns; k += get_local_size(0)) sum += a[row * columns + k] * x[k];
    sum = folded(sum, part);
    if (get_local_id(0) == 0) y[row] = sum;
}
// A column for each item.
__kernel void tmv(IN a, IN x, OUT y, const int rows) {
    const int columns = get_global_size(0);
    float sum = 0;
    for (int k = 0; k < rows; k++) sum += a[k * columns + X] * x[k];
    y[X] = sum;
}

// A block of 8 × 8 for each group, C · block · Cᵀ.
__kernel void dct8x8(IN image, OUT out) {
    __local float block[8][8], half_[8][8], c[8][8];
    const int v = get_local_id(0), u = get_local_id(1), at = get_group_id(0) * 64 + u * 8 + v;
    block[u][v] = image[at];
    c[u][v] = (u ? 0.5f : 0.35355339f) * cos((2 * v + 1) * u * 0.19634954f);
    barrier(CLK_LOCAL_MEM_FENCE);
    float sum = 0;
    for (int k = 0; k < 8; k++) sum += c[u][k] * block[k][v];
    half_[u][v] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    sum = 0;
    for (int k = 0; k < 8; k++) sum += half_[u][k] * c[v][k];
    out[at] = sum;
}

__kernel void electric(OUT ex, OUT ey, IN hz, const float now) {
    const int n = get_global_size(0), at = Y * n + X;
    ey[at] = Y == 0 ? now : ey[at] - 0.5f * (hz[at] - hz[at - n]);
    if (X > 0) ex[at] -= 0.5f * (hz[at] - hz[at - 1]);
}
__kernel void magnetic(IN ex, IN ey, OUT hz) {
    const int n = get_global_size(0), at = Y * n + X;
    if (X < n - 1 && Y < n - 1) hz[at] -= 0.7f * (ex[at + 1] - ex[at] + ey[at + n] - ey[at]);
}

__kernel void mri_q(IN k, IN x, OUT q, const int samples) {
    const int i = X, n = get_global_size(0);
    float re = 0, im = 0;
    for (int s = 0; s < samples; s++) {
        const float angle = 6.2831853f * (k[s] * x[i] + k[samples + s] * x[n + i] + k[2 * samples + s] * x[2 * n + i]);
        const float phi = k[3 * samples + s] * k[3 * samples + s];
        re += phi * cos(angle), im += phi * sin(angle);
    }
    q[i] = re, q[n + i] = im;
}

__kernel void mri_fhd(IN k, IN x, IN phi, IN data, OUT out, const int samples) {
    const int i = X, n = get_global_size(0);
    float re = 0, im = 0;
    for (int s = 0; s < samples; s++) {
        const float angle = 6.2831853f * (k[s] * x[i] + k[samples + s] * x[n + i] + k[2 * samples + s] * x[2 * n + i]);
        const float real = phi[s] * data[s] + phi[samples + s] * data[samples + s], imaginary = phi[s] * data[samples + s] - phi[samples + s] * data[s];
        const float cosine = cos(angle), sine = sin(angle);
        re += real * cosine - imaginary * sine, im += imaginary * cosine + real * sine;
    }
    out[i] = re, out[n + i] = im;
}

// Distances of all pairs of tiles, 16 × 16 of them for a group; then the nearest of each.
__kernel void apart(G const int *restrict image, G const int *restrict library, G int *restrict distance) {
    __local int left[16][17], right[16][17];
    const int x = get_local_id(0), y = get_local_id(1);
    int sum = 0;
    for (int at = 0; at < 256; at += 16) {
        left[y][x] = image[Y * 256 + at + x];
        right[y][x] = library[(get_group_id(0) * 16 + y) * 256 + at + x];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < 16; k++) sum += abs(left[y][k] - right[x][k]);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    distance[Y * get_global_size(0) + X] = sum;
}
__kernel void nearest(G const int *restrict distance, G long *restrict found, const int count) {
    int best = 0;
    for (int k = 1; k < count; k++)
        if (distance[X * count + k] < distance[X * count + best]) best = k;
    found[X] = best;
}

uint times(const uint a, const uint b) { return (uint)((ulong)(a ? a : 65536) * (b ? b : 65536) % 65537) & 0xffff; }
__kernel void crypt(G const uint *restrict text, __constant uint *key, G uint *restrict out, const int n) {
    const int i = X;
    if (i >= n) return;
    uint a = text[i], b = text[n + i], c = text[2 * n + i], d = text[3 * n + i];
    for (int round = 0; round < 8; round++, key += 6) {
        a = times(a, key[0]), b = (b + key[1]) & 0xffff, c = (c + key[2]) & 0xffff, d = times(d, key[3]);
        const uint e = times(a ^ c, key[4]), f = times(((b ^ d) + e) & 0xffff, key[5]), g = (e + f) & 0xffff, old_b = b;
        a = a ^ f, b = c ^ f, c = old_b ^ g, d = d ^ g;
    }
    out[i] = times(a, key[0]), out[n + i] = (c + key[1]) & 0xffff, out[2 * n + i] = (b + key[2]) & 0xffff, out[3 * n + i] = times(d, key[3]);
}

#define SERIES(name, real)                                                                                             \
    __kernel void name(G const real *restrict height, G real *restrict out, const int pairs, const int points) {      \
        const int i = X;                                                                                               \
        if (i >= pairs) return;                                                                                        \
        real re = 0, im = 0;                                                                                           \
        for (int k = 0; k < points; k++) {                                                                             \
            const real angle = (real)3.14159265358979 * i * (real)(k * (2.0 / (points - 1)));                          \
            re += height[k] * cos(angle), im += height[k] * sin(angle);                                                \
        }                                                                                                              \
        out[i] = re, out[pairs + i] = im;                                                                              \
    }
SERIES(series_f32, float)
SERIES(series_f64, double)

// An integral for each item; large arguments need no error function.
__kernel void rpes(IN p, IN c, IN x, IN y, IN z, OUT integrals) {
    const int n = get_global_size(0), a = 9 * Y, b = 9 * X;
    float sum = 0;
    for (int i = a; i < a + 9; i++)
        for (int j = b; j < b + 9; j++) {
            const float product = p[i] * p[j], total = p[i] + p[j], dx = x[i] - x[j], dy = y[i] - y[j], dz = z[i] - z[j];
            const float t = product / total * (dx * dx + dy * dy + dz * dz);
            float boys;
            if (t < 1e-3f) boys = 1 - t * (1.0f / 3 - t * (0.1f - t / 42));
            else boys = 0.5f * sqrt(3.1415927f / t) * (t > 30 ? 1 : erf(sqrt(t)));
            sum += 34.986837f * c[i] * c[j] / (product * sqrt(total)) * boys;
        }
    integrals[Y * n + X] = sum;
}
