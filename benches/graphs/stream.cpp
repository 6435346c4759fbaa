// A task graph in C++ that a file larger than the memory limit goes through, and each of its stages alone: `stream FILE PIECES ROWS
// [STACK]` prints their seconds as a line of JSON. The file holds PIECES pieces of ROWS × 8 numbers. The second task runs on STACK;
// without one both run on the program's, which does a batch at a time, and so are one stage.
#include "../common/bench.h"

#include <bh.hpp>
#include <cstdio>
#include <memory>
#include <optional>

using piece = bh::array<double>;

/// The pieces of the file.
static auto read(const char *path, std::int64_t pieces, std::int64_t rows) {
    const std::shared_ptr<std::FILE> opened(std::fopen(path, "rb"), [](std::FILE *one) { one ? std::fclose(one) : 0; });
    if (!opened) bench_fail(path, "the file cannot be opened");
    return [opened, pieces, rows]() mutable -> std::optional<piece> {
        if (pieces-- == 0) return std::nullopt;
        piece made = bh::empty<double>({rows, 8});
        auto memory = made.map(BH_ACCESS_WRITE);
        if (std::fread(memory.data(), 64, (std::size_t)rows, opened.get()) != (std::size_t)rows) throw std::runtime_error("the file is too short");
        return made;
    };
}

/// The same piece again and again.
static auto same(const piece &one, std::int64_t pieces) {
    return [one, pieces]() mutable { return pieces-- > 0 ? std::optional<piece>(one) : std::nullopt; };
}

template <class Graph> double seconds(Graph graph) {
    const double begin = bench_now();
    graph.run();
    return bench_now() - begin;
}

int main(int argc, char **argv) {
    if (argc < 4) bench_fail(argv[0], "a file, a number of pieces and one of rows are needed");
    const std::string stack = argc > 4 ? argv[4] : "";
    const std::int64_t pieces = bench_positive(argv[0], argv[2]), rows = bench_positive(argv[0], argv[3]);
    const auto file = [&] { return bh::source(read(argv[1], pieces, rows)); };
    const auto memory = [&, one = bh::ones<double>({rows, 8})] { return bh::source(same(one, pieces)); };
    const auto first = [](piece x) { return piece(sqrt(x * x + 1)); };
    const auto second = [&] { return bh::task([](piece x) { return piece(sum(sin(x) * cos(x))); }).on(stack); };
    const auto map = [](piece x) { x.map(); };
    const auto told = [](const auto &x) { bh::scalar(x); };
    double least[] = {1e9, 1e9, 1e9, 1e9, 1e9};
    for (int turn = 0; turn < 3; turn++) {
        const double found[] = {
            seconds(file() | bh::sink(map)),
            seconds(memory() | bh::task(first) | bh::sink(map)),
            seconds(memory() | second() | bh::sink(told)),
            seconds(memory() | bh::task(first) | second() | bh::sink(told)),
            seconds(file() | bh::task(first) | second() | bh::sink(told)),
        };
        for (int stage = 0; stage < 5; stage++)
            if (found[stage] < least[stage]) least[stage] = found[stage];
    }
    std::printf("{\"source\":%.6f,\"first\":%.6f,\"second\":%.6f,\"tasks\":%.6f,\"all\":%.6f}\n", least[0], least[1], least[2], least[3], least[4]);
    return 0;
}
