/* Compares a data set's classes with those of a network or a training run. */
#include <string.h>

#include "base/core/error.h"
#include "data/dataset.h"

static bool numbers_agree(const att_dataset *dataset, int classes)
{
    return dataset->classes.count == classes || dataset->classes.numbering != ATT_NUMBERED_BY_FOLDERS;
}

bool att_dataset_fits_classes(const att_dataset *dataset, int classes)
{
    if (dataset->format->annotation)
        return dataset->classes.count <= classes;
    for (int64_t i = 0; i < dataset->count; i++)
        if (dataset->labels[i] < 0 || dataset->labels[i] >= classes)
            return false;
    return numbers_agree(dataset, classes);
}

att_status att_dataset_check_classes(const att_dataset *dataset, att_context *context, int classes)
{
    if (numbers_agree(dataset, classes))
        return ATT_OK;
    return att_fail(
        context, ATT_ERR_MISMATCH,
        "the network has %d class%s, the data %d, numbered by their sorted names, so labels would not match; "
        "give --class-map FILE with the names in the network's order",
        classes, classes == 1 ? "" : "es", dataset->classes.count);
}

static bool is_among(const char *name, const char *const *names, int count)
{
    for (int i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

const char *att_dataset_unknown_class(const att_dataset *dataset, const char *const *names, int count)
{
    for (int c = 0; c < dataset->classes.count; c++) {
        const char *name = dataset->classes.names[c];
        bool in_place = c < count && strcmp(names[c], name) == 0;
        if (!in_place && !is_among(name, names, count))
            return name;
    }
    return NULL;
}
