// Heat in a square plate with fixed borders, by Jacobi iteration: the program of the Bohrium papers, in C++.
//
//   heat [SIZE [ITERATIONS]]
#include <bh.hpp>
#include <cstdlib>
#include <iostream>

double solve(const bh::array<double> &grid, double epsilon, int iterations) {
    using bh::slice, bh::none;
    auto center = grid(slice(1, -1), slice(1, -1));
    auto north = grid(slice(0, -2), slice(1, -1));
    auto south = grid(slice(2, none), slice(1, -1));
    auto east = grid(slice(1, -1), slice(2, none));
    auto west = grid(slice(1, -1), slice(0, -2));
    double delta = epsilon + 1;
    for (int i = 0; i < iterations && delta > epsilon; ++i) {
        auto next = 0.2 * (center + north + east + west + south);
        delta = scalar(sum(abs(next - center)));
        center.fill(next);
    }
    return delta;
}

int main(int argc, char **argv) {
    const int size = argc > 1 ? std::atoi(argv[1]) : 1000, iterations = argc > 2 ? std::atoi(argv[2]) : 100;
    bh::array<double> grid(size, size);
    grid(bh::all, 0) = -273.15;
    grid(bh::all, -1) = -273.15;
    grid(-1) = -273.15;
    grid(0) = 40.0;
    std::cout.precision(12);
    std::cout << "delta: " << solve(grid, 1e-3, iterations) << "\nchecksum: " << scalar(sum(grid)) << "\n";
}
