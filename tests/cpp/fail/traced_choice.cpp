// Must not compile: ?: on a traced value.
#include <bh.hpp>

bh::array<double> magnitude(const bh::array<double> &a) {
    return bh::map([](auto x) { return x < 0.0 ? -x : +x; }, a);
}
