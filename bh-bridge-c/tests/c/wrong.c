/* Calls with random arguments, most of them wrong: each succeeds or says what is wrong, and what was right before still is.
   Arguments: the first seed, and the number of seeds. */
#include <bh.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state;
static bh_array *arrays[12];
static long calls, refused;

static uint64_t bits(void) {
    uint64_t z = (state += 0x9E3779B97F4A7C15ull);
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ z >> 27) * 0x94D049BB133111EBull;
    return z ^ z >> 31;
}

static int64_t below(int64_t end) { return (int64_t)(bits() % (uint64_t)end); }

static int64_t number(void) {
    static const int64_t odd[] = {-1, 0, 1, INT64_MAX, INT64_MIN, INT32_MAX, 1ll << 31, 1ll << 40, 1ll << 60, -7};
    return below(3) == 0 ? odd[below(10)] : below(9);
}

/* Mostly a live array; else null, a constant, garbage, or one that was freed. */
static bh_array *some(void) {
    switch (below(12)) {
    case 0: return NULL;
    case 1: return bh_f64(1.5);
    case 2: return (bh_array *)(uintptr_t)bits();
    case 3: return (bh_array *)((uintptr_t)arrays[below(12)] ^ (uintptr_t)1 << (40 + below(20)));
    default: return arrays[below(12)];
    }
}

static void done(bh_status status) {
    calls++;
    if (status == BH_OK) return;
    refused++;
    if (status == BH_STATUS_PANIC || bh_error_message()[0] == 0) {
        fprintf(stderr, "call %ld: status %d: '%s'\n", calls, (int)status, bh_error_message());
        exit(2);
    }
}

/* Takes the place of another array. */
static void keep(bh_status status, bh_array *made) {
    int64_t size = 0;
    int place = (int)below(12);
    done(status);
    if (status != BH_OK) {
        if (made != NULL) exit(3);
        return;
    }
    /* Views of endless repetition are legal, and folding them takes for ever. */
    if (bh_size(&size, made) != BH_OK || size > 100000) {
        done(bh_free(made));
        return;
    }
    done(bh_free(arrays[place]));
    arrays[place] = made;
}

static void call(void) {
    int64_t shape[17], more[17], value = number();
    bh_array *out = NULL;
    const bh_array *inputs[3];
    double real;
    int32_t rank = below(8) == 0 ? (int32_t)number() : (int32_t)below(4), i;
    void *data = NULL;
    const char *text;
    for (i = 0; i < 17; i++) {
        shape[i] = number();
        more[i] = number();
    }
    if (rank > 17) rank = 17;
    for (i = 0; i < 3; i++) inputs[i] = some();
    switch (below(29)) {
    case 0: keep(bh_zeros(&out, NULL, (bh_dtype)below(15), rank, shape), out); break;
    case 1: keep(bh_arange(&out, NULL, (bh_dtype)below(15), (double)below(9), (double)below(100), (double)number()), out); break;
    case 2: keep(bh_slice(&out, some(), (int32_t)number(), number(), number(), number()), out); break;
    case 3: keep(bh_index(&out, some(), (int32_t)number(), value), out); break;
    case 4: keep(bh_reshape(&out, some(), rank, shape), out); break;
    case 5: keep(bh_view(&out, some(), value, rank, shape, more), out); break;
    case 6: keep(bh_diagonal(&out, some(), value, (int32_t)number(), (int32_t)number()), out); break;
    case 7: keep(bh_new_axis(&out, some(), (int32_t)number()), out); break;
    case 8: keep(bh_reverse(&out, some(), (int32_t)number()), out); break;
    case 9: keep(bh_cast(&out, some(), (bh_dtype)below(15)), out); break;
    case 10: keep(bh_retain(&out, some()), out); break;
    case 11: keep(bh_copy_new(&out, some()), out); break;
    case 12: keep(bh_op_new(&out, (bh_opcode)below(160), (uint16_t)below(9), (bh_dtype)(below(15) - 1), (size_t)below(4), inputs), out); break;
    case 13: done(bh_op(some(), (bh_opcode)below(160), (uint16_t)below(9), (size_t)below(4), inputs)); break;
    case 14: keep(bh_add_new(&out, some(), some()), out); break;
    case 15: keep(bh_gather_new(&out, some(), some()), out); break;
    case 16: done(bh_scatter_add(some(), some(), some())); break;
    case 17: keep(bh_add_reduce_new(&out, some(), (int32_t)number()), out); break;
    case 18: done(bh_solve(some(), some(), some())); break;
    case 19: done(bh_sort(some(), some())); break;
    case 25: keep(bh_matmul_new(&out, some(), some()), out); break;
    case 26: keep(bh_sort_new(&out, some()), out); break;
    case 27: done(bh_shape_sized(shape, (size_t)below(17), some())); break;
    case 20: done(bh_format(&text, some())); break;
    case 21: done(bh_scalar_f64(&real, some())); break;
    case 22:
        out = some();
        value = bh_map(&data, out, (uint32_t)below(9)) == BH_OK;
        calls++;
        if (value) done(bh_unmap(out));
        break;
    case 23: done(bh_unmap(some())); break;
    case 24: done(bh_sync(NULL)); break;
    default:
        /* Freed twice, or what is no array. */
        out = some();
        for (i = 0; i < 12 && arrays[i] != out; i++) {
        }
        if (i == 12) done(bh_free(out));
    }
}

int main(int count, char **arguments) {
    const int64_t shape[2] = {3, 4};
    long seed = count > 1 ? atol(arguments[1]) : 1, seeds = count > 2 ? atol(arguments[2]) : 10, last;
    bh_array *kept, *sum;
    double value = 0;
    int i;
    if (bh_memory_limit(NULL, 64 << 20) != BH_OK) return 4;
    if (bh_full(&kept, NULL, bh_f64(2.5), 2, shape) != BH_OK) return 4;
    for (last = seed + seeds; seed < last; seed++) {
        state = (uint64_t)seed;
        for (i = 0; i < 12; i++) {
            if (bh_full(&arrays[i], NULL, i % 3 ? bh_f64(i) : bh_i64(i % 2), 2, shape) != BH_OK) return 4;
        }
        for (i = 0; i < 400; i++) call();
        for (i = 0; i < 12; i++) done(bh_free(arrays[i]));
        /* Failures of the last operations are reported here, once. */
        done(bh_sync(NULL));
        if (bh_add_reduce_new(&sum, kept, BH_ALL_AXES) != BH_OK || bh_scalar_f64(&value, sum) != BH_OK || value != 30) {
            fprintf(stderr, "seed %ld: %g %s\n", seed, value, bh_error_message());
            return 5;
        }
        bh_free(sum);
    }
    printf("%ld calls, %ld refused\n", calls, refused);
    return refused > calls / 10 && refused < calls ? 0 : 6;
}
