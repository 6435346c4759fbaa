// Forty planets and n massless asteroids: the planets pull each other and the asteroids.
#include "../common/bh_harness.hpp"

using namespace bench;

const std::int64_t planet_count = 40;
const double dt = 0.0001, softening = 0.01;

template <class T> using vectors = std::vector<array<T>>;

template <class T> struct program {
    array<T> mass;
    vectors<T> planets, planet_velocity, asteroids, asteroid_velocity;

    explicit program(std::int64_t n) : mass(1 + pseudo<T>({planet_count}, 19)) {
        for (int axis = 0; axis < 3; axis++) {
            planets.push_back(pseudo<T>({planet_count}, 20 + axis));
            asteroids.push_back(pseudo<T>({n}, 23 + axis));
            planet_velocity.push_back(bh::zeros<T>({planet_count}));
            asteroid_velocity.push_back(bh::zeros<T>({n}));
        }
    }

    // Adds the pull of the planets to the velocities of the bodies at `position`.
    void accelerate(const vectors<T> &position, vectors<T> &velocity) const {
        vectors<T> distance;
        for (int axis = 0; axis < 3; axis++) distance.push_back(planets[axis](all, newaxis) - position[axis](newaxis, all));
        auto square = distance[0] * distance[0] + distance[1] * distance[1] + distance[2] * distance[2] + softening;
        auto force = mass(all, newaxis) / (square * sqrt(square));
        for (int axis = 0; axis < 3; axis++) velocity[axis] += dt * sum(force * distance[axis], 0);
    }

    void run(std::int64_t iters) {
        for (std::int64_t step = 0; step < iters; step++) {
            accelerate(asteroids, asteroid_velocity);
            accelerate(planets, planet_velocity);
            for (int axis = 0; axis < 3; axis++) {
                asteroids[axis] += dt * asteroid_velocity[axis];
                planets[axis] += dt * planet_velocity[axis];
            }
        }
    }

    std::vector<double> checksums() const {
        return {checksum_of_all(asteroids), checksum_of_all(asteroid_velocity), checksum_of_all(planets)};
    }
};

int main(int argc, char **argv) { return bench::run<program>(argc, argv, "nbody_nice", 1); }
