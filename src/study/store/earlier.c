#include "study/store/earlier.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <attscope/measure.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "base/io/file.h"

enum { MOST_FIELDS = 64 };

typedef struct att_earlier_event {
    json_t *object;
    att_figures *figures;
} att_earlier_event;

typedef struct reading {
    att_earlier *earlier;
    const att_event *begin;
    bool same;          /* whether the last run_begin in the file matches the new one */
    char different[96]; /* which field does not match, as "the images differ"; "" if all match */
} reading;

/* --- comparing ---------------------------------------------------------------------------------------------------- */

static bool same_field(const json_t *object, const att_event_field *field)
{
    const json_t *member = json_object_get(object, field->name);
    if (field->text)
        return json_is_string(member) && strcmp(json_string_value(member), field->text) == 0;
    return isfinite(field->number) ? json_is_number(member) && json_number_value(member) == field->number
                                   : json_is_null(member);
}

static bool has_field(const att_event *begin, const char *name)
{
    for (int i = 0; i < begin->field_count; i++)
        if (strcmp(begin->fields[i].name, name) == 0)
            return true;
    return false;
}

/* Returns whether a field may differ because the event also has a digest of the weights or images that the field names.
 */
static bool has_digest(const att_event *begin, const char *name)
{
    static const struct {
        const char *name, *digest;
    } identified[] = {{"checkpoint", "weights"}, {"use_ema", "weights"}, {"data", "contents"}};
    for (size_t i = 0; i < sizeof identified / sizeof *identified; i++)
        if (strcmp(name, identified[i].name) == 0 && has_field(begin, identified[i].digest))
            return true;
    return false;
}

/* Whether the field follows from settings that have fields of their own: another image size changes the weights, too,
 * and more epochs the number of updates. */
