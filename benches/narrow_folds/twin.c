/* Sums over both axes of narrow arrays: of n elements in rows of 3, 8, 16, 31 and 64, the sum of each row of one array and
 * of each column of another. One pass for each sum, with the number of columns known to the compiler. Sums of short rows
 * are made side by side, vector by vector of rows; longer rows are vectors themselves. Columns are summed over a number of
 * rows at once that fills vectors.
 *
 * NARROW_COLUMNS=K in the environment leaves the others out, and NARROW_AXIS=0 or 1 the other axis. */
#define TWIN_NAME "narrow_folds"
#define TWIN_SOURCE "../narrow_folds/twin.c"
#define TWIN_SMALLEST 64
#include "../common/twin.h"
#ifdef REAL

#define WIDTHS 5
/* Every number of columns: X(columns, rows of which the columns are summed at once). */
#define FOR_WIDTHS(X) X(3, 16) X(8, 8) X(16, 4) X(31, 1) X(64, 1)

typedef struct {
    REAL *a, *b;
    REAL *rows[WIDTHS], *columns[WIDTHS];
} STATE;

#ifndef NARROW_FOLDS_TWIN
#define NARROW_FOLDS_TWIN
/* Is it to be summed, as the environment has it? */
static int wanted(const char *name, int value) {
    const char *text = getenv(name);
    return text == NULL || *text == '\0' || atoi(text) == value;
}

static const int widths[WIDTHS] = {3, 8, 16, 31, 64};
#endif

#define SUMS(COLUMNS, AT_ONCE)                                                                                          \
    static void FN(TWIN_JOIN(rows, COLUMNS))(const REAL *restrict a, int64_t rows, REAL *restrict out) {                \
        _Pragma("omp parallel for schedule(static)") for (int64_t i = 0; i < rows; i++) {                               \
            REAL sum = 0;                                                                                               \
            for (int64_t j = 0; j < COLUMNS; j++)                                                                       \
                sum += a[i * COLUMNS + j];                                                                              \
            out[i] = sum;                                                                                               \
        }                                                                                                               \
    }                                                                                                                   \
    static void FN(TWIN_JOIN(columns, COLUMNS))(const REAL *restrict a, int64_t rows, REAL *restrict out) {             \
        REAL all[COLUMNS] = {0};                                                                                        \
        _Pragma("omp parallel") {                                                                                       \
            REAL sums[COLUMNS * AT_ONCE] = {0};                                                                         \
            int64_t first, last, i;                                                                                     \
            twin_share(0, rows, &first, &last);                                                                         \
            for (i = first; i + AT_ONCE <= last; i += AT_ONCE)                                                          \
                for (int64_t j = 0; j < COLUMNS * AT_ONCE; j++)                                                         \
                    sums[j] += a[i * COLUMNS + j];                                                                      \
            for (int64_t j = 0; j < (last - i) * COLUMNS; j++)                                                          \
                sums[j] += a[i * COLUMNS + j];                                                                          \
            _Pragma("omp critical") for (int64_t j = 0; j < COLUMNS * AT_ONCE; j++) all[j % COLUMNS] += sums[j];        \
        }                                                                                                               \
        memcpy(out, all, sizeof all);                                                                                   \
    }
FOR_WIDTHS(SUMS)
#undef SUMS

static void FN(allocate)(STATE *s, int64_t n) {
    s->a = FN(bench_array)(n);
    s->b = FN(bench_array)(n);
    for (int at = 0; at < WIDTHS; at++) {
        s->rows[at] = FN(bench_array)(n / widths[at]);
        s->columns[at] = FN(bench_array)(widths[at]);
    }
}

static void FN(fill)(STATE *s, int64_t n) {
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < n; i++) {
        s->a[i] = R(bench_pseudo(i, 43));
        s->b[i] = R(bench_pseudo(i, 44));
    }
    for (int at = 0; at < WIDTHS; at++) {
        memset(s->rows[at], 0, n / widths[at] * sizeof(REAL));
        memset(s->columns[at], 0, widths[at] * sizeof(REAL));
    }
}

static void FN(run)(STATE *s, int64_t n, int64_t iters) {
    for (int64_t step = 0; step < iters; step++) {
        int at = 0;
#define SUM(COLUMNS, AT_ONCE)                                                                                           \
        if (wanted("NARROW_COLUMNS", COLUMNS)) {                                                                        \
            if (wanted("NARROW_AXIS", 1))                                                                               \
                FN(TWIN_JOIN(rows, COLUMNS))(s->a, n / COLUMNS, s->rows[at]);                                           \
            if (wanted("NARROW_AXIS", 0))                                                                               \
                FN(TWIN_JOIN(columns, COLUMNS))(s->b, n / COLUMNS, s->columns[at]);                                     \
        }                                                                                                               \
        at++;
        FOR_WIDTHS(SUM)
#undef SUM
        TWIN_BARRIER();
    }
}

static int FN(checksums)(const STATE *s, int64_t n, double *out) {
    out[0] = out[1] = 0;
    for (int at = 0; at < WIDTHS; at++) {
        out[0] += FN(bench_checksum)(s->rows[at], n / widths[at]);
        out[1] += FN(bench_checksum)(s->columns[at], widths[at]);
    }
    return 2;
}

#undef WIDTHS
#undef FOR_WIDTHS
#endif
