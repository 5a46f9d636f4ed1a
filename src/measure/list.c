#include "measure/list.h"

#include <string.h>

#include "core/error.h"

#define ATT_INSTRUMENT_ADDRESS(name) &att_instrument_##name,
static const att_instrument *const instruments[] = {ATT_INSTRUMENT_LIST(ATT_INSTRUMENT_ADDRESS)};
#undef ATT_INSTRUMENT_ADDRESS
enum { INSTRUMENT_COUNT = sizeof instruments / sizeof *instruments };

static const void *built_in(int index)
{
    return index < INSTRUMENT_COUNT ? instruments[index] : NULL;
}

static const char *name_of(const void *instrument)
{
    return ((const att_instrument *)instrument)->info.name;
}

const att_catalog att_instruments = {.kind = "instrument", .reserved = "all", .built_in = built_in, .name = name_of};

int att_instrument_count(const att_context *context)
{
    return att_catalog_count(&att_instruments, context);
}

att_instrument_info att_instrument_at(const att_context *context, int index)
{
    const att_instrument *instrument = att_catalog_at(&att_instruments, context, index);
    return instrument ? instrument->info : (att_instrument_info){0};
}

bool att_instrument_find(const att_context *context, const char *name, att_instrument_info *info)
{
    const att_instrument *instrument = att_catalog_find(&att_instruments, context, name);
    if (instrument)
        *info = instrument->info;
    return instrument != NULL;
}

/* --- registering -------------------------------------------------------------------------------------------------- */

static att_status refuse(att_context *context, const att_instrument *instrument, const char *what)
{
    return att_fail(context, ATT_ERR_ARGUMENT, "instrument \"%s\": %s", instrument->info.name, what);
}

static att_status check_option(att_context *context, const att_instrument *instrument)
{
    const att_instrument_option *option = &instrument->option;
    int count = 0;
    if (!option->name)
        return ATT_OK;
    if (!att_name_is_valid(option->name))
        return refuse(context, instrument,
                      "its option needs a name of 1 to 23 letters, digits and underscores, the first a letter");
    for (; count < ATT_INSTRUMENT_VALUES && option->values[count]; count++)
        if (!option->values[count][0] || option->values[count][strcspn(option->values[count], ":,= \t\n")])
            return refuse(context, instrument, "its option's values must be texts without blanks and \":,=\"");
    if (count == 0 || option->values[count])
        return refuse(context, instrument, "its option needs 1 to 7 values, and NULL after the last");
    return instrument->info.options
               ? ATT_OK
               : refuse(context, instrument, "it has an option, but no `info.options` that describes it");
}

/* An instrument has either `observe`, or all functions of `state`. */
static att_status check_functions(att_context *context, const att_instrument *instrument)
{
    const att_instrument_state *state = &instrument->state;
    bool keeps = state->size && state->observe && state->merge && state->report,
         mixes = state->size || state->observe || state->merge || state->report;
    if (!instrument->request)
        return refuse(context, instrument, "it has no function `request`");
    if (keeps ? instrument->observe != NULL : mixes || !instrument->observe)
        return refuse(context, instrument, "it needs either `observe` or all four functions of `state`");
    return ATT_OK;
}

att_status att_instrument_check(att_context *context, const att_instrument *instrument)
{
    const att_instrument_info *info = &instrument->info;
    if (!info->summary || !info->unit || !info->formula)
        return refuse(context, instrument, "it needs `summary`, `unit` and `formula` in `info`");
    ATT_TRY(check_option(context, instrument));
    return check_functions(context, instrument);
}

att_status att_instrument_register(att_context *context, const att_instrument *instrument)
{
    if (!instrument)
        return att_fail(context, ATT_ERR_ARGUMENT, "there is no instrument to register: the descriptor is NULL");
    ATT_TRY(att_catalog_check(&att_instruments, context, instrument->info.name));
    ATT_TRY(att_instrument_check(context, instrument));
    return att_catalog_add(&att_instruments, context, instrument);
}
