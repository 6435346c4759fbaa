/* Shared by the C programs of the benchmark collection: arguments, timing, memory, inputs, checksums and output.
 *
 * Every program is called as `PROGRAM n iters f64|f32 [--warm] [--turns]` and prints one JSON line for each timed run. */
#ifndef BENCH_H
#define BENCH_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

/* Weights of a checksum repeat with this period, so that misplaced elements show. */
#define BENCH_WEIGHT_PERIOD 97
#define BENCH_MAX_CHECKSUMS 4

/* The command line of one run. */
typedef struct {
    int64_t n;
    int64_t iters;
    int single; /* 1 for f32, 0 for f64 */
    int warm;   /* run once untimed before the timed run */
    int turns;  /* timed runs as standard input asks for them, instead of one */
} bench_args;

static void bench_fail(const char *program, const char *why) {
    fprintf(stderr, "%s: %s\nusage: %s n iters f64|f32 [--warm] [--turns]\n", program, why, program);
    exit(2);
}

static int64_t bench_positive(const char *program, const char *text) {
    char *end = NULL;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || value <= 0)
        bench_fail(program, "n and iters must be positive whole numbers");
    return (int64_t)value;
}

/* Reads the command line or leaves with status 2; `smallest` is the smallest n the program is defined for. */
static bench_args bench_parse(int argc, char **argv, int64_t smallest) {
    bench_args args = {0, 0, 0, 0, 0};
    if (argc < 4)
        bench_fail(argv[0], "three arguments are needed");
    args.n = bench_positive(argv[0], argv[1]);
    args.iters = bench_positive(argv[0], argv[2]);
    if (args.n < smallest)
        bench_fail(argv[0], "n is too small for this program");
    if (strcmp(argv[3], "f32") == 0)
        args.single = 1;
    else if (strcmp(argv[3], "f64") != 0)
        bench_fail(argv[0], "the type must be f64 or f32");
    for (int i = 4; i < argc; i++) {
        if (strcmp(argv[i], "--warm") == 0)
            args.warm = 1;
        else if (strcmp(argv[i], "--turns") == 0)
            args.turns = 1;
        else
            bench_fail(argv[0], "the only options are --warm and --turns");
    }
    return args;
}

/* With --turns, says on standard output what comes next ("fill" or "run") and waits for a line to go on. 0 at the end of the
 * input: there are no more turns. */
static inline int bench_wait(const bench_args *args, const char *next) {
    char line[16];
    if (!args->turns)
        return 1;
    printf("%s\n", next);
    fflush(stdout);
    return fgets(line, sizeof line, stdin) != NULL;
}

static inline double bench_now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Processor time of the process, all threads: what a run took where others share the machine. */
static inline double bench_processor(void) {
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Uninitialised memory on huge pages. Successive blocks start at different cache sets, because programs that walk many
 * arrays in step would otherwise keep evicting their own lines. The process keeps it until it ends. */
static inline void *bench_alloc(size_t bytes) {
    static size_t blocks = 0;
    const size_t page = (size_t)2 << 20;
    size_t skew = (blocks++ % 64) * (4096 + 5 * 64);
    size_t total = (bytes + skew + page) / page * page;
    char *memory = (char *)aligned_alloc(page, total);
    if (memory == NULL) {
        fprintf(stderr, "out of memory: %zu bytes\n", bytes);
        exit(1);
    }
    madvise(memory, total, MADV_HUGEPAGE);
    return memory + skew;
}

/* A small block for the caller to free. */
static inline void *bench_scratch(size_t bytes) {
    void *memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (memory == NULL) {
        fprintf(stderr, "out of memory: %zu bytes\n", bytes);
        exit(1);
    }
    return memory;
}

/* The formula for input data, a value in [0, 1) for element `index`: cubes modulo a prime for which cubing is a
 * permutation, in whole numbers that any language reproduces exactly. */
#define BENCH_PRIME 100019
static inline double bench_pseudo(int64_t index, int64_t seed) {
    int64_t root = (index + seed * 33391) % BENCH_PRIME;
    return (double)(root * root % BENCH_PRIME * root % BENCH_PRIME) / BENCH_PRIME;
}

static inline double bench_weight(int64_t index) {
    return 1.0 + (double)(index % BENCH_WEIGHT_PERIOD) / BENCH_WEIGHT_PERIOD;
}

static inline void bench_print(const char *name, const bench_args *args, const char *stack, int threads, double seconds,
                        double processor, const double *checksums, int count) {
    printf("{\"bench\":\"%s\",\"n\":%lld,\"iters\":%lld,\"dtype\":\"%s\",\"threads\":%d,\"stack\":\"%s\",\"seconds\":%.9f,"
           "\"processor\":%.9f,\"checksum\":[",
           name, (long long)args->n, (long long)args->iters, args->single ? "f32" : "f64", threads, stack, seconds,
           processor);
    for (int i = 0; i < count; i++)
        printf("%s%.17g", i ? "," : "", checksums[i]);
    printf("]}\n");
    fflush(stdout);
}

#endif
