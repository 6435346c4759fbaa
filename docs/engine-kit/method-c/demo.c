/* demo LIBRARY: makes the method known and calls it, forwards and on a reversed view. */
#include <bh.h>
#include <stdio.h>
#include <stdlib.h>

static void check(bh_status status) {
    if (status == BH_OK) return;
    fprintf(stderr, "%s:%u: %s\n", bh_error_file(), (unsigned)bh_error_line(), bh_error_message());
    exit(1);
}

int main(int argc, char **argv) {
    const double values[] = {1, 5, 2, 8, 3};
    const int64_t shape[] = {5};
    bh_array *a, *reversed, *out;
    if (argc != 2) return 2;
    check(bh_extmethod_register(NULL, "running_maximum", "ve-cpu", argv[1]));
    check(bh_from_data(&a, NULL, BH_TYPE_F64, 1, shape, values));
    check(bh_reverse(&reversed, a, 0));
    check(bh_empty(&out, NULL, BH_TYPE_F64, 1, shape));
    check(bh_extmethod("running_maximum", 1, &out, 1, (const bh_array *const *)&a));
    check(bh_add(out, out, bh_f64(0.5))); /* runs after the method, as anything else */
    check(bh_print(out));
    check(bh_extmethod("running_maximum", 1, &out, 1, (const bh_array *const *)&reversed));
    check(bh_print(out));
    bh_free(a), bh_free(reversed), bh_free(out);
    check(bh_context_destroy(NULL));
    return 0;
}
