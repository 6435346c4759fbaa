/* What the machinery costs: recording one operation, a tiny round trip, a repeated small batch, and start-up.
 * Prints one JSON object; each figure is a median. Usage: overhead */
#define _POSIX_C_SOURCE 200112L
#include "measure.h"

enum { ROUNDS = 301 };

/* Seconds to record one of 500 operations into an existing array. */
static double record(void) {
    double seconds[ROUNDS];
    int64_t shape[1] = {1000};
    bh_array *a, *b;
    check(bh_ones(&a, NULL, BH_TYPE_F64, 1, shape));
    check(bh_ones(&b, NULL, BH_TYPE_F64, 1, shape));
    for (int round = 0; round < ROUNDS; round++) {
        check(bh_sync(NULL));
        double begin = now();
        for (int i = 0; i < 500; i++) check(bh_add(a, a, b));
        seconds[round] = (now() - begin) / 500;
    }
    check(bh_sync(NULL));
    bh_free(a);
    bh_free(b);
    return median(seconds, ROUNDS);
}

/* Seconds for the sum of two arrays of 10 elements, flushed and read. */
static double round_trip(void) {
    double seconds[ROUNDS], result[10];
    int64_t shape[1] = {10};
    bh_array *a, *b, *c;
    check(bh_ones(&a, NULL, BH_TYPE_F64, 1, shape));
    check(bh_ones(&b, NULL, BH_TYPE_F64, 1, shape));
    for (int round = 0; round < ROUNDS; round++) {
        double begin = now();
        check(bh_add_new(&c, a, b));
        check(bh_read(result, c));
        bh_free(c);
        seconds[round] = now() - begin;
        if (result[9] != 2.0) exit(1);
    }
    bh_free(a);
    bh_free(b);
    return median(seconds, ROUNDS);
}

/* Seconds for a repeated batch of 20 operations on arrays of 1,000 elements, executed. */
static double repeated_batch(void) {
    double seconds[ROUNDS];
    int64_t shape[1] = {1000};
    bh_array *a, *b, *t[20];
    check(bh_ones(&a, NULL, BH_TYPE_F64, 1, shape));
    check(bh_ones(&b, NULL, BH_TYPE_F64, 1, shape));
    for (int round = 0; round < ROUNDS; round++) {
        double begin = now();
        for (int i = 0; i < 20; i++) {
            bh_array *left = i == 0 ? a : t[i - 1];
            switch (i % 4) {
            case 0: check(bh_add_new(&t[i], left, b)); break;
            case 1: check(bh_multiply_new(&t[i], left, b)); break;
            case 2: check(bh_subtract_new(&t[i], left, bh_f64(0.5))); break;
            default: check(bh_maximum_new(&t[i], left, b));
            }
        }
        for (int i = 0; i < 20; i++) bh_free(t[i] == t[19] ? NULL : t[i]);
        check(bh_sync(NULL));
        bh_free(t[19]);
        seconds[round] = now() - begin;
    }
    bh_free(a);
    bh_free(b);
    return median(seconds, ROUNDS);
}

int main(void) {
    double begin = now();
    bh_array *first;
    int64_t shape[1] = {1};
    check(bh_zeros(&first, NULL, BH_TYPE_F64, 1, shape));
    double startup = now() - begin;
    bh_free(first);
    double one = record(), trip = round_trip(), batch = repeated_batch();
    printf("{\"record_ns\":%.1f,\"add10_flush_read_us\":%.3f,\"cached20x1000_us\":%.3f,\"startup_ms\":%.3f}\n", one * 1e9,
           trip * 1e6, batch * 1e6, startup * 1e3);
    return 0;
}
