/* A kernel compiler that takes its time and compiles nothing. Like LLVM it has an object that the end of the process
 * destroys: if that happens while a thread is inside, the process ends with status 70. BH_TEST_SLOW says what is slow,
 * "load" or "compile"; the file BH_TEST_INSIDE is made when that begins. With "end" it ends the process within the compiler, as
 * LLVM does where it cannot go on. VERSION and FINGERPRINT are the interface's. */
#define _POSIX_C_SOURCE 200809L
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static volatile int inside;

static void destroy(void) {
    if (inside) _exit(70);
}

/* Long enough for the program to see the file and to end. */
static void be_slow(const char *what) {
    const struct timespec delay = {0, 700000000};
    const char *slow = getenv("BH_TEST_SLOW"), *file = getenv("BH_TEST_INSIDE");
    FILE *made;
    if (slow == NULL || file == NULL || strcmp(slow, what) != 0) return;
    inside = 1;
    made = fopen(file, "w");
    if (made != NULL) fclose(made);
    nanosleep(&delay, NULL);
    inside = 0;
}

__attribute__((constructor)) static void load(void) {
    atexit(destroy);
    be_slow("load");
}

static uint8_t *compile(const uint8_t *request, size_t bytes, uint32_t *ok, size_t *length) {
    static uint8_t text[] = "too slow";
    (void)request;
    (void)bytes;
    be_slow("compile");
    if (strcmp(getenv("BH_TEST_SLOW"), "end") == 0) exit(0);
    *ok = 0;
    *length = sizeof text - 1;
    return text;
}

static void take_back(uint8_t *data, size_t length) {
    (void)data;
    (void)length;
}

typedef struct {
    uint32_t version, reserved;
    uint64_t fingerprint;
    uint8_t *(*compile)(const uint8_t *, size_t, uint32_t *, size_t *);
    void (*take_back)(uint8_t *, size_t);
} compiler;

const compiler *bh_ve_cpu_jit_entry(void);

const compiler *bh_ve_cpu_jit_entry(void) {
    static const compiler table = {VERSION, 0, FINGERPRINT, compile, take_back};
    return &table;
}
