// Must not compile: a name of chosen elements that is to stand for others.
#include <bh.hpp>

void clear(const bh::array<double> &a) {
    auto x = a(a > 0);
    x = 0;
}
