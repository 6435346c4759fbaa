/* An extension method of your own, in C: the running maximum of a one-dimensional f64 array. The CPU engine loads this
 * library and calls the function by its name. The numbers E-… are those of docs/engines.md. */
#include "bh_component.h"
#include <stdio.h>

bh_status running_maximum(const bh_method_array *outputs, size_t output_count, const bh_method_array *inputs,
                          size_t input_count, bh_error_record *error);

bh_status running_maximum(const bh_method_array *outputs, size_t output_count, const bh_method_array *inputs,
                          size_t input_count, bh_error_record *error) {
    /* Nobody else checks types and shapes (E-63). */
    if (output_count != 1 || input_count != 1 || outputs->rank != 1 || inputs->rank != 1 ||
        outputs->dtype != BH_TYPE_F64 || inputs->dtype != BH_TYPE_F64 || outputs->shape[0] != inputs->shape[0]) {
        snprintf((char *)error->text, sizeof error->text, "it takes two one-dimensional f64 arrays of one length");
        return error->status = BH_STATUS_ARGUMENT;
    }
    const double *in = inputs->data;
    double *out = outputs->data;
    double largest = 0.0;
    for (int64_t i = 0; i < inputs->shape[0]; i++) { /* strides count elements and may be negative */
        double value = in[i * inputs->stride[0]];
        if (i == 0 || value > largest) largest = value;
        out[i * outputs->stride[0]] = largest;
    }
    return BH_OK;
}
