/* Heat on a plate: the temperature of each inner point becomes the mean of itself and its four neighbours, until
 * nothing changes any more.
 *
 *     heat [SIZE [ITERATIONS [FILE]]]
 *
 * FILE receives the temperatures as SIZE * SIZE doubles. */
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

/* The window of `grid` that leaves out so many rows and columns at each side. */
static bh_array *window(const bh_array *grid, int64_t top, int64_t bottom, int64_t left, int64_t right) {
    int64_t shape[2], start[2], stop[2];
    bh_array *view;
    check(bh_shape(shape, grid));
    start[0] = top;
    start[1] = left;
    stop[0] = shape[0] - bottom;
    stop[1] = shape[1] - right;
    check(bh_window(&view, grid, start, stop, NULL));
    return view;
}

static void set(bh_array *view, double value) {
    check(bh_identity(view, bh_f64(value)));
    check(bh_free(view));
}

int main(int argc, char **argv) {
    const int64_t size = argc > 1 ? atoll(argv[1]) : 1000;
    const long iterations = argc > 2 ? atol(argv[2]) : 100;
    const int64_t shape[2] = {size, size};
    const double epsilon = 0.005;
    bh_array *grid, *center, *north, *south, *west, *east;
    const char *stack;
    double delta = epsilon + 1;
    double begin;
    long iteration;

    if (size < 3 || iterations < 1) {
        fprintf(stderr, "usage: heat [SIZE (at least 3) [ITERATIONS [FILE]]]\n");
        return 2;
    }
    check(bh_zeros(&grid, NULL, BH_TYPE_F64, 2, shape));
    set(window(grid, 0, size - 1, 0, 0), 40.0);
    set(window(grid, size - 1, 0, 0, 0), -273.15);
    set(window(grid, 0, 0, 0, size - 1), -273.15);
    set(window(grid, 0, 0, size - 1, 0), -273.15);
    center = window(grid, 1, 1, 1, 1);
    north = window(grid, 0, 2, 1, 1);
    south = window(grid, 2, 0, 1, 1);
    west = window(grid, 1, 1, 0, 2);
    east = window(grid, 1, 1, 2, 0);
    check(bh_sync(NULL));

    begin = seconds();
    for (iteration = 0; iteration < iterations && delta > epsilon; iteration++) {
        bh_array *work, *change, *sum;
        check(bh_add_new(&work, center, north));
        check(bh_add(work, work, south));
        check(bh_add(work, work, west));
        check(bh_add(work, work, east));
        check(bh_multiply(work, work, bh_f64(0.2)));
        check(bh_subtract_new(&change, work, center));
        check(bh_absolute(change, change));
        check(bh_add_reduce_new(&sum, change, BH_ALL_AXES));
        check(bh_identity(center, work));
        check(bh_free(change));
        check(bh_free(work));
        check(bh_scalar_f64(&delta, sum));
        check(bh_free(sum));
    }
    check(bh_sync(NULL));
    begin = seconds() - begin;

    check(bh_stack_name(&stack, NULL));
    printf("stack %s, %lld x %lld, %ld iterations, %.3f s, delta %.6f\n", stack, (long long)size, (long long)size,
           iteration, begin, delta);

    if (argc > 3) {
        FILE *file = fopen(argv[3], "wb");
        void *data;
        int good;
        check(bh_map(&data, grid, BH_ACCESS_READ));
        good = file != NULL && fwrite(data, sizeof(double), (size_t)(size * size), file) == (size_t)(size * size);
        good = file != NULL && fclose(file) == 0 && good;
        check(bh_unmap(grid));
        if (!good) {
            fprintf(stderr, "heat: cannot write %s\n", argv[3]);
            return 1;
        }
    }
    check(bh_free(center));
    check(bh_free(north));
    check(bh_free(south));
    check(bh_free(west));
    check(bh_free(east));
    check(bh_free(grid));
    check(bh_context_destroy(NULL));
    return 0;
}
