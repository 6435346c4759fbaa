/* Forks while other threads record, run batches, compile kernels, map, lend and end arrays, and start contexts. Each child
 * computes and exits; one that hangs is ended by an alarm, which the parent sees. */
#define _POSIX_C_SOURCE 200809L
#include "expect.h"
#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FORKS = 60, LIMIT = 60 };

static bh_array *shared;
static atomic_int stop;

/* Kernels that are new each time, on arrays that make them hot. */
static void *compile(void *argument) {
    const int64_t many = 200000;
    int round;
    (void)argument;
    for (round = 1; !stop; round++) {
        bh_array *x, *sum;
        int step, turn;
        double value;
        for (turn = 0; turn < 6; turn++) {
            OK(bh_full(&x, NULL, bh_f64(0.5), 1, &many));
            for (step = 0; step < 8; step++) {
                OK(round >> step & 1 ? bh_sin(x, x) : bh_cos(x, x));
                OK(bh_add(x, x, bh_f64(step)));
            }
            OK(bh_add_reduce_new(&sum, x, 0));
            OK(bh_scalar_f64(&value, sum));
            OK(bh_free(sum));
            OK(bh_free(x));
        }
    }
    return NULL;
}

/* Small operations, which are carried out at once, and batches on the calling thread. */
static void *record(void *argument) {
    const int64_t eight = 8;
    double values[8];
    (void)argument;
    while (!stop) {
        bh_array *a, *b;
        OK(bh_full(&a, NULL, bh_f64(1), 1, &eight));
        OK(bh_add_new(&b, a, a));
        OK(bh_flush(NULL));
        OK(bh_read(values, b));
        TRUE(values[7] == 2);
        OK(bh_free(a));
        OK(bh_free(b));
    }
    return NULL;
}

/* Data calls, while batches of others run. */
static void *look(void *argument) {
    (void)argument;
    while (!stop) {
        const char *answer;
        void *data;
        bh_lent *lent;
        OK(bh_map(&data, shared, BH_ACCESS_READ));
        TRUE(((double *)data)[99999] == 3);
        OK(bh_unmap(shared));
        OK(bh_lend(&lent, shared, BH_EXPORT_READ_ONLY));
        OK(bh_end_lending(lent));
        OK(bh_message(&answer, NULL, "threads"));
    }
    return NULL;
}

/* Contexts of its own. */
static void *start(void *argument) {
    const int64_t two = 2;
    (void)argument;
    while (!stop) {
        bh_context *context;
        bh_array *a;
        OK(bh_context_create(&context, NULL));
        OK(bh_zeros(&a, context, BH_TYPE_F64, 1, &two));
        OK(bh_free(a));
        OK(bh_context_destroy(context));
    }
    return NULL;
}

static int child(void) {
    const int64_t eight = 8, many = 100000;
    bh_array *ones, *sum, *large;
    double value, values[8];
    alarm(LIMIT);
    OK(bh_ones(&ones, NULL, BH_TYPE_F64, 1, &eight));
    OK(bh_add(ones, ones, ones));
    OK(bh_read(values, ones));
    TRUE(values[3] == 2);
    OK(bh_full(&large, NULL, bh_f64(2), 1, &many));
    OK(bh_multiply(large, large, shared));
    OK(bh_add_reduce_new(&sum, large, 0));
    OK(bh_scalar_f64(&value, sum));
    TRUE(value == 6.0 * (double)many);
    OK(bh_free(sum));
    OK(bh_context_destroy(NULL));
    return 7;
}

int main(void) {
    void *(*const work[])(void *) = {compile, record, look, start};
    const int64_t many = 100000;
    pthread_t threads[4];
    int i, status;
    alarm(6 * LIMIT);
    OK(bh_full(&shared, NULL, bh_f64(3), 1, &many));
    OK(bh_flush(NULL));
    for (i = 0; i < 4; i++) {
        TRUE(pthread_create(&threads[i], NULL, work[i], NULL) == 0);
    }
    for (i = 0; i < FORKS; i++) {
        struct timespec pause = {0, (long)(i * 7919 % 20) * 500000};
        pid_t process;
        nanosleep(&pause, NULL);
        process = fork();
        if (process == 0) {
            exit(child());
        }
        TRUE(waitpid(process, &status, 0) == process);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 7) {
            fprintf(stderr, "child %d ended with %#x\n", i, (unsigned)status);
            exit(1);
        }
    }
    stop = 1;
    for (i = 0; i < 4; i++) {
        TRUE(pthread_join(threads[i], NULL) == 0);
    }
    return 0;
}
