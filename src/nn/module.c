#include <stdio.h>
#include <string.h>

#include <attscope/nn.h>

#include "core/error.h"
#include "core/text.h"
#include "nn/list.h"

#define DECLARE(name) extern const att_module att_module_##name;
ATT_MODULE_LIST(DECLARE)
#define POINTER(name) &att_module_##name,
static const att_module *const modules[] = {ATT_MODULE_LIST(POINTER)};
enum { MODULE_COUNT = sizeof modules / sizeof *modules };

int att_module_count(void)
{
    return MODULE_COUNT;
}

const att_module *att_module_at(int index)
{
    return modules[index];
}

static const char *module_name(const void *user, int index)
{
    (void)user;
    return modules[index]->name;
}

static const char *option_name(const void *user, int index)
{
    return ((const att_module *)user)->options[index].name;
}

static att_status fail_name(att_context *context, const char *kind, const char *name, const char *nearest)
{
    return att_fail(context, ATT_ERR_NOT_FOUND,
                    nearest ? "there is no %s \"%s\"; did you mean \"%s\"?" : "there is no %s \"%s\"%s", kind, name,
                    nearest ? nearest : "");
}

static att_status find_module(att_context *context, const char *name, const att_module **module)
{
    for (int i = 0; i < MODULE_COUNT; i++)
        if (strcmp(modules[i]->name, name) == 0) {
            *module = modules[i];
            return ATT_OK;
        }
    return fail_name(context, "module", name, att_text_nearest(name, module_name, NULL, MODULE_COUNT));
}

static att_status set_option(att_context *context, att_module_choice *choice, char *text)
{
    const att_module *module = choice->module;
    char *equals = strchr(text, '=');
    double value;
    if (!equals || !att_text_to_f64(equals + 1, &value))
        return att_fail(context, ATT_ERR_ARGUMENT, "module %s: \"%s\" is not option=number", module->name, text);
    *equals = '\0';
    for (int i = 0; i < module->option_count; i++) {
        const att_module_option *option = &module->options[i];
        if (strcmp(option->name, text) != 0)
            continue;
        if (value < option->low || value > option->high)
            return att_fail(context, ATT_ERR_ARGUMENT, "module %s: %s must be in %g..%g, not %g", module->name, text,
                            option->low, option->high, value);
        choice->values[i] = value;
        return ATT_OK;
    }
    return fail_name(context, "such option of this module:", text,
                     att_text_nearest(text, option_name, module, module->option_count));
}

att_status att_module_parse(att_context *context, const char *text, att_module_choice *choice)
{
    att_module_choice made = {0};
    char copy[128];
    if ((size_t)snprintf(copy, sizeof copy, "%s", text) >= sizeof copy)
        return att_fail(context, ATT_ERR_ARGUMENT, "a module is said in at most %zu bytes, not \"%s\"", sizeof copy - 1,
                        text);
    char *options = strchr(copy, ':');
    if (options)
        *options++ = '\0';
    if (strcmp(copy, "none") != 0) {
        ATT_TRY(find_module(context, copy, &made.module));
        for (int i = 0; i < made.module->option_count; i++)
            made.values[i] = made.module->options[i].start;
    } else if (options) {
        return att_fail(context, ATT_ERR_ARGUMENT, "module \"none\" has no options");
    }
    while (options) {
        char *next = strchr(options, ',');
        if (next)
            *next++ = '\0';
        ATT_TRY(set_option(context, &made, options));
        options = next;
    }
    *choice = made;
    return ATT_OK;
}

att_value att_module_apply(const att_module_choice *choice, const att_scope *scope, att_value branch,
                           att_value identity)
{
    if (!choice->module)
        return branch;
    att_scope own = att_scope_in(scope, "%s", choice->module->scope);
    return choice->module->apply(&own, choice->values, branch, identity);
}
