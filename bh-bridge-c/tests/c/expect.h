/* What the test programs share: checks that say where they failed. */
#ifndef EXPECT_H
#define EXPECT_H

#include "true.h"
#include <bh.h>
#include <math.h>
#include <string.h>

/* The call succeeds. */
#define OK(call)                                                                                                  \
    do {                                                                                                          \
        if ((call) != BH_OK) {                                                                                    \
            fprintf(stderr, "%s:%d: %s failed: %s\n", __FILE__, __LINE__, #call, bh_error_message());             \
            exit(1);                                                                                              \
        }                                                                                                         \
    } while (0)

/* The call fails with this status and a message that contains this text. */
#define FAILS(call, status, text)                                                                                 \
    do {                                                                                                          \
        bh_status got_ = (call);                                                                                  \
        if (got_ != (status) || bh_error_status() != got_ || strstr(bh_error_message(), text) == NULL) {          \
            fprintf(stderr, "%s:%d: %s gave %d: %s\n", __FILE__, __LINE__, #call, (int)got_, bh_error_message()); \
            exit(1);                                                                                              \
        }                                                                                                         \
    } while (0)

/* The array has these elements, as doubles. */
static inline void has(const bh_array *a, int64_t count, const double *expected, int line) {
    bh_array *as_double;
    double values[64];
    int64_t size, i;
    OK(bh_size(&size, a));
    if (size != count) {
        fprintf(stderr, "line %d: %lld elements, not %lld\n", line, (long long)size, (long long)count);
        exit(1);
    }
    OK(bh_cast(&as_double, a, BH_TYPE_F64));
    OK(bh_read(values, as_double));
    OK(bh_free(as_double));
    for (i = 0; i < count; i++) {
        if (!(fabs(values[i] - expected[i]) <= 1e-12 * (1 + fabs(expected[i])))) {
            fprintf(stderr, "line %d: element %lld is %.17g, not %.17g\n", line, (long long)i, values[i], expected[i]);
            exit(1);
        }
    }
}

#define COUNT(list) ((int64_t)(sizeof(list) / sizeof((list)[0])))

#endif
