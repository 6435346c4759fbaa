// Solving a system of linear equations by factoring its matrix into triangular ones, column by column.
//
//   lu [ORDER]
#include <bh.hpp>
#include <cmath>
#include <cstdlib>
#include <iostream>

using bh::all, bh::newaxis, bh::none, bh::slice;
using matrix = bh::array<double>;

// Overwrites a matrix with U and, below its diagonal, L. Needs no pivoting for matrices with a dominant diagonal.
void factor(matrix &a) {
    const auto order = a.extent(0);
    for (std::int64_t k = 0; k + 1 < order; ++k) {
        const auto rest = slice(k + 1, none);
        a(rest, k) /= a(k, k);
        a(rest, rest) -= a(rest, k)(all, newaxis) * a(k, rest);
    }
}

int main(int argc, char **argv) {
    const int order = argc > 1 ? std::atoi(argv[1]) : 200;
    const matrix a = bh::random::uniform({order, order}, 3) + bh::eye(order) * double(order);

    matrix factors = a.copy();
    factor(factors);
    const auto rows = bh::arange(order);
    const auto below = rows(newaxis) < rows(all, newaxis);
    const matrix lower = bh::where(below, factors, 0.0) + bh::eye(order), upper = bh::where(below, 0.0, factors);
    const double error = scalar(max(abs(matmul(lower, upper) - a)));

    // The library's own solver agrees.
    const auto b = bh::arange<double>(order) + 1.0;
    const auto x = bh::solve(a, b);
    std::cout.precision(12);
    std::cout << "checksum: " << scalar(sum(abs(factors))) << "\nsolution: " << scalar(sum(x)) << "\n"
              << "products agree: " << (error < 1e-9 * order ? "yes" : "no") << "\n"
              << "solution fits: " << (bh::allclose(matmul(a, x), b) ? "yes" : "no") << "\n";
}
