/* Arrays and the program's own OpenCL buffers take each other's place. OpenCL is loaded by hand, so that the test needs no
 * headers of it; the constants are OpenCL's. Prints "left out" where there is none. */

#include <bh.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"

typedef int (*platforms_fn)(unsigned, void **, unsigned *);
typedef int (*devices_fn)(void *, uint64_t, unsigned, void **, unsigned *);
typedef void *(*context_fn)(const intptr_t *, unsigned, void *const *, void *, void *, int *);
typedef void *(*queue_fn)(void *, void *, uint64_t, int *);
typedef void *(*buffer_fn)(void *, uint64_t, size_t, void *, int *);
typedef int (*write_fn)(void *, void *, unsigned, size_t, size_t, const void *, unsigned, void *, void *);
typedef int (*read_fn)(void *, void *, unsigned, size_t, size_t, void *, unsigned, void *, void *);
typedef int (*release_fn)(void *);

static void *library;

static void find(const char *name, void *function) {
    void *found = dlsym(library, name);
    if (!found) exit(2);
    memcpy(function, &found, sizeof found);
}

/* Modes, as in bh_component.h. */
enum { ADOPT_SHARED = 0, ADOPT_IMMUTABLE = 2, EXPORT_READ_ONLY = 1, EXPORT_SHARED = 2 };

enum { LENGTH = 1000, BYTES = LENGTH * (int)sizeof(double) };

static int released;

static void release(void *argument, void *memory) {
    (void)memory;
    released += *(int *)argument;
}

