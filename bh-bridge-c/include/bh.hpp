// bh for C++17: arrays that are computed lazily, fused, and on the engine that the configuration names.
//
//   bh::array<double> grid(1002, 1002);
//   grid(0, bh::all) = 100.0;
//   auto inner = grid(bh::slice(1, -1), bh::slice(1, -1));
//   std::cout << bh::scalar(bh::sum(inner)) << "\n";
//
// Link with libbh_bridge_c. Failures are exceptions of type bh::error, which name the line that recorded the operation.
#pragma once

#include "bh/gradient.hpp"
#include "bh/graph.hpp"
#include "bh/statistics.hpp"
#include "bh/runtime.hpp"

#undef BH_ARITHMETIC
