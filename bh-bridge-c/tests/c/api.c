/* The C interface, function by function. */
#include "expect.h"

static void creation(void) {
    const int64_t shape[2] = {2, 3}, three = 3;
    const double data[6] = {1, 2, 3, 4, 5, 6};
    const uint8_t truth[3] = {0, 2, 255};
    bh_array *a, *b;
    {
        const double expected[] = {1, 1, 1, 1, 1, 1};
        OK(bh_ones(&a, NULL, BH_TYPE_F32, 2, shape));
        has(a, 6, expected, __LINE__);
        OK(bh_free(a));
    }
    {
        const double expected[] = {7, 7, 7};
        OK(bh_full(&a, NULL, bh_i16(7), 1, &three));
        has(a, 3, expected, __LINE__);
        OK(bh_free(a));
    }
    {
        const double expected[] = {10, 7, 4}, fractions[] = {0, 0.5, 1, 1.5}, line[] = {1, 1.5, 2};
        OK(bh_arange(&a, NULL, BH_TYPE_I32, 10, 2, -3));
        has(a, 3, expected, __LINE__);
        OK(bh_free(a));
        OK(bh_arange(&a, NULL, BH_TYPE_F64, 0, 2, 0.5));
        has(a, 4, fractions, __LINE__);
        OK(bh_free(a));
        OK(bh_linspace(&a, NULL, BH_TYPE_F64, 1, 2, 3));
        has(a, 3, line, __LINE__);
        OK(bh_free(a));
        FAILS(bh_linspace(&a, NULL, BH_TYPE_F64, 1, 2, -1), BH_STATUS_SHAPE, "negative");
        FAILS(bh_linspace(&a, NULL, BH_TYPE_F64, 1, 2, INT64_MIN), BH_STATUS_SHAPE, "negative");
    }
    {
        const double expected[] = {0, 1, 1};
        OK(bh_from_data(&a, NULL, BH_TYPE_BOOL, 1, &three, truth));
        has(a, 3, expected, __LINE__);
        OK(bh_free(a));
    }
    OK(bh_from_data(&a, NULL, BH_TYPE_F64, 2, shape, data));
    OK(bh_copy_new(&b, a));
    OK(bh_add(a, a, a));
    has(b, 6, data, __LINE__);
    OK(bh_free(b));
    OK(bh_retain(&b, a));
    OK(bh_free(a));
    {
        const double expected[] = {2, 4, 6, 8, 10, 12};
        has(b, 6, expected, __LINE__);
    }
    OK(bh_free(b));
    OK(bh_free(NULL));
}

static void randomness(void) {
    const int64_t many = 20000;
    bh_array *a, *b, *sum, *same;
    double mean, square;
    bool equal;
    OK(bh_random_uniform(&a, NULL, BH_TYPE_F64, 1, &many, 7));
    OK(bh_random_uniform(&b, NULL, BH_TYPE_F64, 1, &many, 7));
    OK(bh_equal_new(&same, a, b));
    OK(bh_logical_and_reduce_new(&sum, same, 0));
    OK(bh_scalar_bool(&equal, sum));
    TRUE(equal);
    OK(bh_free(sum));
    OK(bh_free(same));
    OK(bh_add_reduce_new(&sum, a, BH_ALL_AXES));
    OK(bh_scalar_f64(&mean, sum));
    TRUE(fabs(mean / (double)many - 0.5) < 0.02);
    OK(bh_free(sum));
    OK(bh_free(b));
    OK(bh_free(a));
    OK(bh_random_normal(&a, NULL, BH_TYPE_F64, 1, &many, 7));
    OK(bh_add_reduce_new(&sum, a, 0));
    OK(bh_scalar_f64(&mean, sum));
    OK(bh_free(sum));
    OK(bh_powi(a, a, 2));
    OK(bh_add_reduce_new(&sum, a, 0));
    OK(bh_scalar_f64(&square, sum));
    TRUE(fabs(mean / (double)many) < 0.04 && fabs(square / (double)many - 1) < 0.06);
    OK(bh_free(sum));
    OK(bh_free(a));
}

