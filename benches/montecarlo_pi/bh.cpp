// Pi from the share of n random points that fall into the quarter circle; each iteration draws new points.
// The coordinates of iteration t are the streams with seeds 2t and 2t + 1.
#include "../common/bh_harness.hpp"

using namespace bench;

template <class T> struct program {
    std::int64_t n;
    double total = 0;

    explicit program(std::int64_t n) : n(n) {}

    void run(std::int64_t iters) {
        for (std::int64_t step = 0; step < iters; step++) {
            auto square = [&](std::int64_t stream) { return pow(bh::random::uniform<T>({n}, static_cast<std::uint64_t>(stream)), 2); };
            auto inside = scalar(sum(square(2 * step) + square(2 * step + 1) <= 1));
            total += 4.0 * static_cast<double>(inside) / static_cast<double>(n);
        }
    }

    std::vector<double> checksums() const { return {total}; }
};

int main(int argc, char **argv) { return bench::run<program>(argc, argv, "montecarlo_pi", 1); }
