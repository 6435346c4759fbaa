/* Helpers of the twins that depend on the element type; included once per type by twin.h. */

/* Sum of weight * |value| in f64. */
static inline double FN(bench_checksum)(const REAL *values, int64_t count) {
    double sum = 0;
#pragma omp parallel for schedule(static) reduction(+ : sum)
    for (int64_t i = 0; i < count; i++)
        sum += bench_weight(i) * fabs((double)values[i]);
    return sum;
}

static inline REAL *FN(bench_array)(int64_t count) { return bench_alloc((size_t)count * sizeof(REAL)); }