static void views(void) {
    const int64_t shape[3] = {2, 3, 4}, flat[2] = {6, -1}, square[2] = {4, 4}, big[2] = {2, 4};
    const int64_t start[3] = {0, 1, BH_NONE}, stop[3] = {1, BH_NONE, 3}, step[3] = {1, 1, 2};
    const int32_t axes[3] = {2, 0, 1};
    int64_t got[3], size, offset;
    int32_t rank;
    bh_array *a, *v, *w;
    OK(bh_empty(&a, NULL, BH_TYPE_I64, 3, shape));
    OK(bh_range(a, 0, 1));
    OK(bh_slice(&v, a, -1, 1, BH_NONE, 2));
    OK(bh_shape(got, v));
    TRUE(got[0] == 2 && got[1] == 3 && got[2] == 2);
    OK(bh_free(v));
    OK(bh_window(&v, a, start, stop, step));
    {
        const double expected[] = {4, 6, 8, 10};
        has(v, 4, expected, __LINE__);
    }
    OK(bh_offset(&offset, v));
    TRUE(offset == 4);
    OK(bh_free(v));
    OK(bh_index(&v, a, 1, -1));
    {
        const double expected[] = {8, 9, 10, 11, 20, 21, 22, 23};
        has(v, 8, expected, __LINE__);
    }
    OK(bh_new_axis(&w, v, 0));
    OK(bh_rank(&rank, w));
    TRUE(rank == 3);
    OK(bh_free(w));
    OK(bh_free(v));
    OK(bh_transpose(&v, a, axes));
    OK(bh_shape(got, v));
    TRUE(got[0] == 4 && got[1] == 2 && got[2] == 3);
    OK(bh_free(v));
    OK(bh_transpose(&v, a, NULL));
    OK(bh_stride(got, v));
    TRUE(got[0] == 1 && got[1] == 4 && got[2] == 12);
    OK(bh_reshape(&w, v, 2, flat));
    OK(bh_shape(got, w));
    TRUE(got[0] == 6 && got[1] == 4);
    OK(bh_free(w));
    OK(bh_free(v));
    OK(bh_index(&v, a, 0, 0));
    OK(bh_reverse(&w, v, 0));
    {
        const double expected[] = {8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3};
        has(w, 12, expected, __LINE__);
    }
    OK(bh_free(w));
    OK(bh_diagonal(&w, v, 1, 0, 1));
    {
        const double expected[] = {1, 6, 11};
        has(w, 3, expected, __LINE__);
    }
    OK(bh_free(w));
    OK(bh_free(v));
    {
        const int64_t window[1] = {3}, stride[1] = {-2};
        const double expected[] = {23, 21, 19};
        OK(bh_view(&v, a, 23, 1, window, stride));
        has(v, 3, expected, __LINE__);
        OK(bh_free(v));
    }
    OK(bh_index(&v, a, 0, 1));
    OK(bh_index(&w, v, 0, 0));
    OK(bh_free(v));
    OK(bh_broadcast(&v, w, 2, big));
    OK(bh_size(&size, v));
    TRUE(size == 8);
    FAILS(bh_copy(v, bh_i64(1)), BH_STATUS_ARGUMENT, "several elements");
    FAILS(bh_broadcast(&w, a, 2, square), BH_STATUS_ARGUMENT, "cannot be broadcast");
    OK(bh_free(v));
    OK(bh_free(a));
}