int main(void) {
    static double values[LENGTH];
    platforms_fn get_platforms;
    devices_fn get_devices;
    context_fn create_context;
    queue_fn create_queue;
    buffer_fn create_buffer;
    write_fn write_buffer;
    read_fn read_buffer;
    release_fn release_buffer, release_queue, release_context;
    void *platform = NULL, *device = NULL, *own = NULL, *other = NULL, *queue = NULL, *memory = NULL, *strange = NULL;
    void *lent = NULL;
    unsigned found = 0;
    int code = 0, one = 1;
    int64_t shape[1] = {LENGTH}, i;

    library = dlopen("libOpenCL.so.1", RTLD_NOW);
    if (!library) {
        puts("left out");
        return 0;
    }
    find("clGetPlatformIDs", &get_platforms);
    find("clGetDeviceIDs", &get_devices);
    find("clCreateContext", &create_context);
    find("clCreateCommandQueue", &create_queue);
    find("clCreateBuffer", &create_buffer);
    find("clEnqueueWriteBuffer", &write_buffer);
    find("clEnqueueReadBuffer", &read_buffer);
    find("clReleaseMemObject", &release_buffer);
    find("clReleaseCommandQueue", &release_queue);
    find("clReleaseContext", &release_context);
    if (get_platforms(1, &platform, &found) != 0 || found == 0 ||
        get_devices(platform, 0xFFFFFFFF, 1, &device, &found) != 0 || found == 0) {
        puts("left out");
        return 0;
    }
    own = create_context(NULL, 1, &device, NULL, NULL, &code);
    other = create_context(NULL, 1, &device, NULL, NULL, &code);
    queue = create_queue(own, device, 0, &code);
    memory = create_buffer(own, 1, BYTES, NULL, &code);
    strange = create_buffer(other, 1, BYTES, NULL, &code);
    if (!own || !other || !queue || !memory || !strange) return 2;
    for (i = 0; i < LENGTH; i++) values[i] = (double)i;
    if (write_buffer(queue, memory, 0, 0, BYTES, values, 0, NULL, NULL) != 0) return 2;

    bh_context *context = NULL, *wrong = NULL;
    bh_array *array = NULL, *refused = NULL, *sum = NULL;

    /* A queue of another context, and a context that is missing, are named. */
    FAILS(bh_context_create_opencl(&wrong, "opencl-only", NULL, queue), BH_STATUS_ARGUMENT, "cl_context");
    FAILS(bh_context_create_opencl(&wrong, "opencl-only", other, queue), BH_STATUS_INIT, "another context");
    OK(bh_context_create_opencl(&context, "opencl-only", own, queue));
    FAILS(bh_opencl_adopt(&refused, context, BH_TYPE_F64, 1, shape, strange, NULL, NULL), BH_STATUS_ARGUMENT, "another OpenCL context");
    shape[0] = LENGTH + 1;
    FAILS(bh_opencl_adopt(&refused, context, BH_TYPE_F64, 1, shape, memory, NULL, NULL), BH_STATUS_ARGUMENT, "bytes");
    shape[0] = LENGTH;

    OK(bh_opencl_adopt(&array, context, BH_TYPE_F64, 1, shape, memory, release, &one));
    OK(bh_empty(&sum, context, BH_TYPE_F64, 1, shape));
    OK(bh_add(sum, array, array));
    OK(bh_add(array, array, sum));
    OK(bh_opencl_lend(&lent, sum));
    memset(values, 0, sizeof values);
    if (read_buffer(queue, lent, 1, 0, BYTES, values, 0, NULL, NULL) != 0) return 2;
    for (i = 0; i < LENGTH; i++) TRUE(values[i] == 2.0 * (double)i);
    /* What is lent is as it was. */
    OK(bh_add(sum, sum, array));
    OK(bh_sync(context));
    if (read_buffer(queue, lent, 1, 0, BYTES, values, 0, NULL, NULL) != 0) return 2;
    for (i = 0; i < LENGTH; i++) TRUE(values[i] == 2.0 * (double)i);
    OK(bh_opencl_return(context, lent));
    FAILS(bh_opencl_return(context, lent), BH_STATUS_ARGUMENT, "not lent");

    /* The rest of the program sees the array, too. */
    OK(bh_read(values, array));
    for (i = 0; i < LENGTH; i++) TRUE(values[i] == 3.0 * (double)i);
    OK(bh_read(values, sum));
    for (i = 0; i < LENGTH; i++) TRUE(values[i] == 5.0 * (double)i);
    OK(bh_free(sum));
    OK(bh_free(array));
    OK(bh_sync(context));
    OK(bh_context_destroy(context));
    TRUE(released == 1);

    /* A buffer that both sides use: what each writes the other one finds, in the order of the queue. */
    OK(bh_context_create_opencl(&context, "opencl-only", own, queue));
    for (i = 0; i < LENGTH; i++) values[i] = (double)i;
    if (write_buffer(queue, memory, 1, 0, BYTES, values, 0, NULL, NULL) != 0) return 2;
    FAILS(bh_opencl_adopt_as(&refused, context, BH_TYPE_F64, 1, shape, memory, 7, NULL, NULL), BH_STATUS_ARGUMENT, "mode 7");
    OK(bh_opencl_adopt_as(&array, context, BH_TYPE_F64, 1, shape, memory, ADOPT_SHARED, release, &one));
    OK(bh_add(array, array, array));
    if (read_buffer(queue, memory, 1, 0, BYTES, values, 0, NULL, NULL) != 0) return 2;
    for (i = 0; i < LENGTH; i++) TRUE(values[i] == 2.0 * (double)i);
    OK(bh_read(values, array));
    for (i = 0; i < LENGTH; i++) values[i] += 7.0;
    if (write_buffer(queue, memory, 1, 0, BYTES, values, 0, NULL, NULL) != 0) return 2;
    OK(bh_empty(&sum, context, BH_TYPE_F64, 1, shape));
    OK(bh_add(sum, array, array));
    OK(bh_read(values, sum));
    for (i = 0; i < LENGTH; i++) TRUE(values[i] == 4.0 * (double)i + 14.0);
    OK(bh_write(array, values));
    OK(bh_opencl_lend_as(&lent, array, EXPORT_SHARED));
    TRUE(lent == memory);
    if (read_buffer(queue, memory, 1, 0, BYTES, values, 0, NULL, NULL) != 0) return 2;
    for (i = 0; i < LENGTH; i++) TRUE(values[i] == 4.0 * (double)i + 14.0);
    OK(bh_opencl_return(context, lent));
    OK(bh_free(array));
    OK(bh_sync(context));
    TRUE(released == 2);

    /* One that nobody writes to. */
    for (i = 0; i < LENGTH; i++) values[i] = (double)i;
    if (write_buffer(queue, memory, 1, 0, BYTES, values, 0, NULL, NULL) != 0) return 2;
    OK(bh_opencl_adopt_as(&array, context, BH_TYPE_F64, 1, shape, memory, ADOPT_IMMUTABLE, release, &one));
    OK(bh_opencl_lend_as(&lent, array, EXPORT_READ_ONLY));
    TRUE(lent == memory);
    OK(bh_opencl_return(context, lent));
    OK(bh_add(array, array, array));
    OK(bh_sync(context));
    TRUE(released == 3);
    if (read_buffer(queue, memory, 1, 0, BYTES, values, 0, NULL, NULL) != 0) return 2;
    for (i = 0; i < LENGTH; i++) TRUE(values[i] == (double)i);

    /* What is lent for reading stays as it is without a copy. */
    OK(bh_opencl_lend_as(&lent, array, EXPORT_READ_ONLY));
    OK(bh_add(array, array, array));
    OK(bh_read(values, array));
    for (i = 0; i < LENGTH; i++) TRUE(values[i] == 4.0 * (double)i);
    if (read_buffer(queue, lent, 1, 0, BYTES, values, 0, NULL, NULL) != 0) return 2;
    for (i = 0; i < LENGTH; i++) TRUE(values[i] == 2.0 * (double)i);
    OK(bh_opencl_return(context, lent));
    FAILS(bh_opencl_return(context, lent), BH_STATUS_ARGUMENT, "not lent");

    /* An array's own memory, which the program writes to while it has it. */
    OK(bh_opencl_lend_as(&lent, array, EXPORT_SHARED));
    for (i = 0; i < LENGTH; i++) values[i] = 5.0;
    if (write_buffer(queue, lent, 1, 0, BYTES, values, 0, NULL, NULL) != 0) return 2;
    OK(bh_add(array, array, array));
    if (read_buffer(queue, lent, 1, 0, BYTES, values, 0, NULL, NULL) != 0) return 2;
    for (i = 0; i < LENGTH; i++) TRUE(values[i] == 10.0);
    OK(bh_opencl_return(context, lent));
    OK(bh_free(array));
    OK(bh_free(sum));
    OK(bh_sync(context));
    OK(bh_context_destroy(context));
    for (i = 0; i < LENGTH; i++) values[i] = 5.0 * (double)i;

    /* A queue of bh's own, and memory that the program finds in its own. */
    OK(bh_context_create_opencl(&context, "opencl-only", own, NULL));
    OK(bh_from_data(&array, context, BH_TYPE_F64, 1, shape, values));
    OK(bh_add(array, array, array));
    OK(bh_opencl_lend(&lent, array));
    if (read_buffer(queue, lent, 1, 0, BYTES, values, 0, NULL, NULL) != 0) return 2;
    for (i = 0; i < LENGTH; i++) TRUE(values[i] == 10.0 * (double)i);
    OK(bh_opencl_return(context, lent));
    OK(bh_free(array));
    OK(bh_context_destroy(context));

    release_buffer(memory);
    release_buffer(strange);
    release_queue(queue);
    release_context(own);
    release_context(other);
    puts("done");
    return 0;
}
