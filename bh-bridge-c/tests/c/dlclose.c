/* A program that loads the library at run time and closes it with work pending: what runs goes on, a fork and an exit
 * are safe, and the library can be opened again. argv[1] is the library. */
#define _POSIX_C_SOURCE 200809L
#include "true.h"
#include <bh.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

/* A function of the library under its own type; C has no cast from data to function pointers. */
#define LOAD(library, pointer, name)                      \
    do {                                                  \
        void *found_ = dlsym(library, name);              \
        TRUE(found_ != NULL);                             \
        memcpy(&(pointer), &found_, sizeof found_);       \
    } while (0)

struct interface {
    void *library;
    bh_status (*ones)(bh_array **, bh_context *, bh_dtype, int32_t, const int64_t *);
    bh_status (*sine)(bh_array *, const bh_array *);
    bh_status (*sum)(bh_array **, const bh_array *, int32_t);
    bh_status (*scalar)(double *, const bh_array *);
    bh_status (*flush)(bh_context *);
};

static struct interface open_library(const char *path) {
    struct interface bh;
    bh.library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (bh.library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    LOAD(bh.library, bh.ones, "bh_ones");
    LOAD(bh.library, bh.sine, "bh_sin");
    LOAD(bh.library, bh.sum, "bh_add_reduce_new");
    LOAD(bh.library, bh.scalar, "bh_scalar_f64");
    LOAD(bh.library, bh.flush, "bh_flush");
    return bh;
}

int main(int argc, char **argv) {
    const int64_t many = 3000000;
    struct interface bh;
    bh_array *a, *kept, *sum;
    double value;
    int round, status;
    pid_t child;
    TRUE(argc == 2);

    /* Closed while the executor runs, and with more recorded. */
    bh = open_library(argv[1]);
    TRUE(bh.ones(&kept, NULL, BH_TYPE_F64, 1, &many) == BH_OK);
    for (round = 0; round < 3; round++) {
        TRUE(bh.ones(&a, NULL, BH_TYPE_F64, 1, &many) == BH_OK);
        TRUE(bh.sine(a, a) == BH_OK);
        TRUE(bh.flush(NULL) == BH_OK);
    }
    TRUE(bh.sine(a, a) == BH_OK);
    TRUE(dlclose(bh.library) == 0);

    child = fork();
    if (child == 0) {
        exit(7);
    }
    TRUE(waitpid(child, &status, 0) == child);
    TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7);

    /* It is the same library as before, arrays and all. */
    bh = open_library(argv[1]);
    TRUE(bh.sum(&sum, kept, BH_ALL_AXES) == BH_OK);
    TRUE(bh.scalar(&value, sum) == BH_OK);
    TRUE(value == (double)many);
    TRUE(bh.sine(a, a) == BH_OK);
    TRUE(dlclose(bh.library) == 0);
    return 0;
}
