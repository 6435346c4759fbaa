// Gravity among n bodies, all pairs, softened; velocities then positions advance by one step per iteration.
#include "../common/bh_harness.hpp"

using namespace bench;

const double dt = 0.0001, softening = 0.01;

template <class T> struct program {
    array<T> mass;
    std::vector<array<T>> position, velocity;

    explicit program(std::int64_t n) : mass(1 + pseudo<T>({n}, 15)) {
        for (int axis = 0; axis < 3; axis++) {
            position.push_back(pseudo<T>({n}, 16 + axis));
            velocity.push_back(bh::zeros<T>({n}));
        }
    }

    void run(std::int64_t iters) {
        for (std::int64_t step = 0; step < iters; step++) {
            std::vector<array<T>> distance;
            for (const auto &x : position) distance.push_back(x(newaxis, all) - x(all, newaxis));
            auto square = distance[0] * distance[0] + distance[1] * distance[1] + distance[2] * distance[2] + softening;
            auto pull = mass(newaxis, all) / (square * sqrt(square));
            for (int axis = 0; axis < 3; axis++) velocity[axis] += dt * sum(pull * distance[axis], 1);
            for (int axis = 0; axis < 3; axis++) position[axis] += dt * velocity[axis];
        }
    }

    std::vector<double> checksums() const { return {checksum_of_all(position), checksum_of_all(velocity)}; }
};

int main(int argc, char **argv) { return bench::run<program>(argc, argv, "nbody", 2); }
