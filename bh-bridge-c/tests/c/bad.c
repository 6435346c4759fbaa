/* Wrong arguments: each gives an error that names the cause, and the library stays usable. */
#include "expect.h"

static void handles(void) {
    const int64_t one = 1;
    bh_array *a, *b, *c, *stale;
    int local = 0;
    OK(bh_ones(&a, NULL, BH_TYPE_F64, 1, &one));
    OK(bh_retain(&stale, a));
    OK(bh_free(stale));
    FAILS(bh_free(stale), BH_STATUS_HANDLE, "freed");
    FAILS(bh_add(stale, a, a), BH_STATUS_HANDLE, "freed");
    FAILS(bh_add(a, a, stale), BH_STATUS_HANDLE, "input 2");
    FAILS(bh_add(NULL, a, a), BH_STATUS_HANDLE, "'out' is null");
    FAILS(bh_add(a, NULL, a), BH_STATUS_HANDLE, "'a' is null");
    FAILS(bh_add(a, a, (bh_array *)&local), BH_STATUS_HANDLE, "no array handle");
    FAILS(bh_add(bh_f64(1), a, a), BH_STATUS_HANDLE, "constant");
    FAILS(bh_add_new(&b, bh_f64(1), bh_f64(2)), BH_STATUS_ARGUMENT, "at least one operand must be an array");
    FAILS(bh_add_new(NULL, a, a), BH_STATUS_ARGUMENT, "'out' is null");
    FAILS(bh_read(NULL, a), BH_STATUS_ARGUMENT, "'data' is null");
    FAILS(bh_rank(NULL, a), BH_STATUS_ARGUMENT, "'out' is null");
    FAILS(bh_empty(&b, (bh_context *)&local, BH_TYPE_F64, 1, &one), BH_STATUS_HANDLE, "context");
    /* A constant is good for a while only. */
    {
        bh_array *old = bh_f64(1);
        int i;
        for (i = 0; i < 100; i++) {
            (void)bh_f64(2);
        }
        FAILS(bh_add(a, a, old), BH_STATUS_HANDLE, "not valid");
    }
    OK(bh_add_new(&c, a, a));
    OK(bh_free(c));
    OK(bh_free(a));
}

/* What runs out of memory in a method is named as the program calls it. */
static void memory_of_methods_is_named(void) {
    const int64_t many = 1 << 18;
    bh_array *a, *sorted;
    uint32_t line;
    OK(bh_ones(&a, NULL, BH_TYPE_F64, 1, &many));
    OK(bh_empty(&sorted, NULL, BH_TYPE_F64, 1, &many));
    OK(bh_sync(NULL));
    OK(bh_memory_release(NULL));
    OK(bh_memory_limit(NULL, 3 << 20));
    line = __LINE__ + 1;
    OK(bh_sort(sorted, a));
    FAILS(bh_sync(NULL), BH_STATUS_MEMORY, "sort: out of memory");
    TRUE(strstr(bh_error_file(), "bad.c") && bh_error_line() == line);
    OK(bh_memory_limit(NULL, UINT64_MAX));
    OK(bh_free(sorted));
    OK(bh_free(a));
}

