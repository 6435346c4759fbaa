// Single statements on whole arrays, as in `numpy_version.py`: `bh N [NAME...]` prints a JSON line for each.
#include "../common/bh_harness.hpp"

#include <algorithm>
#include <complex>
#include <cstring>

using namespace bh;
using bench::pseudo;

/// Seconds that a statement runs untimed at least, as its kernels may be compiled meanwhile, and then timed, and how often.
const double warm = 0.3, timed = 0.1;
const int warm_runs = 30, timed_runs = 5;

static char **first_name, **last_name;

/// Runs a statement until its result is there.
template <class Statement> void measure(const char *name, Statement statement) {
    const auto same = [&](const char *wanted) { return std::strcmp(wanted, name) == 0; };
    if (first_name != last_name && std::none_of(first_name, last_name, same)) return;
    std::vector<double> seconds;
    double checksum = 0;
    const double begin = bench_now();
    double since = begin;
    for (int run = 0; (int)seconds.size() < timed_runs || bench_now() - since < timed; run++) {
        bh::flush();
        const double start = bench_now();
        const auto result = statement();
        result.map();
        const double end = bench_now();
        if (run >= warm_runs && start - begin >= warm) {
            if (seconds.empty()) since = start;
            seconds.push_back(end - start);
        }
        if (seconds.size() == 1) checksum = bench::checksum(cast<double>(result));
    }
    std::sort(seconds.begin(), seconds.end());
    std::printf("{\"statement\":\"%s\",\"seconds\":%.9f,\"checksum\":%.17g}\n", name, seconds[seconds.size() / 2], checksum);
    std::fflush(stdout);
}

int main(int argc, char **argv) {
    if (argc < 2) bench_fail(argv[0], "the number of elements is needed");
    const std::int64_t n = bench_positive(argv[0], argv[1]), m = (std::int64_t)std::sqrt((double)n), c = (std::int64_t)std::cbrt((double)n);
    first_name = argv + 2, last_name = argv + argc;
    const auto a = pseudo<double>({n}, 1), b = pseudo<double>({n}, 2), A = pseudo<double>({m, m}, 3), B = pseudo<double>({m, m}, 4);
    const auto row = pseudo<double>({m}, 5), points = pseudo<double>({n / 4, 3}, 6), cube = pseudo<double>({c, c, c}, 7);
    const array<float> f = cast<float>(a);
    const array<std::int64_t> i = cast<std::int64_t>(a * 1000), j = cast<std::int64_t>(b * 1000) + 1;
    const array<std::int64_t> places = cast<std::int64_t>(b * n), bins = cast<std::int64_t>(b * 100), rows = cast<std::int64_t>(row * m);
    const array<std::int32_t> i4 = cast<std::int32_t>(i);
    const array<std::int8_t> i1 = cast<std::int8_t>(a * 60);
    const array<bool> mask = a > 0.5;
    bh::flush();

    measure("a + b", [&] { return a + b; });
    measure("f * 2 + 1", [&] { return f * 2 + 1; });
    measure("i + j", [&] { return i + j; });
    measure("i1 + i1", [&] { return i1 + i1; });
    measure("((a / 2 + 1) * a - 3) * a", [&] { return ((a / 2 + 1) * a - 3) * a; });
    measure("i // j", [&] { return floor_divide(i, j); });
    measure("i // 7", [&] { return floor_divide(i, 7); });
    measure("i % 7", [&] { return mod(i, 7); });
    measure("i4 // 7", [&] { return floor_divide(i4, 7); });
    measure("a % b", [&] { return mod(a, b + 1); });
    measure("a ** b", [&] { return pow(a + 1, b); });
    measure("sqrt(a)", [&] { return sqrt(a); });
    measure("exp(a)", [&] { return exp(a); });
    measure("log(a)", [&] { return log(a + 1); });
    measure("sin(a)", [&] { return sin(a); });
    measure("sin(f)", [&] { return sin(f); });
    measure("tan(a)", [&] { return tan(a); });
    measure("arctan2(a, b)", [&] { return arctan2(a, b + 1); });
    measure("where(mask, a, b)", [&] { return where(mask, a, b); });
    measure("clip(a)", [&] { return clip(a, 0.2, 0.8); });
    measure("mask & (a > b)", [&] { return logical_and(mask, a > b); });
    measure("sum(a)", [&] { return sum(a); });
    measure("sum(i)", [&] { return sum(i); });
    measure("max(a)", [&] { return max(a); });
    measure("dot(a, b)", [&] { return dot(a, b); });
    measure("sum(A, 0)", [&] { return sum(A, 0); });
    measure("sum(A, 1)", [&] { return sum(A, 1); });
    measure("sum(A[:, ::2], 1)", [&] { return sum(A(all, slice(0, none, 2)), 1); });
    measure("std(A, 1)", [&] { const array<double> mean = bh::mean(A, 1); return sqrt(bh::mean(pow(A - mean(all, newaxis), 2), 1)); });
    measure("sum(cube, 0)", [&] { return sum(cube, 0); });
    measure("sum(cube, 1)", [&] { return sum(cube, 1); });
    measure("sum(cube, (0, 2))", [&] { return sum(cube, {0, 2}); });
    measure("sum(points, 0)", [&] { return sum(points, 0); });
    measure("norm(points, 1)", [&] { return sqrt(sum(points * points, 1)); });
    measure("A + A.T", [&] { return A + A.transpose(); });
    measure("A.T.copy()", [&] { return copy(A.transpose()); });
    measure("cube.transpose(2, 1, 0)", [&] { return copy(cube.transpose({2, 1, 0})); });
    measure("a[::-1] + b", [&] { return a(slice(none, none, -1)) + b; });
    measure("a[::2] + b[1::2]", [&] { return a(slice(0, n - 1, 2)) + b(slice(1, none, 2)); });
    measure("a[::3] * 2", [&] { return a(slice(0, none, 3)) * 2; });
    measure("A - row", [&] { return A - row; });
    measure("cumsum(a)", [&] { return cumsum(a); });
    measure("cumsum(A, 0)", [&] { return cumsum(A, 0); });
    measure("a[places]", [&] { return take(a, places); });
    measure("A[rows]", [&] { return take(A, rows, 0); });
    measure("A[:, rows]", [&] { return take(A, rows, 1); });
    measure("h[places] = b", [&] { auto h = zeros<double>({n}); put(h, places, b); return h; });
    measure("bincount(bins, b)", [&] { auto h = zeros<double>({100}); put_add(h, bins, b); return h; });
    measure("f64(i)", [&] { return cast<double>(i); });
    measure("i64(a * 1000)", [&] { return cast<std::int64_t>(a * 1000); });
    measure("f32(a)", [&] { return cast<float>(a); });
    measure("A @ B", [&] { return matmul(A, B); });
    measure("A @ row", [&] { return matmul(A, row); });
    measure("row @ A", [&] { return matmul(row, A); });
    measure("abs(fft(a))", [&] { return absolute(fft(a)); });
    measure("concatenate(a, b)", [&] { return concatenate<double>({a, b}); });
    measure("repeat(A, 2, 1)", [&] { return repeat(A, 2, 1); });
    measure("roll(A, 1, 1)", [&] { return roll(A, 1, 1); });
    measure("diff(a)", [&] { return diff(a); });
    measure("softmax(A)", [&] { const array<double> e = exp(A - max(A, 1)(all, newaxis)); return e / sum(e, 1)(all, newaxis); });
    return 0;
}