static void operations(void) {
    const int64_t shape[2] = {2, 2}, two = 2;
    const double data[4] = {1, 4, 9, 16};
    bh_array *a, *b, *c, *mask;
    const bh_array *inputs[2];
    bh_dtype dtype;
    double value, parts[2];
    int64_t whole;
    uint64_t natural;
    OK(bh_from_data(&a, NULL, BH_TYPE_F64, 2, shape, data));
    OK(bh_sqrt_new(&b, a));
    {
        const double expected[] = {1, 2, 3, 4};
        has(b, 4, expected, __LINE__);
    }
    OK(bh_subtract(b, bh_f64(10), b));
    {
        const double expected[] = {9, 8, 7, 6};
        has(b, 4, expected, __LINE__);
    }
    OK(bh_greater_new(&mask, a, b));
    OK(bh_dtype_of(&dtype, mask));
    TRUE(dtype == BH_TYPE_BOOL && bh_dtype_size(dtype) == 1 && bh_dtype_size(99) == 0);
    OK(bh_where_new(&c, mask, a, bh_f64(-1)));
    {
        const double expected[] = {-1, -1, 9, 16};
        has(c, 4, expected, __LINE__);
    }
    OK(bh_free(c));
    OK(bh_free(mask));
    OK(bh_maximum_reduce_new(&c, b, -1));
    {
        const double expected[] = {9, 7};
        has(c, 2, expected, __LINE__);
    }
    OK(bh_add(a, a, c)); /* a row is added to each row */
    {
        const double expected[] = {10, 11, 18, 23};
        has(a, 4, expected, __LINE__);
    }
    OK(bh_add_accumulate(a, a, 0));
    {
        const double expected[] = {10, 11, 28, 34};
        has(a, 4, expected, __LINE__);
    }
    OK(bh_free(c));
    OK(bh_free(b));
    inputs[0] = a;
    inputs[1] = bh_f64(2);
    OK(bh_op_new(&b, BH_OP_POWER, 0, -1, 2, inputs));
    OK(bh_free(b));
    OK(bh_op_new(&b, BH_OP_ADD_REDUCE, 3, -1, 1, inputs));
    OK(bh_scalar_f64(&value, b));
    TRUE(value == 83);
    OK(bh_scalar_i64(&whole, b));
    OK(bh_scalar_u64(&natural, b));
    OK(bh_scalar_c128(parts, b));
    TRUE(whole == 83 && natural == 83 && parts[0] == 83 && parts[1] == 0);
    OK(bh_free(b));
    OK(bh_op_new(&b, BH_OP_COPY, 0, BH_TYPE_C64, 1, inputs));
    OK(bh_multiply(b, b, bh_c64(0, 1)));
    OK(bh_imag_new(&c, b));
    {
        const double expected[] = {10, 11, 28, 34};
        has(c, 4, expected, __LINE__);
    }
    OK(bh_free(c));
    OK(bh_free(b));
    {
        const double expected[] = {34, 10}, scattered[] = {-1, 11, 28, -2};
        const int64_t numbers[2] = {-1, 0};
        const double values[2] = {-2, -1};
        bh_array *index;
        OK(bh_from_data(&index, NULL, BH_TYPE_I64, 1, &two, numbers));
        OK(bh_gather_new(&b, a, index));
        has(b, 2, expected, __LINE__);
        OK(bh_write(b, values));
        OK(bh_scatter(a, b, index));
        has(a, 4, scattered, __LINE__);
        OK(bh_free(index));
        OK(bh_free(b));
    }
    OK(bh_free(a));
}

static int released;

static void release(void *argument, void *data) {
    released += *(int *)argument;
    free(data);
}

static void access_to_data(void) {
    const int64_t shape[2] = {2, 2}, turned[2] = {8, 16};
    double *memory = (double *)malloc(4 * sizeof(double)), data[4] = {1, 2, 3, 4}, got[4];
    int argument = 5;
    void *mapped;
    bh_array *a;
    OK(bh_empty(&a, NULL, BH_TYPE_F64, 2, shape));
    OK(bh_write_strided(a, data, turned));
    OK(bh_read(got, a));
    TRUE(got[1] == 3 && got[2] == 2);
    OK(bh_read_strided(got, a, turned));
    TRUE(got[1] == 2 && got[2] == 3);
    OK(bh_map(&mapped, a, BH_ACCESS_READ | BH_ACCESS_WRITE));
    ((double *)mapped)[3] = 40;
    FAILS(bh_add(a, a, a), BH_STATUS_ARGUMENT, "mapped");
    OK(bh_unmap(a));
    FAILS(bh_unmap(a), BH_STATUS_ARGUMENT, "not mapped");
    OK(bh_read(got, a));
    TRUE(got[3] == 40);
    OK(bh_pin(a));
    OK(bh_add(a, a, a));
    OK(bh_unpin(a));
    FAILS(bh_unpin(a), BH_STATUS_ARGUMENT, "not pinned");
    OK(bh_free(a));
    memcpy(memory, data, sizeof data);
    OK(bh_adopt(&a, NULL, BH_TYPE_F64, 2, shape, memory, release, &argument));
    OK(bh_multiply(a, a, bh_f64(10)));
    OK(bh_map(&mapped, a, BH_ACCESS_READ));
    TRUE(mapped == memory && memory[0] == 10 && memory[3] == 40);
    OK(bh_unmap(a));
    OK(bh_map(&mapped, a, BH_ACCESS_WRITE | BH_ACCESS_READ));
    memory[0] = 1;
    OK(bh_unmap(a));
    OK(bh_read(got, a));
    TRUE(got[0] == 1 && got[3] == 40);
    OK(bh_free(a));
    OK(bh_sync(NULL));
    TRUE(released == 5);
}

