/* Ends of threads and of the process: calls that fail in exit handlers and in destructors of threads, exit from inside of
 * the library, and cancelled threads. Each case is a child that has to end by itself, with its code and its output. */
#define _POSIX_C_SOURCE 200809L
#define _XOPEN_SOURCE 700
#include "expect.h"
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The code that all cases end with, and the seconds after which one hangs; long, as much else may run on the machine. */
enum { code = 7, patience = 300 };

static bh_array *kept;
static pthread_key_t key;

static void pause_for(long milliseconds) {
    struct timespec time;
    time.tv_sec = 0;
    time.tv_nsec = 1000000 * milliseconds;
    nanosleep(&time, NULL);
}

/* Something that fails, at a time when this thread or the process is ending. */
static void fail(void) {
    const char *text;
    bh_array *nothing = NULL;
    if (bh_sin(kept, NULL) == BH_OK || bh_error_message()[0] == 0) _exit(90);
    if (bh_add_new(&nothing, kept, NULL) == BH_OK || bh_error_status() == BH_OK) _exit(91);
    if (bh_message(&text, (bh_context *)1, "?") == BH_OK) _exit(92);
    bh_error_clear();
}

/* The same, and the end of an array. */
static void fail_and_free(void) {
    fail();
    (void)bh_free(kept);
}

/* Calls that work in a thread that is ending. */
static void work_while_ending(void *unused) {
    bh_array *sum;
    double value;
    (void)unused;
    fail();
    OK(bh_add_reduce_new(&sum, kept, 0));
    OK(bh_scalar_f64(&value, sum));
    TRUE(value == 3);
    OK(bh_free(sum));
}

static void make(void) {
    const int64_t three = 3;
    OK(bh_ones(&kept, NULL, BH_TYPE_F64, 1, &three));
    FAILS(bh_sin(kept, NULL), BH_STATUS_HANDLE, "null");
}

static void in_exit_handler(void) {
    TRUE(atexit(fail_and_free) == 0);
    make();
    OK(bh_sync(NULL));
}

static void *make_in_thread(void *unused) {
    (void)unused;
    FAILS(bh_sin(kept, NULL), BH_STATUS_HANDLE, "null");
    TRUE(pthread_setspecific(key, &key) == 0);
    return NULL;
}

static void destroy_key(void *unused) {
    bh_array *sum;
    (void)unused;
    FAILS(bh_sin(kept, NULL), BH_STATUS_HANDLE, "null");
    OK(bh_add_new(&sum, kept, kept));
    OK(bh_free(sum));
}

static void in_thread_destructor(void) {
    pthread_t thread;
    make();
    TRUE(pthread_key_create(&key, destroy_key) == 0);
    TRUE(pthread_create(&thread, NULL, make_in_thread, NULL) == 0);
    TRUE(pthread_join(thread, NULL) == 0);
    work_while_ending(NULL);
}

/* A call of the thread below: once another one has ended the process, calls fail, and this one only waits. */
static void unless_ending(bh_status status) {
    if (status == BH_STATUS_SHUTDOWN) {
        for (;;) pause();
    }
    OK(status);
}

/* Works for ever; almost all of the time is spent inside of kernels. */
static void *work(void *unused) {
    const int64_t many = 1 << 21;
    bh_array *a;
    int i;
    (void)unused;
    OK(bh_ones(&a, NULL, BH_TYPE_F64, 1, &many));
    for (;;) {
        for (i = 0; i < 20; i++) unless_ending(bh_sin(a, a));
        unless_ending(bh_sync(NULL));
        pthread_testcancel();
    }
    return NULL;
}

static void leave(int number) {
    (void)number;
    exit(code);
}

static void exit_in_signal_handler(void) {
    struct sigaction action;
    struct itimerval time;
    memset(&action, 0, sizeof action);
    memset(&time, 0, sizeof time);
    action.sa_handler = leave;
    time.it_value.tv_usec = 300000; /* of work */
    make();
    TRUE(sigaction(SIGPROF, &action, NULL) == 0);
    TRUE(setitimer(ITIMER_PROF, &time, NULL) == 0);
    work(NULL);
}

static void exit_beside_work(void) {
    pthread_t thread;
    make();
    TRUE(pthread_create(&thread, NULL, work, NULL) == 0);
    pause_for(200);
}

static void *exit_in_thread(void *unused) {
    (void)unused;
    pause_for(200);
    exit(code);
}

