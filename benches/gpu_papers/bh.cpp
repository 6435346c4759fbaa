// The programs that the papers on GPU compilers measure, at their sizes: `bh RUNS [NAME...]` prints a JSON line
// for each, with the seconds of the first run and of the fastest of the others, and with what the counters of BENCH_COUNTERS grew
// by in the first and in the last run. A run ends when its result is in host memory.
//
//   J  X. Li, Jit4OpenCL: a compiler from Python to OpenCL (2010)       F  D. White, Firepile (2014)
//   A  Baskaran et al., affine loop nests for GPUs (TR78, 2007)         L  Dubach et al., Lime (PLDI 2012)
#include "../common/repulsion.hpp"

#include <algorithm>
#include <cstring>

using namespace bh;

using floats = array<float>;
using doubles = array<double>;
using words = array<std::uint32_t>;

/// Whether runs make checksums, which tell whether engines agree; timed ones do not.
static bool summing = false;

/// Brings a result to the host; its checksum if that is wanted.
template <class T> static double read(const array<T> &result) {
    result.map();
    return summing ? bench::checksum(result) : 0;
}
/// Seconds that making input data took, which counts for no run.
static double making = 0;

template <class T = float> static array<T> numbers(const shape &extents, std::int64_t seed) {
    const double start = bench_now();
    array<T> result = bench::pseudo<T>(extents, seed);
    making += bench_now() - start;
    return result;
}

// J, A (4096²): a product of matrices.
template <std::int64_t n> static double product() {
    static const floats a = numbers({n, n}, 1), b = numbers({n, n}, 2);
    return read(floats(matmul(a, b)));
}

// J (up to 512²), L (512²): potential of atoms on a plane of points, without the distances' matrix in memory.
template <std::int64_t n> static double potential() {
    static const floats atoms = numbers({4, 4000}, 3);
    const floats y = 0.5f * cast<float>(arange<double>((double)n)), x = y.copy();
    const auto row = [&](int axis) { return atoms(axis, newaxis, newaxis, all); };
    const auto dx = x(newaxis, all, newaxis) - 256 * row(0), dy = y(all, newaxis, newaxis) - 256 * row(1);
    return read(floats(sum(row(3) / sqrt(dx * dx + dy * dy + square(1 + row(2))), 2)));
}

// J (up to 768² bodies), L (4096 in f32 and f64): forces among bodies, all pairs.
template <class T> static array<T> pulled(const array<T> &mass, const array<T> &p) {
    const auto difference = [&](int axis) { return p(axis, newaxis, all) - p(axis, all, newaxis); };
    const auto dx = difference(0), dy = difference(1), dz = difference(2);
    const auto apart = dx * dx + dy * dy + dz * dz + T(0.01);
    const auto pull = mass(newaxis, all) / (apart * sqrt(apart));
    array<T> force = empty<T>(p.shape());
    force(0, all) = sum(pull * dx, 1), force(1, all) = sum(pull * dy, 1), force(2, all) = sum(pull * dz, 1);
    return force;
}
template <class T, std::int64_t n> static double forces() {
    // The matrices of all pairs end with the function, so that none of them gets memory.
    return read(pulled(numbers<T>({n}, 4), numbers<T>({3, n}, 5)));
}

// J (up to 4096²), F (16 million): prices of options, call and put.
template <std::int64_t n> static double options() {
    static const floats spot = 50 + 20 * numbers({n}, 6);
    const auto normal = [](const floats &x) {
        const auto k = 1 / (1 + 0.2316419f * abs(x));
        const auto series = k * (0.31938153f + k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f))));
        const auto tail = 0.3989422804f * exp(-0.5f * x * x) * series;
        return where(x < 0.0f, tail, 1 - tail);
    };
    const floats d1 = (log(spot / 60) + (0.02f + 0.3f * 0.3f / 2) * 2) / (0.3f * std::sqrt(2.0f)), d2 = d1 - 0.3f * std::sqrt(2.0f);
    const float discount = 60 * std::exp(-0.02f * 2);
    floats call = spot * normal(d1) - discount * normal(d2), put = call - spot + discount;
    const double calls = read(call), puts = read(put);
    return calls + puts;
}

