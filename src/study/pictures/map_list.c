/* Which maps: reads the choice, and computes the maps of an image. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "study/pictures/maps.h"

enum { ITEM = 256, MOST_NUMBERS = 256 };

/* --- choices ------------------------------------------------------------------------------------------------------ */

/* Copies the next item of `show` and moves *at behind it. Returns false at the end, or with text[0] 0 if it is too
 * long. */
static bool next_item(const char **at, char text[ITEM])
{
    if (!*at)
        return false;
    const size_t length = att_instruments_item(*at);
    snprintf(text, ITEM, "%.*s", length < ITEM ? (int)length : 0, *at);
    *at = (*at)[length] ? *at + length + 1 : NULL;
    return true;
}

static bool is_attention(const char *item)
{
    return strcmp(item, "attention") == 0 || strcmp(item, "mean") == 0;
}

static bool read_place(const char *text, double *x, double *y)
{
    int used = 0;
    return sscanf(text, "%lf,%lf%n", x, y, &used) == 2 && !text[used] && *x >= 0 && *x <= 1 && *y >= 0 && *y <= 1;
}

/* Adds to the message of the context what else is a map. */
static att_status fail_item(att_context *context, att_status status)
{
    char why[1024];
    snprintf(why, sizeof why, "%s", att_context_message(context));
    return att_fail(context, status == ATT_ERR_NOT_FOUND ? ATT_ERR_ARGUMENT : status,
                    "show: %s; \"attention\" and \"mean\" are maps, too", why);
}

att_status att_map_choice_check(att_context *context, const att_map_options *options)
{
    char item[ITEM];
    for (const char *at = options->show; next_item(&at, item);) {
        const att_status status = is_attention(item) ? ATT_OK : att_relevance_check(context, item);
        if (status != ATT_OK)
            return fail_item(context, status);
    }
    double x, y;
    if (options->at && !read_place(options->at, &x, &y))
        return att_fail(context, ATT_ERR_ARGUMENT, "at \"%s\": expected X,Y, two numbers in 0..1", options->at);
    if (options->query && options->at)
        return att_fail(context, ATT_ERR_ARGUMENT, "query and at both choose the query; give one of them");
    return ATT_OK;
}

/* Reads "last", "all", "mean" (numbers[0] = -1) or a list of numbers below `count`. Returns how many; 0: none. */
static int read_numbers(const char *text, int count, int *numbers)
{
    int found = 0;
    if (strcmp(text, "mean") == 0 || strcmp(text, "last") == 0) {
        numbers[0] = *text == 'm' ? -1 : count - 1;
        return 1;
    }
    for (; strcmp(text, "all") == 0 && found < count && found < MOST_NUMBERS; found++)
        numbers[found] = found;
    for (char *end; found < MOST_NUMBERS && strcmp(text, "all") != 0; text = end + 1) {
        const long number = strtol(text, &end, 10);
        if (end == text || number < 0 || number >= count || (*end && *end != ','))
            return 0;
        numbers[found++] = (int)number;
        if (!*end)
            break;
    }
    return found;
}

static int query_at(const att_explorer_layer *layer, double x, double y)
{
    const int row = (int)(y * layer->grid_h), column = (int)(x * layer->grid_w);
    return layer->prefix + (row < layer->grid_h ? row : layer->grid_h - 1) * layer->grid_w +
           (column < layer->grid_w ? column : layer->grid_w - 1);
}

/* Finds the query of a text: its first token, or the one that the options name. */
static att_status find_token(const att_map_files *files, int *query)
{
    const char *text = files->options.query;
    int used = 0;
    *query = 0;
    if (files->options.at)
        return att_fail(files->context, ATT_ERR_ARGUMENT, "at is a place of an image; of a text give query token:N");
    if (!text || strcmp(text, "class") == 0)
        return ATT_OK;
    if (sscanf(text, "token:%d%n", query, &used) == 1 && !text[used] && *query >= 0 && *query < files->text->count)
        return ATT_OK;
    return att_fail(files->context, ATT_ERR_ARGUMENT,
                    "query \"%s\": this text has %d tokens; expected class, which is the first one, or token:N from 0",
                    text, files->text->count);
}

/* Finds the query of a layer; -1: the mean over queries. */
static att_status find_query(const att_map_files *files, const att_explorer_layer *layer, int *query)
{
    if (files->text)
        return find_token(files, query);
    int row, column, used = 0;
    const char *text = files->options.query;
    *query = layer->prefix > 0 ? 0 : -1;
    double x, y;
    if (files->options.at && read_place(files->options.at, &x, &y))
        *query = query_at(layer, x, y);
    if (!text)
        return ATT_OK;
    if (strcmp(text, "class") == 0 && layer->prefix > 0)
        return ATT_OK;
    if (sscanf(text, "prefix:%d%n", &row, &used) == 1 && !text[used] && row >= 0 && row < layer->prefix) {
        *query = row;
        return ATT_OK;
    }
    if (sscanf(text, "%d,%d%n", &row, &column, &used) == 2 && !text[used] && row >= 0 && column >= 0 &&
        row < layer->grid_h && column < layer->grid_w) {
        *query = layer->prefix + row * layer->grid_w + column;
        return ATT_OK;
    }
    return att_fail(files->context, ATT_ERR_ARGUMENT,
                    "query \"%s\": %s has %d tokens in front of a grid of %d x %d; expected class or prefix:N for one "
                    "of those, or ROW,COLUMN from 0",
                    text, layer->scope, layer->prefix, layer->grid_h, layer->grid_w);
}

