#include "study/measure/list.h"

#include "base/core/details.h"
#include "base/core/error.h"

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
    const att_detail_owner owner = {"instrument", info->name, info->options, info->option_count};
    ATT_TRY(att_details_check(context, &owner, ATT_INSTRUMENT_OPTIONS));
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
