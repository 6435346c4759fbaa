// Dense 3-point stencil on n elements: the mean of the neighbourhood, with delta = sum |new - old|.
#include "../common/dense_stencil.hpp"

template <class T> struct program : bench::dense_stencil<T, 1> {
    explicit program(std::int64_t n) : bench::dense_stencil<T, 1>(n, 4) {}
};

int main(int argc, char **argv) { return bench::run<program>(argc, argv, "stencil_1d", 3); }
