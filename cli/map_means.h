/* map_means.h - means of the maps of several images. */
#ifndef CLI_MAP_MEANS_H
#define CLI_MAP_MEANS_H

#include "map_list.h"

typedef struct cli_map_mean {
    int32_t label; /* -1: all images */
    double images;
    float *pixels; /* sum of the inputs */
    cli_map *maps; /* with the sums of their values */
    int count;
} cli_map_mean;

/* Zero-initialise, then set by_class and pixels. */
typedef struct cli_map_means {
    bool by_class;
    size_t pixels; /* numbers of an input */
    cli_map_mean *items;
    int count;
} cli_map_means;

/* Adds the maps of an image, whose number and sides must be those of the images before. Returns CLI_OK or an exit code.
 */
int cli_map_means_add(cli_map_means *means, int32_t label, const float *pixels, const cli_map_list *list);
/* Replaces the values of `list`, which is that of the last image, by the means. */
void cli_map_means_take(const cli_map_mean *mean, cli_map_list *list);
void cli_map_means_free(cli_map_means *means);

#endif