/* Memory that others write may hold any byte: every byte but 0 is true. */
static void truth(void) {
    static uint8_t memory[5] = {0, 2, 128, 1, 0}, got[5];
    const double before[] = {0, 1, 1, 1, 0}, after[] = {1, 1, 1, 1, 0}, inverted[] = {0, 0, 0, 0, 1}, three[] = {3}, four[] = {4};
    const int64_t five = 5;
    void *mapped;
    bh_array *a, *b, *sum;
    OK(bh_adopt(&a, NULL, BH_TYPE_BOOL, 1, &five, memory, NULL, NULL));
    has(a, 5, before, __LINE__);
    OK(bh_read(got, a));
    TRUE(got[1] == 1 && got[2] == 1);
    OK(bh_zeros(&b, NULL, BH_TYPE_I64, 1, &five));
    OK(bh_copy(b, a));
    OK(bh_add_reduce_new(&sum, b, 0));
    has(sum, 1, three, __LINE__);
    OK(bh_free(sum));
    OK(bh_map(&mapped, a, BH_ACCESS_READ | BH_ACCESS_WRITE));
    ((uint8_t *)mapped)[0] = 255;
    OK(bh_unmap(a));
    has(a, 5, after, __LINE__);
    OK(bh_copy(b, a));
    OK(bh_add_reduce_new(&sum, b, 0));
    has(sum, 1, four, __LINE__);
    OK(bh_free(sum));
    OK(bh_logical_not(a, a));
    has(a, 5, inverted, __LINE__);
    OK(bh_free(b));
    OK(bh_free(a));
    OK(bh_sync(NULL));
}

static void context(void) {
    bh_context *other, *found;
    const char *text;
    bh_statistics counts;
    bh_memory memory;
    uint64_t counter;
    const int64_t few = 2;
    bh_array *a, *b;
    OK(bh_context_create(&other, NULL));
    OK(bh_stack_name(&text, other));
    TRUE(strcmp(text, "cpu") == 0);
    OK(bh_info(&text, other));
    TRUE(strstr(text, "stack cpu") && strstr(text, bh_version()));
    OK(bh_ones(&a, other, BH_TYPE_F64, 1, &few));
    OK(bh_ones(&b, NULL, BH_TYPE_F64, 1, &few));
    FAILS(bh_add(a, a, b), BH_STATUS_HANDLE, "another context");
    OK(bh_context_of(&found, a));
    TRUE(found == other);
    OK(bh_statistics_get(&counts, other));
    TRUE(counts.arrays == 1 && counts.bases == 1 && counts.recorded == 1);
    OK(bh_flush(other));
    OK(bh_sync(other));
    OK(bh_memory_get(&memory, other));
    TRUE(memory.limit > 0 && memory.peak >= 8);
    OK(bh_memory_release(other));
    OK(bh_counter(&counter, other, "memory.allocations"));
    TRUE(counter > 0);
    OK(bh_message(&text, other, "a question that nobody knows"));
    TRUE(text[0] == 0);
    OK(bh_eager(other, 1));
    OK(bh_add(a, a, a));
    OK(bh_statistics_get(&counts, other));
    TRUE(counts.pending == 0);
    OK(bh_context_destroy(other));
    FAILS(bh_context_destroy(other), BH_STATUS_HANDLE, "not valid");
    FAILS(bh_free(a), BH_STATUS_SHUTDOWN, "shut down");
    OK(bh_free(b));
    FAILS(bh_context_create(&other, "nonsense"), BH_STATUS_CONFIG, "nonsense");
    TRUE(other == NULL);
}

static void texts(void) {
    const int64_t shape[2] = {2, 2}, many[2] = {100, 100};
    const double data[4] = {1, -2.5, 3, 1e300};
    const char *text;
    bh_array *a;
    OK(bh_from_data(&a, NULL, BH_TYPE_F64, 2, shape, data));
    OK(bh_format(&text, a));
    TRUE(strcmp(text, "[[ 1.0e+000 -2.5e+000]\n [ 3.0e+000  1.0e+300]]") == 0);
    OK(bh_print(a));
    OK(bh_free(a));
    OK(bh_empty(&a, NULL, BH_TYPE_I32, 2, many));
    OK(bh_range(a, 0, 1));
    OK(bh_format(&text, a));
    TRUE(strstr(text, "[[   0    1    2 ...   97   98   99]\n") == text && strstr(text, " 9999]]"));
    OK(bh_free(a));
    TRUE(strcmp(bh_status_text(BH_STATUS_SHAPE), "shapes do not fit each other") == 0);
    TRUE(strcmp(bh_status_text(12345), "unknown status") == 0);
}

