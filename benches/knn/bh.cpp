// The four nearest of n points in three dimensions for each of n / 10 queries; the result is the four squared distances.
#include "../common/bh_harness.hpp"

#include <limits>

using namespace bench;

const int nearest_count = 4;

template <class T> struct program {
    std::vector<array<T>> points, queries, nearest;

    explicit program(std::int64_t n) {
        for (int axis = 0; axis < 3; axis++) {
            points.push_back(pseudo<T>({n}, 28 + axis));
            queries.push_back(pseudo<T>({n / 10}, 31 + 2 * axis));
        }
    }

    void run(std::int64_t iters) {
        for (std::int64_t i = 0; i < iters; i++) {
            search();
            // Behind the end of the distances: arrays that live at a flush are written to memory.
            bh::flush();
        }
    }

    void search() {
        auto away = [&](int axis) { return pow(points[axis](newaxis, all) - queries[axis](all, newaxis), 2); };
        auto distance = away(0) + away(1) + away(2);
        nearest = {bh::min(distance, 1)};
        while (nearest.size() < nearest_count) {
            // Everything up to the last minimum is out of the race.
            distance = where(distance <= nearest.back()(all, newaxis), std::numeric_limits<T>::infinity(), distance);
            nearest.push_back(bh::min(distance, 1));
        }
    }

    std::vector<double> checksums() const {
        std::vector<double> sums;
        for (const auto &row : nearest) sums.push_back(checksum(row));
        return sums;
    }
};

int main(int argc, char **argv) { return bench::run<program>(argc, argv, "knn", 10); }