static void arguments(void) {
    const int64_t shape[2] = {2, 3}, four = 4, negative = -1, endless = 1ll << 50, huge[3] = {1ll << 40, 1ll << 40, 4};
    int64_t deep[17];
    const bh_array *inputs[9];
    bh_array *a, *b, *f, *v;
    int i;
    for (i = 0; i < 17; i++) {
        deep[i] = 1;
    }
    OK(bh_zeros(&a, NULL, BH_TYPE_F64, 2, shape));
    OK(bh_zeros(&b, NULL, BH_TYPE_F64, 1, &four));
    OK(bh_zeros(&f, NULL, BH_TYPE_F32, 2, shape));
    FAILS(bh_add(a, a, b), BH_STATUS_SHAPE, "input 2");
    FAILS(bh_add(a, a, f), BH_STATUS_TYPE, "(f64, f32) -> f64");
    FAILS(bh_add(a, a, bh_i32(1)), BH_STATUS_TYPE, "cast");
    FAILS(bh_left_shift(a, a, a), BH_STATUS_TYPE, "left_shift");
    FAILS(bh_add_reduce(b, a, 2), BH_STATUS_ARGUMENT, "axis 2");
    FAILS(bh_add_reduce(b, a, 0), BH_STATUS_SHAPE, "gives a result of shape [3]");
    FAILS(bh_powi(a, a, 70000), BH_STATUS_ARGUMENT, "70000");
    FAILS(bh_powi(a, a, 9), BH_STATUS_ARGUMENT, "2 to 5");
    FAILS(bh_empty(&v, NULL, 13, 1, &four), BH_STATUS_TYPE, "13");
    FAILS(bh_empty(&v, NULL, BH_TYPE_F64, 17, deep), BH_STATUS_SHAPE, "17");
    FAILS(bh_empty(&v, NULL, BH_TYPE_F64, -1, deep), BH_STATUS_SHAPE, "-1");
    FAILS(bh_empty(&v, NULL, BH_TYPE_F64, 1, NULL), BH_STATUS_ARGUMENT, "'shape' is null");
    FAILS(bh_empty(&v, NULL, BH_TYPE_F64, 1, &negative), BH_STATUS_SHAPE, "negative");
    FAILS(bh_empty(&v, NULL, BH_TYPE_F64, 3, huge), BH_STATUS_SHAPE, "exceeds the limit");
    FAILS(bh_slice(&v, a, 2, 0, 1, 1), BH_STATUS_ARGUMENT, "axis 2");
    FAILS(bh_slice(&v, a, 0, 0, 1, 0), BH_STATUS_ARGUMENT, "zero");
    FAILS(bh_index(&v, a, 0, 2), BH_STATUS_ARGUMENT, "out of range");
    FAILS(bh_view(&v, a, 4, 2, shape, shape), BH_STATUS_BOUNDS, "leaves the base");
    FAILS(bh_reshape(&v, a, 1, &four), BH_STATUS_SHAPE, "reshape");
    FAILS(bh_arange(&v, NULL, BH_TYPE_F64, 0, 1, 0), BH_STATUS_ARGUMENT, "step 0");
    FAILS(bh_full(&v, NULL, a, 1, &four), BH_STATUS_ARGUMENT, "constant");
    FAILS(bh_random_uniform(&v, NULL, BH_TYPE_I8, 1, &four, 1), BH_STATUS_TYPE, "i8");
    for (i = 0; i < 9; i++) {
        inputs[i] = a;
    }
    FAILS(bh_op(a, 9999, 0, 1, inputs), BH_STATUS_ARGUMENT, "9999");
    FAILS(bh_op(a, BH_OP_DISCARD, 0, 1, inputs), BH_STATUS_ARGUMENT, "no operation");
    FAILS(bh_op(a, BH_OP_ADD, 0, 3, inputs), BH_STATUS_ARGUMENT, "takes 2");
    FAILS(bh_op(a, BH_OP_ADD, 0, 9, inputs), BH_STATUS_ARGUMENT, "9 inputs");
    FAILS(bh_op(a, BH_OP_ADD, 0, 2, NULL), BH_STATUS_ARGUMENT, "'inputs' is null");
    FAILS(bh_op(a, BH_OP_RANGE, 0, 0, NULL), BH_STATUS_ARGUMENT, "range");
    FAILS(bh_extmethod("no such method", 1, &a, 1, inputs), BH_STATUS_UNSUPPORTED, "no such method");
    FAILS(bh_extmethod("matmul", 1, &a, 1, inputs), BH_STATUS_ARGUMENT, "takes out (m, n)");
    OK(bh_empty(&v, NULL, BH_TYPE_U8, 1, &endless));
    FAILS(bh_pin(v), BH_STATUS_MEMORY, "out of memory");
    OK(bh_free(v));
    memory_of_methods_is_named();
    FAILS(bh_threads_set(NULL, 0), BH_STATUS_ARGUMENT, "0");
    FAILS(bh_affinity_set(NULL, NULL), BH_STATUS_ARGUMENT, "'processors' is null");
    FAILS(bh_affinity_set(NULL, " "), BH_STATUS_ARGUMENT, "empty");
    FAILS(bh_affinity_set(NULL, "0,two"), BH_STATUS_ARGUMENT, "'two' is no number or range");
    FAILS(bh_affinity_set(NULL, "3-1"), BH_STATUS_ARGUMENT, "'3-1' is no number or range");
    FAILS(bh_affinity_set(NULL, "4,4"), BH_STATUS_ARGUMENT, "twice");
    FAILS(bh_affinity_set(NULL, "1023"), BH_STATUS_ARGUMENT, "may not use processor 1023");
    FAILS(bh_affinity_get(NULL, NULL), BH_STATUS_ARGUMENT, "'out' is null");
    OK(bh_add(a, a, a));
    OK(bh_free(a));
    OK(bh_free(b));
    OK(bh_free(f));
}

