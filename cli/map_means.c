#include "map_means.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static size_t cells_of(const cli_map *map)
{
    return (size_t)map->map.height * (size_t)map->map.width;
}

static bool allocate(const cli_map_means *means, const cli_map_list *list, cli_map_mean *mean)
{
    mean->pixels = calloc(means->pixels, sizeof *mean->pixels);
    mean->maps = calloc((size_t)list->count + 1, sizeof *mean->maps);
    if (!mean->pixels || !mean->maps)
        return false;
    for (; mean->count < list->count; mean->count++) {
        cli_map *map = &mean->maps[mean->count];
        *map = list->items[mean->count];
        map->map.values = calloc(cells_of(map) + 1, sizeof *map->map.values);
        if (!map->map.values)
            return false;
    }
    return true;
}

/* Finds the mean of the label, or adds one. NULL if memory is exhausted. */
static cli_map_mean *mean_of(cli_map_means *means, int32_t label, const cli_map_list *list)
{
    for (int i = 0; i < means->count; i++)
        if (means->items[i].label == label)
            return &means->items[i];
    cli_map_mean *items = realloc(means->items, ((size_t)means->count + 1) * sizeof *items);
    if (!items)
        return NULL;
    means->items = items;
    cli_map_mean *mean = &items[means->count++];
    *mean = (cli_map_mean){.label = label};
    return allocate(means, list, mean) ? mean : NULL;
}

int cli_map_means_add(cli_map_means *means, int32_t label, const float *pixels, const cli_map_list *list)
{
    cli_map_mean *mean = mean_of(means, means->by_class ? label : -1, list);
    if (!mean)
        return cli_failure("out of memory for mean maps");
    mean->images++;
    for (size_t i = 0; i < means->pixels; i++)
        mean->pixels[i] += pixels[i];
    for (int m = 0; m < mean->count; m++)
        for (size_t i = 0; i < cells_of(&mean->maps[m]); i++)
            mean->maps[m].map.values[i] += list->items[m].map.values[i];
    return CLI_OK;
}

void cli_map_means_take(const cli_map_mean *mean, cli_map_list *list)
{
    list->target = -1; /* images may have different classes */
    list->logit = NAN;
    for (int m = 0; m < mean->count; m++)
        for (size_t i = 0; i < cells_of(&mean->maps[m]); i++)
            list->items[m].map.values[i] = mean->maps[m].map.values[i] / mean->images;
}

void cli_map_means_free(cli_map_means *means)
{
    for (int i = 0; i < means->count; i++) {
        for (int m = 0; m < means->items[i].count; m++)
            free(means->items[i].maps[m].map.values);
        free(means->items[i].maps);
        free(means->items[i].pixels);
    }
    free(means->items);
}
