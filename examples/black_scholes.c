/* Prices of European call options by the formula of Black and Scholes, in C.
 *
 *   black_scholes [OPTIONS [ITERATIONS]]
 *
 * OPTIONS stocks of random price are priced for each of ITERATIONS days; the mean price of each day is added up. */
#define _POSIX_C_SOURCE 199309L /* for clock_gettime */
#include <bh.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void check(bh_status status) {
    if (status == BH_OK) return;
    fprintf(stderr, "black_scholes: %s:%u: %s\n", bh_error_file(), (unsigned)bh_error_line(), bh_error_message());
    exit(1);
}

/* The distribution function of the normal distribution, in place: erfc(-x/sqrt(2))/2. */
static void normal_distribution(bh_array *x) {
    check(bh_multiply(x, x, bh_f64(-0.70710678118654752)));
    check(bh_erfc(x, x));
    check(bh_multiply(x, x, bh_f64(0.5)));
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int main(int argc, char **argv) {
    const int64_t count = argc > 1 ? atoll(argv[1]) : 1000000;
    const int days = argc > 2 ? atoi(argv[2]) : 10;
    const double strike = 65.0, rate = 0.08, volatility = 0.3;
    if (count < 1 || days < 0) {
        fprintf(stderr, "usage: black_scholes [OPTIONS [ITERATIONS]]\n");
        return 2;
    }

    /* Stock prices from 58 to 62. */
    bh_array *price, *logarithm, *d1, *d2, *sum;
    check(bh_random_uniform(&price, NULL, BH_TYPE_F64, 1, &count, 42));
    check(bh_multiply(price, price, bh_f64(4.0)));
    check(bh_add(price, price, bh_f64(58.0)));
    check(bh_divide_new(&logarithm, price, bh_f64(strike)));
    check(bh_log(logarithm, logarithm));
    check(bh_empty(&d1, NULL, BH_TYPE_F64, 1, &count));
    check(bh_empty(&d2, NULL, BH_TYPE_F64, 1, &count));

    double checksum = 0;
    const double begin = seconds();
    for (int day = 1; day <= days; ++day) {
        const double time = day / 365.0;
        const double spread = volatility * sqrt(time);
        check(bh_add(d1, logarithm, bh_f64((rate + 0.5 * volatility * volatility) * time)));
        check(bh_divide(d1, d1, bh_f64(spread)));
        check(bh_subtract(d2, d1, bh_f64(spread)));
        normal_distribution(d1);
        normal_distribution(d2);

        /* price·N(d1) - strike·exp(-rate·t)·N(d2) */
        check(bh_multiply(d1, d1, price));
        check(bh_multiply(d2, d2, bh_f64(strike * exp(-rate * time))));
        check(bh_subtract(d1, d1, d2));

        double total;
        check(bh_add_reduce_new(&sum, d1, BH_ALL_AXES));
        check(bh_scalar_f64(&total, sum));
        check(bh_free(sum));
        checksum += total / (double)count;
    }
    const double elapsed = seconds() - begin;

    printf("options: %lld\nseconds: %.3f\nchecksum: %.12g\n", (long long)count, elapsed, checksum);
    bh_array *const all[] = {price, logarithm, d1, d2};
    for (size_t i = 0; i < sizeof all / sizeof *all; ++i) check(bh_free(all[i]));
    return 0;
}
