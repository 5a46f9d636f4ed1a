/* The values of a network's parameters and buffers. */
#include <math.h>
#include <string.h>

#include "lab/serve/engine_parts.h"
#include <attscope/weights.h>

/* What the values of a tensor have in common. */
typedef struct figures {
    int64_t count, zeros, finite;
    double min, max, sum, squares;
    int64_t bins[ATT_ENGINE_BINS];
} figures;

/* Copies the values of the tensor, which the caller frees. */
static att_status read_values(const att_engine *engine, const att_opened *o, const char *name, att_parameter_info *info,
                              float **values)
{
    att_weights *weights = att_network_weights(o->network);
    const int index = att_weights_find(weights, name);
    if (index < 0)
        return att_fail(engine->context, ATT_ERR_NOT_FOUND, "the network has no tensor \"%s\"", name);
    *info = att_weights_at(weights, index);
    const int64_t count = att_shape_count(info->shape);
    ATT_TRY(att_new(engine->context, values, (size_t)count, name));
    const att_status status = att_weights_get(weights, -1, index, *values, count);
    if (status != ATT_OK)
        att_free(engine->context, *values);
    return status;
}

static void summarise(const float *values, int64_t count, figures *f)
{
    *f = (figures){.count = count, .min = INFINITY, .max = -INFINITY};
    for (int64_t i = 0; i < count; i++) {
        const double value = values[i];
        f->zeros += value == 0;
        if (!isfinite(value))
            continue;
        f->finite++;
        f->sum += value;
        f->squares += value * value;
        f->min = fmin(f->min, value);
        f->max = fmax(f->max, value);
    }
    const double width = (f->max - f->min) / ATT_ENGINE_BINS;
    for (int64_t i = 0; i < count; i++) {
        const double at = width > 0 ? (values[i] - f->min) / width : 0;
        if (isfinite(values[i]))
            f->bins[at < ATT_ENGINE_BINS ? (int)at : ATT_ENGINE_BINS - 1]++;
    }
}

/* The deviation of all values, from a second look: the difference of two sums would lose digits. */
static double deviation_of(const float *values, const figures *f)
{
    const double mean = f->sum / (double)f->finite;
    double sum = 0;
    for (int64_t i = 0; i < f->count; i++)
        if (isfinite(values[i]))
            sum += (values[i] - mean) * (values[i] - mean);
    return sqrt(sum / (double)f->finite);
}

static void write_figures(const figures *f, double deviation, att_json_writer *writer)
{
    att_json_put_integer(writer, "count", f->count);
    att_json_put_integer(writer, "zeros", f->zeros);
    att_json_put_integer(writer, "nonfinite", f->count - f->finite);
    att_json_put_number(writer, "min", f->finite > 0 ? f->min : NAN);
    att_json_put_number(writer, "max", f->finite > 0 ? f->max : NAN);
    att_json_put_number(writer, "mean", f->sum / (double)f->finite);
    att_json_put_number(writer, "deviation", deviation);
    att_json_put_number(writer, "norm", sqrt(f->squares));
    att_json_put_object(writer, "histogram");
    att_json_put_number(writer, "from", f->finite > 0 ? f->min : NAN);
    att_json_put_number(writer, "to", f->finite > 0 ? f->max : NAN);
    att_json_put_array(writer, "counts");
    for (int i = 0; i < ATT_ENGINE_BINS; i++)
        att_json_integer(writer, f->bins[i]);
    att_json_end_array(writer);
    att_json_end_object(writer);
}

static att_status write_tensor(const att_engine *engine, const att_opened *o, const char *name, att_json_writer *writer)
{
    att_parameter_info info;
    figures found;
    float *values;
    ATT_TRY(read_values(engine, o, name, &info, &values));
    summarise(values, att_shape_count(info.shape), &found);
    att_json_put_string(writer, "name", name);
    att_json_put_array(writer, "shape");
    for (int d = 0; d < info.shape.rank; d++)
        att_json_integer(writer, info.shape.dims[d]);
    att_json_end_array(writer);
    write_figures(&found, deviation_of(values, &found), writer);
    att_free(engine->context, values);
    return ATT_OK;
}

att_status att_engine_write_tensor(att_engine *engine, att_context *context, const char *path, const char *name,
                                   att_json_writer *writer)
{
    att_opened *o;
    ATT_TRY(att_engine_enter(engine, context));
    att_status status = att_engine_find(engine, path, &o);
    if (status == ATT_OK)
        status = write_tensor(engine, o, name, writer);
    return att_engine_leave(engine, status);
}

static att_status append_values(const att_engine *engine, const att_opened *o, const char *name, int64_t first,
                                int64_t count, att_text *out)
{
    att_parameter_info info;
    float *values;
    ATT_TRY(read_values(engine, o, name, &info, &values));
    const int64_t entries = info.shape.rank > 0 ? info.shape.dims[0] : 1;
    const int64_t each = att_shape_count(info.shape) / entries;
    att_status status = ATT_OK;
    if (first >= entries)
        status = att_fail(engine->context, ATT_ERR_ARGUMENT, "%s has the entries 0 to %lld, not %lld", name,
                          (long long)entries - 1, (long long)first);
    else
        att_text_append_bytes(out, values + first * each,
                              (size_t)((count < entries - first ? count : entries - first) * each) * sizeof *values);
    att_free(engine->context, values);
    return status;
}

att_status att_engine_values(att_engine *engine, att_context *context, const char *path, const char *name,
                             int64_t first, int64_t count, att_text *out)
{
    att_opened *o;
    ATT_TRY(att_engine_enter(engine, context));
    att_status status = att_engine_find(engine, path, &o);
    if (status == ATT_OK)
        status = append_values(engine, o, name, first, count, out);
    status = att_engine_leave(engine, status);
    return out->failed ? att_fail_memory(context, out->length, "the values of a tensor") : status;
}
