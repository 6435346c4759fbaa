// Two-electron repulsion integrals between n pairs of contracted s shells, nine primitive pairs each, by Rys quadrature: the sum
// over 81 quartets of a factor times Boys' function, which has a branch for small arguments and one for large ones.
#include "../common/repulsion.hpp"

using namespace bench;

template <class T> struct program {
    array<T> side[5], integrals;

    explicit program(std::int64_t n) {
        for (int part = 0; part < 5; part++) side[part] = repulsion_side<T>(n, part);
    }

    void run(std::int64_t iters) {
        for (std::int64_t step = 0; step < iters; step++) {
            integrals = repulsion(side);
            bh::flush();
        }
    }

    std::vector<double> checksums() const { return {checksum(integrals)}; }
};

int main(int argc, char **argv) { return bench::run<program>(argc, argv, "rpes", 1); }
