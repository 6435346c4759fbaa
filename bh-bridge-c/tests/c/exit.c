/* An end of the process while kernels are being compiled, or the compiler is being loaded. A child runs kernels until one
 * is compiled, which tells how long that takes; further children end at moments before that. */
#define _POSIX_C_SOURCE 200809L
#include "expect.h"
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { moments = 24 };

/* Without a compiler, time is up after so many seconds. */
static const double patience = 2;

static double now(void) {
    struct timespec time;
    TRUE(clock_gettime(CLOCK_MONOTONIC, &time) == 0);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Runs a kernel until it is compiled, or for some seconds; returns how many kernels were. */
static int work(double seconds) {
    const int64_t many = 200000;
    const double end = now() + seconds;
    uint64_t compiled = 0;
    bh_array *a;
    OK(bh_ones(&a, NULL, BH_TYPE_F64, 1, &many));
    while (compiled == 0 && now() < end) {
        OK(bh_sin(a, a));
        OK(bh_multiply(a, a, bh_f64(0.5)));
        OK(bh_flush(NULL));
        OK(bh_counter(&compiled, NULL, "ve-cpu.kernels compiled"));
    }
    return (int)compiled;
}

/* The exit status of a child that works for so long. Nothing of the library runs in the parent. */
static int child(double seconds) {
    int status;
    pid_t process = fork();
    if (process == 0) {
        exit(work(seconds) > 0 ? 3 : 4);
    }
    TRUE(waitpid(process, &status, 0) == process);
    if (!WIFEXITED(status)) {
        fprintf(stderr, "signal %d after %g s\n", WTERMSIG(status), seconds);
        exit(1);
    }
    return WEXITSTATUS(status);
}

int main(void) {
    const double start = now();
    const int last = child(patience);
    const double whole = last == 3 ? now() - start : 0.05;
    int moment, status;
    TRUE(last == 3 || last == 4);
    for (moment = 0; moment < moments; moment++) {
        status = child(whole * moment / moments);
        TRUE(status == 3 || status == 4);
    }
    puts(last == 3 ? "compiled" : "no compiler");
    return 0;
}
