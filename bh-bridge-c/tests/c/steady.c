/* What a loop that reads a number in each turn costs: memory of two grids, and no call of malloc once it runs.
   Prints the peak in grids and the calls per turn. */
#include "expect.h"

/* glibc's own functions behind the names, which this program counts calls of. */
extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *data, size_t bytes);
extern void *__libc_memalign(size_t alignment, size_t bytes);

static long calls;

static void counted(void) { __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED); }

void *malloc(size_t bytes) {
    counted();
    return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes) {
    counted();
    return __libc_calloc(count, bytes);
}

void *realloc(void *data, size_t bytes) {
    counted();
    return __libc_realloc(data, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes) {
    counted();
    return __libc_memalign(alignment, bytes);
}

int posix_memalign(void **out, size_t alignment, size_t bytes) {
    counted();
    *out = __libc_memalign(alignment, bytes);
    return *out == NULL ? 12 : 0;
}

enum { SIZE = 1000, WARM = 64, TURNS = 64 };

static bh_array *window(const bh_array *grid, int64_t down, int64_t right) {
    const int64_t start[] = {down, right}, stop[] = {SIZE - 2 + down, SIZE - 2 + right};
    bh_array *part;
    OK(bh_window(&part, grid, start, stop, NULL));
    return part;
}

int main(void) {
    const int64_t shape[] = {SIZE, SIZE};
    bh_array *grid, *center, *north, *south, *west, *east;
    bh_memory memory;
    double delta = 0, last = 1e300;
    long before = 0;
    int turn;
    OK(bh_full(&grid, NULL, bh_f64(1.0), 2, shape));
    center = window(grid, 1, 1), north = window(grid, 0, 1), south = window(grid, 2, 1);
    west = window(grid, 1, 0), east = window(grid, 1, 2);
    {
        bh_array *edge;
        OK(bh_index(&edge, grid, 0, 0));
        OK(bh_copy(edge, bh_f64(40.0)));
        OK(bh_free(edge));
    }
    for (turn = 0; turn < WARM + TURNS; turn++) {
        bh_array *work, *change, *total;
        if (turn == WARM) before = __atomic_load_n(&calls, __ATOMIC_RELAXED);
        OK(bh_add_new(&work, center, north));
        OK(bh_add(work, work, south));
        OK(bh_add(work, work, west));
        OK(bh_add(work, work, east));
        OK(bh_multiply(work, work, bh_f64(0.2)));
        OK(bh_subtract_new(&change, work, center));
        OK(bh_absolute(change, change));
        OK(bh_add_reduce_new(&total, change, BH_ALL_AXES));
        OK(bh_free(change));
        OK(bh_copy(center, work));
        OK(bh_scalar_f64(&delta, total));
        OK(bh_free(total));
        OK(bh_free(work));
        TRUE(delta > 0 && delta < last);
        last = delta;
    }
    printf("%.2f calls per turn\n", (double)(__atomic_load_n(&calls, __ATOMIC_RELAXED) - before) / TURNS);
    OK(bh_memory_get(&memory, NULL));
    printf("%.2f grids\n", (double)memory.peak / (8.0 * SIZE * SIZE));
    return 0;
}
