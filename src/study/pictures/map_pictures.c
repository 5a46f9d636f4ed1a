/* Files of the maps of one image: pictures and values. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <attscope/npz.h>

#include "base/core/error.h"
#include "base/io/file.h"
#include "study/pictures/maps.h"

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

static bool is_one_of(const char *word, const char *const *words)
{
    while (*words && strcmp(*words, word) != 0)
        words++;
    return *words;
}

att_status att_map_pictures_check(att_context *context, const att_map_options *o)
{
    static const char *const formats[] = {"png", "svg", "pdf", NULL}, *const forms[] = {"overlay", "map", "grid", NULL},
                             *const scales[] = {"map", "shared", NULL};
    char word[8];
    double low, high;
    uint8_t colour[3];
    bool known = !o->format || *o->format;
    for (const char *at = o->format; next_word(&at, word);)
        known = known && is_one_of(word, formats);
    if (!known)
        return att_fail(context, ATT_ERR_ARGUMENT, "format \"%s\": expected a list of png, svg and pdf", o->format);
    if (!is_one_of(o->form, forms))
        return att_fail(context, ATT_ERR_ARGUMENT, "form \"%s\": expected overlay, map or grid", o->form);
    if (!att_colour_of(o->colours, 0, colour))
        return att_fail(context, ATT_ERR_ARGUMENT,
                        "colours \"%s\": expected viridis, magma, inferno, plasma, grey or diverging", o->colours);
    if (!is_one_of(o->scale, scales) && !read_scale(o->scale, &low, &high))
        return att_fail(context, ATT_ERR_ARGUMENT, "scale \"%s\": expected map, shared, or two numbers LOW,HIGH",
                        o->scale);
    if (!(o->opacity >= 0 && o->opacity <= 1) || o->zoom < 1 || o->zoom > 16)
        return att_fail(context, ATT_ERR_ARGUMENT, "the opacity is %g and the zoom %d; expected 0 to 1, and 1 to 16",
                        o->opacity, o->zoom);
    return ATT_OK;
}

att_map_style att_map_style_of(const att_map_files *files, const att_listed_map *map)
{
    const att_map_options *o = &files->options;
    att_map_style style = att_map_style_defaults();
    style.colours = o->colours;
    style.smooth = o->smooth;
    style.opacity = strcmp(o->form, "map") == 0 ? 1 : o->opacity;
    if (read_scale(o->scale, &style.low, &style.high))
        return style;
    style.low = style.high = NAN;
    if (strcmp(o->scale, "shared") != 0)
        return style;
    double low = INFINITY, high = -INFINITY;
    for (int i = 0; i < files->list.count; i++) {
        double least, most;
        if (files->list.items[i].item != map->item)
            continue;
        att_map_scale(&files->list.items[i].map, &style, &least, &most);
        low = fmin(low, least), high = fmax(high, most);
    }
    style.low = low, style.high = high;
    return style;
}

/* --- files -------------------------------------------------------------------------------------------------------- */

typedef struct job {
    att_map_files *files;
    const char *name;
    att_image background;
    att_image *drawn; /* [list.count] */
} job;

/* The network's input, or the mean of several, as an image. */
static att_status make_background(const att_map_files *files, const float *pixels, double count, att_image *image)
{
    const att_transform_options *t = &files->transform;
    const int zoom = files->options.zoom, width = t->width * zoom, height = t->height * zoom;
    *image = (att_image){width, height, t->channels, NULL};
    ATT_TRY(att_new(files->context, &image->pixels, (size_t)width * (size_t)height * (size_t)t->channels, "a picture"));
    for (ptrdiff_t i = 0; i < (ptrdiff_t)width * height * t->channels; i++) {
        const ptrdiff_t pixel = i / t->channels, c = i % t->channels;
        const ptrdiff_t from = (pixel / width / zoom * t->width + pixel % width / zoom) * t->channels + c;
        const double value = 255 * ((double)pixels[from] / count * t->std[c] + t->mean[c]);
        image->pixels[i] = value >= 255 ? 255 : value > 0 ? (uint8_t)lround(value) : 0;
    }
    return ATT_OK;
}

att_status att_map_path(const att_map_files *files, const char *name, const char *what, const char *ending,
                        char path[static ATT_MAP_PATH])
{
    char file[ATT_MAP_PATH];
    const int length = snprintf(file, sizeof file, "%s%s%s.%s", name, *what ? "." : "", what, ending);
    if (length >= ATT_MAP_PATH)
        return att_fail(files->context, ATT_ERR_ARGUMENT, "%s: the names of its maps are too long", name);
    return att_path_join(files->context, files->folder, file, path, ATT_MAP_PATH);
}

static att_status write_picture(const job *j, const att_picture_tile *tiles, int count, const char *what)
{
    char path[ATT_MAP_PATH], format[8];
    for (const char *at = j->files->options.format; next_word(&at, format);) {
        ATT_TRY(att_map_path(j->files, j->name, what, format, path));
        ATT_TRY(att_picture_write(j->files->context, tiles, count, path));
        j->files->written++;
    }
    return ATT_OK;
}

