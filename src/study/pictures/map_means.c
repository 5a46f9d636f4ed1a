/* Means of the maps of several images. */
#include <math.h>
#include <string.h>

#include "base/core/error.h"
#include "study/pictures/maps.h"

static size_t cells_of(const att_listed_map *map)
{
    return (size_t)map->map.height * (size_t)map->map.width;
}

static att_status allocate(att_map_files *files, att_map_mean *mean)
{
    const att_map_list *list = &files->list;
    ATT_TRY(att_new(files->context, &mean->pixels, files->pixels, "mean maps"));
    ATT_TRY(att_new(files->context, &mean->values, (size_t)list->count + 1, "mean maps"));
    for (; mean->count < list->count; mean->count++)
        ATT_TRY(
            att_new(files->context, &mean->values[mean->count], cells_of(&list->items[mean->count]) + 1, "mean maps"));
    return ATT_OK;
}

/* Finds the mean of the label, or adds one. NULL if memory is exhausted, with a message. */
static att_map_mean *mean_of(att_map_files *files, int32_t label)
{
    for (int i = 0; i < files->mean_count; i++)
        if (files->means[i].label == label)
            return &files->means[i];
    if (!att_list_grow(files->context, &files->means, files->mean_count, &files->mean_room, sizeof *files->means)) {
        att_fail_memory(files->context, sizeof *files->means, "mean maps");
        return NULL;
    }
    att_map_mean *mean = &files->means[files->mean_count++];
    *mean = (att_map_mean){.label = label};
    return allocate(files, mean) == ATT_OK ? mean : NULL;
}

att_status att_map_means_add(att_map_files *files, int32_t label, const float *pixels)
{
    const bool by_class = strcmp(files->options.means, "class") == 0;
    if (by_class && label < 0)
        return att_fail(files->context, ATT_ERR_ARGUMENT,
                        "means of classes need images with classes, such as a folder of class folders");
    att_map_mean *mean = mean_of(files, by_class ? label : -1);
    if (!mean)
        return ATT_ERR_MEMORY;
    mean->images++;
    for (size_t i = 0; i < files->pixels; i++)
        mean->pixels[i] += pixels[i];
    for (int m = 0; m < mean->count; m++)
        for (size_t i = 0; i < cells_of(&files->list.items[m]); i++)
            mean->values[m][i] += files->list.items[m].map.values[i];
    return ATT_OK;
}

void att_map_means_take(const att_map_mean *mean, att_map_list *list)
{
    for (int m = 0; m < mean->count; m++) {
        list->items[m].map.target = -1; /* images may have different classes */
        list->items[m].map.logit = NAN;
        for (size_t i = 0; i < cells_of(&list->items[m]); i++)
            list->items[m].map.values[i] = mean->values[m][i] / mean->images;
    }
}

void att_map_means_free(att_map_files *files)
{
    for (int i = 0; i < files->mean_count; i++) {
        for (int m = 0; m < files->means[i].count; m++)
            att_free(files->context, files->means[i].values[m]);
        att_free(files->context, files->means[i].values);
        att_free(files->context, files->means[i].pixels);
    }
    att_free(files->context, files->means);
}
