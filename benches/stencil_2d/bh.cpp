// Dense 9-point stencil on an n x n grid: the mean of the neighbourhood, with delta = sum |new - old|.
#include "../common/dense_stencil.hpp"

template <class T> struct program : bench::dense_stencil<T, 2> {
    explicit program(std::int64_t n) : bench::dense_stencil<T, 2>(n, 5) {}
};

int main(int argc, char **argv) { return bench::run<program>(argc, argv, "stencil_2d", 3); }
