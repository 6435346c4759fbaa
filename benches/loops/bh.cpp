// Loops over rows, columns and elements, as in `numpy_version.py`: `bh N RUNS [NAME...]` prints a JSON line for each, with the
// seconds of the first run and the median of the others.
#include "../common/bh_harness.hpp"

#include <algorithm>
#include <cstring>

using namespace bh;

using doubles = array<double>;

static doubles matrix(std::int64_t n, std::int64_t seed) { return bench::pseudo<double>({n, n}, seed); }
static doubles vector(std::int64_t n, std::int64_t seed) { return bench::pseudo<double>({n}, seed); }
static doubles dominant(std::int64_t n, std::int64_t seed) { return matrix(n, seed) + eye<double>(n) * n; }

static doubles gram_schmidt(std::int64_t n) {
    doubles a = dominant(n, 1);
    for (std::int64_t i = 0; i < n; i++) {
        a(all, i) /= sqrt(dot(a(all, i), a(all, i)));
        const doubles q = a(all, i).copy();
        for (std::int64_t j = i + 1; j < n; j++) {
            const doubles r = dot(q, a(all, j));
            a(all, j) -= q * r;
        }
    }
    return a;
}

static doubles lu_rows(std::int64_t n) {
    doubles a = dominant(n, 2);
    for (std::int64_t k = 0; k < n - 1; k++) {
        const auto rest = slice(k + 1, none);
        for (std::int64_t i = k + 1; i < n; i++) {
            a(i, k) /= a(k, k);
            a(i, rest) -= a(i, k) * a(k, rest);
        }
    }
    return a;
}

static doubles cholesky_rows(std::int64_t n) {
    doubles a = dominant(n, 3);
    for (std::int64_t k = 0; k < n; k++) {
        a(k, k) = sqrt(a(k, k));
        if (k + 1 < n) a(slice(k + 1, none), k) /= a(k, k);
        for (std::int64_t j = k + 1; j < n; j++) a(slice(j, none), j) -= a(slice(j, none), k) * a(j, k);
    }
    return a;
}

static doubles triangular_solve(std::int64_t n) {
    const doubles l = dominant(n, 4), b = vector(n, 5);
    doubles x = zeros<double>({n});
    x(0) = b(0) / l(0, 0);
    for (std::int64_t i = 1; i < n; i++) x(i) = (b(i) - dot(l(i, slice(none, i)), x(slice(none, i)))) / l(i, i);
    return x;
}

static doubles gauss_seidel(std::int64_t n) {
    doubles u = matrix(n, 6);
    const auto inner = slice(1, -1), before = slice(none, -2), after = slice(2, none);
    for (int sweep = 0; sweep < 3; sweep++)
        for (std::int64_t i = 1; i < n - 1; i++)
            u(i, inner) = 0.25 * (u(i - 1, inner) + u(i + 1, inner) + u(i, before) + u(i, after));
    return u;
}

static doubles convolution_windows(std::int64_t n) {
    const std::int64_t side = std::max<std::int64_t>(2, n / 10);
    const doubles images = bench::pseudo<double>({16, side + 1, side + 1, 3}, 7), kernel = bench::pseudo<double>({2, 2, 3, 8}, 8);
    doubles out = zeros<double>({16, side, side, 8});
    for (std::int64_t i = 0; i < side; i++)
        for (std::int64_t j = 0; j < side; j++)
            out(all, i, j, all) = sum(images(all, slice(i, i + 2), slice(j, j + 2), all, newaxis) * kernel(newaxis), {1, 2, 3});
    return out;
}

static doubles symmetric_updates(std::int64_t n) {
    const doubles a = matrix(n, 9);
    doubles s = zeros<double>({n, n});
    for (std::int64_t j = 0; j < n; j++) {
        const auto rest = slice(j, none);
        s(rest, j) += 1.5 * a(j, j) * a(rest, j);
        s(j, rest) = s(rest, j).copy();
    }
    return s;
}

static doubles gauss_jordan(std::int64_t n) {
    doubles a = dominant(n, 10);
    for (std::int64_t k = 0; k < n; k++) {
        a(k) /= a(k, k).copy();
        for (const auto &rows : {slice(0, k), slice(k + 1, n)})
            a(rows) -= a(rows, k).copy()(all, newaxis) * a(k);
    }
    return a;
}

static doubles shortest_paths(std::int64_t n) {
    doubles d = matrix(n, 11);
    for (std::int64_t k = 0; k < n; k++) d = minimum(d, d(all, k)(all, newaxis) + d(k));
    return d;
}

static doubles power_iteration(std::int64_t n) {
    const doubles a = matrix(n, 12);
    doubles v = vector(n, 13);
    for (std::int64_t i = 0; i < n; i++) {
        v = sum(a * v, 1);
        v = v / sqrt(sum(v * v));
    }
    return v;
}

static doubles row_recurrence(std::int64_t n) {
    doubles a = matrix(n, 14);
    for (std::int64_t i = 1; i < n; i++) a(i) += 0.5 * a(i - 1);
    return a;
}