static bool is_consequence(const char *name)
{
    static const char *const names[] = {"weights", "parameters", "tokens", "updates", "training_samples"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

/* Whether the field of the new event differs from the file's. Earlier versions wrote fewer fields; if the new event has
 * a digest of the weights, a field that the file lacks does not count. */
static bool is_different(const json_t *object, const att_event *begin, const att_event_field *field)
{
    return !has_digest(begin, field->name) && !same_field(object, field) &&
           (!has_field(begin, "weights") || json_object_get(object, field->name));
}

/* Returns the name of a field in which the file's run_begin and the new one differ, or NULL: a setting before what
 * follows from it. */
static const char *difference(const att_line_event *event, const att_event *begin)
{
    const char *key, *consequence = NULL;
    json_t *value;
    if (!has_field(begin, "weights") && event->epoch != begin->epoch)
        consequence = "epoch";
    else if (!has_field(begin, "weights") && event->step != begin->step)
        consequence = "step";
    for (int i = 0; i < begin->field_count; i++) {
        const att_event_field *field = &begin->fields[i];
        if (!is_different(event->object, begin, field))
            continue;
        if (!is_consequence(field->name))
            return field->name;
        consequence = consequence ? consequence : field->name;
    }
    json_object_foreach(event->object, key, value)
    {
        (void)value;
        if (!att_line_is_own_member(key) && !has_field(begin, key))
            return key;
    }
    return consequence;
}

/* Writes "the images differ" for a field whose name users do not know, 'their "img_size" differs' for the name of a
 * setting, and "" for NULL. */
static void describe(const char *field, char *text, size_t size)
{
    static const char *const known[][2] = {{"contents", "the images differ"},
                                           {"images", "the numbers of images differ"},
                                           {"weights", "the weights differ"},
                                           {"parameters", "the numbers of parameters differ"},
                                           {"tokens", "the numbers of tokens differ"},
                                           {"updates", "the numbers of updates differ"},
                                           {"training_samples", "the numbers of training samples differ"},
                                           {"step", "the updates that they were measured at differ"},
                                           {"epoch", "the epochs that they were measured at differ"}};
    snprintf(text, size, "%s", "");
    if (field)
        snprintf(text, size, "their \"%s\" differs", field);
    for (size_t i = 0; field && i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i][0], field) == 0)
            snprintf(text, size, "%s", known[i][1]);
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

static void clear(att_earlier *earlier)
{
    for (int i = 0; i < earlier->count; i++) {
        json_decref(earlier->events[i].object);
        att_figures_free(earlier->context, earlier->events[i].figures);
    }
    earlier->count = 0;
}

static att_status add_event(att_earlier *earlier, const att_line_event *event)
{
    att_figures *figures = NULL;
    ATT_TRY(att_figures_read(earlier->context, event, true, &figures));
    if (!att_list_grow(earlier->context, &earlier->events, earlier->count, &earlier->capacity,
                       sizeof *earlier->events)) {
        att_figures_free(earlier->context, figures);
        return att_fail_memory(earlier->context, sizeof *earlier->events, event->where);
    }
    earlier->events[earlier->count++] = (att_earlier_event){json_incref(event->object), figures};
    return ATT_OK;
}

static att_status visit(void *user, const att_line_event *event)
{
    reading *r = user;
    if (strcmp(event->kind, "run_begin") == 0) {
        clear(r->earlier);
        const char *different = difference(event, r->begin);
        describe(different, r->different, sizeof r->different);
        r->same = !different;
    }
    return r->same && strcmp(event->kind, "measure") == 0 ? add_event(r->earlier, event) : ATT_OK;
}

att_status att_earlier_read(att_earlier *earlier, const char *path, const char *previous, const att_event *begin)
{
    reading r = {.earlier = earlier, .begin = begin};
    clear(earlier);
    if (!att_file_exists(path))
        return ATT_OK;
    att_status status = att_lines_read(earlier->context, path, visit, &r);
    if (status == ATT_ERR_FORMAT) {
        clear(earlier);
        att_log(earlier->context, ATT_LOG_WARNING, "%s; its measurements are replaced, and the old file is added to %s",
                att_context_message(earlier->context), previous);
        return att_file_add_lines(earlier->context, path, previous);
    }
    if (status != ATT_OK || !*r.different)
        return status;
    att_log(earlier->context, ATT_LOG_INFO,
            "%s: the earlier measurements are replaced, because %s; they are kept in %s", path, r.different, previous);
    return att_file_add_lines(earlier->context, path, previous);
}

/* --- keeping figures ---------------------------------------------------------------------------------------------- */

static bool has_figure(const att_event *event, const att_measurement *wanted)
{
    for (int i = 0; i < event->measurement_count; i++)
        if (strcmp(event->measurements[i].instrument, wanted->instrument) == 0 &&
            strcmp(event->measurements[i].statistic, wanted->statistic) == 0 &&
            strcmp(event->measurements[i].node, wanted->node) == 0)
            return true;
    return false;
}

void att_earlier_drop_replaced(att_earlier *earlier, const att_event *measured)
{
    for (int e = 0; e < earlier->count; e++) {
        att_figures *figures = earlier->events[e].figures;
        int kept = 0;
        for (int i = 0; i < figures->count; i++)
            if (!has_figure(measured, &figures->items[i]))
                figures->items[kept++] = figures->items[i];
        figures->count = kept;
    }
}

static att_status emit_event(const att_context *context, const att_earlier_event *kept, const att_sink *sink)
{
    att_figures *figures = kept->figures;
    att_event_field fields[MOST_FIELDS];
    const json_t *seconds = json_object_get(kept->object, "seconds");
    att_figures_set_units(context, figures);
    const att_event event = {.kind = ATT_EVENT_MEASURE,
                             .epoch = figures->epoch,
                             .step = figures->step,
                             .seconds = json_is_number(seconds) ? json_number_value(seconds) : NAN,
                             .fields = fields,
                             .field_count = att_line_fields(kept->object, fields, MOST_FIELDS),
                             .measurements = figures->items,
                             .measurement_count = figures->count};
    return figures->count > 0 ? sink->emit(sink->user, &event) : ATT_OK;
}

/* Appends the instruments whose figures are kept, as "nsi, tns". */
static void list_instruments(const att_earlier *earlier, att_text *text)
{
    const char *last = "";
    for (int e = 0; e < earlier->count; e++)
        for (int i = 0; i < earlier->events[e].figures->count; i++) {
            const char *instrument = earlier->events[e].figures->items[i].instrument;
            if (strcmp(instrument, last) != 0)
                att_text_append(text, "%s%s", text->length > 0 ? ", " : "", instrument);
            last = instrument;
        }
}

att_status att_earlier_emit(const att_earlier *earlier, const att_sink *sink)
{
    att_text kept = {.context = earlier->context};
    list_instruments(earlier, &kept);
    if (kept.length > 0 && !kept.failed)
        att_log(earlier->context, ATT_LOG_INFO, "kept from the earlier measurements: %s", kept.data);
    att_text_free(&kept);
    for (int i = 0; i < earlier->count; i++)
        ATT_TRY(emit_event(earlier->context, &earlier->events[i], sink));
    return ATT_OK;
}

void att_earlier_free(att_earlier *earlier)
{
    clear(earlier);
    att_free(earlier->context, earlier->events);
    *earlier = (att_earlier){.context = earlier->context};
}
