// Dense 81-point stencil on an n x n x n x n grid: the mean of the neighbourhood, with delta = sum |new - old|.
#include "../common/dense_stencil.hpp"

template <class T> struct program : bench::dense_stencil<T, 4> {
    explicit program(std::int64_t n) : bench::dense_stencil<T, 4>(n, 8) {}
};

int main(int argc, char **argv) { return bench::run<program>(argc, argv, "stencil_4d", 3); }
