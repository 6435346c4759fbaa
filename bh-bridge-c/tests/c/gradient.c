/* bh_gradient: derivatives of a stretch of the program, its errors, and a bound of memory. */
#include "expect.h"

#define SIZE 40

/* Steps of a flow in place, and the sum of its squares. */
static bh_array *flow(bh_array *u, const bh_array *k, int steps) {
    bh_array *middle, *before, *behind, *sum;
    int step;
    OK(bh_slice(&middle, u, 0, 1, SIZE - 1, 1));
    OK(bh_slice(&before, u, 0, 0, SIZE - 2, 1));
    OK(bh_slice(&behind, u, 0, 2, SIZE, 1));
    for (step = 0; step < steps; ++step) {
        bh_array *around, *change;
        OK(bh_add_new(&around, before, behind));
        OK(bh_multiply_new(&change, around, middle));
        OK(bh_multiply(change, change, k));
        OK(bh_add(middle, middle, change));
        OK(bh_free(around));
        OK(bh_free(change));
    }
    OK(bh_free(middle));
    OK(bh_free(before));
    OK(bh_free(behind));
    OK(bh_multiply_new(&middle, u, u));
    OK(bh_add_reduce_new(&sum, middle, BH_ALL_AXES));
    OK(bh_free(middle));
    return sum;
}

static bh_array *made(const double *values) {
    const int64_t size = SIZE;
    bh_array *array;
    OK(bh_from_data(&array, NULL, BH_TYPE_F64, 1, &size, values));
    return array;
}

static bh_array *number(double value) {
    bh_array *array;
    OK(bh_from_data(&array, NULL, BH_TYPE_F64, 0, NULL, &value));
    return array;
}

static double value(const double *values, double factor) {
    bh_array *u = made(values), *k = number(factor), *sum = flow(u, k, 30);
    double result;
    OK(bh_scalar_f64(&result, sum));
    OK(bh_free(u));
    OK(bh_free(k));
    OK(bh_free(sum));
    return result;
}

static void gradients(const double *values, double factor, uint64_t memory, uint64_t disk, double *by_u, double *by_k) {
    bh_array *arguments[2], *found[2], *sum;
    bh_stretch *stretch;
    arguments[0] = made(values), arguments[1] = number(factor);
    OK(bh_gradient_begin(&stretch, 2, (const bh_array *const *)arguments, memory, disk));
    sum = flow(arguments[0], arguments[1], 30);
    OK(bh_gradient(found, stretch, sum));
    OK(bh_read(by_u, found[0]));
    OK(bh_read(by_k, found[1]));
    OK(bh_free(found[0]));
    OK(bh_free(found[1]));
    OK(bh_free(sum));
    OK(bh_free(arguments[0]));
    OK(bh_free(arguments[1]));
}

static void slopes_are_those_of_differences(void) {
    double values[SIZE], moved[SIZE], by_u[SIZE], by_k, again_u[SIZE], again_k;
    const double step = 1e-6;
    int at;
    for (at = 0; at < SIZE; ++at) values[at] = 0.5 + 0.3 * sin(at);
    gradients(values, 0.01, 0, 0, by_u, &by_k);
    for (at = 0; at < SIZE; at += 7) {
        double slope;
        memcpy(moved, values, sizeof moved);
        moved[at] += step;
        slope = value(moved, 0.01);
        moved[at] -= 2 * step;
        slope = (slope - value(moved, 0.01)) / (2 * step);
        TRUE(fabs(slope - by_u[at]) <= 1e-6 * fabs(slope));
    }
    TRUE(fabs((value(values, 0.01 + step) - value(values, 0.01 - step)) / (2 * step) - by_k) <= 1e-6 * fabs(by_k));
    /* A bound changes no bit. */
    for (at = 0; at < 2; ++at) {
        gradients(values, 0.01, 20 * SIZE * sizeof(double), (uint64_t)at << 20, again_u, &again_k);
        TRUE(memcmp(by_u, again_u, sizeof by_u) == 0 && by_k == again_k);
    }
}