static doubles tridiagonal(std::int64_t n) {
    doubles d = matrix(n, 15), c = vector(n, 16), e = vector(n, 17);
    for (std::int64_t i = 1; i < n; i++) {
        c(i) = 1 / (4 - c(i - 1) * e(i));
        d(i) = (d(i) - e(i) * d(i - 1)) * c(i);
    }
    for (std::int64_t i = n - 2; i >= 0; i--) d(i) -= c(i) * d(i + 1);
    return d;
}

static doubles rotations(std::int64_t n) {
    doubles a = matrix(n, 18);
    for (std::int64_t p = 0; p < n - 1; p++) {
        const doubles upper = a(p).copy(), lower = a(p + 1).copy();
        a(p) = 0.8 * upper - 0.6 * lower;
        a(p + 1) = 0.6 * upper + 0.8 * lower;
    }
    return a;
}

static doubles moving_averages(std::int64_t n) {
    const doubles x = vector(2 * n, 19);
    doubles out = zeros<double>({n});
    for (std::int64_t i = 0; i < n; i++) out(i) = sum(x(slice(i, i + n))) / n;
    return out;
}

static doubles distances(std::int64_t n) {
    const doubles x = bench::pseudo<double>({n, 3}, 20);
    doubles d = zeros<double>({n, n});
    for (std::int64_t i = 0; i < n; i++) d(i) = sqrt(sum((x - x(i)) * (x - x(i)), 1));
    return d;
}

static doubles horner(std::int64_t n) {
    const doubles x = vector(n, 21), c = vector(n, 22);
    doubles y = zeros<double>({n});
    for (std::int64_t i = 0; i < n; i++) y = y * x + c(i);
    return y;
}

static doubles lagged_products(std::int64_t n) {
    const doubles x = vector(n, 23);
    doubles r = zeros<double>({n});
    for (std::int64_t k = 0; k < n; k++) r(k) = dot(x(slice(none, n - k)), x(slice(k, none)));
    return r;
}

static doubles haar(std::int64_t n) {
    std::int64_t length = 8;
    for (std::int64_t rest = n; rest > 0; rest /= 2) length *= 2;
    doubles x = vector(length, 24);
    for (; length > 1; length /= 2) {
        const std::int64_t half = length / 2;
        const doubles even = x(slice(0, length, 2)).copy(), odd = x(slice(1, length, 2)).copy();
        x(slice(none, half)) = (even + odd) * 0.5;
        x(slice(half, length)) = even - odd;
    }
    return x;
}

static doubles householder(std::int64_t n) {
    doubles a = dominant(n, 25);
    for (std::int64_t k = 0; k < n - 1; k++) {
        const auto rest = slice(k, none);
        doubles v = a(rest, k).copy();
        v(0) += sqrt(sum(v * v));
        v /= sqrt(sum(v * v));
        a(rest, rest) -= 2 * v(all, newaxis) * sum(v(all, newaxis) * a(rest, rest), 0);
    }
    return a;
}

struct named {
    const char *name;
    doubles (*program)(std::int64_t);
};

#define LOOP(name) {#name, name}
static const named loops[] = {
    LOOP(gram_schmidt),    LOOP(lu_rows),         LOOP(cholesky_rows),  LOOP(triangular_solve), LOOP(gauss_seidel),
    LOOP(convolution_windows), LOOP(symmetric_updates), LOOP(gauss_jordan), LOOP(shortest_paths), LOOP(power_iteration),
    LOOP(row_recurrence),  LOOP(tridiagonal),     LOOP(rotations),      LOOP(moving_averages),  LOOP(distances),
    LOOP(horner),          LOOP(lagged_products), LOOP(haar),           LOOP(householder),
};

int main(int argc, char **argv) {
    if (argc < 3) bench_fail(argv[0], "the size and the number of runs are needed");
    const std::int64_t n = bench_positive(argv[0], argv[1]), runs = bench_positive(argv[0], argv[2]);
    try {
        for (const named &loop : loops) {
            const auto same = [&](const char *wanted) { return std::strcmp(wanted, loop.name) == 0; };
            if (argc > 3 && std::none_of(argv + 3, argv + argc, same)) continue;
            std::vector<double> seconds;
            double checksum = 0;
            for (std::int64_t run = 0; run < runs; run++) {
                bh::sync();
                const double start = bench_now();
                const doubles result = loop.program(n);
                result.map();
                seconds.push_back(bench_now() - start);
                if (run + 1 == runs) checksum = bench::checksum(result);
            }
            const double first = seconds[0];
            if (runs > 1) seconds.erase(seconds.begin());
            std::sort(seconds.begin(), seconds.end());
            std::printf("{\"loop\":\"%s\",\"n\":%lld,\"first\":%.9f,\"later\":%.9f,\"checksum\":%.17g}\n", loop.name, (long long)n,
                        first, seconds[seconds.size() / 2], checksum);
            std::fflush(stdout);
        }
    } catch (const bh::error &error) {
        std::fprintf(stderr, "loops: %s\n", error.what());
        return 1;
    }
    return 0;
}
