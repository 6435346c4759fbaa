/* What a cluster adds to a repeated batch: 30 operations on n elements, executed, without and with a number that each turn
 * reads. Prints one JSON object; figures are medians, of fewer rounds where these take long. Usage: batch N */
#define _POSIX_C_SOURCE 200112L
#include "../overhead/measure.h"

enum { ROUNDS = 501, LEAST_ROUNDS = 5, OPERATIONS = 30 };

/* Seconds after which no further round begins, once there are the least. */
static const double ENOUGH = 10;

/* Seconds of a round; counts the rounds. */
static double turn(int64_t n, int reads, int *rounds) {
    double seconds[ROUNDS], value;
    int64_t shape[1] = {n};
    bh_array *a, *b, *t[OPERATIONS], *sum;
    check(bh_ones(&a, NULL, BH_TYPE_F64, 1, shape));
    check(bh_ones(&b, NULL, BH_TYPE_F64, 1, shape));
    int round = 0;
    for (double first = now(); round < ROUNDS && (round < LEAST_ROUNDS || now() - first < ENOUGH); round++) {
        double begin = now();
        for (int i = 0; i < OPERATIONS - reads; i++) {
            bh_array *left = i == 0 ? a : t[i - 1];
            switch (i % 4) {
            case 0: check(bh_add_new(&t[i], left, b)); break;
            case 1: check(bh_multiply_new(&t[i], left, b)); break;
            case 2: check(bh_subtract_new(&t[i], left, bh_f64(0.5))); break;
            default: check(bh_maximum_new(&t[i], left, b));
            }
        }
        bh_array *last = t[OPERATIONS - reads - 1];
        if (reads) check(bh_add_reduce_new(&sum, last, 0));
        for (int i = 0; i < OPERATIONS - reads; i++)
            if (t[i] != last) bh_free(t[i]);
        if (reads) {
            check(bh_read(&value, sum));
            bh_free(sum);
        } else {
            check(bh_sync(NULL));
        }
        bh_free(last);
        seconds[round] = now() - begin;
    }
    bh_free(a);
    bh_free(b);
    *rounds = round;
    return median(seconds, round);
}

int main(int argc, char **argv) {
    int64_t n = argc > 1 ? atoll(argv[1]) : 4000;
    int rounds[2];
    double plain = turn(n, 0, &rounds[0]), reading = turn(n, 1, &rounds[1]);
    printf("{\"elements\":%lld,\"batch_us\":%.2f,\"batch_and_read_us\":%.2f,\"rounds\":[%d,%d]}\n", (long long)n, plain * 1e6,
           reading * 1e6, rounds[0], rounds[1]);
    return 0;
}
