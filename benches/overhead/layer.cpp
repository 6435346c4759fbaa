// The time that the C++ layer adds to recording one operation. Usage: layer
//
// Prints one JSON object, in nanoseconds: operations with a new result, which is freed, and into an existing array, through the C
// interface and through bh.hpp. The two are measured by turns; each figure is a median.
#include <bh.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

const int rounds = 401, operations = 400;

/// Nanoseconds that one of many calls of `f` takes.
template <class F> double time_of(F f) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < operations; ++i) f();
    const std::chrono::duration<double, std::nano> passed = std::chrono::steady_clock::now() - begin;
    bh::sync();
    return passed.count() / operations;
}

double median(std::vector<double> list) {
    std::nth_element(list.begin(), list.begin() + rounds / 2, list.end());
    return list[rounds / 2];
}

int main() {
    auto a = bh::ones({1000});
    const auto b = bh::ones({1000});
    bh::sync();
    std::vector<double> new_c, new_cpp, into_c, into_cpp;
    for (int round = 0; round < rounds; ++round) {
        new_c.push_back(time_of([&] {
            bh_array *sum = nullptr;
            (bh_at)(__FILE__, __LINE__);
            if ((bh_add_new)(&sum, a.handle(), b.handle()) != 0) std::abort();
            (bh_free)(sum);
        }));
        new_cpp.push_back(time_of([&] { a + b; }));
        into_c.push_back(time_of([&] {
            (bh_at)(__FILE__, __LINE__);
            if ((bh_add)(a.handle(), a.handle(), b.handle()) != 0) std::abort();
        }));
        into_cpp.push_back(time_of([&] { a += b; }));
    }
    std::printf("{\"new_c_ns\":%.1f,\"new_cpp_ns\":%.1f,\"into_c_ns\":%.1f,\"into_cpp_ns\":%.1f}\n", median(new_c), median(new_cpp),
                median(into_c), median(into_cpp));
}
