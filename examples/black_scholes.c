/* Prices of European call options by the formula of Black and Scholes, for random stock prices.
 *
 *     black_scholes [OPTIONS [ITERATIONS]]
 */
#define _POSIX_C_SOURCE 200112L
#include <bh.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Ends the program when a call fails. */
static void check(bh_status status) {
    if (status != BH_OK) {
        fprintf(stderr, "%s:%u: %s\n", bh_error_file(), (unsigned)bh_error_line(), bh_error_message());
        exit(1);
    }
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Replaces x by the standard normal distribution function of x: erfc(-x / sqrt 2) / 2. */
static void normal_distribution(bh_array *x) {
    check(bh_multiply(x, x, bh_f64(-0.70710678118654752440)));
    check(bh_erfc(x, x));
    check(bh_multiply(x, x, bh_f64(0.5)));
}

int main(int argc, char **argv) {
    const int64_t options = argc > 1 ? atoll(argv[1]) : 1000000;
    const long iterations = argc > 2 ? atol(argv[2]) : 10;
    const double strike = 65.0, rate = 0.08, volatility = 0.3;
    bh_array *price;
    const char *stack;
    double begin, mean = 0;
    long iteration;

    if (options < 1 || iterations < 1) {
        fprintf(stderr, "usage: black_scholes [OPTIONS [ITERATIONS]]\n");
        return 2;
    }
    check(bh_random_uniform(&price, NULL, BH_TYPE_F64, 1, &options, 42));
    check(bh_multiply(price, price, bh_f64(4.0)));
    check(bh_add(price, price, bh_f64(58.0)));
    check(bh_sync(NULL));

    begin = seconds();
    for (iteration = 1; iteration <= iterations; iteration++) {
        const double years = (double)iteration / 365.0;
        bh_array *d1, *d2, *root, *discount, *sum;
        double total;
        const int64_t one = 1;
        /* d1 = (ln(price / strike) + (rate + volatility^2 / 2) * years) / (volatility * sqrt(years)) */
        check(bh_full(&root, NULL, bh_f64(years), 1, &one));
        check(bh_sqrt(root, root));
        check(bh_multiply(root, root, bh_f64(volatility)));
        check(bh_divide_new(&d1, price, bh_f64(strike)));
        check(bh_log(d1, d1));
        check(bh_add(d1, d1, bh_f64((rate + volatility * volatility / 2) * years)));
        check(bh_divide(d1, d1, root));
        check(bh_subtract_new(&d2, d1, root));
        normal_distribution(d1);
        normal_distribution(d2);
        /* call = price * N(d1) - strike * exp(-rate * years) * N(d2) */
        check(bh_full(&discount, NULL, bh_f64(-rate * years), 1, &one));
        check(bh_exp(discount, discount));
        check(bh_multiply(discount, discount, bh_f64(strike)));
        check(bh_multiply(d1, d1, price));
        check(bh_multiply(d2, d2, discount));
        check(bh_subtract(d1, d1, d2));
        check(bh_add_reduce_new(&sum, d1, 0));
        check(bh_scalar_f64(&total, sum));
        mean += total / (double)options / (double)iterations;
        check(bh_free(sum));
        check(bh_free(discount));
        check(bh_free(root));
        check(bh_free(d2));
        check(bh_free(d1));
    }
    begin = seconds() - begin;

    check(bh_stack_name(&stack, NULL));
    printf("stack %s, %lld options, %ld iterations, %.3f s, mean price %.6f\n", stack, (long long)options, iterations,
           begin, mean);
    check(bh_free(price));
    check(bh_context_destroy(NULL));
    return 0;
}
