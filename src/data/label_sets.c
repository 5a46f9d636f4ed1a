#include "data/label_sets.h"

#include <string.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "base/io/file.h"
#include "base/io/json.h"
#include "data/dataset.h"
#include "data/devkit.h"

enum { MOST_BYTES = 64 << 20 };

typedef struct reading {
    att_context *context;
    const char *path;
    const att_dataset *dataset;
    int classes;
    const json_t *root;
    att_label_sets *sets;
} reading;

static int64_t number_of(const reading *r, int64_t image, char name[ATT_DATA_MAX_NAME])
{
    return att_devkit_image_number(att_dataset_short_name(r->dataset, image, name, ATT_DATA_MAX_NAME));
}

static att_status set_of(const reading *r, int64_t image, const json_t **set)
{
    char name[ATT_DATA_MAX_NAME];
    const int64_t number = number_of(r, image, name);
    if (number == 0)
        return att_fail(r->context, ATT_ERR_MISMATCH,
                        "%s: the image %s is not named ILSVRC2012_val_ and eight digits, so its labels are unknown",
                        r->path, name);
    *set = json_array_get(r->root, (size_t)number - 1);
    if (!*set)
        return att_fail(r->context, ATT_ERR_MISMATCH, "%s has labels of %zu images, and none of %s", r->path,
                        json_array_size(r->root), name);
    if (!json_is_array(*set))
        return att_fail(r->context, ATT_ERR_FORMAT, "%s: element %lld is not an array of classes", r->path,
                        (long long)number - 1);
    return ATT_OK;
}

static att_status count_labels(const reading *r)
{
    const json_t *set;
    r->sets->first[0] = 0;
    for (int64_t i = 0; i < r->sets->count; i++) {
        ATT_TRY(set_of(r, i, &set));
        r->sets->first[i + 1] = r->sets->first[i] + (int64_t)json_array_size(set);
    }
    return ATT_OK;
}

static att_status copy_labels(const reading *r, int64_t image)
{
    const json_t *set;
    ATT_TRY(set_of(r, image, &set));
    int32_t *labels = r->sets->labels + r->sets->first[image];
    for (size_t i = 0; i < json_array_size(set); i++) {
        const json_t *label = json_array_get(set, i);
        int64_t number = json_is_integer(label) ? json_integer_value(label) : -1;
        if (number < 0 || number >= r->classes)
            return att_fail(r->context, ATT_ERR_MISMATCH,
                            "%s: element %lld has a class that is not a number from 0 to %d", r->path,
                            (long long)number_of(r, image, (char[ATT_DATA_MAX_NAME]){0}) - 1, r->classes - 1);
        labels[i] = (int32_t)number;
    }
    return ATT_OK;
}

static att_status no_memory(const reading *r, size_t bytes)
{
    return att_fail_memory(r->context, bytes, "the labels of images");
}

static att_status read_sets(const reading *r)
{
    att_label_sets *sets = r->sets;
    size_t bytes = ((size_t)sets->count + 1) * sizeof *sets->first;
    if (!json_is_array(r->root))
        return att_fail(r->context, ATT_ERR_FORMAT, "%s is not an array of arrays of classes", r->path);
    sets->first = att_arena_allocate(&sets->arena, bytes);
    if (!sets->first)
        return no_memory(r, bytes);
    ATT_TRY(count_labels(r));
    if (sets->first[sets->count] == 0)
        return att_fail(r->context, ATT_ERR_MISMATCH, "%s has no class for any of the %lld images", r->path,
                        (long long)sets->count);
    bytes = ((size_t)sets->first[sets->count] + 1) * sizeof *sets->labels;
    sets->labels = att_arena_allocate(&sets->arena, bytes);
    if (!sets->labels)
        return no_memory(r, bytes);
    for (int64_t i = 0; i < sets->count; i++)
        ATT_TRY(copy_labels(r, i));
    return ATT_OK;
}

att_status att_label_sets_read(const char *path, const att_dataset *dataset, int classes, att_label_sets *sets)
{
    att_context *context = sets->arena.context;
    char *bytes = NULL;
    size_t size = 0;
    json_t *root = NULL;
    sets->count = att_dataset_count(dataset);
    ATT_TRY(att_file_read(context, path, MOST_BYTES, &bytes, &size));
    att_status status = att_json_parse(context, path, bytes, size, &root);
    const reading r = {context, path, dataset, classes, root, sets};
    if (status == ATT_OK)
        status = read_sets(&r);
    json_decref(root);
    att_free(context, bytes);
    return status;
}

void att_label_sets_free(att_label_sets *sets)
{
    att_arena_free(&sets->arena);
    *sets = (att_label_sets){0};
}
