#include "map_list.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ITEM = 256, MOST_NUMBERS = 256 };

/* --- choices ------------------------------------------------------------------------------------------------------ */

/* Copies the next item of `show` and moves *at behind it. Returns false at the end, or with text[0] 0 if it is too
 * long.
 */
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

int cli_map_choice_check(cli_app *cli, const cli_map_choice *choice)
{
    char item[ITEM];
    for (const char *at = choice->show; next_item(&at, item);)
        if (!is_attention(item) && att_relevance_check(cli->context, item) != ATT_OK)
            return cli_usage("--show: %s; \"attention\" and \"mean\" are maps, too", att_context_message(cli->context));
    double x, y;
    if (choice->at && !read_place(choice->at, &x, &y))
        return cli_usage("--at %s: expected X,Y, two numbers in 0..1", choice->at);
    if (choice->query && choice->at)
        return cli_usage("--query and --at both choose the query; give one of them");
    return CLI_OK;
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

/* Finds the query of a layer; -1: the mean over queries. Returns CLI_OK or CLI_USAGE. */
static int find_query(const cli_map_choice *choice, const att_explorer_layer *layer, int *query)
{
    int row, column, used = 0;
    const char *text = choice->query;
    *query = layer->prefix > 0 ? 0 : -1;
    double x, y;
    if (choice->at && read_place(choice->at, &x, &y))
        *query = query_at(layer, x, y);
    if (!text)
        return CLI_OK;
    if (strcmp(text, "class") == 0 && layer->prefix > 0)
        return CLI_OK;
    if (sscanf(text, "prefix:%d%n", &row, &used) == 1 && !text[used] && row >= 0 && row < layer->prefix) {
        *query = row;
        return CLI_OK;
    }
    if (sscanf(text, "%d,%d%n", &row, &column, &used) == 2 && !text[used] && row >= 0 && column >= 0 &&
        row < layer->grid_h && column < layer->grid_w) {
        *query = layer->prefix + row * layer->grid_w + column;
        return CLI_OK;
    }
    return cli_usage(
        "--query %s: %s has %d tokens in front of a grid of %d x %d; expected class or prefix:N for one of "
        "those, or ROW,COLUMN from 0",
        text, layer->scope, layer->prefix, layer->grid_h, layer->grid_w);
}

/* --- maps --------------------------------------------------------------------------------------------------------- */

/* Adds a map with room for its values. NULL if memory is exhausted, with a message. */
static cli_map *add(cli_map_list *list, int height, int width)
{
    if (list->count == list->room) {
        const int room = list->room ? 2 * list->room : 16;
        cli_map *items = realloc(list->items, (size_t)room * sizeof *items);
        if (items)
            list->items = items, list->room = room;
    }
    double *values = calloc((size_t)height * (size_t)width + 1, sizeof *values);
    if (!values || list->count == list->room) {
        free(values);
        cli_say("out of memory for maps");
        return NULL;
    }
    cli_map *map = &list->items[list->count++];
    *map = (cli_map){.map = {.height = height, .width = width, .values = values, .target = -1, .logit = NAN}};
    return map;
}

static int add_head(cli_image_input *input, const char *item, int layer, int head, int query, cli_map_list *list)
{
    const att_explorer_layer of = att_explorer_layer_at(input->explorer, layer);
    cli_map *map = add(list, of.grid_h, of.grid_w);
    if (!map)
        return CLI_FAILURE;
    snprintf(map->name, sizeof map->name, head < 0 ? "%.200s.%.200s" : "%.200s.%.200s.head%d", item, of.scope, head);
    return cli_check(input->cli, att_explorer_map(input->explorer, layer, head, query, map->map.values));
}

static int add_layer(cli_image_input *input, const cli_map_choice *choice, const char *item, int layer,
                     cli_map_list *list)
{
    const att_explorer_layer of = att_explorer_layer_at(input->explorer, layer);
    int heads[MOST_NUMBERS], query = -1;
    const int count = read_numbers(choice->heads, of.heads, heads);
    if (count == 0)
        return cli_usage("--heads %s: %s has %d heads; expected mean, all, or numbers from 0 to %d", choice->heads,
                         of.scope, of.heads, of.heads - 1);
    int code = strcmp(item, "mean") == 0 ? CLI_OK : find_query(choice, &of, &query);
    for (int h = 0; h < count && code == CLI_OK; h++)
        code = add_head(input, item, layer, heads[h], query, list);
    return code;
}

static int add_attention(cli_image_input *input, const cli_map_choice *choice, const char *item, int *row,
                         cli_map_list *list)
{
    int layers[MOST_NUMBERS], code = CLI_OK;
    const int all = att_explorer_layer_count(input->explorer);
    if (all == 0)
        return cli_failure("the network has no attention layer");
    const int count = read_numbers(choice->layers, all, layers);
    if (count == 0)
        return cli_usage(
            "--layers %s: the network has %d attention layers; expected last, all, or numbers from 0 to %d",
            choice->layers, all, all - 1);
    for (int l = 0; l < count && code == CLI_OK; l++) {
        const int first = list->count;
        code = add_layer(input, choice, item, layers[l], list);
        for (int i = first; i < list->count; i++)
            list->items[i].row = *row;
        ++*row;
    }
    return code;
}

static int add_relevance(cli_image_input *input, const cli_map_choice *choice, const char *item, cli_map_list *list)
{
    att_relevance_map found;
    int code = cli_image_input_explain(input);
    if (code == CLI_OK)
        code = cli_check(input->cli, att_relevance_run(input->relevance, &input->batch, item, choice->target, &found));
    cli_map *map = code == CLI_OK ? add(list, found.height, found.width) : NULL;
    if (!map)
        return code == CLI_OK ? CLI_FAILURE : code;
    snprintf(map->name, sizeof map->name, "%s", item);
    for (char *at = map->name; *at; at++)
        if (strchr(":,=/", *at))
            *at = '_';
    memcpy(map->map.values, found.values, (size_t)found.height * (size_t)found.width * sizeof *found.values);
    list->target = map->map.target = found.target;
    list->logit = map->map.logit = found.logit;
    return CLI_OK;
}

static void clear(cli_map_list *list)
{
    for (int i = 0; i < list->count; i++)
        free(list->items[i].map.values);
    list->count = 0;
    list->target = -1;
    list->logit = NAN;
}

int cli_map_list_find(cli_image_input *input, const cli_map_choice *choice, cli_map_list *list)
{
    char text[ITEM];
    int code = CLI_OK, row = 0, item = 0;
    att_batch answers;
    clear(list);
    code = cli_check(input->cli, att_explorer_run(input->explorer, &input->batch, &answers));
    for (const char *at = choice->show; code == CLI_OK && next_item(&at, text); item++) {
        const int first = list->count;
        code = is_attention(text) ? add_attention(input, choice, text, &row, list)
                                  : add_relevance(input, choice, text, list);
        for (int i = first; i < list->count; i++) {
            list->items[i].item = item;
            if (!is_attention(text))
                list->items[i].row = row;
        }
        row += !is_attention(text);
    }
    return code;
}

void cli_map_list_free(cli_map_list *list)
{
    clear(list);
    free(list->items);
}
