/* The process ends while a thread is inside the kernel compiler: the file BH_TEST_INSIDE says that it is. With an argument,
 * another thread than the main one ends it. */
#define _POSIX_C_SOURCE 200809L
#include "expect.h"
#include <pthread.h>
#include <unistd.h>

static void *end(void *unused) {
    (void)unused;
    exit(0);
}

int main(int count, char **arguments) {
    const int64_t many = 200000;
    const char *file = getenv("BH_TEST_INSIDE");
    pthread_t thread;
    bh_array *a;
    (void)arguments;
    TRUE(file != NULL);
    OK(bh_ones(&a, NULL, BH_TYPE_F64, 1, &many));
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
