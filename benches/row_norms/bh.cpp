// Softmax of each row of an n x m matrix, then the rows normalised to mean zero and variance one, then a little of that
// added to the matrix: what layers of attention do beside their products.
#include "../common/bh_harness.hpp"

using namespace bench;

const std::int64_t columns = 4096;

template <class T> struct program {
    array<T> x;

    explicit program(std::int64_t n) : x(pseudo<T>({n, columns}, 41)) {}

    void run(std::int64_t iters) {
        for (std::int64_t i = 0; i < iters; i++) {
            step();
            // Behind the end of a step's arrays: those that live at a flush are written to memory.
            bh::flush();
        }
    }

    void step() {
        auto powers = exp(x - bh::max(x, 1)(all, newaxis));
        auto parts = powers / sum(powers, 1)(all, newaxis);
        auto away = parts - (sum(parts, 1) / static_cast<double>(columns))(all, newaxis);
        auto variance = sum(away * away, 1) / static_cast<double>(columns);
        x += 0.125 * (away / sqrt(variance + 1e-12)(all, newaxis));
    }

    std::vector<double> checksums() const { return {checksum(x)}; }
};

int main(int argc, char **argv) { return bench::run<program>(argc, argv, "row_norms", 1); }
