/* What the measurements of this folder share: errors end the program; seconds; medians. */
#ifndef BH_BENCH_MEASURE_H
#define BH_BENCH_MEASURE_H
#include <bh.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void check(bh_status status) {
    if (status != 0) {
        fprintf(stderr, "%s\n", bh_error_message());
        exit(1);
    }
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median of so many values, which are sorted. */
static double median(double *values, int count) {
    qsort(values, (size_t)count, sizeof *values, compare);
    return values[count / 2];
}

#endif
