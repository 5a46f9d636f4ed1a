#include "study/measure/selection.h"

#include <stdio.h>
#include <string.h>

#include "base/core/details.h"
#include "base/core/memory.h"
#include "base/core/text.h"
#include "study/measure/list.h"

static att_status unknown_instrument(att_context *context, const char *name)
{
    const char *nearest = att_catalog_nearest(&att_instruments, context, name);
    if (nearest)
        return att_fail(context, ATT_ERR_NOT_FOUND, "there is no instrument \"%s\"; did you mean \"%s\"?", name,
                        nearest);
    att_text names = {.context = context};
    att_catalog_list(&att_instruments, context, &names);
    att_status status = names.failed
                            ? att_fail_memory(context, 256, "a message")
                            : att_fail(context, ATT_ERR_NOT_FOUND,
                                       "there is no instrument \"%s\"; available: %s and \"all\"", name, names.data);
    att_text_free(&names);
    return status;
}

static att_status deselect(att_context *context, const char *name, att_selection *selections)
{
    const att_instrument *instrument;
    for (int i = 0; (instrument = att_catalog_at(&att_instruments, context, i)); i++)
        if (strcmp(name, instrument->info.name) == 0) {
            selections[i].selected = false;
            return ATT_OK;
        }
    return unknown_instrument(context, name);
}

/* Sets the options of an instrument from "key=value,key=value", which is changed; NULL: the defaults. */
static att_status set_options(att_context *context, const att_instrument *instrument, char *options, double *values)
{
    const att_detail_owner owner = {"instrument", instrument->info.name, instrument->info.options,
                                    instrument->info.option_count};
    bool given[ATT_INSTRUMENT_OPTIONS] = {false};
    att_details_start(&owner, values);
    while (options) {
        char *next = strchr(options, ',');
        if (next)
            *next++ = '\0';
        ATT_TRY(att_detail_set(context, &owner, options, given, values));
        options = next;
    }
    return ATT_OK;
}

/* Selects the instrument `name`, or all. `name` may have options after a colon, or a '?', which are removed from it. */
static att_status select_instrument(att_context *context, char *name, att_selection *selections)
{
    const att_instrument *instrument;
    char *options = strchr(name, ':');
    if (options)
        *options++ = '\0';
    const size_t length = strlen(name);
    const bool if_it_applies = length > 0 && name[length - 1] == '?';
    if (if_it_applies)
        name[length - 1] = '\0';
    bool found = false, all = strcmp(name, "all") == 0;
    if (all && options)
        return att_fail(context, ATT_ERR_ARGUMENT,
                        "\"all\" has no options; they are written after an instrument's name");
    for (int i = 0; (instrument = att_catalog_at(&att_instruments, context, i)); i++) {
        if (all ? instrument->info.costly : strcmp(name, instrument->info.name) != 0)
            continue;
        found = true;
        if (selections[i].selected && if_it_applies)
            continue;
        if (selections[i].selected)
            return att_fail(context, ATT_ERR_ARGUMENT, "instrument \"%s\" is named twice", instrument->info.name);
        selections[i].selected = true;
        selections[i].by_all = all || if_it_applies;
        ATT_TRY(set_options(context, instrument, options, selections[i].options));
    }
    return found ? ATT_OK : unknown_instrument(context, name);
}

static bool only_excludes(const char *with)
{
    for (; *with == '-'; with++) {
        with += strcspn(with, ",");
        if (!*with)
            return true;
    }
    return false;
}

static att_status check_choice(att_context *context, const char *with, const att_selection *selections)
{
    for (int i = 0; i < att_instrument_count(context); i++)
        if (selections[i].selected)
            return ATT_OK;
    return att_fail(context, ATT_ERR_ARGUMENT, "\"%s\" selects no instrument", with);
}

size_t att_instruments_item(const char *list)
{
    size_t length = strcspn(list, ",");
    while (list[length] && list[length + 1 + strcspn(list + length + 1, ",:=")] == '=')
        length += 1 + strcspn(list + length + 1, ",");
    return length;
}

static att_status parse_item(att_context *context, const char *item, size_t length, att_selection *selections)
{
    char text[256];
    if (length >= sizeof text)
        return att_fail(context, ATT_ERR_ARGUMENT, "an instrument with its options has at most %zu bytes, not %zu",
                        sizeof text - 1, length);
    snprintf(text, sizeof text, "%.*s", (int)length, item);
    return text[0] == '-' ? deselect(context, text + 1, selections) : select_instrument(context, text, selections);
}

/* Parses `with` and marks the selected instruments. They are added in the order of the catalog. */
static att_status parse(att_context *context, const char *with, att_selection *selections)
{
    with = with ? with : "all";
    if (only_excludes(with))
        ATT_TRY(parse_item(context, "all", strlen("all"), selections));
    for (const char *at = with;; at++) {
        size_t length = att_instruments_item(at);
        ATT_TRY(parse_item(context, at, length, selections));
        at += length;
        if (!*at)
            return check_choice(context, with, selections);
    }
}

att_status att_selections_parse(att_context *context, const char *with, att_selection **selections)
{
    const size_t count = (size_t)att_instrument_count(context);
    att_selection *parsed = att_allocate_array(context, count, sizeof *parsed);
    att_status status = parsed ? parse(context, with, parsed)
                               : att_fail_memory(context, count * sizeof *parsed, "a list of instruments");
    if (status != ATT_OK)
        att_free(context, parsed);
    else
        *selections = parsed;
    return status;
}

att_status att_instruments_check(att_context *context, const char *with)
{
    att_selection *selections;
    ATT_TRY(att_selections_parse(context, with, &selections));
    att_free(context, selections);
    return ATT_OK;
}
