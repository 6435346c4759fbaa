// Shallow water with its walls, as benches/ has it, on simulated ranks: `shallow_water N STEPS` prints the traffic before
// and after each of four batches of so many steps.
#define main bench_main
#include "../../../benches/shallow_water/bh.cpp"
#undef main

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    program<double> basin(std::atoi(argv[1]));
    bh::sync();
    for (int turn = 0; turn <= 4; turn++) {
        std::printf("%s\n", bh::message("cluster traffic").c_str());
        basin.run(std::atoi(argv[2]));
        bh::sync();
    }
    return 0;
}