/* Buffers that say how large they are: what does not fit is refused, and nothing is written. */
static void buffers(void) {
    const int64_t shape[2] = {2, 3};
    const double data[6] = {1, 2, 3, 4, 5, 6};
    const int32_t axes[2] = {1, 0};
    int64_t numbers[2] = {-7, -7};
    double values[6] = {9, 9, 9, 9, 9, 9};
    bh_array *a, *b;
    FAILS(bh_from_data_sized(&a, NULL, BH_TYPE_F64, 2, shape, data, 47), BH_STATUS_ARGUMENT, "has 47 bytes, and the elements need 48");
    FAILS(bh_from_data_sized(&a, NULL, BH_TYPE_F64, 2, shape, NULL, 48), BH_STATUS_ARGUMENT, "'data' is null");
    OK(bh_from_data_sized(&a, NULL, BH_TYPE_F64, 2, shape, data, sizeof data));
    FAILS(bh_shape_sized(numbers, 1, a), BH_STATUS_ARGUMENT, "place for 1 numbers, and the array has 2 dimensions");
    FAILS(bh_stride_sized(numbers, 0, a), BH_STATUS_ARGUMENT, "place for 0 numbers");
    TRUE(numbers[0] == -7 && numbers[1] == -7);
    FAILS(bh_shape_sized(NULL, 2, a), BH_STATUS_ARGUMENT, "'out' is null");
    OK(bh_shape_sized(numbers, 2, a));
    TRUE(numbers[0] == 2 && numbers[1] == 3);
    OK(bh_stride_sized(numbers, 2, a));
    TRUE(numbers[0] == 3 && numbers[1] == 1);
    FAILS(bh_read_sized(values, 40, a), BH_STATUS_ARGUMENT, "has 40 bytes");
    FAILS(bh_read_sized(NULL, 48, a), BH_STATUS_ARGUMENT, "'data' is null");
    TRUE(values[0] == 9 && values[4] == 9);
    OK(bh_read_sized(values, sizeof values, a));
    TRUE(values[0] == 1 && values[5] == 6);
    FAILS(bh_write_sized(a, values, 47), BH_STATUS_ARGUMENT, "has 47 bytes");
    FAILS(bh_transpose_sized(&b, a, 1, axes), BH_STATUS_ARGUMENT, "1 axes are given for an array of rank 2");
    OK(bh_transpose_sized(&b, a, 2, axes));
    values[0] = 10;
    OK(bh_write_sized(a, values, sizeof values));
    OK(bh_read_sized(values, sizeof values, b));
    TRUE(values[0] == 10 && values[1] == 4 && values[5] == 6);
    OK(bh_free(b));
    OK(bh_free(a));
}

/* Indices that are at hand fail where they are given, and nothing has happened. */
static void at_once(void) {
    const int64_t three = 3;
    bh_array *a, *index, *bad;
    double values[3];
    OK(bh_ones(&a, NULL, BH_TYPE_F64, 1, &three));
    OK(bh_empty(&index, NULL, BH_TYPE_I64, 1, &three));
    OK(bh_range(index, 2, 1));
    FAILS(bh_gather_new(&bad, a, index), BH_STATUS_BOUNDS, "index 3 is out of range for 3 elements");
    FAILS(bh_scatter(a, bh_f64(5), index), BH_STATUS_BOUNDS, "index 3 is out of range for 3 elements");
    OK(bh_read(values, a));
    TRUE(values[2] == 1);
    OK(bh_sync(NULL));
    OK(bh_free(index));
    OK(bh_free(a));
}

/* Those of more data fail where results are looked at. */
static void deferred(void) {
    enum { MANY = 10000 };
    const int64_t many = MANY;
    bh_array *a, *index, *bad;
    static double values[MANY];
    uint32_t line;
    OK(bh_ones(&a, NULL, BH_TYPE_F64, 1, &many));
    OK(bh_empty(&index, NULL, BH_TYPE_I64, 1, &many));
    OK(bh_range(index, 2, 1));
    line = __LINE__ + 1;
    OK(bh_gather_new(&bad, a, index));
    FAILS(bh_read(values, bad), BH_STATUS_BOUNDS, "");
    TRUE(strstr(bh_error_file(), "bad.c") && bh_error_line() == line);
    FAILS(bh_read(values, bad), BH_STATUS_BOUNDS, "");
    TRUE(bh_error_line() == line);
    OK(bh_read(values, a));
    OK(bh_sync(NULL));
    OK(bh_copy(bad, bh_f64(4))); /* a full overwrite heals */
    OK(bh_read(values, bad));
    TRUE(values[2] == 4);
    OK(bh_free(bad));
    OK(bh_free(index));
    OK(bh_free(a));
}

static void after_shutdown(void) {
    const int64_t one = 1;
    bh_array *a, *b;
    OK(bh_ones(&a, NULL, BH_TYPE_F64, 1, &one));
    OK(bh_context_destroy(NULL));
    FAILS(bh_add(a, a, a), BH_STATUS_SHUTDOWN, "shut down");
    FAILS(bh_free(a), BH_STATUS_SHUTDOWN, "shut down");
    FAILS(bh_add_new(&b, a, a), BH_STATUS_SHUTDOWN, "shut down");
    OK(bh_context_destroy(NULL));
    OK(bh_ones(&b, NULL, BH_TYPE_F64, 1, &one));
    FAILS(bh_free(a), BH_STATUS_HANDLE, "freed");
    OK(bh_free(b));
    OK(bh_context_destroy(NULL));
}

int main(void) {
    handles();
    arguments();
    buffers();
    at_once();
    deferred();
    after_shutdown();
    return 0;
}
