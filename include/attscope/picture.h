/* attscope/picture.h - maps in colours, over their image, and pictures of them for a paper as PNG, SVG and PDF.
 * attscope/map_files.h draws the maps of images with it.
 *
 *     att_map_style style = att_map_style_defaults();
 *     att_image drawn = {0};
 *     if (att_map_draw(context, &map, &style, &image, &drawn) == ATT_OK) {
 *         const att_picture_tile tile = {.image = &drawn, .x = 0, .y = 0, .label = "tench"};
 *         ... att_picture_write(context, &tile, 1, "map.pdf") ...
 *     }
 *     att_image_free(context, &drawn);
 */
#ifndef ATTSCOPE_PICTURE_H
#define ATTSCOPE_PICTURE_H

#include <attscope/image.h>
#include <attscope/relevance.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The colour maps by name; NULL past the last. viridis, magma, inferno and plasma are perceptually uniform (Smith and
 * van der Walt 2015); grey grows in lightness; diverging is blue below and red above the middle of the scale. */
ATT_API const char *att_colour_map_name(int index);
/* Writes the colour of a number in 0..1 (outside: of the nearest end). Returns false if there is no such colour map. */
ATT_API bool att_colour_of(const char *colours, double value, uint8_t colour[3]);

typedef struct att_map_style {
    const char *colours;
    double low, high; /* values with the first and the last colour; NaN: the map's smallest and largest value, or for
                         the colour map diverging -m and m with the largest absolute value m */
    bool smooth;      /* bilinear interpolation between the centres of cells, else the cell of each pixel */
    double opacity;   /* 0..1 of the colours over the image. 1: the map alone */
} att_map_style;
/* viridis, the map's own scale, no interpolation, 0.6. */
ATT_API att_map_style att_map_style_defaults(void);

/* Writes the scale that the style means for this map, low <= high; a style with numbers is returned as it is. */
ATT_API void att_map_scale(const att_relevance_map *map, const att_map_style *style, double *low, double *high);
/* Draws the map over the image, of 1 or 3 channels, which it covers. A cell that is NaN shows the image, or grey if the
 * map is alone. On success the caller owns *drawn, of the image's sides and 3 channels, and frees it with
 * att_image_free(); on failure it is unchanged. Errors: ERR_ARGUMENT (an unknown colour map, an opacity outside 0..1, a
 * map without cells), ERR_MEMORY. */
ATT_API ATT_MUST_CHECK att_status att_map_draw(att_context *context, const att_relevance_map *map,
                                               const att_map_style *style, const att_image *image, att_image *drawn);

/* An image in a picture. */
typedef struct att_picture_tile {
    const att_image *image; /* 3 channels */
    int x, y;               /* of its upper left corner, in pixels */
    const char *label;      /* above it, in a row of 14 pixels; NULL: none. PNG has no labels */
} att_picture_tile;

/* Writes a picture of several tiles on white, as large as they need, as the ending of `path` says: .png; .svg and .pdf,
 * in which a pixel is 0.75 pt wide, the tiles are images and the labels are text. Errors: ERR_ARGUMENT (another ending,
 * no tile, sides beyond 65,535), those of att_file_replace(). */
ATT_API ATT_MUST_CHECK att_status att_picture_write(att_context *context, const att_picture_tile *tiles, int count,
                                                    const char *path);

/* Names for the files that are made of photographs, each of them once. */
typedef struct att_picture_names att_picture_names;
/* On success the caller owns *names and frees it with att_picture_names_destroy(). Errors: ERR_MEMORY. */
ATT_API ATT_MUST_CHECK att_status att_picture_names_create(att_context *context, att_picture_names **names);
ATT_API void att_picture_names_destroy(att_picture_names **names);
/* Returns in *name the last part of the path `photograph`, without the ending of an image; "NAME-2" for the second
 * photograph of this name, and so on. Upper and lower case count as equal, because such names would be one file on some
 * file systems. *name lives as long as `names`. Errors: ERR_MEMORY. */
ATT_API ATT_MUST_CHECK att_status att_picture_names_take(att_picture_names *names, const char *photograph,
                                                         const char **name);

#ifdef __cplusplus
}
#endif
#endif
