/* Frame of a hand-written twin: includes the twin's own source once per element type and supplies `main`.
 *
 * A twin defines TWIN_NAME, TWIN_SOURCE (its own path seen from here) and TWIN_SMALLEST, includes this header, and gives
 * between `#ifdef REAL` and `#endif`, written with REAL, FN and STATE:
 *
 *   typedef struct {...} STATE;
 *   static void FN(allocate)(STATE *, int64_t n);
 *   static void FN(fill)(STATE *, int64_t n);                        initial values, touched by the threads that use them
 *   static void FN(run)(STATE *, int64_t n, int64_t iters);          what is timed
 *   static int FN(checksums)(const STATE *, int64_t n, double *out); returns how many it wrote */
#ifndef TWIN_H
#define TWIN_H

#include "bench.h"
#include <omp.h>
#include <tgmath.h>

#define TWIN_JOIN2(a, b) a##_##b
#define TWIN_JOIN(a, b) TWIN_JOIN2(a, b)
#define FN(name) TWIN_JOIN(name, SUFFIX)
#define STATE FN(state)
#define R(constant) ((REAL)(constant))
/* Keeps the compiler from merging iterations that compute the same value. */
#define TWIN_BARRIER() __asm__ volatile("" ::: "memory")

/* The rows first..last that this thread of a parallel region owns out of `begin`..`end`. */
static inline void twin_share(int64_t begin, int64_t end, int64_t *first, int64_t *last) {
    int64_t threads = omp_get_num_threads(), me = omp_get_thread_num(), rows = end - begin;
    *first = begin + rows * me / threads;
    *last = begin + rows * (me + 1) / threads;
}

#define REAL double
#define SUFFIX f64
#include "twin_checksum.h"
#include TWIN_SOURCE
#undef REAL
#undef SUFFIX
#define REAL float
#define SUFFIX f32
#include "twin_checksum.h"
#include TWIN_SOURCE
#undef REAL
#undef SUFFIX

#define TWIN_RUN(type)                                                                                                 \
    do {                                                                                                               \
        static state_##type state;                                                                                     \
        allocate_##type(&state, args.n);                                                                               \
        if (args.warm) {                                                                                               \
            fill_##type(&state, args.n);                                                                               \
            run_##type(&state, args.n, args.iters);                                                                    \
        }                                                                                                              \
        for (int turn = 0; args.turns || turn == 0; turn++) {                                                          \
            double checksums[BENCH_MAX_CHECKSUMS];                                                                     \
            if (!bench_wait(&args, "fill"))                                                                            \
                break;                                                                                                 \
            fill_##type(&state, args.n);                                                                               \
            if (!bench_wait(&args, "run"))                                                                             \
                break;                                                                                                 \
            double start = bench_now(), processor_start = bench_processor();                                           \
            run_##type(&state, args.n, args.iters);                                                                    \
            double seconds = bench_now() - start, processor = bench_processor() - processor_start;                     \
            int count = checksums_##type(&state, args.n, checksums);                                                   \
            bench_print(TWIN_NAME, &args, "twin", omp_get_max_threads(), seconds, processor, checksums, count);        \
        }                                                                                                              \
    } while (0)

int main(int argc, char **argv) {
    bench_args args = bench_parse(argc, argv, TWIN_SMALLEST);
    if (args.single)
        TWIN_RUN(f32);
    else
        TWIN_RUN(f64);
    return 0;
}

#endif