// J (up to 4096²): whole-array code takes every step for all points.
template <std::int64_t n> static double mandelbrot() {
    const floats axis = cast<float>(arange<double>((double)n)) / (float)n;
    const floats re = broadcast_to((3 * axis - 2)(newaxis, all), {n, n}), im = broadcast_to((2 * axis - 1)(all, newaxis), {n, n});
    floats x = re.copy(), y = im.copy(), steps = zeros<float>({n, n});
    for (int step = 0; step < 64; step++) {
        const floats xx = x * x, yy = y * y;
        const auto inside = xx + yy < 4.0f;
        const floats moved = where(inside, xx - yy + re, x);
        y = where(inside, 2 * x * y + im, y);
        steps += cast<float>(inside);
        x = moved;
    }
    return read(steps);
}

// J (4096²), F (2^22 elements): an expected loser, as it moves as much as it computes.
template <std::int64_t n> static double transposed() {
    static const floats a = numbers({n, n}, 7);
    return read(floats(a.transpose().copy()));
}

// J (4096²): one step, an expected loser.
static double stencil_5_point() {
    static const floats grid = numbers({4096, 4096}, 8);
    floats out = grid.copy();
    const auto in = slice(1, -1), before = slice(none, -2), after = slice(2, none);
    out(in, in) = 0.2f * (grid(in, in) + grid(before, in) + grid(after, in) + grid(in, before) + grid(in, after));
    return read(out);
}

// F (2^23).
static double reduce() {
    static const floats x = numbers({1 << 23}, 9);
    return (double)scalar(sum(x));
}

// F (15.4 million elements of a matrix), A (8192²): products of a matrix, its transpose, or both, with vectors.
template <std::int64_t n> static floats matrix() {
    static const floats a = numbers({n, n}, 10);
    return a;
}
template <std::int64_t n, std::int64_t seed> static floats line() {
    static const floats x = numbers({n}, seed);
    return x;
}
template <std::int64_t n> static double mv() { return read(floats(matmul(matrix<n>(), line<n, 11>()))); }
template <std::int64_t n> static double tmv() { return read(floats(matmul(matrix<n>().transpose(), line<n, 11>()))); }
template <std::int64_t n> static double mvt() {
    const floats a = matrix<n>(), straight = matmul(a, line<n, 11>()), turned = matmul(a.transpose(), line<n, 22>());
    const double sum = read(straight);
    return sum + read(turned);
}

// F (2^21 elements): the cosine transform of each 8 × 8 block, C · block · Cᵀ.
static double dct8x8() {
    static const floats image = numbers({1 << 21}, 12);
    const std::int64_t blocks = (1 << 21) / 64;
    const doubles k = arange<double>(8.0);
    doubles c = 0.5 * cos((2 * k(newaxis, all) + 1) * k(all, newaxis) * (std::acos(-1.0) / 16));
    c(0, all) *= std::sqrt(0.5);
    const floats cosine = cast<float>(c), block = image.reshape({blocks, 8, 8});
    const floats half = sum(cosine(newaxis, all, newaxis, all) * block.transpose({0, 2, 1})(all, newaxis, all, all), 3);
    return read(floats(sum(half(all, all, newaxis, all) * cosine(newaxis, newaxis, all, all), 3)));
}

// A: 2-D finite differences in time, 20 steps of 2048².
static double fdtd_2d() {
    const std::int64_t n = 2048;
    floats ex = numbers({n, n}, 13), ey = numbers({n, n}, 14), hz = numbers({n, n}, 15);
    const auto first = slice(none, -1), rest = slice(1, none);
    for (int step = 0; step < 20; step++) {
        ey(0, all) = (float)step;
        ey(rest, all) -= 0.5f * (hz(rest, all) - hz(first, all));
        ex(all, rest) -= 0.5f * (hz(all, rest) - hz(all, first));
        hz(first, first) -= 0.7f * (ex(first, rest) - ex(first, first) + ey(rest, first) - ey(first, first));
    }
    return read(hz);
}

// A, L: magnetic resonance image, 2048 samples for each of 32,768 voxels.
static double mri_q() {
    static const floats k = numbers({4, 2048}, 16), x = numbers({3, 32768}, 17);
    const auto sample = [&](int axis) { return k(axis, newaxis, all); };
    const auto voxel = [&](int axis) { return x(axis, all, newaxis); };
    const auto angle = 6.2831853f * (sample(0) * voxel(0) + sample(1) * voxel(1) + sample(2) * voxel(2));
    floats q = empty<float>({2, 32768});
    q(0, all) = sum(square(sample(3)) * cos(angle), 1), q(1, all) = sum(square(sample(3)) * sin(angle), 1);
    return read(q);
}

