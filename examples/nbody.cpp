// Bodies that attract each other: all forces of all pairs, by broadcasting.
//
//   nbody [BODIES [STEPS]]
#include <bh.hpp>
#include <cstdlib>
#include <iostream>

using bh::newaxis;
using vector = bh::array<double>;

const double gravity = 1e-3, dt = 0.01, softening = 1e-3;

int main(int argc, char **argv) {
    const int count = argc > 1 ? std::atoi(argv[1]) : 1000, steps = argc > 2 ? std::atoi(argv[2]) : 10;
    // Positions and velocities: a row each for x, y and z.
    vector position = bh::random::uniform({3, count}, 1) * 2.0 - 1.0;
    vector velocity = bh::zeros({3, count});
    const vector mass = bh::random::uniform({count}, 2) + 0.5;

    for (int i = 0; i < steps; ++i) {
        // distance[d, i, j]: from body i to body j. The pairs are never stored: they fuse with the sums.
        auto distance = position(bh::all, newaxis, bh::all) - position(bh::all, bh::all, newaxis);
        auto square = sum(distance * distance, 0) + softening;
        auto force = gravity * mass / (square * sqrt(square));
        velocity += dt * sum(distance * force, 2);
        position += dt * velocity;
    }
    std::cout.precision(12);
    std::cout << "checksum: " << scalar(sum(abs(position))) << "\nmomentum: " << bh::abs(sum(mass * velocity, 1)) << "\n";
}
