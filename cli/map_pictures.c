#include "map_pictures.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "paths.h"

enum { GAP = 4, LABEL = 16 }; /* pixels between tiles, and above a tile that has a label */

/* --- style -------------------------------------------------------------------------------------------------------- */

static bool read_scale(const char *text, double *low, double *high)
{
    int used = 0;
    return sscanf(text, "%lf,%lf%n", low, high, &used) == 2 && !text[used] && *low < *high && isfinite(*low) &&
           isfinite(*high);
}

/* Copies the next word of the list and moves *at behind it. */
static bool next_word(const char **at, char word[8])
{
    if (!*at || !**at)
        return false;
    const size_t length = strcspn(*at, ",");
    snprintf(word, 8, "%.*s", length < 8 ? (int)length : 0, *at);
    *at += length + ((*at)[length] == ',');
    return true;
}

int cli_map_style_check(const cli_map_style *style)
{
    char word[8];
    double low, high;
    uint8_t colour[3];
    for (const char *at = style->formats; next_word(&at, word);)
        if (strcmp(word, "png") != 0 && strcmp(word, "svg") != 0 && strcmp(word, "pdf") != 0)
            return cli_usage("--format %s: expected a list of png, svg and pdf", style->formats);
    if (strcmp(style->form, "overlay") != 0 && strcmp(style->form, "map") != 0 && strcmp(style->form, "grid") != 0)
        return cli_usage("--form %s: expected overlay, map or grid", style->form);
    if (!att_colour_of(style->colours, 0, colour))
        return cli_usage("--colours %s: expected viridis, magma, inferno, plasma, grey or diverging", style->colours);
    if (strcmp(style->scale, "map") != 0 && strcmp(style->scale, "shared") != 0 &&
        !read_scale(style->scale, &low, &high))
        return cli_usage("--scale %s: expected map, shared, or two numbers LOW,HIGH", style->scale);
    return CLI_OK;
}

bool cli_map_background(const att_transform_options *t, const float *pixels, double count, int zoom, att_image *image)
{
    const int width = t->width * zoom, height = t->height * zoom;
    *image = (att_image){width, height, t->channels, calloc((size_t)width * (size_t)height, (size_t)t->channels)};
    for (ptrdiff_t i = 0; image->pixels && i < (ptrdiff_t)width * height * t->channels; i++) {
        const ptrdiff_t pixel = i / t->channels, c = i % t->channels;
        const ptrdiff_t from = (pixel / width / zoom * t->width + pixel % width / zoom) * t->channels + c;
        const double value = 255 * ((double)pixels[from] / count * t->std[c] + t->mean[c]);
        image->pixels[i] = value >= 255 ? 255 : value > 0 ? (uint8_t)lround(value) : 0;
    }
    return image->pixels;
}

/* --- files -------------------------------------------------------------------------------------------------------- */

typedef struct job {
    cli_app *cli;
    const cli_map_list *list;
    const cli_map_style *style;
    const att_image *background;
    const char *folder, *name;
    att_image *drawn; /* [list->count] */
    int64_t *files;
} job;

static int path_of(const job *j, const char *what, const char *ending, char path[CLI_PATH])
{
    char file[CLI_PATH];
    const int length = snprintf(file, sizeof file, "%s%s%s.%s", j->name, *what ? "." : "", what, ending);
    if (length < CLI_PATH && *cli_join(j->folder, file, path, CLI_PATH))
        return CLI_OK;
    return cli_failure("%s: the path of its maps is too long", j->name);
}

/* The scale of the style, or that of all maps of the item of `show`. */
static att_map_style style_of(const job *j, const cli_map *map)
{
    att_map_style style = att_map_style_defaults();
    style.colours = j->style->colours;
    style.smooth = j->style->smooth;
    style.opacity = strcmp(j->style->form, "map") == 0 ? 1 : j->style->opacity;
    if (read_scale(j->style->scale, &style.low, &style.high))
        return style;
    style.low = style.high = NAN;
    if (strcmp(j->style->scale, "shared") != 0)
        return style;
    double low = INFINITY, high = -INFINITY;
    for (int i = 0; i < j->list->count; i++) {
        double least, most;
        if (j->list->items[i].item != map->item)
            continue;
        att_map_scale(&j->list->items[i].map, &style, &least, &most);
        low = fmin(low, least), high = fmax(high, most);
    }
    style.low = low, style.high = high;
    return style;
}

