#include "models/seen_modules.h"

#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "core/text.h"

const att_module *att_seen_module(const char *name, const char *branch)
{
    for (int i = 0; i < att_module_count(); i++) {
        const att_module *module = att_module_at(i);
        char own[128];
        if (module->parameter && module->place == ATT_ON_TOKENS) {
            snprintf(own, sizeof own, "%s.%s.%s", branch, module->scope, module->parameter);
            if (att_text_matches(own, name))
                return module;
        }
    }
    return NULL;
}

void att_seen_note(att_seen_modules *seen, const att_module *module, int hook, int block)
{
    seen->module[hook] = module;
    seen->at[hook][block] = true;
}

att_status att_seen_write(att_context *context, const att_tensors *file, const att_hooks *hooks, int depth,
                          const att_seen_modules *seen, att_option_values *found)
{
    char text[ATT_OPTION_TEXT_BYTES] = "";
    const att_stages stages = {.count = 1, .blocks = {depth}};
    for (int h = 0; h < hooks->count; h++) {
        size_t length = strlen(text);
        if (!seen->module[h])
            continue;
        if (length > 0 && length + 1 < sizeof text)
            text[length++] = '+';
        if (!att_placed_format(seen->module[h]->name, hooks, h, seen->at[h], &stages, text + length,
                               sizeof text - length))
            return att_fail(context, ATT_ERR_UNSUPPORTED,
                            "%s: the blocks with modules are too scattered to be said in %zu bytes",
                            att_tensors_path(file), sizeof text - 1);
    }
    if (*text)
        att_options_set_text(found, "modules", text);
    return ATT_OK;
}
