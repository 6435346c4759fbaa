// Conway's game of life.
//
//   game_of_life [SIZE [STEPS [PICTURE.pgm]]]
//
// Writes the last state as a picture that most image viewers show.
#include <bh.hpp>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>

using world = bh::array<std::uint8_t>;

// Sums of each cell and its two neighbours along one dimension, without the borders.
world triples(const world &cells) {
    const auto rows = cells(bh::slice(0, -2)) + cells(bh::slice(1, -1)) + cells(bh::slice(2, bh::none));
    return rows;
}

int main(int argc, char **argv) {
    const int size = argc > 1 ? std::atoi(argv[1]) : 500, steps = argc > 2 ? std::atoi(argv[2]) : 100;
    // A border of dead cells around a random world with a third of its cells alive.
    world cells(size + 2, size + 2);
    auto inner = cells(bh::slice(1, -1), bh::slice(1, -1));
    inner.assign(bh::random::uniform({size, size}, 7) < 1.0 / 3);

    for (int i = 0; i < steps; ++i) {
        // A cell lives on with two or three neighbours; three bring one to life.
        auto neighbours = triples(triples(cells).transpose()).transpose() - inner;
        inner.assign(neighbours == 3 || (neighbours == 2 && inner == 1));
        bh::flush();
    }
    std::cout << "alive: " << bh::scalar(bh::sum(cells)) << "\n";

    if (argc > 3) {
        const world picture = inner * 255;
        std::ofstream file(argv[3], std::ios::binary);
        file << "P5\n" << size << " " << size << "\n255\n";
        file.write(reinterpret_cast<const char *>(picture.data()), size * size);
        if (!file) {
            std::cerr << "game_of_life: cannot write " << argv[3] << "\n";
            return 1;
        }
    }
}
