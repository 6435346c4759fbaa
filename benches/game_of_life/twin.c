/* Conway's game of life on an n x n board with a dead border, cells held as 0 and 1 of the floating type.
 * One loop per generation, double-buffered. */
#define TWIN_NAME "game_of_life"
#define TWIN_SOURCE "../game_of_life/twin.c"
#define TWIN_SMALLEST 3
#include "../common/twin.h"
#ifdef REAL

typedef struct {
    REAL *board, *next;
} STATE;

static void FN(allocate)(STATE *s, int64_t n) {
    s->board = FN(bench_array)(n * n);
    s->next = FN(bench_array)(n * n);
}

static void FN(fill)(STATE *s, int64_t n) {
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            int inside = i > 0 && i < n - 1 && j > 0 && j < n - 1;
            s->board[i * n + j] = s->next[i * n + j] = inside && bench_pseudo(i * n + j, 3) < 0.3 ? R(1) : R(0);
        }
}

static void FN(run)(STATE *s, int64_t n, int64_t iters) {
    for (int64_t step = 0; step < iters; step++) {
        const REAL *restrict board = s->board;
        REAL *restrict next = s->next;
#pragma omp parallel for schedule(static)
        for (int64_t i = 1; i < n - 1; i++) {
            const REAL *up = board + (i - 1) * n, *row = up + n, *down = row + n;
            REAL *out = next + i * n;
#pragma omp simd
            for (int64_t j = 1; j < n - 1; j++) {
                REAL around = up[j - 1] + up[j] + up[j + 1] + row[j - 1] + row[j + 1] + down[j - 1] + down[j] + down[j + 1];
                /* Alive next: three neighbours, or two and alive now. */
                out[j] = around == R(3) || around + row[j] == R(3) ? R(1) : R(0);
            }
        }
        REAL *swap = s->board;
        s->board = s->next;
        s->next = swap;
    }
}

static int FN(checksums)(const STATE *s, int64_t n, double *out) {
    out[0] = FN(bench_checksum)(s->board, n * n);
    return 1;
}

#endif
