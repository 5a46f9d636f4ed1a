/* Reads back a network that was written for another program, and compares it with the network. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "networks/layouts/export.h"
#include "networks/models/checkpoint.h"
#include "networks/models/family.h"

/* --- options ------------------------------------------------------------------------------------------------------ */

/* Whether other values of an option change nothing: the tensors decide the width of MLPs and a detector's head,
 * positions are written as the images need them, starting values and dropout are those of training runs, and programs
 * are told numbers of boxes and thresholds beside the file. */
static bool is_free(const att_option *option, const att_option_values *own, const att_option_values *found)
{
    static const char keys[] =
        "mlp_ratio pos_embed_resize attn_drop_rate head head_channels box_channels proposals level_proposals "
        "detections score_thresh nms_thresh";
    return att_checkpoint_lists(keys, option->key) ||
           (option->compare_presence && att_options_number(own, option->key, 0) > 0 &&
            att_options_number(found, option->key, 0) > 0);
}

/* Refuses other options than those of the network. */
static att_status compare_options(const att_layout_target *target, const att_option_values *found)
{
    const att_option_table *table = target->family->options;
    const att_option_values *own = &target->identity->options;
    att_option_values same = *found;
    att_text text = {.context = target->context};
    for (int i = 0; i < table->count; i++)
        if (is_free(&table->options[i], own, found))
            att_option_copy(table->options[i].key, own, &same);
    att_status status = ATT_OK;
    if (att_options_differences(&text, table, own, &same))
        status = att_fail(target->context, ATT_ERR_UNSUPPORTED, "%s cannot express its %s", target->layout->name,
                          text.failed ? "" : text.data);
    if (text.failed)
        status = att_fail_memory(target->context, 256, "a message");
    att_text_free(&text);
    return status;
}

/* --- preprocessing ------------------------------------------------------------------------------------------------ */

/* timm and the library round the beginning of a crop in different ways. The sides are options, which are compared. */
static bool is_same_crop(const att_preprocess *a, const att_preprocess *b)
{
    const bool rounded = strcmp(a->crop_mode, "center") == 0 && strcmp(b->crop_mode, "floor") == 0;
    return (rounded || strcmp(a->crop_mode, b->crop_mode) == 0) &&
           floor(a->height / a->crop_pct) == floor(b->height / b->crop_pct);
}

/* why: what reading the written settings says; "": they say something else than the network. */
static att_status refuse_preprocess(const att_layout_target *target, const char *why)
{
    const att_preprocess *p = &target->identity->preprocess;
    return att_fail(target->context, ATT_ERR_UNSUPPORTED,
                    "%s cannot express how its images are prepared (%d x %d, crop_pct %g, crop_mode %s, %s)%s%.200s; "
                    "--crop-mode, --crop-pct and --interpolation of attscope convert change that",
                    target->layout->name, p->height, p->width, p->crop_pct, p->crop_mode, p->interpolation,
                    *why ? ": " : "", why);
}

static att_status compare_preprocess(const att_layout_target *target, const att_preprocess *found)
{
    const att_preprocess *own = &target->identity->preprocess;
    if (is_same_crop(own, found) && strcmp(own->interpolation, found->interpolation) == 0 &&
        memcmp(own->mean, found->mean, sizeof own->mean) == 0 && memcmp(own->std, found->std, sizeof own->std) == 0)
        return ATT_OK;
    return refuse_preprocess(target, "");
}

/* --- weights ------------------------------------------------------------------------------------------------------ */

static att_status compare_parameter(const att_layout_target *target, int index, const att_weights *found, float *own,
                                    float *other)
{
    const att_parameter_info info = att_weights_at(target->weights, index);
    const int64_t count = att_shape_count(info.shape);
    const int at = att_weights_find(found, info.name);
    if (at >= 0 && att_shape_equal(att_weights_at(found, at).shape, info.shape)) {
        ATT_TRY(att_weights_get(target->weights, -1, index, own, count));
        ATT_TRY(att_weights_get(found, -1, at, other, count));
        if (memcmp(own, other, (size_t)count * sizeof *own) == 0)
            return ATT_OK;
    }
    return att_fail(target->context, ATT_ERR_UNSUPPORTED, "%s cannot express the values of its tensor \"%s\"",
                    target->layout->name, info.name);
}

