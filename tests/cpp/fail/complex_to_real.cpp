// Must not compile: a complex array written into a real one.
#include <bh.hpp>

void drop(bh::array<double> &a, const bh::array<std::complex<double>> &z) { a(0) = z; }
