#include <bh.hpp>

int main() {
    auto graph = bh::source(std::vector<int>{1, 2}) | bh::task([before = 0](int n) mutable { return before += n; }) | bh::sink([](int) {});
    graph.run();
}