/* What is in use follows the arrays, the cap holds, and what was freed goes back when asked for. */
static void memory_use(void) {
    const int64_t many = 1 << 18, more = 1 << 22;
    bh_memory before, with, after;
    bh_context *own;
    bh_array *a, *b;
    double value;
    OK(bh_context_create(&own, NULL));
    OK(bh_memory_get(&before, own));
    OK(bh_ones(&a, own, BH_TYPE_F64, 1, &many));
    OK(bh_sync(own));
    OK(bh_memory_get(&with, own));
    TRUE(with.in_use >= before.in_use + 8 * (uint64_t)many && with.peak >= with.in_use);
    OK(bh_free(a));
    OK(bh_sync(own));
    OK(bh_memory_get(&after, own));
    TRUE(after.in_use < with.in_use && after.peak >= with.in_use && after.cached > 0);
    OK(bh_memory_release(own));
    OK(bh_memory_get(&after, own));
    TRUE(after.cached == 0);

    OK(bh_memory_limit(own, 4 << 20));
    OK(bh_memory_get(&after, own));
    TRUE(after.limit == 4 << 20);
    OK(bh_empty(&a, own, BH_TYPE_F64, 1, &more));
    OK(bh_index(&b, a, 0, 5));
    if (bh_copy(a, bh_f64(1)) == BH_OK) {
        FAILS(bh_scalar_f64(&value, b), BH_STATUS_MEMORY, "memory");
    } else { /* in eager mode */
        TRUE(bh_error_status() == BH_STATUS_MEMORY);
    }
    OK(bh_memory_limit(own, 1 << 30));
    OK(bh_copy(a, bh_f64(3)));
    OK(bh_scalar_f64(&value, b));
    TRUE(value == 3);
    FAILS(bh_memory_get(NULL, own), BH_STATUS_ARGUMENT, "'out' is null");
    OK(bh_context_destroy(own));
    FAILS(bh_memory_release(own), BH_STATUS_HANDLE, "not valid");
}

/* Products and sorted arrays that are made anew: of [[4, 2], [2, 3]], and of [8, 8]. */
static void new_results(bh_array *a, bh_array *b) {
    const double product[] = {48, 40}, square[] = {20, 14, 14, 13}, sorted[] = {2, 4, 2, 3}, first[] = {1, 0, 0, 1};
    const int64_t three = 3;
    bh_array *x, *wide;
    OK(bh_matmul_new(&x, a, b));
    has(x, 2, product, __LINE__);
    OK(bh_free(x));
    OK(bh_matmul_new(&x, a, a));
    has(x, 4, square, __LINE__);
    OK(bh_free(x));
    OK(bh_sort_new(&x, a));
    has(x, 4, sorted, __LINE__);
    OK(bh_free(x));
    OK(bh_argsort_new(&x, a));
    has(x, 4, first, __LINE__);
    OK(bh_free(x));
    OK(bh_zeros(&wide, NULL, BH_TYPE_F64, 1, &three));
    FAILS(bh_matmul_new(&x, a, wide), BH_STATUS_SHAPE, "matmul");
    TRUE(x == NULL);
    FAILS(bh_matmul_new(NULL, a, b), BH_STATUS_ARGUMENT, "'out' is null");
    OK(bh_free(wide));
}

