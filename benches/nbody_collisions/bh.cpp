// Gravity among n bodies, all pairs, with collisions: bodies that touch push each other apart instead, and are counted.
#include "../common/bh_harness.hpp"

using namespace bench;

const double dt = 0.0001, softening = 0.01, stiffness = 100;

template <class T> struct program {
    array<T> mass, radius;
    std::vector<array<T>> position, velocity;
    std::int64_t touched = 0;

    explicit program(std::int64_t n) : mass(1 + pseudo<T>({n}, 60)), radius(0.05 + 0.1 * pseudo<T>({n}, 61)) {
        for (int axis = 0; axis < 3; axis++) {
            position.push_back(pseudo<T>({n}, 62 + axis));
            velocity.push_back(bh::zeros<T>({n}));
        }
    }

    void run(std::int64_t iters) {
        for (std::int64_t step = 0; step < iters; step++) {
            std::vector<array<T>> distance;
            for (const auto &x : position) distance.push_back(x(newaxis, all) - x(all, newaxis));
            auto square = distance[0] * distance[0] + distance[1] * distance[1] + distance[2] * distance[2];
            auto reach = radius(newaxis, all) + radius(all, newaxis);
            auto touching = square < reach * reach;
            auto count = sum(bh::cast<std::int64_t>(touching));
            auto soft = square + softening;
            auto push = where(touching, -stiffness, mass(newaxis, all) / (soft * sqrt(soft)));
            for (int axis = 0; axis < 3; axis++) velocity[axis] += dt * sum(push * distance[axis], 1);
            for (int axis = 0; axis < 3; axis++) position[axis] += dt * velocity[axis];
            touched += static_cast<std::int64_t>(scalar(count)) - static_cast<std::int64_t>(mass.size());
        }
    }

    std::vector<double> checksums() const {
        return {checksum_of_all(position), checksum_of_all(velocity), static_cast<double>(touched)};
    }
};

int main(int argc, char **argv) { return bench::run<program>(argc, argv, "nbody_collisions", 2); }
