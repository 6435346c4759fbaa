/* The process ends while a thread is inside the kernel compiler: the file BH_TEST_INSIDE says that it is. With "thread",
 * another thread than the main one ends it; with "compiler", the compiler does. */
#define _POSIX_C_SOURCE 200809L
#include "expect.h"
#include <pthread.h>
#include <string.h>
#include <unistd.h>

static void *end(void *unused) {
    (void)unused;
    exit(0);
}

int main(int count, char **arguments) {
    const int64_t many = 200000;
    const char *file = getenv("BH_TEST_INSIDE");
    const int by_compiler = count > 1 && strcmp(arguments[1], "compiler") == 0;
    pthread_t thread;
    bh_array *a;
    TRUE(file != NULL);
    OK(bh_ones(&a, NULL, BH_TYPE_F64, 1, &many));
    /* The alarm ends what hangs. Once the process ends, calls are refused. */
    if (by_compiler) {
        alarm(300);
        while (bh_sin(a, a) == 0 && bh_flush(NULL) == 0) {
        }
        for (;;) pause();
    }
    while (access(file, F_OK) != 0) {
        OK(bh_sin(a, a));
        OK(bh_multiply(a, a, bh_f64(0.5)));
        OK(bh_flush(NULL));
    }
    if (count > 1) {
        TRUE(pthread_create(&thread, NULL, end, NULL) == 0);
        pthread_join(thread, NULL);
    }
    exit(0);
}