static int write_picture(const job *j, const att_picture_tile *tiles, int count, const char *what)
{
    char path[CLI_PATH], format[8];
    int code = CLI_OK;
    for (const char *at = j->style->formats; code == CLI_OK && next_word(&at, format);) {
        code = path_of(j, what, format, path);
        if (code == CLI_OK)
            code = cli_check(j->cli, att_picture_write(j->cli->context, tiles, count, path));
        *j->files += code == CLI_OK;
    }
    return code;
}

static int write_single(const job *j)
{
    int code = CLI_OK;
    for (int i = 0; i < j->list->count && code == CLI_OK; i++)
        code = write_picture(j, &(att_picture_tile){.image = &j->drawn[i]}, 1, j->list->items[i].name);
    return code;
}

/* What comes before the first dot: the item of `show`. */
static void name_item(const cli_map *map, char name[sizeof map->name])
{
    snprintf(name, sizeof map->name, "%.*s", (int)strcspn(map->name, "."), map->name);
}

/* Rows of tiles, one for each layer. */
static int write_grid(const job *j, int first, int count)
{
    char name[sizeof j->list->items->name];
    att_picture_tile *tiles = calloc((size_t)count, sizeof *tiles);
    const int height = j->background->height + LABEL + GAP, width = j->background->width + GAP;
    if (!tiles)
        return cli_failure("out of memory for a picture");
    for (int i = 0, column = 0, row = 0; i < count; i++) {
        const cli_map *map = &j->list->items[first + i];
        const bool begins = i > 0 && map->row != map[-1].row;
        row += begins;
        column = begins ? 0 : column;
        tiles[i] = (att_picture_tile){&j->drawn[first + i], column++ * width, row * height + LABEL, map->name};
    }
    name_item(&j->list->items[first], name);
    const int code = write_picture(j, tiles, count, name);
    free(tiles);
    return code;
}

static int write_grids(const job *j)
{
    int code = CLI_OK;
    for (int i = 0, next; i < j->list->count && code == CLI_OK; i = next) {
        for (next = i + 1; next < j->list->count && j->list->items[next].item == j->list->items[i].item;)
            next++;
        code = write_grid(j, i, next - i);
    }
    return code;
}

/* The maps by name, and "class" and "logit" of maps of relevance. */
static int write_values(const job *j)
{
    char path[CLI_PATH];
    const int64_t target = j->list->target;
    int count = j->list->count;
    att_npz_array *arrays = calloc((size_t)count + 2, sizeof *arrays);
    if (!arrays)
        return cli_failure("out of memory for maps");
    for (int i = 0; i < count; i++) {
        const cli_map *map = &j->list->items[i];
        arrays[i] = (att_npz_array){map->name, "<f8", att_shape_of(map->map.height, map->map.width), map->map.values};
    }
    if (target >= 0) {
        arrays[count++] = (att_npz_array){"class", "<i8", {0}, &target};
        arrays[count++] = (att_npz_array){"logit", "<f8", {0}, &j->list->logit};
    }
    int code = path_of(j, "", "npz", path);
    if (code == CLI_OK)
        code = cli_check(j->cli, att_npz_write(j->cli->context, arrays, count, path));
    *j->files += code == CLI_OK;
    free(arrays);
    return code;
}

static int draw(const job *j)
{
    int code = CLI_OK;
    for (int i = 0; i < j->list->count && code == CLI_OK; i++) {
        const att_map_style style = style_of(j, &j->list->items[i]);
        code = cli_check(j->cli,
                         att_map_draw(j->cli->context, &j->list->items[i].map, &style, j->background, &j->drawn[i]));
    }
    return code;
}

int cli_map_pictures_write(cli_app *cli, const cli_map_list *list, const cli_map_style *style,
                           const att_image *background, const char *folder, const char *name, int64_t *files)
{
    job j = {cli, list, style, background, folder, name, calloc((size_t)list->count + 1, sizeof *j.drawn), files};
    if (!j.drawn)
        return cli_failure("out of memory for pictures");
    int code = draw(&j);
    if (code == CLI_OK)
        code = strcmp(style->form, "grid") == 0 ? write_grids(&j) : write_single(&j);
    if (code == CLI_OK)
        code = write_values(&j);
    for (int i = 0; i < list->count; i++)
        att_image_free(cli->context, &j.drawn[i]);
    free(j.drawn);
    return code;
}