static att_status compare_weights(const att_layout_target *target, const att_weights *found)
{
    float *values;
    int64_t most = 1;
    att_status status = ATT_OK;
    for (int i = 0; i < att_weights_count(target->weights); i++)
        if (att_shape_count(att_weights_at(target->weights, i).shape) > most)
            most = att_shape_count(att_weights_at(target->weights, i).shape);
    ATT_TRY(att_new(target->context, &values, att_size_product(2, (size_t)most), "tensors that are read back"));
    for (int i = 0; i < att_weights_count(target->weights) && status == ATT_OK; i++)
        status = compare_parameter(target, i, found, values, values + most);
    att_free(target->context, values);
    return status;
}

static att_status load(const att_layout_target *target, const att_tensors *file, const att_identity *identity)
{
    att_model *model = NULL;
    att_weights *weights = NULL;
    att_status status = att_model_create(target->context, identity->name, &identity->options, ATT_F32, &model);
    if (status == ATT_OK)
        status = att_weights_create(att_model_graph(model), "cpu", &weights);
    if (status == ATT_OK)
        status = att_model_load(model, file, weights);
    if (status == ATT_OK)
        status = compare_weights(target, weights);
    att_weights_destroy(&weights);
    att_model_destroy(&model);
    return status;
}

/* --- files -------------------------------------------------------------------------------------------------------- */

/* Reads the file as the network `name`; NULL: the file says which it is. A file without config.json does not tell the
 * size of images. */
static att_status read_as(const att_layout_target *target, const att_tensors *file, const char *name)
{
    att_identity identity;
    att_option_values images = att_options_none();
    const bool described = target->form->type;
    att_option_copy("img_size", &target->identity->options, &images);
    ATT_TRY(att_model_identify(target->context, file, NULL, name, described ? NULL : &images, &identity));
    ATT_TRY(compare_options(target, &identity.options));
    if (described)
        ATT_TRY(compare_preprocess(target, &identity.preprocess));
    return load(target, file, &identity);
}

static att_status read_file(const att_layout_target *target, const att_tensors *file)
{
    const char *at = target->layout->variants;
    char name[128];
    if (target->layout->signature)
        return read_as(target, file, NULL);
    att_status status = ATT_ERR_UNSUPPORTED;
    while (att_export_is_refusal(status) && att_export_next_word(&at, name, sizeof name))
        status = read_as(target, file, name);
    return status;
}

/* Opens the weights without attscope's own metadata, as another program's file. */
static att_status open_weights(att_context *context, const char *path, att_tensors **file)
{
    att_tensors *opened;
    ATT_TRY(att_tensors_open(context, path, &opened));
    att_tensors_clear_metadata(opened);
    att_status status = att_layout_take(opened, NULL);
    if (status == ATT_OK)
        *file = opened;
    else
        att_tensors_close(&opened);
    return status;
}

/* Opens what was written. The reader of a processor's settings refuses those that attscope cannot follow. */
static att_status open_written(const att_layout_target *target, const att_export_files *files, att_tensors **file)
{
    const att_status status = open_weights(target->context, files->weights, file);
    const char *why = att_context_message(target->context);
    const size_t length = strlen(files->processor);
    char copy[1024];
    if (status != ATT_ERR_UNSUPPORTED || strncmp(why, files->processor, length) != 0)
        return status;
    snprintf(copy, sizeof copy, "%s", why + length + strspn(why + length, ": "));
    return refuse_preprocess(target, copy);
}

att_status att_export_read_back(const att_layout_target *target, const att_export_files *files)
{
    att_tensors *file;
    ATT_TRY(open_written(target, files, &file));
    att_status status = read_file(target, file);
    att_tensors_close(&file);
    return status;
}
