/* Heat in a square plate with fixed borders, by Jacobi iteration: the program of the Bohrium papers, in C.
 *
 *   heat [SIZE [ITERATIONS [FILE]]]
 *
 * Each point becomes the mean of itself and its four neighbours, until the changes add up to less than a limit or
 * the iterations run out. FILE gets the SIZE x SIZE temperatures as raw doubles. */
#define _POSIX_C_SOURCE 199309L /* for clock_gettime */
#include <bh.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Every function returns a status; the message says what went wrong, and in which line. */
static void check(bh_status status) {
    if (status == BH_OK) return;
    fprintf(stderr, "heat: %s:%u: %s\n", bh_error_file(), (unsigned)bh_error_line(), bh_error_message());
    exit(1);
}

/* The part of the grid that is `down` and `right` of its upper left corner and two smaller than it. */
static bh_array *window(const bh_array *grid, int64_t size, int64_t down, int64_t right) {
    const int64_t start[] = {down, right}, stop[] = {size - 2 + down, size - 2 + right};
    bh_array *part;
    check(bh_window(&part, grid, start, stop, NULL));
    return part;
}

/* Gives one line of the border a temperature. */
static void set_border(const bh_array *grid, int32_t dim, int64_t index, double temperature) {
    bh_array *line;
    check(bh_index(&line, grid, dim, index));
    check(bh_copy(line, bh_f64(temperature)));
    check(bh_free(line));
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int main(int argc, char **argv) {
    const int64_t size = argc > 1 ? atoll(argv[1]) : 1000;
    const int iterations = argc > 2 ? atoi(argv[2]) : 100;
    const double limit = 1e-3;
    if (size < 3 || iterations < 0) {
        fprintf(stderr, "usage: heat [SIZE (at least 3) [ITERATIONS [FILE]]]\n");
        return 2;
    }

    const int64_t shape[] = {size, size}, inner[] = {size - 2, size - 2};
    bh_array *grid, *work;
    check(bh_zeros(&grid, NULL, BH_TYPE_F64, 2, shape));
    check(bh_empty(&work, NULL, BH_TYPE_F64, 2, inner));
    set_border(grid, 1, 0, -273.15);
    set_border(grid, 1, -1, -273.15);
    set_border(grid, 0, -1, -273.15);
    set_border(grid, 0, 0, 40.0);

    /* Windows on the same data: nothing is copied. */
    bh_array *center = window(grid, size, 1, 1);
    bh_array *north = window(grid, size, 0, 1);
    bh_array *south = window(grid, size, 2, 1);
    bh_array *west = window(grid, size, 1, 0);
    bh_array *east = window(grid, size, 1, 2);

    const double begin = seconds();
    double delta = limit + 1;
    int iteration = 0;
    for (; iteration < iterations && delta > limit; ++iteration) {
        check(bh_add(work, center, north));
        check(bh_add(work, work, south));
        check(bh_add(work, work, west));
        check(bh_add(work, work, east));
        check(bh_multiply(work, work, bh_f64(0.2)));

        bh_array *change, *total;
        check(bh_subtract_new(&change, work, center));
        check(bh_absolute(change, change));
        check(bh_add_reduce_new(&total, change, BH_ALL_AXES));
        check(bh_copy(center, work));
        check(bh_free(change));

        /* Reading a number runs all of the above, fused into one pass over the grid. */
        check(bh_scalar_f64(&delta, total));
        check(bh_free(total));
    }
    const double elapsed = seconds() - begin;

    const char *stack;
    check(bh_stack_name(&stack, NULL));
    printf("stack: %s\nsize: %lld x %lld\niterations: %d\nseconds: %.3f\ndelta: %.6f\n", stack, (long long)size,
           (long long)size, iteration, elapsed, delta);

    if (argc > 3) {
        double *field = malloc((size_t)(size * size) * sizeof(double));
        FILE *file = fopen(argv[3], "wb");
        if (!field || !file) {
            fprintf(stderr, "heat: cannot write %s\n", argv[3]);
            return 1;
        }
        check(bh_read(field, grid));
        const size_t written = fwrite(field, sizeof(double), (size_t)(size * size), file);
        if (fclose(file) != 0 || written != (size_t)(size * size)) {
            fprintf(stderr, "heat: cannot write %s\n", argv[3]);
            return 1;
        }
        free(field);
    }

    bh_array *const all[] = {center, north, south, west, east, work, grid};
    for (size_t i = 0; i < sizeof all / sizeof *all; ++i) check(bh_free(all[i]));
    return 0;
}
