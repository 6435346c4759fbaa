// Heat equation on an n x n grid: Jacobi steps of the 5-point mean with delta = sum |new - old|, which each step reads as a
// stopping test would. The three forms differ in when it is read, and in whether `work` is then still held:
//   --form 1  after the copy back, `work` is gone
//   --form 2  after the copy back, `work` is still held, as in NumPy (the default)
//   --form 3  before the copy back
#include "../common/bh_harness.hpp"

using namespace bench;

template <class T> struct program {
    array<T> grid;
    double delta = 0;

    explicit program(std::int64_t n) : grid(pseudo<T>({n, n}, 1)) {
        grid(all, 0) = -273.15;
        grid(all, -1) = -273.15;
        grid(-1, all) = -273.15;
        grid(0, all) = 40.0;
    }

    void run(std::int64_t iters) {
        const auto inner = slice(1, -1), before = slice(none, -2), after = slice(2, none);
        auto center = grid(inner, inner), north = grid(before, inner), south = grid(after, inner);
        auto west = grid(inner, before), east = grid(inner, after);
        for (std::int64_t step = 0; step < iters; step++) {
            auto work = 0.2 * (center + north + south + west + east);
            auto change = sum(abs(work - center));
            if (form == 3) delta = scalar(change);
            center.fill(work);
            if (form == 1) work = array<T>();
            if (form != 3) delta = scalar(change);
        }
    }

    std::vector<double> checksums() const { return {checksum(grid), delta}; }
};

int main(int argc, char **argv) { return bench::run<program>(argc, argv, "heat_equation", 3); }
