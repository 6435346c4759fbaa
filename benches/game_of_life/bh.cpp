// Conway's game of life on an n x n board with a dead border, cells held as 0 and 1 of the floating type.
#include "../common/bh_harness.hpp"

using namespace bench;

template <class T> struct program {
    array<T> board;

    explicit program(std::int64_t n) : board(bh::cast<T>(pseudo<double>({n, n}, 3) < 0.3)) {
        board(0, all) = 0;
        board(-1, all) = 0;
        board(all, 0) = 0;
        board(all, -1) = 0;
    }

    void run(std::int64_t iters) {
        const auto before = slice(none, -2), inner = slice(1, -1), after = slice(2, none);
        auto cells = board(inner, inner);
        for (std::int64_t step = 0; step < iters; step++) {
            auto neighbours = board(before, before) + board(before, inner) + board(before, after) + board(inner, before) +
                              board(inner, after) + board(after, before) + board(after, inner) + board(after, after);
            auto stay = (neighbours == 2) & (cells == 1);
            cells.assign(stay | (neighbours == 3));
        }
    }

    std::vector<double> checksums() const { return {checksum(board)}; }
};

int main(int argc, char **argv) { return bench::run<program>(argc, argv, "game_of_life", 3); }
