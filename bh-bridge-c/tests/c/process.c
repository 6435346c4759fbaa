/* Threads, a forked child, and an exit with work pending and arrays alive. */
#define _POSIX_C_SOURCE 200809L
#include "expect.h"
#include <pthread.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

static bh_array *total;

static void *work(void *argument) {
    const int64_t eight = 8;
    int round;
    bh_array *mine;
    double values[8];
    OK(bh_full(&mine, NULL, bh_f64(*(int *)argument), 1, &eight));
    for (round = 0; round < 50; round++) {
        bh_array *next;
        OK(bh_add_new(&next, mine, mine));
        OK(bh_add(total, total, bh_f64(1)));
        if (round % 7 == 0) {
            OK(bh_read(values, next));
            TRUE(values[7] == 2.0 * *(int *)argument);
        }
        OK(bh_free(next));
    }
    OK(bh_free(mine));
    return NULL;
}

int main(void) {
    const int64_t eight = 8, many = 1000000;
    pthread_t threads[4];
    int numbers[4], i, status;
    double values[8];
    bh_array *large;
    pid_t child;
    OK(bh_zeros(&total, NULL, BH_TYPE_F64, 1, &eight));
    for (i = 0; i < 4; i++) {
        numbers[i] = i;
        TRUE(pthread_create(&threads[i], NULL, work, &numbers[i]) == 0);
    }
    for (i = 0; i < 4; i++) {
        TRUE(pthread_join(threads[i], NULL) == 0);
    }
    OK(bh_read(values, total));
    TRUE(values[0] == 200 && values[7] == 200);

    child = fork();
    if (child == 0) {
        bh_array *sum;
        double value;
        OK(bh_ones(&large, NULL, BH_TYPE_F64, 1, &many));
        OK(bh_add_reduce_new(&sum, large, 0));
        OK(bh_scalar_f64(&value, sum));
        TRUE(value == (double)many);
        OK(bh_read(values, total));
        TRUE(values[3] == 200);
        exit(7);
    }
    TRUE(waitpid(child, &status, 0) == child);
    TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7);

    OK(bh_ones(&large, NULL, BH_TYPE_F64, 1, &many));
    OK(bh_sin(large, large));
    OK(bh_flush(NULL));
    OK(bh_cos(large, large));
    return 0;
}