static void mistakes_are_errors(void) {
    const int64_t three = 3;
    const int32_t whole[3] = {1, 2, 3};
    const double values[SIZE] = {1, 2, 3};
    bh_array *u = made(values), *part, *integers, *sum, *twice, *found[1];
    const bh_array *list[1];
    bh_stretch *stretch;
    double read[SIZE];
    OK(bh_from_data(&integers, NULL, BH_TYPE_I32, 1, &three, whole));
    OK(bh_slice(&part, u, 0, 0, 3, 1));
    list[0] = integers;
    FAILS(bh_gradient_begin(&stretch, 1, list, 0, 0), BH_STATUS_TYPE, "not by type i32");
    list[0] = part;
    FAILS(bh_gradient_begin(&stretch, 1, list, 0, 0), BH_STATUS_ARGUMENT, "memory of its own");
    FAILS(bh_gradient_begin(&stretch, 0, list, 0, 0), BH_STATUS_ARGUMENT, "an array at least");
    FAILS(bh_gradient_begin(&stretch, 1, list, 0, 1), BH_STATUS_ARGUMENT, "'disk'");
    FAILS(bh_gradient_begin(&stretch, 1, NULL, 0, 0), BH_STATUS_ARGUMENT, "'arguments' is null");
    OK(bh_free(part));
    list[0] = u;
    OK(bh_gradient_begin(&stretch, 1, list, 0, 0));
    OK(bh_multiply_new(&twice, u, bh_f64(2)));
    FAILS(bh_read(read, twice), BH_STATUS_UNSUPPORTED, "depends on the arguments");
    OK(bh_gradient_cancel(stretch));
    OK(bh_read(read, twice));
    FAILS(bh_gradient_cancel(stretch), BH_STATUS_HANDLE, "no such stretch");
    OK(bh_gradient_begin(&stretch, 1, list, 0, 0));
    FAILS(bh_gradient(found, stretch, twice), BH_STATUS_SHAPE, "one real number");
    FAILS(bh_gradient(found, stretch, twice), BH_STATUS_HANDLE, "no such stretch");
    /* What does not depend on an argument has a gradient of zero. */
    OK(bh_gradient_begin(&stretch, 1, list, 0, 0));
    OK(bh_add_reduce_new(&sum, twice, BH_ALL_AXES));
    OK(bh_gradient(found, stretch, sum));
    OK(bh_read(read, found[0]));
    TRUE(read[0] == 0 && read[SIZE - 1] == 0);
    OK(bh_free(found[0]));
    OK(bh_free(sum));
    OK(bh_free(twice));
    OK(bh_free(integers));
    OK(bh_free(u));
}

