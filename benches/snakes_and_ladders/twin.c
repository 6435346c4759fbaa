/* Snakes and ladders on a board of n squares: successive powers of the transition matrix, P <- P T, with the chance of
 * having finished after each number of throws. The product is a register-tiled multiplication over packed panels. */
#define TWIN_NAME "snakes_and_ladders"
#define TWIN_SOURCE "../snakes_and_ladders/twin.c"
#define TWIN_SMALLEST 20
#include "../common/twin.h"
#ifdef REAL
#define VECTOR_BYTES 64
#define LANES ((int64_t)(VECTOR_BYTES / sizeof(REAL)))
#define TILE_ROWS 8
#define TILE_COLUMNS (2 * LANES)
#define DEPTH 256

typedef REAL FN(vector) __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(REAL)), may_alias));

typedef struct {
    REAL *transition, *power, *next, *panels;
    double finished;
} STATE;

static int64_t FN(panel_count)(int64_t n) { return (n + TILE_COLUMNS - 1) / TILE_COLUMNS; }

static void FN(allocate)(STATE *s, int64_t n) {
    s->transition = FN(bench_array)(n * n);
    s->power = FN(bench_array)(n * n);
    s->next = FN(bench_array)(n * n);
    s->panels = FN(bench_array)(FN(panel_count)(n) * TILE_COLUMNS * n);
}

/* Where a piece that lands on `square` ends up: every 7th square is a ladder, every 11th a snake. */
static int64_t FN(landing)(int64_t square, int64_t n) {
    if (square >= n - 1)
        return n - 1;
    if (square % 7 == 3)
        return square + 9 < n - 1 ? square + 9 : n - 1;
    return square % 11 == 5 ? square - 5 : square;
}

static void FN(fill)(STATE *s, int64_t n) {
    memset(s->transition, 0, (size_t)(n * n) * sizeof(REAL));
    for (int64_t from = 0; from < n; from++)
        for (int64_t dice = 1; dice <= 6; dice++)
            s->transition[from * n + FN(landing)(from + dice, n)] += R(1.0 / 6);
    memcpy(s->power, s->transition, (size_t)(n * n) * sizeof(REAL));
    s->finished = 0;
}

/* c[rows x columns] += a[rows x depth] * panel, whose rows are TILE_COLUMNS long. Full tiles only have constant bounds. */
static inline __attribute__((always_inline)) void FN(tile)(REAL *c, const REAL *a, const REAL *panel, int64_t n, int64_t depth,
                                                           int rows, int64_t columns) {
    FN(vector) sum[TILE_ROWS][2] = {{{0}}};
    for (int64_t k = 0; k < depth; k++) {
        const FN(vector) *line = (const FN(vector) *)(panel + k * TILE_COLUMNS);
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++) {
            sum[r][0] += a[r * n + k] * line[0];
            sum[r][1] += a[r * n + k] * line[1];
        }
    }
    for (int r = 0; r < rows; r++)
        for (int64_t j = 0; j < columns; j++)
            c[r * n + j] += sum[r][j / LANES][j % LANES];
}

static void FN(run)(STATE *s, int64_t n, int64_t iters) {
    int64_t panels = FN(panel_count)(n);
    for (int64_t step = 0; step < iters; step++) {
        const REAL *restrict a = s->power;
        REAL *restrict c = s->next, *restrict packed = s->panels;
        s->finished += (double)a[n - 1];
#pragma omp parallel
        {
#pragma omp for schedule(static)
            for (int64_t p = 0; p < panels; p++)
                for (int64_t k = 0; k < n; k++)
                    for (int64_t j = 0; j < TILE_COLUMNS; j++) {
                        int64_t column = p * TILE_COLUMNS + j;
                        packed[(p * n + k) * TILE_COLUMNS + j] = column < n ? s->transition[k * n + column] : R(0);
                    }
#pragma omp for schedule(dynamic, 4)
            for (int64_t i = 0; i < n; i += TILE_ROWS) {
                int rows = i + TILE_ROWS <= n ? TILE_ROWS : (int)(n - i);
                memset(c + i * n, 0, (size_t)(rows * n) * sizeof(REAL));
                for (int64_t k = 0; k < n; k += DEPTH) {
                    int64_t depth = k + DEPTH <= n ? DEPTH : n - k;
                    for (int64_t p = 0; p < panels; p++) {
                        int64_t columns = (p + 1) * TILE_COLUMNS <= n ? TILE_COLUMNS : n - p * TILE_COLUMNS;
                        const REAL *panel = packed + (p * n + k) * TILE_COLUMNS;
                        REAL *out = c + i * n + p * TILE_COLUMNS;
                        if (rows == TILE_ROWS && columns == TILE_COLUMNS)
                            FN(tile)(out, a + i * n + k, panel, n, depth, TILE_ROWS, TILE_COLUMNS);
                        else
                            for (int r = 0; r < rows; r++)
                                FN(tile)(out + r * n, a + (i + r) * n + k, panel, n, depth, 1, columns);
                    }
                }
            }
        }
        REAL *swap = s->power;
        s->power = s->next;
        s->next = swap;
    }
}

static int FN(checksums)(const STATE *s, int64_t n, double *out) {
    out[0] = FN(bench_checksum)(s->power, n * n);
    out[1] = s->finished;
    return 2;
}

#undef VECTOR_BYTES
#undef LANES
#undef TILE_ROWS
#undef TILE_COLUMNS
#undef DEPTH
#endif
