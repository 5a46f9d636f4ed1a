/* Checks a module's descriptor before it is registered. */
#include "base/core/catalog.h"
#include "base/core/details.h"
#include "base/core/error.h"
#include "networks/nn/module.h"

#define PLACE_BIT(name, bit, rank, text) | (bit)
static const unsigned ALL_PLACES = 0 ATT_MODULE_PLACE_LIST(PLACE_BIT);
#undef PLACE_BIT

static att_status refuse(att_context *context, const att_module *module, const char *what)
{
    return att_fail(context, ATT_ERR_ARGUMENT, "module \"%s\": %s", module->name, what);
}

static att_status check_texts(att_context *context, const att_module *module)
{
    if (!module->meaning)
        return refuse(context, module, "it has no `meaning`");
    if (module->places == 0 || (module->places & ~ALL_PLACES))
        return refuse(context, module,
                      "its `places` must be one or more of ATT_ON_TOKENS, ATT_ON_MAPS and "
                      "ATT_ON_HEADS");
    if (module->replaced_heads && !(module->places & ATT_ON_HEADS))
        return refuse(context, module, "`replaced_heads` is for modules of ATT_ON_HEADS");
    if (!att_name_is_valid(module->scope))
        return refuse(context, module,
                      "its `scope` must be 1 to 23 letters, digits and underscores, the first a letter");
    if (module->parameter && !*module->parameter)
        return refuse(context, module, "its `parameter` is empty; use NULL for a module without parameters");
    for (int i = 0; i < ATT_MODULE_OTHER_NAMES; i++)
        if (!module->other_names[i][0] != !module->other_names[i][1])
            return refuse(context, module, "its `other_names` must be pairs");
    if ((module->constant && !*module->constant) || !module->constant != !module->constant_at)
        return refuse(context, module, "`constant` and `constant_at` belong together");
    return ATT_OK;
}

att_status att_module_check(att_context *context, const att_module *module)
{
    ATT_TRY(check_texts(context, module));
    const att_detail_owner owner = {"module", module->name, module->options, module->option_count};
    ATT_TRY(att_details_check(context, &owner, ATT_MODULE_OPTIONS));
    return module->apply ? ATT_OK : refuse(context, module, "it has no function `apply`");
}