// A: the same image's vector Fᴴd.
static double mri_fhd() {
    static const floats k = numbers({3, 2048}, 16), x = numbers({3, 32768}, 17), phi = numbers({2, 2048}, 23), data = numbers({2, 2048}, 24);
    const auto sample = [&](int axis) { return k(axis, newaxis, all); };
    const auto voxel = [&](int axis) { return x(axis, all, newaxis); };
    const floats re = phi(0, all) * data(0, all) + phi(1, all) * data(1, all), im = phi(0, all) * data(1, all) - phi(1, all) * data(0, all);
    const auto angle = 6.2831853f * (sample(0) * voxel(0) + sample(1) * voxel(1) + sample(2) * voxel(2));
    const auto cosine = cos(angle), sine = sin(angle);
    floats out = empty<float>({2, 32768});
    out(0, all) = sum(re(newaxis, all) * cosine - im(newaxis, all) * sine, 1);
    out(1, all) = sum(im(newaxis, all) * cosine + re(newaxis, all) * sine, 1);
    return read(out);
}

// L: for each of 1,024 tiles of an image the nearest of 1,024 tiles of a library, 16 × 16 whole numbers each.
static double mosaic() {
    const auto tiles = [](std::int64_t seed) { return array<std::int32_t>(cast<std::int32_t>(256 * numbers({1024, 256}, seed))); };
    static const array<std::int32_t> image = tiles(18), library = tiles(19);
    const auto apart = abs(image(all, newaxis, all) - library(newaxis, all, all));
    return read(array<std::int64_t>(argmin(array<std::int64_t>(sum(cast<std::int64_t>(apart), 2)), 1)));
}

// L: the IDEA cipher on 3 MB: eight rounds and a half of products modulo 65,537, sums modulo 65,536 and exclusive ors.
static double crypt() {
    static const words text = cast<std::uint32_t>(65536 * numbers({4, 375000}, 20));
    static const std::vector<std::uint32_t> key = [] {
        std::vector<std::uint32_t> numbers;
        for (int i = 0; i < 52; i++) numbers.push_back((std::uint32_t)(65535 * bench_pseudo(i, 21)) + 1);
        return numbers;
    }();
    const auto add = [](const words &a, const words &b) { return words((a + b) & 0xffffu); };
    // Zero stands for 65,536.
    const auto multiply = [](const words &a, const words &b) {
        const array<std::uint64_t> wide_a = cast<std::uint64_t>(where(a == 0u, 65536u, a));
        const array<std::uint64_t> wide_b = cast<std::uint64_t>(where(b == 0u, 65536u, b));
        return words(cast<std::uint32_t>((wide_a * wide_b) % std::uint64_t(65537)) & 0xffffu);
    };
    words a = text(0, all), b = text(1, all), c = text(2, all), d = text(3, all);
    const auto part = [&](int at) { return words(full<std::uint32_t>({}, key[(std::size_t)at])); };
    for (int round = 0; round < 8; round++) {
        const int at = 6 * round;
        a = multiply(a, part(at)), b = add(b, part(at + 1)), c = add(c, part(at + 2)), d = multiply(d, part(at + 3));
        const words e = multiply(a ^ c, part(at + 4)), f = multiply(add(b ^ d, e), part(at + 5)), g = add(e, f);
        const words old_b = b;
        a = a ^ f, b = c ^ f, c = old_b ^ g, d = d ^ g;
    }
    words out = empty<std::uint32_t>({4, 375000});
    out(0, all) = multiply(a, part(48)), out(1, all) = add(c, part(49)), out(2, all) = add(b, part(50)), out(3, all) = multiply(d, part(51));
    return read(out);
}

