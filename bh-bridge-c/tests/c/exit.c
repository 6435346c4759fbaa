/* An end of the process while kernels are being compiled, or the compiler is being loaded. A child runs kernels until one
 * is compiled, which tells how long that takes; further children end at moments before that. With an argument there is no
 * compiler: none may be. */
#define _POSIX_C_SOURCE 200809L
#include "expect.h"
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { moments = 24 };

/* Where a compiler is missed after so many seconds, there is none; long, as much else may run on the machine. */
static const double patience = 120;

/* How long the first child runs where no compiler is expected. */
static const double without = 0.2;

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

int main(int count, char **arguments) {
    const int compiler = count == 1;
    const double start = now();
    double whole = 0.05;
    int moment, status;
    (void)arguments;
    status = child(compiler ? patience : without);
    TRUE(status == (compiler ? 3 : 4));
    if (compiler) whole = now() - start;
    for (moment = 0; moment < moments; moment++) {
        status = child(whole * moment / moments);
        TRUE(status == 4 || (compiler && status == 3));
    }
    return 0;
}
