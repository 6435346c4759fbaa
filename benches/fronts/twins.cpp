// The C++ programs that those of other front ends must equal, with the same output: twins NAME SIZE STEPS.
#include "../common/bh_harness.hpp"

#include <chrono>
#include <cstring>
#include <iostream>

// Each program's own main function is left out of the way.
#define main program_main
namespace heat {
#include "../../examples/heat.cpp"
}
namespace black_scholes {
#include "../../examples/black_scholes.cpp"
}
namespace shallow_water {
#include "../../examples/shallow_water.cpp"
}
namespace nbody {
#include "../nbody/bh.cpp"
}
namespace nbody_collisions {
#include "../nbody_collisions/bh.cpp"
}
namespace knn {
#include "../knn/bh.cpp"
}
#undef main

using bh::array;

static void print(const char *name, double value) {
    std::uint64_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    std::printf("%s %016llx\n", name, static_cast<unsigned long long>(bits));
}

static void print(const char *name, const array<double> &values) {
    const array<double> whole = values.copy();
    const auto memory = whole.map();
    std::uint64_t hash = 0xcbf29ce484222325u;
    for (std::size_t i = 0; i < memory.size(); i++) {
        std::uint64_t bits;
        std::memcpy(&bits, memory.data() + i, sizeof bits);
        hash = (hash ^ bits) * 0x100000001b3u;
    }
    std::printf("%s %016llx\n", name, static_cast<unsigned long long>(hash));
}

template <class F> static void timed(F run) {
    bh::sync();
    const auto start = std::chrono::steady_clock::now();
    run();
    bh::sync();
    std::fprintf(stderr, "seconds %.4f\n", std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    const std::string name = argv[1];
    const int size = std::atoi(argv[2]), steps = std::atoi(argv[3]);
    if (name == "heat") {
        array<double> grid = bh::zeros({size, size});
        grid(bh::all, 0) = -273.15;
        grid(bh::all, -1) = -273.15;
        grid(-1) = -273.15;
        grid(0) = 40.0;
        double delta = 0;
        timed([&] { delta = heat::solve(grid, 1e-3, steps); });
        print("delta", delta);
        print("grid", grid);
    } else if (name == "black_scholes") {
        const auto price = bh::random::uniform({size}, 42) * 4.0 + 58.0;
        double checksum = 0;
        timed([&] {
            for (int day = 1; day <= steps; ++day) {
                checksum += scalar(sum(black_scholes::call_price(price, 65.0, 0.08, 0.3, day / 365.0))) / size;
            }
        });
        print("checksum", checksum);
        print("prices", black_scholes::call_price(price, 65.0, 0.08, 0.3, steps / 365.0));
    } else if (name == "nbody") {
        nbody::program<double> program(size);
        timed([&] { program.run(steps); });
        for (const auto &x : program.position) print("position", x);
        for (const auto &x : program.velocity) print("velocity", x);
    } else if (name == "nbody_collisions") {
        nbody_collisions::program<double> program(size);
        timed([&] { program.run(steps); });
        for (const auto &x : program.position) print("position", x);
        for (const auto &x : program.velocity) print("velocity", x);
        print("touched", static_cast<double>(program.touched));
    } else if (name == "knn") {
        knn::program<double> program(size);
        timed([&] { program.run(steps); });
        for (const auto &row : program.nearest) print("nearest", row);
    } else if (name == "shallow_water") {
        using bh::slice;
        const auto x = bh::linspace(-3, 3, size), y = x(bh::newaxis).transpose();
        array<double> h = bh::zeros({size + 2, size + 2}) + 1.0, u = bh::zeros({size + 2, size + 2}), v = u.copy();
        h(slice(1, -1), slice(1, -1)) += exp(-(x * x + y * y)) * 0.5;
        timed([&] {
            for (int i = 0; i < steps; ++i) shallow_water::step(h, u, v);
        });
        print("height", h);
        print("momentum in x", u);
        print("momentum in y", v);
    } else {
        return 2;
    }
}
