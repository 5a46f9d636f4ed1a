/* Checks a module's descriptor before it is registered. */
#include <math.h>
#include <string.h>

#include "core/catalog.h"
#include "core/error.h"
#include "nn/module.h"

#define PLACE_BIT(name, bit, rank, text) | (bit)
static const unsigned ALL_PLACES = 0 ATT_MODULE_PLACE_LIST(PLACE_BIT);
#undef PLACE_BIT

static att_status refuse(att_context *context, const att_module *module, const char *what)
{
    return att_fail(context, ATT_ERR_ARGUMENT, "module \"%s\": %s", module->name, what);
}

static att_status refuse_option(att_context *context, const att_module *module, const att_module_option *option,
                                const char *what)
{
    return att_fail(context, ATT_ERR_ARGUMENT, "module \"%s\", option \"%s\": %s", module->name, option->name, what);
}

/* Returns the number of choices; -1 if a choice cannot be written as a value. */
static int count_choices(const char *const *choices)
{
    int count = 0;
    for (; choices[count]; count++)
        if (!choices[count][0] || choices[count][strcspn(choices[count], ":,=@+ \t\n")])
            return -1;
    return count;
}

static att_status check_choices(att_context *context, const att_module *module, const att_module_option *option)
{
    int count = count_choices(option->choices);
    if (count < 1)
        return refuse_option(context, module, option, "its choices must be texts without blanks and \":,=@+\"");
    if (option->low != 0 || option->high != count - 1 || option->start != floor(option->start))
        return refuse_option(context, module, option,
                             "low, high and start must be indices of choices: 0, that of the last, and the default's");
    return ATT_OK;
}

static att_status check_option(att_context *context, const att_module *module, int index)
{
    const att_module_option *option = &module->options[index];
    if (!att_name_is_valid(option->name))
        return refuse(context, module,
                      "each option needs a name of 1 to 23 letters, digits and underscores, the first a letter");
    for (int i = 0; i < index; i++)
        if (strcmp(module->options[i].name, option->name) == 0)
            return refuse_option(context, module, option, "there are two of this name");
    if (!option->meaning)
        return refuse_option(context, module, option, "it has no `meaning`");
    if (!(isfinite(option->low) && isfinite(option->high) && option->low <= option->start &&
          option->start <= option->high))
        return refuse_option(context, module, option, "low <= start <= high must hold, all finite");
    return option->choices ? check_choices(context, module, option) : ATT_OK;
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
    if (module->option_count < 0 || module->option_count > ATT_MODULE_OPTIONS)
        return refuse(context, module, "`option_count` must be in 0..4");
    for (int i = 0; i < module->option_count; i++)
        ATT_TRY(check_option(context, module, i));
    return module->apply ? ATT_OK : refuse(context, module, "it has no function `apply`");
}