/* --- maps --------------------------------------------------------------------------------------------------------- */

/* Adds a map with room for its values. NULL if memory is exhausted, with a message. */
static att_listed_map *add(att_map_list *list, int height, int width)
{
    double *values;
    if (!att_list_grow(list->context, &list->items, list->count, &list->room, sizeof *list->items)) {
        att_fail_memory(list->context, sizeof *list->items, "the maps of an image");
        return NULL;
    }
    if (att_new(list->context, &values, (size_t)height * (size_t)width + 1, "a map") != ATT_OK)
        return NULL;
    att_listed_map *map = &list->items[list->count++];
    *map = (att_listed_map){.map = {.height = height, .width = width, .values = values, .target = -1, .logit = NAN}};
    return map;
}

static att_status add_head(att_map_files *files, const char *item, int layer, int head, int query)
{
    const att_explorer_layer of = att_explorer_layer_at(files->explorer, layer);
    att_listed_map *map = add(&files->list, of.grid_h, of.grid_w);
    if (!map)
        return ATT_ERR_MEMORY;
    snprintf(map->name, sizeof map->name, head < 0 ? "%.200s.%.200s" : "%.200s.%.200s.head%d", item, of.scope, head);
    return att_explorer_map(files->explorer, layer, head, query, map->map.values);
}

static att_status add_layer(att_map_files *files, const char *item, int layer)
{
    const att_explorer_layer of = att_explorer_layer_at(files->explorer, layer);
    int heads[MOST_NUMBERS], query = -1;
    const int count = read_numbers(files->options.heads, of.heads, heads);
    if (count == 0)
        return att_fail(files->context, ATT_ERR_ARGUMENT,
                        "heads \"%s\": %s has %d heads; expected mean, all, or numbers from 0 to %d",
                        files->options.heads, of.scope, of.heads, of.heads - 1);
    if (strcmp(item, "mean") != 0)
        ATT_TRY(find_query(files, &of, &query));
    for (int h = 0; h < count; h++)
        ATT_TRY(add_head(files, item, layer, heads[h], query));
    return ATT_OK;
}

static att_status add_attention(att_map_files *files, const char *item, int *row)
{
    int layers[MOST_NUMBERS];
    att_map_list *list = &files->list;
    const int all = att_explorer_layer_count(files->explorer);
    if (all == 0)
        return att_fail(files->context, ATT_ERR_UNSUPPORTED, "the network has no attention layer");
    const int count = read_numbers(files->options.layers, all, layers);
    if (count == 0)
        return att_fail(files->context, ATT_ERR_ARGUMENT,
                        "layers \"%s\": the network has %d attention layers; expected last, all, or numbers from 0 to "
                        "%d",
                        files->options.layers, all, all - 1);
    for (int l = 0; l < count; l++) {
        const int first = list->count;
        ATT_TRY(add_layer(files, item, layers[l]));
        for (int i = first; i < list->count; i++)
            list->items[i].row = *row;
        ++*row;
    }
    return ATT_OK;
}

static att_status add_relevance(att_map_files *files, const att_batch *input, const char *item, int *row)
{
    att_relevance_map found;
    if (!files->relevance)
        ATT_TRY(att_relevance_create(files->explorer, &files->relevance));
    ATT_TRY(att_relevance_run(files->relevance, input, item, files->options.target, &found));
    att_listed_map *map = add(&files->list, found.height, found.width);
    if (!map)
        return ATT_ERR_MEMORY;
    snprintf(map->name, sizeof map->name, "%s", item);
    for (char *at = map->name; *at; at++)
        if (strchr(":,=/", *at))
            *at = '_';
    memcpy(map->map.values, found.values, (size_t)found.height * (size_t)found.width * sizeof *found.values);
    map->map.target = found.target;
    map->map.logit = found.logit;
    map->row = (*row)++;
    return ATT_OK;
}

static void clear(att_map_list *list)
{
    for (int i = 0; i < list->count; i++)
        att_free(list->context, list->items[i].map.values);
    list->count = 0;
}

att_status att_map_list_find(att_map_files *files, const att_batch *input)
{
    char text[ITEM];
    int row = 0, item = 0;
    att_batch answers;
    clear(&files->list);
    ATT_TRY(att_explorer_run(files->explorer, input, &answers));
    for (const char *at = files->options.show; next_item(&at, text); item++) {
        const int first = files->list.count;
        ATT_TRY(is_attention(text) ? add_attention(files, text, &row) : add_relevance(files, input, text, &row));
        for (int i = first; i < files->list.count; i++)
            files->list.items[i].item = item;
    }
    return ATT_OK;
}

void att_map_list_free(att_map_list *list)
{
    clear(list);
    att_free(list->context, list->items);
}
