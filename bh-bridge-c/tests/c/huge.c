/* Results of broadcast inputs whose bytes no memory holds, and that 64 bits could not count: refused by the call, or lost
   when they would get their memory, with an error that says so. Nothing wraps. */
#include "expect.h"

static const bh_dtype TYPES[] = {BH_TYPE_BOOL, BH_TYPE_U8, BH_TYPE_I16, BH_TYPE_F32, BH_TYPE_F64, BH_TYPE_C128};
static int refused, lost;

/* A recorded result is lost with an error about memory; a refused one has an error about its shape. */
static void settle(bh_status status, bh_array *result, int line) {
    if (status == BH_OK) {
        status = bh_sync(NULL);
        if (status != BH_STATUS_MEMORY) {
            fprintf(stderr, "line %d: %d: %s\n", line, (int)status, bh_error_message());
            exit(1);
        }
        OK(bh_free(result));
        /* Nothing that comes later is harmed. */
        OK(bh_sync(NULL));
        lost++;
    } else if (status == BH_STATUS_SHAPE && result == NULL) {
        refused++;
    } else {
        fprintf(stderr, "line %d: %d: %s\n", line, (int)status, bh_error_message());
        exit(1);
    }
}

#define SETTLE(call)                         \
    do {                                     \
        bh_array *r = NULL;                  \
        bh_status status = call;             \
        settle(status, r, __LINE__);         \
    } while (0)

static bh_dtype type_of(const bh_array *array) {
    bh_dtype type;
    OK(bh_dtype_of(&type, array));
    return type;
}

static void try_all(bh_array *one, int64_t n) {
    bh_array *wide, *tall, *flat, *index, *indices;
    int64_t shape[3];
    size_t type;
    shape[0] = n;
    if (bh_broadcast(&wide, one, 1, shape) != BH_OK) {
        FAILS(bh_broadcast(&wide, one, 1, shape), BH_STATUS_ARGUMENT, "exceeds the limit");
        refused++;
    } else {
        SETTLE(bh_copy_new(&r, wide));
        SETTLE(bh_add_new(&r, wide, wide));
        SETTLE(bh_add_accumulate_new(&r, wide, 0));
        for (type = 0; type < sizeof(TYPES) / sizeof(TYPES[0]); type++) {
            /* Complex numbers become real ones by their parts only. */
            if (type_of(one) != BH_TYPE_C128 || TYPES[type] == BH_TYPE_BOOL || TYPES[type] == BH_TYPE_C128) {
                SETTLE(bh_cast(&r, wide, TYPES[type]));
            }
        }
        shape[1] = 1;
        OK(bh_full(&index, NULL, bh_i64(0), 1, shape + 1));
        OK(bh_broadcast(&indices, index, 1, shape));
        SETTLE(bh_gather_new(&r, one, indices));
        OK(bh_free(indices));
        OK(bh_free(index));
        OK(bh_free(wide));
    }
    /* Products of extents wrap though each extent is small; a fold of axis 0 keeps n elements. */
    shape[0] = 2;
    shape[1] = n;
    if (bh_broadcast(&tall, one, 2, shape) == BH_OK) {
        SETTLE(bh_add_reduce_new(&r, tall, 0));
        SETTLE(bh_add_accumulate_new(&r, tall, 0));
        OK(bh_free(tall));
    } else {
        refused++;
    }
    /* Folding an axis without elements gives the rest, whole. */
    shape[0] = 0;
    shape[1] = shape[2] = 1ll << 30;
    if (bh_empty(&flat, NULL, BH_TYPE_C128, 3, shape) == BH_OK) {
        fprintf(stderr, "an absurd empty shape is taken\n");
        exit(1);
    }
    shape[0] = n;
    for (type = 0; type < sizeof(TYPES) / sizeof(TYPES[0]); type++) {
        SETTLE(bh_zeros(&r, NULL, TYPES[type], 1, shape));
    }
    SETTLE(bh_arange(&r, NULL, BH_TYPE_F64, 0, (double)n, 1));
    SETTLE(bh_random_normal(&r, NULL, BH_TYPE_F64, 1, shape, 7));
}

int main(void) {
    static bh_array *many[600];
    bh_array *one;
    const int64_t ones[1] = {1};
    int64_t size;
    int bits;
    size_t type;
    double value;
    for (type = 0; type < sizeof(TYPES) / sizeof(TYPES[0]); type++) {
        OK(bh_ones(&one, NULL, TYPES[type], 1, ones));
        for (bits = 48; bits < 63; bits++) {
            try_all(one, 1ll << bits);
            try_all(one, (1ll << bits) - 1);
        }
        try_all(one, INT64_MAX);
        OK(bh_scalar_f64(&value, one));
        if (value != 1) {
            return 2;
        }
        OK(bh_free(one));
    }
    /* Many that are each far too large, in one batch: sums of their bytes do not wrap either. */
    size = 1ll << 56;
    for (type = 0; type < 600; type++) {
        OK(bh_zeros(&many[type], NULL, BH_TYPE_U8, 1, &size));
    }
    FAILS(bh_sync(NULL), BH_STATUS_MEMORY, "out of memory");
    for (type = 0; type < 600; type++) {
        OK(bh_free(many[type]));
    }
    return refused > 100 && lost > 100 ? 0 : 3;
}
