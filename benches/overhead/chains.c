/* What kernels that have nothing to do with each other take: chains of operations over arrays of their own, whose lengths
 * differ, so that fusion leaves them apart. Usage: chains [LENGTH [CHAINS [ROUNDS]]]
 *
 * Prints one JSON object, in microseconds for a round of all chains: four operations in place each; two functions each;
 * and a sum each, with the squares of what differs from the mean. Each figure is a median. `BH_VE_CPU_OVERLAP=off` runs
 * kernel after kernel. */
#define _POSIX_C_SOURCE 200112L
#include "measure.h"

enum { MOST = 64 };

static bh_array *x[MOST], *y[MOST];
static int64_t length = 10000;
static int chains = 8, rounds = 1001;

static void in_place(int chain) {
    check(bh_multiply(y[chain], x[chain], bh_f64(0.5)));
    check(bh_add(y[chain], y[chain], bh_f64(1.5)));
    check(bh_multiply(y[chain], y[chain], x[chain]));
    check(bh_subtract(x[chain], x[chain], bh_f64(1e-9)));
}

static void functions(int chain) {
    bh_array *sine;
    check(bh_sin_new(&sine, x[chain]));
    check(bh_exp(y[chain], sine));
    check(bh_add(y[chain], y[chain], x[chain]));
    bh_free(sine);
}

static void differences(int chain) {
    bh_array *mean, *difference;
    check(bh_add_reduce_new(&mean, x[chain], 0));
    check(bh_divide(mean, mean, bh_f64((double)length)));
    check(bh_subtract_new(&difference, x[chain], mean));
    check(bh_multiply(y[chain], difference, difference));
    bh_free(difference);
    bh_free(mean);
}

/* Microseconds of a round. */
static double time_of(void (*step)(int)) {
    double *times = malloc(sizeof *times * (size_t)rounds);
    if (times == NULL) exit(1);
    for (int round = 0; round < rounds; round++) {
        double begin = now();
        for (int chain = 0; chain < chains; chain++) step(chain);
        check(bh_sync(NULL));
        times[round] = now() - begin;
    }
    double middle = median(times, rounds);
    free(times);
    return middle * 1e6;
}

int main(int argc, char **argv) {
    if (argc > 1) length = atoll(argv[1]);
    if (argc > 2) chains = atoi(argv[2]);
    if (argc > 3) rounds = atoi(argv[3]);
    if (length < 1 || chains < 1 || chains > MOST || rounds < 1) {
        fprintf(stderr, "usage: chains [LENGTH [CHAINS [ROUNDS]]], with at most %d chains\n", MOST);
        return 2;
    }
    for (int chain = 0; chain < chains; chain++) {
        int64_t shape[1] = {length + chain};
        check(bh_random_uniform(&x[chain], NULL, BH_TYPE_F64, 1, shape, 7));
        check(bh_zeros(&y[chain], NULL, BH_TYPE_F64, 1, shape));
    }
    check(bh_sync(NULL));
    double one = time_of(in_place), two = time_of(functions), three = time_of(differences);
    printf("{\"length\":%lld,\"chains\":%d,\"in_place_us\":%.2f,\"functions_us\":%.2f,\"differences_us\":%.2f}\n",
           (long long)length, chains, one, two, three);
    for (int chain = 0; chain < chains; chain++) {
        bh_free(x[chain]);
        bh_free(y[chain]);
    }
    return 0;
}
