// Must not compile: a branch on a traced value.
#include <bh.hpp>

bh::array<double> magnitude(const bh::array<double> &a) {
    return bh::map(
        [](auto x) {
            if (x < 0.0) return -x;
            return +x;
        },
        a);
}
