// All C++ tests in one program, so that the framework is compiled once.
#define DOCTEST_CONFIG_IMPLEMENT
#include "support.hpp"

#include <iostream>
#include <sstream>
#include <vector>

#include "arrays.inc"
#include "assignment.inc"
#include "contexts.inc"
#include "errors.inc"
#include "files.inc"
#include "functions.inc"
#include "gradients.inc"
#include "graphs.inc"
#include "indexing.inc"
#include "lifetimes.inc"
#include "linear.inc"
#include "loops.inc"
#include "operators.inc"
#include "paper.inc"
#include "reductions.inc"
#include "runtime.inc"
#include "selection.inc"
#include "statistics.inc"
#include "threads.inc"
#include "traced.inc"
#include "types.inc"

int main(int argc, char **argv) {
    const int failed = doctest::Context(argc, argv).run();
    const auto arrays = bh::statistics().arrays;
    if (arrays != 0) std::cerr << arrays << " handles were not freed\n";
    return failed || arrays != 0;
}
