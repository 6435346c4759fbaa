/* A program that uses MPI itself: contexts on a communicator whose ranks are those of the world in reverse. */
#include <bh.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static void check(bh_status status) {
    if (status != BH_OK) {
        fprintf(stderr, "communicator: %s\n", bh_error_message());
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
}

int main(void) {
    int provided, rank, size, ended = 0, sum = 0;
    MPI_Comm reversed;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed);
    for (int turn = 0; turn < 2; turn++) {
        bh_context *context;
        check(bh_context_create_comm(&context, "cluster", (int)MPI_Comm_c2f(reversed)));
        if (context == NULL) continue;
        if (rank != size - 1) return 4;
        bh_array *ones, *total;
        int64_t shape[1] = {100000};
        double value;
        const char *traffic;
        check(bh_ones(&ones, context, BH_TYPE_F64, 1, shape));
        check(bh_add_reduce_new(&total, ones, 0));
        check(bh_read(&value, total));
        if (value != 100000.0) return 5;
        check(bh_message(&traffic, context, "cluster traffic"));
        for (const char *at = traffic; *at; at++) ended += *at == '{';
        bh_free(total);
        bh_free(ones);
        check(bh_context_destroy(context));
    }
    MPI_Allreduce(&ended, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) printf("%d ranks answered\n", sum);
    MPI_Finalize();
    return 0;
}
