/* Preloaded into a program: the n-th call of a kind fails, once or from then on. BH_INJECT is "KIND:N" or "KIND:N+"; counting
   begins and ends where the program says so. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);

static char kind[32];
static long target, counted;
static int after, active;

/* Is this call to fail? */
static int fails(const char *name) {
    long now;
    if (!__atomic_load_n(&active, __ATOMIC_ACQUIRE) || strcmp(name, kind) != 0) return 0;
    now = __atomic_add_fetch(&counted, 1, __ATOMIC_RELAXED);
    return now == target || (after && now > target);
}

void inject_begin(void) {
    const char *text = getenv("BH_INJECT");
    char plus = 0;
    if (text && sscanf(text, "%31[a-z_]:%ld%c", kind, &target, &plus) >= 2) {
        after = plus == '+';
        __atomic_store_n(&active, 1, __ATOMIC_RELEASE);
    }
}

/* The number of calls of the kind since the beginning. */
long inject_end(void) {
    __atomic_store_n(&active, 0, __ATOMIC_RELEASE);
    return __atomic_load_n(&counted, __ATOMIC_RELAXED);
}

void *malloc(size_t size) {
    if (fails("malloc")) return errno = ENOMEM, NULL;
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
    if (fails("malloc")) return errno = ENOMEM, NULL;
    return __libc_calloc(count, size);
}

void *realloc(void *data, size_t size) {
    if (fails("malloc")) return errno = ENOMEM, NULL;
    return __libc_realloc(data, size);
}

int posix_memalign(void **out, size_t align, size_t size) {
    void *data;
    if (fails("malloc")) return ENOMEM;
    data = __libc_memalign(align, size);
    if (data) *out = data;
    return data ? 0 : ENOMEM;
}

void *aligned_alloc(size_t align, size_t size) {
    if (fails("malloc")) return errno = ENOMEM, NULL;
    return __libc_memalign(align, size);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int mode_of(int flags, va_list list) { return flags & (O_CREAT | O_TMPFILE) ? va_arg(list, int) : 0; }

int open(const char *path, int flags, ...) {
    static int (*real)(const char *, int, ...);
    va_list list;
    int mode;
    if (fails("open")) return errno = EMFILE, -1;
    if (!real) real = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open");
    va_start(list, flags);
    mode = mode_of(flags, list);
    va_end(list);
    return real(path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    static int (*real)(const char *, int, ...);
    va_list list;
    int mode;
    if (fails("open")) return errno = EMFILE, -1;
    if (!real) real = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open64");
    va_start(list, flags);
    mode = mode_of(flags, list);
    va_end(list);
    return real(path, flags, mode);
}

ssize_t read(int file, void *data, size_t size) {
    static ssize_t (*real)(int, void *, size_t);
    if (fails("read")) return errno = EIO, -1;
    if (!real) real = REAL(read);
    return real(file, data, size);
}

ssize_t write(int file, const void *data, size_t size) {
    static ssize_t (*real)(int, const void *, size_t);
    if (fails("write")) return errno = ENOSPC, -1;
    if (!real) real = REAL(write);
    return real(file, data, size);
}

void *mmap(void *at, size_t size, int access, int flags, int file, off_t offset) {
    static void *(*real)(void *, size_t, int, int, int, off_t);
    if (fails("mmap")) return errno = ENOMEM, MAP_FAILED;
    if (!real) real = REAL(mmap);
    return real(at, size, access, flags, file, offset);
}

void *mmap64(void *at, size_t size, int access, int flags, int file, off_t offset) {
    return mmap(at, size, access, flags, file, offset);
}

void *dlopen(const char *path, int flags) {
    static void *(*real)(const char *, int);
    if (fails("dlopen")) return real ? real("/nonexistent/library.so", flags) : NULL;
    if (!real) real = REAL(dlopen);
    return real(path, flags);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument) {
    static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    if (fails("pthread_create")) return EAGAIN;
    if (!real) real = REAL(pthread_create);
    return real(thread, attributes, run, argument);
}
