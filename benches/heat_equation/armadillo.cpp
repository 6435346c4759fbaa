// Heat equation on an n x n grid with Armadillo, whose matrices lie by columns: rows and columns are exchanged.
#include "../common/plain_harness.hpp"

#include <armadillo>

template <class T> struct program {
    arma::uword n;
    arma::Mat<T> grid, work;
    double delta = 0;

    explicit program(std::int64_t size) : n(static_cast<arma::uword>(size)), grid(n, n), work(n - 2, n - 2) {
        bench::pseudo(grid.memptr(), size * size, 1);
        grid.row(0).fill(T(-273.15));
        grid.row(n - 1).fill(T(-273.15));
        grid.col(n - 1).fill(T(-273.15));
        grid.col(0).fill(T(40));
    }

    void run(std::int64_t iters) {
        const arma::span inner(1, n - 2), before(0, n - 3), after(2, n - 1);
        for (std::int64_t step = 0; step < iters; step++) {
            work = T(0.2) * (grid(inner, inner) + grid(before, inner) + grid(after, inner) + grid(inner, before) + grid(inner, after));
            delta = arma::accu(arma::abs(work - grid(inner, inner)));
            grid(inner, inner) = work;
        }
    }

    std::vector<double> checksums() const { return {bench::checksum(grid.memptr(), std::int64_t(n * n)), delta}; }
};

int main(int argc, char **argv) { return bench::run<program>(argc, argv, "heat_equation", "armadillo", 3); }
