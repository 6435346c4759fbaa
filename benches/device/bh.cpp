// Single kernels that a device's peak is measured by: `bh MEGABYTES MATRIX` prints a JSON line for each. Arrays have so many
// megabytes, matrices for products so many rows; matrices for products with a vector have twice as many.
#include "../common/bh_harness.hpp"

#include <algorithm>

using namespace bench;

/// Turns that are timed together, after as many untimed ones, and how often.
const int turns = 20, repeats = 3;

/// Times a statement whose result stays until the next turn; `unit` is what `amount` counts in thousands of millions.
template <class Statement> void measure(const char *name, const char *unit, double amount, Statement statement) {
    double best = 0;
    for (int repeat = 0; repeat <= repeats; repeat++) {
        const double start = bench_now();
        for (int turn = 0; turn < turns; turn++) {
            statement();
            bh::flush();
        }
        bh::sync();
        const double seconds = (bench_now() - start) / turns;
        // The first turns may run while kernels are still compiled.
        if (repeat > 0 && (best == 0 || seconds < best)) best = seconds;
    }
    std::printf("{\"kernel\":\"%s\",\"seconds\":%.9f,\"%s\":%.1f}\n", name, best, unit, amount / best / 1e9);
    std::fflush(stdout);
}

/// The bandwidth that operations reach, for one element type.
template <class T> void bandwidth(std::int64_t bytes, std::int64_t m, const std::string &type) {
    const std::int64_t n = bytes / (std::int64_t)sizeof(T);
    const auto named = [&](const char *name) { return std::string(name) + " " + type; };
    const array<T> a = bh::cast<T>(bh::arange<double>((double)n) / (double)n), b = a + 1;
    array<T> out = bh::zeros<T>({n}), total;
    measure(named("copy").c_str(), "GB/s", 2.0 * (double)bytes, [&] { out.fill(a); });
    measure(named("triad").c_str(), "GB/s", 3.0 * (double)bytes, [&] { out.fill(a + 3 * b); });
    measure(named("sum").c_str(), "GB/s", (double)bytes, [&] { total = sum(a); });

    const array<T> matrix = bh::cast<T>(bh::arange<double>((double)(m * m)) / (double)(m * m)).reshape({m, m});
    const array<T> vector = bh::cast<T>(bh::arange<double>((double)m) / (double)m);
    array<T> result;
    const double moved = (double)(m * m) * sizeof(T);
    measure(named("matrix * vector").c_str(), "GB/s", moved, [&] { result = bh::matmul(matrix, vector); });
    measure(named("transpose * vector").c_str(), "GB/s", moved, [&] { result = bh::matmul(matrix.transpose(), vector); });
    measure(named("vector * transpose").c_str(), "GB/s", moved, [&] { result = bh::matmul(vector, matrix.transpose()); });
    array<T> turned = bh::zeros<T>({m, m});
    measure(named("transpose").c_str(), "GB/s", 2 * moved, [&] { turned.fill(matrix.transpose()); });
}

/// A product of matrices.
template <class T> void product(std::int64_t m, const std::string &type) {
    const array<T> a = bh::cast<T>(bh::arange<double>((double)(m * m)) / (double)(m * m)).reshape({m, m});
    const array<T> b = a + 1;
    array<T> out;
    const double operations = 2.0 * (double)m * (double)m * (double)m;
    measure(("matrix * matrix " + type).c_str(), "GFLOP/s", operations, [&] { out = bh::matmul(a, b); });
}

int main(int argc, char **argv) {
    if (argc < 3) bench_fail(argv[0], "megabytes and rows are needed");
    const std::int64_t bytes = bench_positive(argv[0], argv[1]) * 1000000, m = bench_positive(argv[0], argv[2]);
    bandwidth<double>(bytes, 2 * m, "f64");
    bandwidth<float>(bytes, 2 * m, "f32");
    product<double>(m, "f64");
    product<float>(m, "f32");
    // A step of a small program, whose result is read.
    array<double> x = bh::arange<double>(1000.0) / 1000;
    double last = 0;
    measure("20 operations on 1000 elements", "steps/ns", 1, [&] {
        array<double> y = x;
        for (int step = 0; step < 10; step++) y = y * 0.5 + x;
        last += bh::scalar(sum(y));
    });
    return last > 0 ? 0 : 1;
}
