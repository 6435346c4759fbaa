// Synthetic stencil of n rows of 1024 elements: new = old + 0.2 * (sum of the four neighbours), nothing else.
#include "../common/bh_harness.hpp"

using namespace bench;

const std::int64_t width = 1024;

template <class T> struct program {
    array<T> full;

    explicit program(std::int64_t n) : full(pseudo<T>({n, width}, 2)) {}

    void run(std::int64_t iters) {
        const auto inner = slice(1, -1), before = slice(none, -2), after = slice(2, none);
        auto center = full(inner, inner), up = full(before, inner), down = full(after, inner);
        auto left = full(inner, before), right = full(inner, after);
        auto work = bh::empty_like(center);
        for (std::int64_t step = 0; step < iters; step++) {
            work.fill(center);
            work += 0.2 * (up + down + left + right);
            center.fill(work);
        }
    }

    std::vector<double> checksums() const { return {checksum(full)}; }
};

int main(int argc, char **argv) { return bench::run<program>(argc, argv, "synthetic_stencil", 3); }
