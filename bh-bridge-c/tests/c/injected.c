/* Work whose system calls fail one by one (see tests/c/inject.c), or whose memory is limited: every call succeeds with the
   right result or reports an error, and afterwards everything works. Arguments: a directory for files, and "start" to let
   the first calls fail too, "after" to begin once bh runs, or "limits". Prints how many calls of the kind there were. */
#define _GNU_SOURCE
#include <bh.h>
#include <dlfcn.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failed;
static char path[4096];

/* Notes a failure; all are allowed while calls fail, but must say what happened. */
static int ok(bh_status status, int line) {
    if (status == BH_OK) return 1;
    failed++;
    if (bh_error_message()[0] == 0 || status == BH_STATUS_PANIC) {
        fprintf(stderr, "line %d: status %d: '%s'\n", line, (int)status, bh_error_message());
        exit(3);
    }
    return 0;
}
#define DO(call) ok(call, __LINE__)

static void wrong(int line, double got) {
    fprintf(stderr, "line %d: wrong result %g\n", line, got);
    exit(4);
}

/* The sum of an array, if it is to be had, must be this. */
static void sums_to(const bh_array *a, double expected, int line) {
    bh_array *sum = NULL;
    double value;
    if (DO(bh_add_reduce_new(&sum, a, BH_ALL_AXES))) {
        if (DO(bh_scalar_f64(&value, sum)) && fabs(value - expected) > 1e-6 * fabs(expected)) wrong(line, value);
        bh_free(sum);
    }
}

static void work(void) {
    const int64_t size = 20000, small = 60, square[2] = {60, 60};
    bh_array *a = NULL, *b = NULL, *c = NULL, *part = NULL, *loaded = NULL, *matrix = NULL, *x = NULL, *ones = NULL;
    const char *text;
    int turn;
    if (!DO(bh_arange(&a, NULL, BH_TYPE_F64, 0, (double)size, 1))) return;
    for (turn = 0; turn < 3; turn++) {
        if (DO(bh_multiply_new(&b, a, bh_f64(2)))) {
            if (DO(bh_add_new(&c, b, a))) {
                sums_to(c, 3.0 * 0.5 * (double)size * (double)(size - 1), __LINE__);
                if (DO(bh_slice(&part, c, 0, 0, 100, 1))) {
                    sums_to(part, 3.0 * 0.5 * 100 * 99, __LINE__);
                    if (DO(bh_format(&text, part)) && strncmp(text, "[  0.   3.   6.", 15) != 0) wrong(__LINE__, 0);
                    bh_free(part);
                }
                if (DO(bh_save(path, c)) && DO(bh_load(&loaded, NULL, path))) {
                    sums_to(loaded, 3.0 * 0.5 * (double)size * (double)(size - 1), __LINE__);
                    bh_free(loaded);
                }
                bh_free(c);
            }
            bh_free(b);
        }
        if (DO(bh_zeros(&matrix, NULL, BH_TYPE_F64, 2, square))) {
            bh_array *diagonal = NULL;
            if (DO(bh_diagonal(&diagonal, matrix, 0, 0, 1))) {
                if (DO(bh_copy(diagonal, bh_f64(4))) && DO(bh_ones(&ones, NULL, BH_TYPE_F64, 1, &small))) {
                    if (DO(bh_empty(&x, NULL, BH_TYPE_F64, 1, &small))) {
                        if (DO(bh_solve(x, matrix, ones))) sums_to(x, 15, __LINE__);
                        bh_free(x);
                    }
                    bh_free(ones);
                }
                bh_free(diagonal);
            }
            bh_free(matrix);
        }
        DO(bh_sync(NULL));
    }
    bh_free(a);
}

int main(int count, char **arguments) {
    void (*begin)(void) = (void (*)(void))(uintptr_t)dlsym(RTLD_DEFAULT, "inject_begin");
    long (*end)(void) = (long (*)(void))(uintptr_t)dlsym(RTLD_DEFAULT, "inject_end");
    int start = count > 2 && strcmp(arguments[2], "start") == 0, limits = count > 2 && strcmp(arguments[2], "limits") == 0;
    long calls = 0;
    snprintf(path, sizeof path, "%s/saved.npy", arguments[1]);
    if (!start) {
        work();
        if (failed) return 5;
    }
    if (limits) {
        uint64_t limit;
        for (limit = 0; limit < (uint64_t)4 << 20; limit = limit < 65536 ? limit + 4096 : limit + 65536) {
            DO(bh_memory_release(NULL));
            DO(bh_memory_limit(NULL, limit));
            work();
            calls++;
        }
        DO(bh_memory_limit(NULL, UINT64_MAX));
    } else {
        if (begin) begin();
        work();
        if (end) calls = end();
    }
    bh_sync(NULL);
    /* What failed was reported; from here on nothing does. */
    printf("%ld calls, %d failures\n", calls, failed);
    failed = 0;
    work();
    return failed ? 6 : 0;
}
