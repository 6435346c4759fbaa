// Sums over both axes of narrow arrays: of n elements in rows of 3, 8, 16, 31 and 64, the sum of each row of one array and
// of each column of another.
//
// NARROW_COLUMNS=K in the environment leaves the others out, and NARROW_AXIS=0 or 1 the other axis.
#include "../common/bh_harness.hpp"

#include <map>

using namespace bench;

/// Is it to be summed, as the environment has it?
inline bool wanted(const char *name, std::int64_t value) {
    const char *text = std::getenv(name);
    return text == nullptr || *text == '\0' || std::atoll(text) == value;
}

template <class T> struct program {
    array<T> a, b;
    std::map<std::int64_t, array<T>> rows, columns;

    explicit program(std::int64_t n) : a(pseudo<T>({n}, 43)), b(pseudo<T>({n}, 44)) {}

    void run(std::int64_t iters) {
        const std::int64_t n = a.size();
        for (std::int64_t i = 0; i < iters; i++) {
            for (std::int64_t width : {3, 8, 16, 31, 64}) {
                const bh::shape shape = {n / width, width};
                const slice whole(0, shape.count());
                if (!wanted("NARROW_COLUMNS", width)) continue;
                if (wanted("NARROW_AXIS", 1)) rows[width] = sum(a(whole).reshape(shape), 1);
                if (wanted("NARROW_AXIS", 0)) columns[width] = sum(b(whole).reshape(shape), 0);
            }
            bh::flush();
        }
    }

    std::vector<double> checksums() const { return {checksum_of(rows), checksum_of(columns)}; }

    static double checksum_of(const std::map<std::int64_t, array<T>> &sums) {
        double total = 0;
        for (const auto &[width, each] : sums) total += checksum(each);
        return total;
    }
};

int main(int argc, char **argv) { return bench::run<program>(argc, argv, "narrow_folds", 64); }