static att_status write_single(const job *j)
{
    for (int i = 0; i < j->files->list.count; i++)
        ATT_TRY(write_picture(j, &(att_picture_tile){.image = &j->drawn[i]}, 1, j->files->list.items[i].name));
    return ATT_OK;
}

/* Rows of tiles, one for each layer, in a picture named by the item of `show`: what comes before the first dot. */
static att_status write_grid(const job *j, int first, int count)
{
    char name[ATT_MAP_NAME];
    const att_listed_map *maps = j->files->list.items + first;
    const int height = j->background.height + LABEL + GAP, width = j->background.width + GAP;
    att_picture_tile *tiles;
    ATT_TRY(att_new(j->files->context, &tiles, (size_t)count, "a picture"));
    for (int i = 0, column = 0, row = 0; i < count; i++) {
        const bool begins = i > 0 && maps[i].row != maps[i - 1].row;
        row += begins;
        column = begins ? 0 : column;
        tiles[i] = (att_picture_tile){&j->drawn[first + i], column++ * width, row * height + LABEL, maps[i].name};
    }
    snprintf(name, sizeof name, "%.*s", (int)strcspn(maps->name, "."), maps->name);
    const att_status status = write_picture(j, tiles, count, name);
    att_free(j->files->context, tiles);
    return status;
}

static att_status write_grids(const job *j)
{
    const att_map_list *list = &j->files->list;
    for (int i = 0, next; i < list->count; i = next) {
        for (next = i + 1; next < list->count && list->items[next].item == list->items[i].item;)
            next++;
        ATT_TRY(write_grid(j, i, next - i));
    }
    return ATT_OK;
}

/* The first map of relevance; NULL: there is none. */
static const att_relevance_map *find_relevance(const att_map_list *list)
{
    for (int i = 0; i < list->count; i++)
        if (list->items[i].map.target >= 0)
            return &list->items[i].map;
    return NULL;
}

static att_status write_values(const job *j)
{
    char path[ATT_MAP_PATH];
    const att_map_list *list = &j->files->list;
    const att_relevance_map *of = find_relevance(list);
    const int64_t target = of ? of->target : -1;
    int count = list->count;
    att_npz_array *arrays;
    ATT_TRY(att_map_path(j->files, j->name, "", "npz", path));
    ATT_TRY(att_new(j->files->context, &arrays, (size_t)count + 3, "the values of maps"));
    for (int i = 0; i < count; i++) {
        const att_relevance_map *map = &list->items[i].map;
        arrays[i] = (att_npz_array){list->items[i].name, "<f8", att_shape_of(map->height, map->width), map->values};
    }
    if (of) {
        arrays[count++] = (att_npz_array){"class", "<i8", {0}, &target};
        arrays[count++] = (att_npz_array){"logit", "<f8", {0}, &of->logit};
    }
    const att_token_ids *text = j->files->text;
    if (text)
        arrays[count++] = (att_npz_array){"tokens", "<i4", att_shape_of(text->count), text->tokens};
    const att_status status = att_npz_write(j->files->context, arrays, count, path);
    j->files->written += status == ATT_OK;
    att_free(j->files->context, arrays);
    return status;
}

static att_status draw(const job *j)
{
    for (int i = 0; i < j->files->list.count; i++) {
        const att_listed_map *map = &j->files->list.items[i];
        const att_map_style style = att_map_style_of(j->files, map);
        ATT_TRY(att_map_draw(j->files->context, &map->map, &style, &j->background, &j->drawn[i]));
    }
    return ATT_OK;
}

static att_status tell(const job *j)
{
    const att_map_list *list = &j->files->list;
    const att_map_options *o = &j->files->options;
    att_named_map *maps;
    if (!o->found)
        return ATT_OK;
    ATT_TRY(att_new(j->files->context, &maps, (size_t)list->count + 1, "the maps of an image"));
    for (int i = 0; i < list->count; i++)
        maps[i] = (att_named_map){list->items[i].name, list->items[i].map};
    o->found(o->found_user, j->name, maps, list->count);
    att_free(j->files->context, maps);
    return ATT_OK;
}

static att_status write_images(job *j, const float *pixels, double count)
{
    att_map_files *files = j->files;
    ATT_TRY(att_new(files->context, &j->drawn, (size_t)files->list.count + 1, "the pictures of an image"));
    att_status status = make_background(files, pixels, count, &j->background);
    if (status == ATT_OK)
        status = draw(j);
    if (status == ATT_OK)
        status = strcmp(files->options.form, "grid") == 0 ? write_grids(j) : write_single(j);
    for (int i = 0; i < files->list.count; i++)
        att_image_free(files->context, &j->drawn[i]);
    att_free(files->context, j->drawn);
    att_image_free(files->context, &j->background);
    return status;
}

att_status att_map_pictures_write(att_map_files *files, const float *pixels, double count, const char *name)
{
    job j = {.files = files, .name = name};
    ATT_TRY(files->text ? att_map_texts_write(files, name) : write_images(&j, pixels, count));
    ATT_TRY(write_values(&j));
    return tell(&j);
}
