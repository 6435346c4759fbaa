/* Ways to end: `ends never` records and never asks for a result, `ends code` returns 5 with work under way, `ends exit` calls
 * exit(6) below other calls, `ends again` ends its context and makes others. */
#include <bh.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(bh_status status) {
    if (status != BH_OK) {
        fprintf(stderr, "ends: %s\n", bh_error_message());
        exit(1);
    }
}

static void leave(int depth) {
    if (depth == 0) exit(6);
    leave(depth - 1);
}

int main(int argc, char **argv) {
    const char *way = argc > 1 ? argv[1] : "";
    int64_t shape[1] = {100000};
    for (int turn = 0; turn < (strcmp(way, "again") == 0 ? 3 : 1); turn++) {
        bh_context *context;
        bh_array *a, *b;
        double values[3];
        check(bh_context_create(&context, NULL));
        check(bh_ones(&a, context, BH_TYPE_F64, 1, shape));
        for (int i = 0; i < 20; i++) {
            check(bh_add_new(&b, a, a));
            bh_free(a);
            a = b;
        }
        if (strcmp(way, "again") != 0) continue;
        check(bh_slice(&b, a, 0, 99997, BH_NONE, 1));
        check(bh_read(values, b));
        if (values[2] != 1048576.0) return 2;
        check(bh_context_destroy(context));
    }
    if (strcmp(way, "code") == 0) return 5;
    if (strcmp(way, "exit") == 0) leave(4);
    printf("done\n");
    return 0;
}
