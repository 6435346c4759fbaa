/* How fast one of several processes copies memory while the others do: GB/s of reads and writes. Usage: copy BYTES */
#define _POSIX_C_SOURCE 200112L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + 1e-9 * time.tv_nsec;
}

int main(int argc, char **argv) {
    size_t bytes = argc > 1 ? strtoull(argv[1], NULL, 10) : (size_t)1 << 27;
    char *from = malloc(bytes), *to = malloc(bytes);
    if (from == NULL || to == NULL) return 1;
    memset(from, 1, bytes);
    memset(to, 2, bytes);
    double begin = now(), seconds;
    long turns = 0;
    do {
        from[turns % bytes] ^= 1;
        memcpy(to, from, bytes);
        turns++;
        seconds = now() - begin;
    } while (seconds < 1.0);
    printf("%.4f %d\n", 2e-9 * bytes * turns / seconds, to[turns % bytes]);
    return 0;
}