/* Stretches and handles that are gone, and arrays of another context. */
static void handles_that_are_gone_are_errors(void) {
    const double values[SIZE] = {1, 2, 3};
    const int64_t size = SIZE;
    bh_array *u = made(values), *v, *sum, *found[2];
    const bh_array *list[2];
    bh_context *other;
    bh_stretch *stretch, *second;
    double read[SIZE];
    OK(bh_context_create(&other, NULL));
    OK(bh_from_data(&v, other, BH_TYPE_F64, 1, &size, values));
    list[0] = u, list[1] = v;
    FAILS(bh_gradient_begin(&stretch, 2, list, 0, 0), BH_STATUS_HANDLE, "several contexts");
    list[1] = u;
    FAILS(bh_gradient_begin(&stretch, 2, list, 0, 0), BH_STATUS_ARGUMENT, "given twice");
    FAILS(bh_gradient(found, NULL, u), BH_STATUS_ARGUMENT, "stretch");
    /* The result is of another context, or freed. */
    OK(bh_gradient_begin(&stretch, 1, list, 0, 0));
    FAILS(bh_gradient(found, stretch, v), BH_STATUS_HANDLE, "another context");
    OK(bh_gradient_begin(&stretch, 1, list, 0, 0));
    OK(bh_add_reduce_new(&sum, u, BH_ALL_AXES));
    OK(bh_free(sum));
    FAILS(bh_gradient(found, stretch, sum), BH_STATUS_HANDLE, "freed");
    /* The argument may go before the stretch ends. */
    OK(bh_gradient_begin(&stretch, 1, list, 0, 0));
    OK(bh_multiply_new(&sum, u, u));
    OK(bh_free(u));
    OK(bh_add_reduce_new(&u, sum, BH_ALL_AXES));
    OK(bh_gradient(found, stretch, u));
    OK(bh_read(read, found[0]));
    TRUE(read[0] == 2 && read[1] == 4 && read[2] == 6 && read[3] == 0);
    OK(bh_free(found[0]));
    OK(bh_free(sum));
    OK(bh_free(u));
    /* A context that ends takes its stretches along, and one that begins in its place has none of them. */
    list[0] = v;
    OK(bh_gradient_begin(&stretch, 1, list, 0, 0));
    OK(bh_gradient_begin(&second, 1, list, 0, 0));
    OK(bh_context_destroy(other));
    OK(bh_context_create(&other, NULL));
    OK(bh_from_data(&v, other, BH_TYPE_F64, 1, &size, values));
    FAILS(bh_gradient(found, stretch, v), BH_STATUS_HANDLE, "destroyed");
    list[0] = v;
    OK(bh_gradient_begin(&stretch, 1, list, 0, 0));
    OK(bh_gradient_cancel(second));
    FAILS(bh_read(read, v), BH_STATUS_UNSUPPORTED, "depends on the arguments");
    OK(bh_gradient_cancel(stretch));
    OK(bh_read(read, v));
    OK(bh_context_destroy(other));
}

/* A derivative of a derivative: a stretch within another. */
static void stretches_nest(void) {
    const double values[SIZE] = {1, 2, 3};
    bh_array *u = made(values), *copy, *sum, *square, *slope, *second;
    const bh_array *list[1];
    bh_stretch *outer, *inner;
    double read[SIZE];
    list[0] = u;
    OK(bh_gradient_begin(&outer, 1, list, 0, 0));
    OK(bh_copy_new(&copy, u));
    list[0] = copy;
    OK(bh_gradient_begin(&inner, 1, list, 0, 0));
    OK(bh_multiply_new(&square, copy, copy));
    OK(bh_multiply(square, square, copy));
    OK(bh_add_reduce_new(&sum, square, BH_ALL_AXES));
    OK(bh_gradient(&slope, inner, sum));
    OK(bh_free(sum));
    OK(bh_add_reduce_new(&sum, slope, BH_ALL_AXES));
    OK(bh_gradient(&second, outer, sum));
    OK(bh_read(read, second));
    TRUE(read[0] == 6 && read[1] == 12 && read[2] == 18 && read[3] == 0);
    OK(bh_free(u));
    OK(bh_free(copy));
    OK(bh_free(sum));
    OK(bh_free(square));
    OK(bh_free(slope));
    OK(bh_free(second));
}

/* The program's own values are right after a bound that is too small. */
static void bounds_that_are_too_small_are_errors(void) {
    const double values[SIZE] = {1, 2, 3};
    bh_array *u = made(values), *number, *found[1];
    const bh_array *list[1];
    bh_stretch *stretch;
    double read[SIZE];
    list[0] = u;
    OK(bh_gradient_begin(&stretch, 1, list, 8, 0));
    OK(bh_multiply(u, u, u));
    OK(bh_add_reduce_new(&number, u, BH_ALL_AXES));
    FAILS(bh_gradient(found, stretch, number), BH_STATUS_MEMORY, "least");
    OK(bh_read(read, u));
    TRUE(read[1] == 4);
    OK(bh_free(number));
    OK(bh_free(u));
}

int main(void) {
    slopes_are_those_of_differences();
    mistakes_are_errors();
    handles_that_are_gone_are_errors();
    stretches_nest();
    bounds_that_are_too_small_are_errors();
    return 0;
}
