#include "networks/models/detected_modules.h"

#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "networks/models/checkpoint.h"

const att_module *att_detected_find(const att_context *context, const char *name, const char *branch,
                                    att_module_place place)
{
    for (int i = 0; i < att_module_count(context); i++) {
        const att_module *module = att_module_at(context, i);
        char own[128];
        if (module->parameter && (module->places & place)) {
            snprintf(own, sizeof own, "%s.%s.%s", branch, module->scope, module->parameter);
            if (att_text_matches(own, name))
                return module;
        }
    }
    return NULL;
}

bool att_detected_owns(const att_context *context, const char *name, const char *branch, att_module_place place)
{
    for (int i = 0; i < att_module_count(context); i++) {
        const att_module *module = att_module_at(context, i);
        char scope[128];
        int length = snprintf(scope, sizeof scope, "%s.%s.", branch, module->scope);
        if (module->parameter && (module->places & place) && strncmp(name, scope, (size_t)length) == 0)
            return true;
    }
    return false;
}

/* Returns the module's index among those of the context. */
static int number_of(const att_context *context, const att_module *module)
{
    int number = 0;
    while (att_module_at(context, number) != module)
        number++;
    return number;
}

static bool comes_before(const att_context *context, const att_detected_module *detected, const att_module *module,
                         int hook)
{
    return detected->hook < hook ||
           (detected->hook == hook && number_of(context, detected->module) < number_of(context, module));
}

void att_detected_add(const att_context *context, att_detected_modules *detected, const att_module *module, int hook,
                      int block)
{
    int i = 0;
    while (i < detected->count && comes_before(context, &detected->items[i], module, hook))
        i++;
    att_detected_module *item = &detected->items[i];
    bool known = i < detected->count && item->module == module && item->hook == hook;
    if (!known && detected->count == ATT_MOST_MODULES) {
        detected->too_many = true;
        return;
    }
    if (!known) {
        memmove(item + 1, item, (size_t)(detected->count++ - i) * sizeof *item);
        *item = (att_detected_module){.module = module, .hook = hook};
    }
    item->at[block] = true;
}

int att_detected_sites(const att_block_layout *places, const att_detected_module *detected,
                       att_module_block sites[ATT_BLOCKS])
{
    int count = 0, total = att_stages_total(&places->stages);
    for (int b = 0; b < total; b++)
        if (detected->at[b])
            places->site(places, detected->module, detected->hook, b, &sites[count++]);
    return count;
}

static int count_below(const att_tensors *file, const char *scope)
{
    int count = 0;
    size_t length = strlen(scope);
    for (int i = 0; i < att_tensors_count(file); i++) {
        const char *name = att_tensors_at(file, i).name;
        count += strncmp(name, scope, length) == 0 && name[length] == '.';
    }
    return count;
}

/* Reads how many of its heads an attention lacks, and whether it has biases. */
static void describe_attention(const att_tensors *file, att_module_block *site)
{
    static const char *const biases[] = {"qkv.bias", "q_bias", "q_proj.bias"};
    site->has_bias = false;
    for (size_t i = 0; i < sizeof biases / sizeof *biases; i++)
        site->has_bias = site->has_bias || att_checkpoint_has(file, "%s.%s", site->block, biases[i]);
    int64_t packed = att_checkpoint_side(file, 0, "%s.qkv.weight", site->block);
    int64_t inner = packed ? packed / 3 : att_checkpoint_side(file, 0, "%s.q_proj.weight", site->block);
    site->replaced_heads = inner ? site->heads - (int)(inner * site->heads / site->channels) : 0;
}

void att_detected_describe(const att_tensors *file, const att_module *module, att_module_block *site)
{
    char scope[128];
    snprintf(scope, sizeof scope, "%s.%s", site->block, module->scope);
    site->tensors = count_below(file, scope);
    if (site->place == ATT_ON_HEADS)
        describe_attention(file, site);
}

enum { MODULE_BYTES = 128 };

/* Infers the options of the module, of all its blocks or of block `only`; -1: all. */
static att_status infer(att_context *context, const att_block_layout *places, const att_detected_module *detected,
                        int only, char module[MODULE_BYTES], bool *fits)
{
    att_module_block sites[ATT_BLOCKS];
    att_detected_module one = *detected;
    for (int b = 0; b < ATT_BLOCKS; b++)
        one.at[b] = one.at[b] && (only < 0 || b == only);
    const att_module_places at = {places->file, sites, att_detected_sites(places, &one, sites), places->alias};
    return att_module_options_infer(context, &at, detected->module, module, MODULE_BYTES, fits);
}