static void exit_from_another_thread(void) {
    pthread_t thread;
    make();
    TRUE(pthread_create(&thread, NULL, exit_in_thread, NULL) == 0);
    work(NULL);
}

static void cancelled(void) {
    pthread_t thread;
    void *result;
    double values[3];
    int round;
    make();
    for (round = 0; round < 3; round++) {
        TRUE(pthread_create(&thread, NULL, work, NULL) == 0);
        pause_for(100);
        TRUE(pthread_cancel(thread) == 0);
        TRUE(pthread_join(thread, &result) == 0);
        TRUE(result == PTHREAD_CANCELED);
    }
    OK(bh_add(kept, kept, bh_f64(1)));
    OK(bh_read(values, kept));
    TRUE(values[2] == 2);
}

static void give_back(void *argument, void *data) {
    pid_t child = fork();
    (void)data;
    if (child == 0) _exit(3);
    *(pid_t *)argument = child;
}

/* The user's function is called in the midst of a call; its child ends, and the parent goes on. */
static void fork_in_a_release(void) {
    static double memory[4] = {1, 2, 3, 4};
    const int64_t four = 4;
    static pid_t child;
    int status;
    bh_array *a;
    double values[4];
    OK(bh_adopt(&a, NULL, BH_TYPE_F64, 1, &four, memory, give_back, &child));
    OK(bh_add(a, a, bh_f64(1)));
    OK(bh_read(values, a));
    TRUE(values[3] == 5);
    OK(bh_free(a));
    OK(bh_sync(NULL));
    TRUE(child > 0 && waitpid(child, &status, 0) == child);
    TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 3);
    make();
    OK(bh_read(values, kept));
    TRUE(values[2] == 1);
}

static void *save_for_ever(void *file) {
    const int64_t many = 1 << 16;
    bh_array *a;
    OK(bh_ones(&a, NULL, BH_TYPE_F64, 1, &many));
    for (;;) {
        OK(bh_save(file, a));
        pthread_testcancel();
    }
    return NULL;
}

static void cancelled_while_saving(void) {
    pthread_t thread;
    void *result;
    int round;
    char file[40];
    sprintf(file, "/tmp/bh-cancelled-%ld.npy", (long)getpid());
    make();
    for (round = 0; round < 5; round++) {
        TRUE(pthread_create(&thread, NULL, save_for_ever, file) == 0);
        do pause_for(20);
        while (access(file, F_OK) != 0);
        TRUE(pthread_cancel(thread) == 0);
        TRUE(pthread_join(thread, &result) == 0);
        TRUE(result == PTHREAD_CANCELED);
    }
    TRUE(remove(file) == 0);
    OK(bh_sync(NULL));
}

static void prints_to_nobody(void) {
    int output = dup(1);
    make();
    TRUE(output >= 0 && close(1) == 0);
    FAILS(bh_print(kept), BH_STATUS_FILE, "cannot be printed");
    TRUE(dup2(output, 1) == 1);
    OK(bh_sync(NULL));
}

int main(void) {
    static const struct {
        const char *name;
        void (*run)(void);
    } cases[] = {
        {"exit handler", in_exit_handler},
        {"destructor of a thread", in_thread_destructor},
        {"exit in a signal handler", exit_in_signal_handler},
        {"exit beside work", exit_beside_work},
        {"exit from another thread", exit_from_another_thread},
        {"cancelled threads", cancelled},
        {"fork in a release", fork_in_a_release},
        {"cancelled while saving", cancelled_while_saving},
        {"closed output", prints_to_nobody},
    };
    size_t i;
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int status, output[2];
        char text[16] = "";
        pid_t child;
        TRUE(pipe(output) == 0);
        child = fork();
        if (child == 0) {
            TRUE(dup2(output[1], 1) == 1);
            printf("output");
            alarm(patience);
            cases[i].run();
            exit(code);
        }
        close(output[1]);
        if (read(output[0], text, sizeof text - 1) < 0) return 1;
        close(output[0]);
        TRUE(waitpid(child, &status, 0) == child);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != code || strcmp(text, "output") != 0) {
            fprintf(stderr, "%s: signal %d, code %d, output '%s'\n", cases[i].name,
                    WIFSIGNALED(status) ? WTERMSIG(status) : 0, WIFEXITED(status) ? WEXITSTATUS(status) : -1, text);
            return 1;
        }
    }
    return 0;
}