/* Arrays put together: the parts keep their order, and what does not fit is named. */
static void joined(void) {
    const int64_t shape[] = {2, 2}, other[] = {1, 3};
    bh_array *a, *b, *c, *whole, *none = NULL;
    const bh_array *parts[2];
    OK(bh_eye(&a, NULL, BH_TYPE_F64, 2, 2, 0));
    OK(bh_full(&b, NULL, bh_f64(3), 2, shape));
    parts[0] = a, parts[1] = b;
    OK(bh_concatenate(&whole, 2, parts, -1));
    {
        const double expected[] = {1, 0, 3, 3, 0, 1, 3, 3};
        has(whole, 8, expected, __LINE__);
    }
    OK(bh_free(whole));
    OK(bh_stack(&whole, 2, parts, 1));
    {
        const double expected[] = {1, 0, 3, 3, 0, 1, 3, 3};
        int64_t extents[3];
        OK(bh_shape(extents, whole));
        TRUE(extents[0] == 2 && extents[1] == 2 && extents[2] == 2);
        has(whole, 8, expected, __LINE__);
    }
    OK(bh_free(whole));
    OK(bh_eye(&c, NULL, BH_TYPE_F64, 2, 3, 1));
    {
        const double expected[] = {0, 1, 0, 0, 0, 1};
        has(c, 6, expected, __LINE__);
    }
    OK(bh_free(c));
    OK(bh_zeros(&c, NULL, BH_TYPE_F64, 2, other));
    parts[1] = c;
    FAILS(bh_concatenate(&none, 2, parts, 0), BH_STATUS_SHAPE, "[1, 3] does not fit [2, 2] along axis 0");
    FAILS(bh_stack(&none, 2, parts, 0), BH_STATUS_SHAPE, "[1, 3] differs from [2, 2]");
    FAILS(bh_concatenate(&none, 0, parts, 0), BH_STATUS_ARGUMENT, "at least");
    FAILS(bh_concatenate(&none, 2, NULL, 0), BH_STATUS_ARGUMENT, "'parts' is null");
    FAILS(bh_concatenate(&none, 1, parts, 2), BH_STATUS_ARGUMENT, "axis");
    OK(bh_free(c));
    OK(bh_zeros(&c, NULL, BH_TYPE_I32, 2, shape));
    parts[1] = c;
    FAILS(bh_concatenate(&none, 2, parts, 0), BH_STATUS_TYPE, "one type");
    TRUE(none == NULL);
    OK(bh_free(c));
    OK(bh_free(b));
    OK(bh_free(a));
}

static void methods(void) {
    const int64_t square[2] = {2, 2}, two = 2;
    const double data[4] = {4, 2, 2, 3}, right[2] = {8, 8};
    bh_array *a, *b, *x, *permutation, *f;
    const char *text;
    int32_t threads;
    OK(bh_from_data(&a, NULL, BH_TYPE_F64, 2, square, data));
    OK(bh_from_data(&b, NULL, BH_TYPE_F64, 1, &two, right));
    OK(bh_empty(&x, NULL, BH_TYPE_F64, 1, &two));
    OK(bh_solve(x, a, b));
    {
        const double expected[] = {1, 2};
        has(x, 2, expected, __LINE__);
    }
    OK(bh_matmul(x, a, x));
    has(x, 2, right, __LINE__);
    new_results(a, b);
    OK(bh_empty(&permutation, NULL, BH_TYPE_I64, 1, &two));
    OK(bh_copy_new(&f, a));
    OK(bh_lu(f, permutation, f));
    {
        const double factors[] = {4, 2, 0.5, 2};
        has(f, 4, factors, __LINE__);
    }
    OK(bh_cholesky(f, a));
    {
        const double factor[] = {2, 0, 1, sqrt(2)};
        has(f, 4, factor, __LINE__);
    }
    OK(bh_free(f));
    OK(bh_cast(&f, b, BH_TYPE_C128));
    OK(bh_fft(f, f));
    OK(bh_free(x));
    OK(bh_real_new(&x, f));
    {
        const double transformed[] = {16, 0};
        has(x, 2, transformed, __LINE__);
    }
    FAILS(bh_extmethod_register(NULL, "mine", "ve-cpu", "/nonexistent.so"), BH_STATUS_LIBRARY, "nonexistent");
    FAILS(bh_extmethod_register(NULL, "mine", "nobody", "/nonexistent.so"), BH_STATUS_UNSUPPORTED, "nobody");
    FAILS(bh_extmethod_register(NULL, "mine", NULL, NULL), BH_STATUS_UNSUPPORTED, "mine");
    OK(bh_extmethod_register(NULL, "solve", NULL, NULL));
    OK(bh_threads_set(NULL, 3));
    OK(bh_threads_get(&threads, NULL));
    TRUE(threads == 3);
    OK(bh_affinity_get(&text, NULL));
    TRUE(strcmp(text, "none") == 0);
    OK(bh_affinity_set(NULL, "auto"));
    OK(bh_affinity_get(&text, NULL));
    TRUE(strcmp(text, "auto") == 0);
    OK(bh_affinity_set(NULL, "none"));
    OK(bh_free(f));
    OK(bh_free(permutation));
    OK(bh_free(x));
    OK(bh_free(b));
    OK(bh_free(a));
}

int main(void) {
    creation();
    randomness();
    views();
    operations();
    access_to_data();
    truth();
    methods();
    joined();
    context();
    memory_use();
    texts();
    OK(bh_context_destroy(NULL));
    return 0;
}
