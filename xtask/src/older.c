/* Functions of glibc 2.30 to 2.36, for libraries that work with 2.28 as well. */
#include <stddef.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The name of a thread that panics. */
int gettid(void) {
    return (int)syscall(SYS_gettid);
}

/* Counters of references are atomic whether or not a second thread has been started. */
char __libc_single_threaded = 0;

/* LLVM's statistics ask how much memory is in use; nobody reads them here. */
struct mallinfo2 {
    size_t arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost;
};

struct mallinfo2 mallinfo2(void) {
    struct mallinfo2 nothing = {0};
    return nothing;
}

/* The C++ library's std::random_device. */
unsigned arc4random(void) {
    unsigned number = 0;
    if (getrandom(&number, sizeof number, 0) != sizeof number) abort();
    return number;
}
