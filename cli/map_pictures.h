/* map_pictures.h - files of the maps of one image: pictures and raw values. */
#ifndef CLI_MAP_PICTURES_H
#define CLI_MAP_PICTURES_H

#include "map_list.h"

typedef struct cli_map_style {
    const char *form;    /* "overlay", "map" or "grid" */
    const char *formats; /* list of png, svg, pdf */
    const char *colours;
    const char *scale; /* "map", "shared" or "LOW,HIGH" */
    bool smooth;
    double opacity;
    int zoom; /* pixels of a picture for a pixel of the network's input, along a side */
} cli_map_style;

/* Checks the words. Returns CLI_OK or CLI_USAGE. */
int cli_map_style_check(const cli_map_style *style);

/* The network's input as an image that was prepared by this transform; mean over `count` sums of pixels. The caller
 * frees image->pixels with free(). Returns false if memory is exhausted. */
bool cli_map_background(const att_transform_options *transform, const float *pixels, double count, int zoom,
                        att_image *image);

/* Writes FOLDER/NAME.<map>.<format> for each map, or one picture for each item of `show` in the form "grid", and
 * FOLDER/NAME.npz. background: of cli_map_background(). files: counts the files. Returns CLI_OK or an exit code. */
int cli_map_pictures_write(cli_app *cli, const cli_map_list *list, const cli_map_style *style,
                           const att_image *background, const char *folder, const char *name, int64_t *files);

#endif
