/* Runs on any stack; with config.toml the sum and the product run on the kit's engine and the square root below it. */
#include <bh.h>
#include <stdio.h>
#include <stdlib.h>

static void check(bh_status status) {
    if (status == BH_OK) return;
    fprintf(stderr, "%s:%u: %s\n", bh_error_file(), bh_error_line(), bh_error_message());
    exit(1);
}

int main(void) {
    bh_array *a, *b, *c, *total;
    double sum;
    uint64_t instructions;
    check(bh_linspace(&a, NULL, BH_TYPE_F64, 0.0, 3.0, 4)); /* 0 1 2 3 */
    check(bh_multiply_new(&b, a, a));
    check(bh_add(b, b, bh_f64(1.0)));
    check(bh_sqrt_new(&c, b));
    check(bh_add_reduce_new(&total, c, BH_ALL_AXES));
    check(bh_scalar_f64(&sum, total));
    check(bh_counter(&instructions, NULL, "kit.instructions"));
    printf("sum %.6f, %llu instructions on the kit's engine\n", sum, (unsigned long long)instructions);
    bh_free(a), bh_free(b), bh_free(c), bh_free(total);
    check(bh_context_destroy(NULL));
    return 0;
}
