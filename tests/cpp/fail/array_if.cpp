// Must not compile: a branch on an array.
#include <bh.hpp>

int sign(const bh::array<double> &a) {
    if (a > 0) return 1;
    return -1;
}
