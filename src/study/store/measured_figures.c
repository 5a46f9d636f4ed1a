#include "study/store/measured_figures.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <attscope/measure.h>
#include <attscope/store.h>

#include "base/core/error.h"

enum { MOST_FIGURES = 100000 };

static double number_or_nan(const json_t *value)
{
    return json_is_number(value) ? json_number_value(value) : NAN;
}

static const char *copy_text(att_figures *figures, const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text != NULL ? att_arena_string(&figures->arena, text) : NULL;
}

static const char *text_or_empty(att_figures *figures, const json_t *object, const char *key)
{
    return json_is_string(json_object_get(object, key)) ? copy_text(figures, object, key) : "";
}

static bool are_samples(const json_t *samples)
{
    return samples == NULL || (json_is_array(samples) && json_array_size(samples) <= ATT_MEASURE_MOST_SAMPLES);
}

/* Returns whether the object has the members of a figure with the right types. "mean" and "deviation" may be missing or
 * null, which stands for NaN. */
static bool is_figure(const json_t *object)
{
    const json_t *head = json_object_get(object, "head"), *n = json_object_get(object, "n");
    return json_is_string(json_object_get(object, "instrument")) && json_is_string(json_object_get(object, "node")) &&
           json_is_string(json_object_get(object, "statistic")) &&
           (head == NULL ||
            (json_is_integer(head) && json_integer_value(head) >= 0 && json_integer_value(head) < MOST_FIGURES)) &&
           json_is_integer(n) && json_integer_value(n) >= 0 && are_samples(json_object_get(object, "samples"));
}

static att_status read_samples(const att_line_event *event, const json_t *object, att_figures *figures)
{
    const json_t *samples = json_object_get(object, "samples");
    att_measurement *item = &figures->items[figures->count];
    size_t count = json_array_size(samples);
    double *values = count > 0 ? att_arena_allocate(&figures->arena, count * sizeof(*values)) : NULL;
    if (count > 0 && values == NULL)
        return att_fail_memory(figures->arena.context, count * sizeof(*values), event->where);
    for (size_t i = 0; i < count; i++)
        values[i] = number_or_nan(json_array_get(samples, i));
    item->samples = values;
    item->sample_count = (int)count;
    return ATT_OK;
}

static att_status read_figure(const att_line_event *event, const json_t *object, att_figures *figures)
{
    att_context *context = figures->arena.context;
    if (!is_figure(object))
        return att_fail(context, ATT_ERR_FORMAT,
                        "%s: expected measurements with instrument, node, statistic, mean, deviation and n",
                        event->where);
    const json_t *head = json_object_get(object, "head");
    att_measurement *item = &figures->items[figures->count];
    *item = (att_measurement){.instrument = copy_text(figures, object, "instrument"),
                              .node = copy_text(figures, object, "node"),
                              .statistic = copy_text(figures, object, "statistic"),
                              .head = head != NULL ? (int)json_integer_value(head) : -1,
                              .mean = number_or_nan(json_object_get(object, "mean")),
                              .deviation = number_or_nan(json_object_get(object, "deviation")),
                              .count = json_integer_value(json_object_get(object, "n")),
                              .undefined = json_integer_value(json_object_get(object, "undefined")),
                              .excluded = json_is_true(json_object_get(object, ATT_EXCLUDED_KEY)),
                              .bound = json_number_value(json_object_get(object, "bound")),
                              .uniform = json_number_value(json_object_get(object, "uniform"))};
    if (item->instrument == NULL || item->node == NULL || item->statistic == NULL)
        return att_fail_memory(context, sizeof(*item), event->where);
    ATT_TRY(read_samples(event, object, figures));
    figures->count++;
    return ATT_OK;
}

static int compare_figures(const void *left, const void *right)
{
    const att_measurement *a = *(const att_measurement *const *)left, *b = *(const att_measurement *const *)right;
    int order = strcmp(a->instrument, b->instrument);
    order = order != 0 ? order : strcmp(a->node, b->node);
    order = order != 0 ? order : strcmp(a->statistic, b->statistic);
    return order != 0 ? order : (a->head > b->head) - (a->head < b->head);
}

static att_status sort(att_figures *figures)
{
    size_t size = ((size_t)figures->count + 1) * sizeof(*figures->sorted);
    figures->sorted = att_arena_allocate(&figures->arena, size);
    if (figures->sorted == NULL)
        return att_fail_memory(figures->arena.context, size, "figures");
    for (int i = 0; i < figures->count; i++)
        figures->sorted[i] = &figures->items[i];
    qsort(figures->sorted, (size_t)figures->count, sizeof(*figures->sorted), compare_figures);
    return ATT_OK;
}

/* Whether a figure is of all heads together, or of a single head whose instrument has it followed (by_head). */
static bool is_followed(const att_context *context, const json_t *object)
{
    const char *instrument = json_string_value(json_object_get(object, "instrument"));
    const char *statistic = json_string_value(json_object_get(object, "statistic"));
    att_instrument_info info;
    if (json_object_get(object, "head") == NULL)
        return true;
    if (!instrument || !statistic || !att_instrument_find(context, instrument, &info) || !info.by_head)
        return false;
    for (const char *const *name = info.by_head; *name; name++)
        if (strcmp(*name, statistic) == 0)
            return true;
    return false;
}

static att_status fill(const att_line_event *event, bool heads, att_figures *figures)
{
    att_context *context = figures->arena.context;
    const json_t *list = json_object_get(event->object, "measurements");
    size_t count = json_array_size(list);
    if (!json_is_array(list) || count > MOST_FIGURES)
        return att_fail(context, ATT_ERR_FORMAT, "%s: expected \"measurements\", an array of at most %d measurements",
                        event->where, (int)MOST_FIGURES);
    figures->epoch = event->epoch;
    figures->step = event->step;
    figures->images = number_or_nan(json_object_get(event->object, "images"));
    figures->split = text_or_empty(figures, event->object, "split");
    figures->items = att_arena_allocate(&figures->arena, (count + 1) * sizeof(*figures->items));
    if (figures->items == NULL || figures->split == NULL)
        return att_fail_memory(context, count * sizeof(*figures->items), event->where);
    for (size_t i = 0; i < count; i++) {
        const json_t *object = json_array_get(list, i);
        if (heads || is_followed(context, object))
            ATT_TRY(read_figure(event, object, figures));
    }
    return sort(figures);
}

att_status att_figures_read(att_context *context, const att_line_event *event, bool heads, att_figures **out)
{
    att_figures *figures;
    ATT_TRY(att_new(context, &figures, 1, event->where));
    figures->arena.context = context;
    att_status status = fill(event, heads, figures);
    if (status != ATT_OK)
        att_figures_free(context, figures);
    else
        *out = figures;
    return status;
}

void att_figures_set_units(const att_context *context, att_figures *figures)
{
    for (int i = 0; i < figures->count; i++) {
        att_instrument_info info;
        figures->items[i].unit = att_instrument_find(context, figures->items[i].instrument, &info) ? info.unit : NULL;
    }
}

void att_figures_free(att_context *context, void *user)
{
    att_figures *figures = user;
    if (figures == NULL)
        return;
    att_arena_free(&figures->arena);
    att_free(context, figures);
}

const att_measurement *att_figures_find(const att_figures *figures, const att_measurement *wanted)
{
    const att_measurement **found =
        bsearch(&wanted, figures->sorted, (size_t)figures->count, sizeof(*figures->sorted), compare_figures);
    return found != NULL ? *found : NULL;
}
