// Frame of the programs on other libraries of C++, as bh_harness.hpp for those on bh: the same arguments, input data and line.
#pragma once

#include "bench.h"
#include "philox.h"

#include <cmath>
#include <cstdint>
#include <vector>

namespace bench {

/// The common input data, into memory in row-major order.
template <class T> void pseudo(T *memory, std::int64_t count, std::int64_t seed) {
    for (std::int64_t i = 0; i < count; i++) memory[i] = static_cast<T>(bench_pseudo(i % BENCH_PRIME, seed));
}

/// Uniform numbers in [0, 1) of a stream.
template <class T> void uniform(T *memory, std::int64_t count, std::uint32_t key) {
    for (std::int64_t i = 0; i < count; i++) {
        const std::uint64_t bits = philox2x32(static_cast<std::uint64_t>(i), key);
        memory[i] = sizeof(T) == 8 ? static_cast<T>(static_cast<double>(bits >> 11) * 0x1p-53)
                                   : static_cast<T>(static_cast<float>(static_cast<std::uint32_t>(bits) >> 8) * 0x1p-24f);
    }
}

template <class T> double checksum(const T *memory, std::int64_t count) {
    double sum = 0;
    for (std::int64_t i = 0; i < count; i++) sum += bench_weight(i) * std::abs(static_cast<double>(memory[i]));
    return sum;
}

template <class Program> void measure(const char *name, const char *library, const bench_args &args) {
    if (args.warm) Program(args.n).run(args.iters);
    Program program(args.n);
    const double start = bench_now(), processor_start = bench_processor();
    program.run(args.iters);
    const double seconds = bench_now() - start, processor = bench_processor() - processor_start;
    const std::vector<double> sums = program.checksums();
    bench_print(name, &args, library, 1, seconds, processor, sums.data(), static_cast<int>(sums.size()));
}

template <template <class> class Program> int run(int argc, char **argv, const char *name, const char *library, std::int64_t smallest) {
    const bench_args args = bench_parse(argc, argv, smallest);
    args.single ? measure<Program<float>>(name, library, args) : measure<Program<double>>(name, library, args);
    return 0;
}

} // namespace bench
