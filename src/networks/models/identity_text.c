#include <string.h>

#include "base/core/error.h"
#include "base/io/json.h"
#include "networks/models/config.h"
#include "networks/models/family.h"

static void write_channels(att_json_writer *writer, const char *key, const double *values, int count)
{
    att_json_put_array(writer, key);
    for (int i = 0; i < count; i++)
        att_json_number(writer, values[i]);
    att_json_end_array(writer);
}

static void write_preprocess(att_json_writer *writer, const att_preprocess *preprocess)
{
    write_channels(writer, "mean", preprocess->mean, preprocess->in_chans);
    write_channels(writer, "std", preprocess->std, preprocess->in_chans);
    att_json_put_number(writer, "crop_pct", preprocess->crop_pct);
    att_json_put_string(writer, "crop_mode", preprocess->crop_mode);
    att_json_put_string(writer, "interpolation", preprocess->interpolation);
}

att_status att_model_identity_text(att_context *context, const att_identity *identity, char *text, size_t size)
{
    att_json_writer *writer;
    att_variant variant;
    ATT_TRY(att_variant_find(context, identity->name, &variant));
    ATT_TRY(att_json_writer_create(context, false, &writer));
    att_json_begin_object(writer);
    att_json_put_string(writer, "model", identity->name);
    att_options_write_json(writer, variant.family->options, &identity->options);
    if (identity->preprocess.in_chans > 0)
        write_preprocess(writer, &identity->preprocess);
    att_json_end_object(writer);
    const char *made;
    size_t length;
    att_status status = att_json_writer_finish(writer, &made, &length);
    if (status == ATT_OK && length >= size)
        status =
            att_fail(context, ATT_ERR_ARGUMENT, "a model's identity takes %zu bytes, there are %zu", length + 1, size);
    if (status == ATT_OK)
        memcpy(text, made, length + 1);
    att_json_writer_destroy(&writer);
    return status;
}
