#include "report/old_maps.h"

#include <limits.h>

#include "core/error.h"
#include "tasks/caption.h"

enum { MAX_TOP = 100 };

typedef struct old_maps {
    const att_map_file *maps;
    int64_t *labels;                 /* [images] */
    int64_t *top;                    /* [images][top_count] */
    float *probabilities;            /* [images][top_count] */
    att_ranked *ranked;              /* [top_count], scratch of one image */
    int64_t top_count;               /* 0: the network has no classes */
    json_t *image_classes, *classes; /* arrays of strings: class of each image; classes of the network */
    const char **names;              /* the strings of `classes` */
} old_maps;

/* --- tensors ------------------------------------------------------------------------------------------------------ */

/* Whether a class number is valid; class numbers are ints. */
static bool is_class(int64_t number)
{
    return number >= 0 && number < INT_MAX;
}

static bool is_tensor(const att_map_file *maps, int index, att_safetensors_dtype dtype, att_shape shape)
{
    return index >= 0 && att_tensors_at(maps->file, index).dtype == dtype &&
           att_shape_equal(att_tensors_at(maps->file, index).shape, shape);
}

/* Reads a tensor. On success the caller owns *data. */
static att_status read_tensor(const att_map_file *maps, int index, void **data)
{
    att_tensors_info info = att_tensors_at(maps->file, index);
    size_t size = att_safetensors_dtype_size(info.dtype);
    void *values = att_allocate_array(maps->context, (size_t)info.count, size);
    if (values == NULL)
        return att_fail_memory(maps->context, att_size_product((size_t)info.count, size), "the classes of maps");
    att_status status = att_tensors_read(maps->file, index, info.dtype, values, info.count);
    if (status == ATT_OK)
        *data = values;
    else
        att_free(maps->context, values);
    return status;
}

static att_status read_labels(old_maps *o)
{
    const att_map_file *maps = o->maps;
    int index = att_tensors_find(maps->file, "label");
    if (!is_tensor(maps, index, ATT_SAFETENSORS_I64, att_shape_of(maps->images)))
        return att_map_file_fail_tensor(maps, "label", "I64 [K]");
    void *data;
    ATT_TRY(read_tensor(maps, index, &data));
    o->labels = data;
    for (int64_t i = 0; i < maps->images; i++)
        if (o->labels[i] != -1 && !is_class(o->labels[i]))
            return att_map_file_fail_value(maps, "label", "class number, or -1 for an unknown class");
    return ATT_OK;
}

static att_status check_top(const old_maps *o)
{
    for (int64_t i = 0; i < o->maps->images * o->top_count; i++) {
        if (!is_class(o->top[i]))
            return att_map_file_fail_value(o->maps, "top", "class number");
        if (!att_map_is_fraction(o->probabilities[i]))
            return att_map_file_fail_value(o->maps, "probability", "number from 0 to 1");
    }
    return ATT_OK;
}

static att_status read_top(old_maps *o)
{
    const att_map_file *maps = o->maps;
    int top = att_tensors_find(maps->file, "top"), probability = att_tensors_find(maps->file, "probability");
    if (top < 0 && probability < 0)
        return ATT_OK;
    att_shape shape = top >= 0 ? att_tensors_at(maps->file, top).shape : (att_shape){.rank = 0};
    if (shape.rank != 2 || shape.dims[1] < 1 || shape.dims[1] > MAX_TOP ||
        !is_tensor(maps, top, ATT_SAFETENSORS_I64, att_shape_of(maps->images, shape.dims[1])))
        return att_map_file_fail_tensor(maps, "top", "I64 [K, T]");
    if (!is_tensor(maps, probability, ATT_SAFETENSORS_F32, shape))
        return att_map_file_fail_tensor(maps, "probability", "F32 [K, T]");
    o->top_count = shape.dims[1];
    o->ranked = att_allocate_array(maps->context, (size_t)o->top_count, sizeof(*o->ranked));
    if (o->ranked == NULL)
        return att_fail_memory(maps->context, (size_t)o->top_count * sizeof(*o->ranked), "the classes of an image");
    void *data;
    ATT_TRY(read_tensor(maps, top, &data));
    o->top = data;
    ATT_TRY(read_tensor(maps, probability, &data));
    o->probabilities = data;
    return check_top(o);
}

/* --- texts -------------------------------------------------------------------------------------------------------- */

static att_status read_names(old_maps *o)
{
    ATT_TRY(att_map_file_texts(o->maps, "label_names", o->maps->images, &o->image_classes));
    ATT_TRY(att_map_file_texts(o->maps, "classes", -1, &o->classes));
    size_t count = json_array_size(o->classes);
    if (count == 0)
        return ATT_OK;
    o->names = att_allocate_array(o->maps->context, count, sizeof(*o->names));
    if (o->names == NULL)
        return att_fail_memory(o->maps->context, count * sizeof(*o->names), "the names of classes");
    for (size_t i = 0; i < count; i++)
        o->names[i] = json_string_value(json_array_get(o->classes, i));
    return ATT_OK;
}

static att_status add_caption(const old_maps *o, int64_t image, json_t *captions)
{
    att_text text = {.context = o->maps->context};
    const att_answer_options names = {.labels = o->names, .label_count = (int)json_array_size(o->classes)};
    for (int64_t t = 0; t < o->top_count; t++) {
        int64_t at = image * o->top_count + t;
        o->ranked[t] = (att_ranked){.class_number = (int)o->top[at], .probability = (double)o->probabilities[at]};
    }
    att_caption_classes(&text, &names, (int)o->labels[image],
                        json_string_value(json_array_get(o->image_classes, (size_t)image)), o->ranked,
                        (int)o->top_count);
    att_caption_truncate(&text);
    bool valid = !text.failed && json_array_append_new(captions, json_string(text.data ? text.data : "")) == 0;
    att_text_free(&text);
    return valid ? ATT_OK : att_fail_memory(o->maps->context, ATT_CAPTION_BYTES, "the caption of an image");
}

static att_status make_captions(old_maps *o, json_t *captions)
{
    if (captions == NULL)
        return att_fail_memory(o->maps->context, sizeof(void *), "the captions of maps");
    ATT_TRY(read_labels(o));
    ATT_TRY(read_top(o));
    ATT_TRY(read_names(o));
    for (int64_t i = 0; i < o->maps->images; i++)
        ATT_TRY(add_caption(o, i, captions));
    return ATT_OK;
}

att_status att_old_maps_captions(const att_map_file *maps, json_t **captions)
{
    old_maps o = {.maps = maps};
    json_t *array = json_array();
    att_status status = make_captions(&o, array);
    att_free(maps->context, o.labels);
    att_free(maps->context, o.top);
    att_free(maps->context, o.probabilities);
    att_free(maps->context, o.ranked);
    att_free(maps->context, o.names);
    json_decref(o.image_classes);
    json_decref(o.classes);
    if (status == ATT_OK)
        *captions = array;
    else
        json_decref(array);
    return status;
}
