/* Saves an array that is larger than what one rank moves alone, loads it again and compares; says what was sent for it. */
#include <bh.h>
#include <stdio.h>
#include <stdlib.h>

static void check(bh_status status) {
    if (status != BH_OK) {
        fprintf(stderr, "files: %s\n", bh_error_message());
        exit(1);
    }
}

int main(int argc, char **argv) {
    bh_array *a, *b, *sum;
    int64_t shape[2] = {1000, 300};
    double total;
    uint64_t before, after;
    if (argc < 2) return 2;
    check(bh_ones(&a, NULL, BH_TYPE_F64, 2, shape));
    check(bh_add_accumulate_new(&b, a, 1));
    check(bh_sync(NULL));
    check(bh_counter(&before, NULL, "cluster.bytes"));
    check(bh_save(argv[1], b));
    bh_free(a);
    check(bh_load(&a, NULL, argv[1]));
    check(bh_counter(&after, NULL, "cluster.bytes"));
    check(bh_subtract(b, b, a));
    check(bh_absolute(b, b));
    check(bh_add_reduce_new(&sum, b, BH_ALL_AXES));
    check(bh_read(&total, sum));
    bh_free(sum);
    printf("difference %g\n", total);
    check(bh_add_reduce_new(&sum, a, BH_ALL_AXES));
    check(bh_read(&total, sum));
    printf("sum %g\nbytes %llu\n", total, (unsigned long long)(after - before));
    if (bh_load(&b, NULL, "/nowhere/at.npy") == BH_OK) return 3;
    return 0;
}
