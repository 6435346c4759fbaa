// Frame of the programs on bh: arguments, timing, inputs, checksums and output, as for the twins.
//
// A program gives
//
//   template <class T> struct program {
//       explicit program(std::int64_t n);       initial values
//       void run(std::int64_t iters);           what is timed
//       std::vector<double> checksums() const;
//   };
//   int main(int argc, char **argv) { return bench::run<program>(argc, argv, "name", smallest_n); }
#pragma once

#include "bench.h"

#include <algorithm>
#include <bh.hpp>
#include <cmath>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace bench {

using bh::all, bh::array, bh::newaxis, bh::none, bh::slice;

/// Which way of writing a program with several is meant; `--form N` on the command line.
inline int form = 0;

/// The common input data: `count` values in [0, 1) in an array of shape `extents`.
template <class T> array<T> pseudo(const bh::shape &extents, std::int64_t seed) {
    array<T> result = bh::empty<T>(extents);
    auto memory = result.map(BH_ACCESS_WRITE);
    const std::int64_t count = extents.count(), period = std::min<std::int64_t>(count, BENCH_PRIME);
    for (std::int64_t i = 0; i < period; i++) memory.data()[i] = static_cast<T>(bench_pseudo(i, seed));
    // The numbers repeat.
    for (std::int64_t i = period; i < count; i++) memory.data()[i] = memory.data()[i - period];
    return result;
}

/// Sum of weight * |value| in f64.
template <class T> double checksum(const array<T> &values) {
    const auto memory = values.map();
    double sum = 0;
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(memory.size()); i++)
        sum += bench_weight(i) * std::abs(static_cast<double>(memory.data()[i]));
    return sum;
}

/// Sum of the checksums of several arrays.
template <class Arrays> double checksum_of_all(const Arrays &arrays) {
    double sum = 0;
    for (const auto &one : arrays) sum += checksum(one);
    return sum;
}

/// Takes `--form N` out of the command line.
inline void take_form(int &argc, char **argv) {
    int kept = 0;
    for (int i = 0; i < argc; i++) {
        if (std::string(argv[i]) != "--form") {
            argv[kept++] = argv[i];
            continue;
        }
        if (i + 1 == argc) bench_fail(argv[0], "--form needs a number");
        form = static_cast<int>(bench_positive(argv[0], argv[++i]));
    }
    argc = kept;
}

/// Threads of the engine; 1 if it is one that has no such number.
inline int threads() {
    try {
        return bh::threads();
    } catch (const bh::error &) {
        return 1;
    }
}

/// Waits until all that was recorded is done. On a cluster, rank 0 is done with a batch before the others are: each of them
/// answers when it is, so that what they still do for the initial values does not count as the program's time.
inline void settle() {
    bh::sync();
    const char *stack = std::getenv("BH_STACK");
    if (stack && std::string(stack).rfind("cluster", 0) == 0) bh::message("cluster traffic");
}

/// Steps of a program after which a GPU's kernels have been called often enough to be built for their sizes.
const std::int64_t warm_steps = 4;

/// Waits until kernels that are built beside the program are there: what is timed after a run that warms up is what later
/// steps take.
inline void finish_building() { bh::message("finish building"); }

/// Whether BH_STACK names the stack of a device.
inline bool on_a_device() {
    const char *stack = std::getenv("BH_STACK");
    const std::string name = stack ? stack : "";
    return name.rfind("opencl", 0) == 0 || name.rfind("cuda", 0) == 0;
}

/// Counters of the runtime that BENCH_COUNTERS names, with commas between: what they grew by from one moment to another.
class counters {
    std::vector<std::pair<std::string, std::uint64_t>> begun_;

public:
    counters() {
        const char *names = std::getenv("BENCH_COUNTERS");
        for (std::istringstream rest(names ? names : ""); std::getline(rest, begun_.emplace_back().first, ',');) {}
        begun_.pop_back();
        for (auto &[name, value] : begun_) value = bh::counter(name);
    }
    /// As the value of an entry in a line; a counter that did not exist yet began at 0.
    std::string text() const {
        std::string found;
        for (const auto &[name, value] : begun_)
            found += (found.empty() ? "\"" : ",\"") + name + "\":" + std::to_string(bh::counter(name) - value);
        return "{" + found + "}";
    }
};

/// Runs a program once and prints its line.
template <class Program> void measure_once(Program &program, const char *name, const bench_args &args) {
    const counters counted;
    const std::uint64_t kernels = bh::counter("fuser.kernels"), batches = bh::counter("fuser.batches");
    const double start = bench_now(), processor_start = bench_processor();
    program.run(args.iters);
    settle();
    const double seconds = bench_now() - start, processor = bench_processor() - processor_start;
    const auto used_kernels = static_cast<long long>(bh::counter("fuser.kernels") - kernels);
    const auto used_batches = static_cast<long long>(bh::counter("fuser.batches") - batches);
    const char *stack = std::getenv("BH_STACK");
    std::printf("{\"bench\":\"%s\",\"n\":%lld,\"iters\":%lld,\"dtype\":\"%s\",\"threads\":%d,\"stack\":\"%s\",\"seconds\":%.9f,"
                "\"processor\":%.9f,\"kernels\":%lld,\"batches\":%lld,\"peak_bytes\":%llu,\"counters\":%s,\"checksum\":[",
                name, (long long)args.n, (long long)args.iters, args.single ? "f32" : "f64", threads(),
                stack && *stack ? stack : "bh", seconds, processor, used_kernels, used_batches,
                (unsigned long long)bh::memory::usage().peak, counted.text().c_str());
    const char *separator = "";
    for (double value : program.checksums()) {
        std::printf("%s%.17g", separator, value);
        separator = ",";
    }
    std::printf("]}\n");
    std::fflush(stdout);
}

/// Runs a program for one element type and prints a line for each timed run.
template <class Program> void measure(const char *name, const bench_args &args) {
    if (args.warm) {
        Program program(args.n);
        settle();
        program.run(on_a_device() ? std::max(args.iters, warm_steps) : args.iters);
        settle();
        if (on_a_device()) finish_building();
    }
    for (int turn = 0; args.turns || turn == 0; turn++) {
        if (!bench_wait(&args, "fill")) break;
        Program program(args.n);
        settle();
        if (!bench_wait(&args, "run")) break;
        measure_once(program, name, args);
    }
}

/// The main function of a program; `smallest` is the smallest n that it is defined for.
template <template <class> class Program> int run(int argc, char **argv, const char *name, std::int64_t smallest) {
    take_form(argc, argv);
    const bench_args args = bench_parse(argc, argv, smallest);
    try {
        if (args.single) {
            measure<Program<float>>(name, args);
        } else {
            measure<Program<double>>(name, args);
        }
    } catch (const bh::error &error) {
        std::fprintf(stderr, "%s: %s\n", name, error.what());
        return 1;
    }
    return 0;
}

} // namespace bench