static int first_block(const att_detected_module *detected)
{
    int first = 0;
    while (first < ATT_BLOCKS && !detected->at[first])
        first++;
    return first;
}

/* Infers the options of the module. If none fit all its blocks, leaves those blocks in *detected whose options are
 * those of the first, and moves the others to *rest. */
static att_status infer_part(att_context *context, const att_block_layout *places, att_detected_module *detected,
                             att_detected_module *rest, char module[MODULE_BYTES])
{
    const att_detected_module all = *detected;
    const int first = first_block(detected);
    char own[MODULE_BYTES];
    bool fits;
    memset(rest->at, 0, sizeof rest->at);
    ATT_TRY(infer(context, places, &all, -1, module, &fits));
    if (fits)
        return ATT_OK;
    ATT_TRY(infer(context, places, &all, first, module, &fits));
    for (int b = first + 1; b < ATT_BLOCKS && fits; b++)
        if (all.at[b]) {
            bool fits_own;
            ATT_TRY(infer(context, places, &all, b, own, &fits_own));
            rest->at[b] = !fits_own || strcmp(own, module) != 0;
            detected->at[b] = !rest->at[b];
        }
    return ATT_OK;
}

/* Appends the module, once for each of its options, as those of ECA whose kernel differs from stage to stage. */
static att_status write_one(att_context *context, const att_block_layout *places, att_detected_module detected,
                            char text[ATT_OPTION_TEXT_BYTES])
{
    att_detected_module rest = detected;
    char module[MODULE_BYTES];
    for (; first_block(&detected) < ATT_BLOCKS; detected = rest) {
        size_t length = strlen(text);
        ATT_TRY(infer_part(context, places, &detected, &rest, module));
        if (length > 0 && length + 1 < ATT_OPTION_TEXT_BYTES)
            text[length++] = '+';
        if (!att_placed_format(detected.module, module, places->hooks, detected.hook, detected.at, &places->stages,
                               text + length, ATT_OPTION_TEXT_BYTES - length))
            return att_fail(context, ATT_ERR_UNSUPPORTED,
                            "%s: the list of blocks with modules takes more than %d bytes",
                            att_tensors_path(places->file), ATT_OPTION_TEXT_BYTES - 1);
    }
    return ATT_OK;
}

att_status att_detected_write(att_context *context, const att_block_layout *places,
                              const att_detected_modules *detected, att_option_values *found)
{
    char text[ATT_OPTION_TEXT_BYTES] = "";
    if (detected->too_many)
        return att_fail(context, ATT_ERR_UNSUPPORTED, "%s: a network has at most %d modules, and this one has more",
                        att_tensors_path(places->file), ATT_MOST_MODULES);
    for (int i = 0; i < detected->count; i++)
        ATT_TRY(write_one(context, places, detected->items[i], text));
    if (*text)
        att_options_set_text(found, "modules", text);
    return ATT_OK;
}

/* --- families without stages -------------------------------------------------------------------------------------- */

typedef struct flat {
    const char *const *branches;
    const int64_t *widths;
    int heads;
} flat;

static void describe_block(const att_block_layout *places, const att_module *module, int hook, int block,
                           att_module_block *site)
{
    const flat *f = places->user;
    *site =
        (att_module_block){.place = places->hooks->items[hook].place, .channels = f->widths[hook], .heads = f->heads};
    snprintf(site->block, sizeof site->block, "blocks.%d.%s", block, f->branches[hook]);
    att_detected_describe(places->file, module, site);
}

att_status att_detected_write_blocks(att_context *context, const att_tensors *file, const att_hooks *hooks,
                                     const char *const *branches, const int64_t *widths,
                                     const att_detected_modules *detected, att_option_values *found)
{
    const flat f = {branches, widths, (int)att_options_number(found, "num_heads", 1)};
    int depth = (int)att_options_number(found, "depth", 1);
    const att_block_layout places = {.file = file,
                                     .hooks = hooks,
                                     .stages = {.count = 1, .blocks = {depth < ATT_BLOCKS ? depth : ATT_BLOCKS}},
                                     .site = describe_block,
                                     .user = &f};
    return att_detected_write(context, &places, detected, found);
}
