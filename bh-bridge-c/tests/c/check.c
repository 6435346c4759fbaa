/* BH_CHECK: what it finds, with operation, line, index and size; contexts read it when they are made. */
#define _POSIX_C_SOURCE 200809L
#include "expect.h"

/* The call fails at its own line, in this file. */
#define FAILS_HERE(call, status, text)                                                                       \
    do {                                                                                                     \
        FAILS(call, status, text);                                                                           \
        TRUE(strstr(bh_error_file(), "check.c") != NULL && bh_error_line() > 0);                             \
    } while (0)

static bh_context *checked(const char *list) {
    bh_context *context;
    TRUE(setenv("BH_CHECK", list, 1) == 0);
    OK(bh_context_create(&context, NULL));
    TRUE(unsetenv("BH_CHECK") == 0);
    return context;
}

static bh_array *vector(bh_context *context, double a, double b, double c) {
    const int64_t three = 3;
    double values[3];
    bh_array *made;
    values[0] = a, values[1] = b, values[2] = c;
    OK(bh_from_data(&made, context, BH_TYPE_F64, 1, &three, values));
    return made;
}

static bh_array *indices(bh_context *context, int64_t a, int64_t b) {
    const int64_t shape[] = {2, 1};
    int64_t values[2];
    bh_array *made;
    values[0] = a, values[1] = b;
    OK(bh_from_data(&made, context, BH_TYPE_I64, 2, shape, values));
    return made;
}

static void check_numbers(bh_context *context, int found) {
    bh_array *a = vector(context, 4, 0, -1), *result;
    double values[3];
    int line;
    if (found) {
        line = __LINE__ + 1;
        FAILS_HERE(bh_divide_new(&result, bh_f64(1), a), BH_STATUS_CHECK, "divide: element 1 of the result is inf");
        TRUE(result == NULL && bh_error_line() == (uint32_t)line);
        FAILS_HERE(bh_sqrt_new(&result, a), BH_STATUS_CHECK, "sqrt: element 2 of the result is nan");
        FAILS_HERE(bh_log(a, a), BH_STATUS_CHECK, "log: element 1 of the result is -inf");
        OK(bh_add(a, a, bh_f64(1))); /* found once */
    } else {
        OK(bh_divide_new(&result, bh_f64(1), a));
        OK(bh_read(values, result));
        TRUE(values[1] > 1e308);
        OK(bh_free(result));
    }
    OK(bh_free(a));
}

/* Programs run fused: the failure comes with the next wait, with the line that made the first NaN. */
static void check_fused(bh_context *context) {
    bh_array *a = vector(context, 4, 0, -1), *root, *sum;
    double values[3];
    const int line = __LINE__ + 1;
    OK(bh_sqrt_new(&root, a));
    OK(bh_add_new(&sum, root, bh_f64(1)));
    FAILS(bh_read(values, sum), BH_STATUS_CHECK, "sqrt: element 2 of the result is nan, but no NaN went into it (operands: -1)");
    TRUE(strstr(bh_error_file(), "check.c") != NULL && bh_error_line() == (uint32_t)line);
    OK(bh_free(a));
    OK(bh_free(root));
    OK(bh_free(sum));
}

static void check_indices(bh_context *context, const char *text) {
    bh_array *a = vector(context, 1, 2, 3), *good = indices(context, -3, 2), *bad = indices(context, 2, 3), *result;
    double values[3];
    OK(bh_gather_new(&result, a, good));
    OK(bh_read(values, result));
    TRUE(values[0] == 1 && values[1] == 3);
    OK(bh_free(result));
    if (text[0] != '\0') {
        FAILS_HERE(bh_gather_new(&result, a, bad), BH_STATUS_BOUNDS, text);
        FAILS_HERE(bh_scatter(a, bh_f64(0), bad), BH_STATUS_BOUNDS, "scatter: index 3 at element (1, 0)");
    }
    OK(bh_free(a));
    OK(bh_free(good));
    OK(bh_free(bad));
}

int main(void) {
    const char *precise = "gather: index 3 at element (1, 0) of the index array is out of range for 3 elements";
    bh_context *context;

    context = checked("nan-all,bounds");
    check_numbers(context, 1);
    check_indices(context, precise);
    OK(bh_context_destroy(context));

    context = checked("nan-all");
    check_numbers(context, 1);
    OK(bh_context_destroy(context));

    context = checked("nan");
    check_fused(context);
    OK(bh_context_destroy(context));

    context = checked("bounds");
    check_numbers(context, 0);
    check_indices(context, precise);
    OK(bh_context_destroy(context));

    context = checked("none");
    check_numbers(context, 0);
    check_indices(context, "");
    OK(bh_context_destroy(context));

    TRUE(setenv("BH_CHECK", "nan,speling", 1) == 0);
    FAILS(bh_context_create(&context, NULL), BH_STATUS_CONFIG,
          "environment variable BH_CHECK: 'speling' is no check; valid: bounds, cancellation, cancellation=BITS, inf, nan, nan-all");
    return 0;
}