// L: Fourier coefficients of (x + 1)^x on [0, 2], 10,000 pairs by sums over 1,000 points.
template <class T> static double series() {
    const std::int64_t pairs = 10000, points = 1000;
    const array<T> n = cast<T>(arange<double>((double)pairs)), x = cast<T>(arange<double>((double)points) * (2.0 / (points - 1)));
    const array<T> height = power(x + T(1), x);
    const auto angle = T(3.14159265358979) * n(all, newaxis) * x(newaxis, all);
    array<T> out = empty<T>({2, pairs});
    out(0, all) = sum(height(newaxis, all) * cos(angle), 1), out(1, all) = sum(height(newaxis, all) * sin(angle), 1);
    return read(out);
}

// L: two-electron repulsion integrals, 1,024 pairs of shells with each other, 81 quartets an integral.
static double rpes() {
    const auto part = [](int which) {
        const double start = bench_now();
        floats side = bench::repulsion_side<float>(1024, which);
        making += bench_now() - start;
        return side;
    };
    static const floats side[5] = {part(0), part(1), part(2), part(3), part(4)};
    return read(bench::repulsion(side));
}

struct named {
    const char *name, *papers;
    double (*program)();
};

static const named programs[] = {
    {"matmul_1024", "J", product<1024>},
    {"matmul_4096", "A", product<4096>},
    {"coulomb_128", "J", potential<128>},
    {"coulomb_256", "J", potential<256>},
    {"coulomb_512", "JL", potential<512>},
    {"nbody_128x128", "J", forces<float, 128 * 128>},
    {"nbody_256x256", "J", forces<float, 256 * 256>},
    {"nbody_512x512", "J", forces<float, 512 * 512>},
    {"nbody_768x768", "J", forces<float, 768 * 768>},
    {"nbody_4096", "L", forces<float, 4096>},
    {"nbody_4096_f64", "L", forces<double, 4096>},
    {"black_scholes_1024x1024", "J", options<1024 * 1024>},
    {"black_scholes_2048x2048", "J", options<2048 * 2048>},
    {"black_scholes_4096x4096", "JF", options<4096 * 4096>},
    {"mandelbrot_1024", "J", mandelbrot<1024>},
    {"mandelbrot_2048", "J", mandelbrot<2048>},
    {"mandelbrot_4096", "J", mandelbrot<4096>},
    {"transpose_4096", "J", transposed<4096>},
    {"transpose_2048", "F", transposed<2048>},
    {"stencil_5_point", "J", stencil_5_point},
    {"reduce", "F", reduce},
    {"mvm_15m", "F", mv<3924>},
    {"dct8x8", "F", dct8x8},
    {"mv_8192", "A", mv<8192>},
    {"tmv_8192", "A", tmv<8192>},
    {"mvt_8192", "A", mvt<8192>},
    {"fdtd_2d", "A", fdtd_2d},
    {"mri_q", "AL", mri_q},
    {"mri_fhd", "A", mri_fhd},
    {"mosaic", "L", mosaic},
    {"crypt", "L", crypt},
    {"series_f32", "L", series<float>},
    {"series_f64", "L", series<double>},
    {"rpes", "L", rpes},
};

int main(int argc, char **argv) {
    if (argc < 2) bench_fail(argv[0], "the number of runs is needed");
    const std::int64_t runs = bench_positive(argv[0], argv[1]);
    try {
        for (const named &one : programs) {
            const auto same = [&](const char *wanted) { return std::strcmp(wanted, one.name) == 0; };
            if (argc > 2 && std::none_of(argv + 2, argv + argc, same)) continue;
            double first = 0, later = 0;
            std::string counted_first, counted_last;
            for (std::int64_t run = 0; run < runs; run++) {
                const bench::counters counted;
                const double start = bench_now();
                making = 0;
                one.program();
                const double seconds = bench_now() - start - making;
                counted_last = counted.text();
                if (run == 0) first = seconds, counted_first = counted_last;
                else later = later == 0 ? seconds : std::min(later, seconds);
                if (bench::on_a_device()) bench::finish_building();
            }
            summing = true;
            const double checksum = one.program();
            summing = false;
            std::printf("{\"program\":\"%s\",\"papers\":\"%s\",\"first\":%.9f,\"later\":%.9f,\"counters\":[%s,%s],\"checksum\":%.17g}\n", one.name,
                        one.papers, first, later, counted_first.c_str(), counted_last.c_str(), checksum);
            std::fflush(stdout);
        }
    } catch (const bh::error &error) {
        std::fprintf(stderr, "gpu_papers: %s\n", error.what());
        return 1;
    }
    return 0;
}
