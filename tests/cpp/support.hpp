// Shared by the C++ tests.
#pragma once

// Before the framework: the header brings all that it needs itself.
#include <bh.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <cmath>
#include <complex>
#include <limits>
#include <list>
#include <numeric>
#include <sstream>
#include <string>
#include <thread>
#include <vector>
#if defined(__has_include) && __has_include(<ranges>) && __cplusplus >= 202002L
#include <ranges>
#endif

using bh::all;
using bh::array;
using bh::newaxis;
using bh::none;
using bh::slice;
using complex = std::complex<double>;

/// The elements in C order.
template <class T> std::vector<T> elements(const array<T> &a) {
    std::vector<T> list;
    for (const T &x : a) list.push_back(x);
    return list;
}

/// Has an array this shape and these elements?
template <class T> bool is(const array<T> &a, const bh::shape &shape, const std::vector<T> &expected) {
    return a.extents() == shape && elements(a) == expected;
}
template <class T> bool is(const array<T> &a, const std::vector<T> &expected) {
    return is(a, bh::shape{static_cast<std::int64_t>(expected.size())}, expected);
}

/// The exception that `f` throws.
template <class F> bh::error failure(F f) {
    try {
        f();
    } catch (const bh::error &error) {
        return error;
    }
    return bh::error(0, "nothing was thrown", "", 0);
}

inline bool contains(const std::string &text, const std::string &part) { return text.find(part) != std::string::npos; }
