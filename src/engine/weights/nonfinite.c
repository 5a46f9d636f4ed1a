#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "engine/weights/weights.h"

int64_t att_count_nonfinite(const void *values, att_dtype dtype, int64_t count)
{
    int64_t found = 0;
    for (int64_t i = 0; i < count; i++)
        found += !isfinite(dtype == ATT_F64 ? ((const double *)values)[i] : (double)((const float *)values)[i]);
    return found;
}

/* Counts the values of a parameter that are not finite. */
static att_status count_in(const att_weights *weights, int index, int64_t *found)
{
    const att_parameter_info info = att_weights_at(weights, index);
    const int64_t count = att_shape_count(info.shape);
    void *host = att_allocate_array(weights->context, (size_t)count, sizeof(double));
    if (!host)
        return att_fail_memory(weights->context, att_size_product((size_t)count, sizeof(double)), info.name);
    att_status status = att_weights_get(weights, -1, index, host, count);
    *found = status == ATT_OK ? att_count_nonfinite(host, weights->dtype, count) : 0;
    att_free(weights->context, host);
    return status;
}

att_status att_weights_fail_nonfinite(const att_weights *weights, const char *what)
{
    att_parameter_info first = {0};
    int64_t values = 0;
    int others = 0;
    char more[64] = "";
    for (int i = 0; i < att_weights_count(weights); i++) {
        int64_t found = 0;
        ATT_TRY(count_in(weights, i, &found));
        others += found > 0 && first.name;
        if (found > 0 && !first.name)
            first = att_weights_at(weights, i), values = found;
    }
    if (others > 0)
        snprintf(more, sizeof more, ", and %d other tensor%s such values", others, others == 1 ? " has" : "s have");
    if (!first.name)
        return att_fail(weights->context, ATT_ERR_NONFINITE, "%s, although all weights are finite", what);
    return att_fail(weights->context, ATT_ERR_NONFINITE,
                    "%s; the weights are damaged: tensor %s has %" PRId64 " of %" PRId64
                    " values that are not finite%s",
                    what, first.name, values, att_shape_count(first.shape), more);
}
