#include "networks/models/tensor_rules.h"

#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "networks/models/checkpoint.h"
#include "networks/models/detected_modules.h"
#include "networks/models/family.h"

enum { NAME_BYTES = 96 };

/* --- names -------------------------------------------------------------------------------------------------------- */

/* Writes a name with the numbers of a stage and a block, both from 0, in place of '#' and '@'. */
static const char *name_of(const att_tensor_rules *rules, const char *pattern, int stage, int block,
                           char name[NAME_BYTES])
{
    size_t length = 0;
    for (const char *at = pattern; *at && length + 12 < NAME_BYTES; at++)
        if (*at == '#' || *at == '@')
            length +=
                (size_t)snprintf(name + length, NAME_BYTES - length, "%d", rules->first + (*at == '#' ? stage : block));
        else
            name[length++] = *at;
    name[length] = '\0';
    return name;
}

/* Parses "<stage>.<rest>" and "<block>.<rest>", which begin as rules->block says. Numbers count from 0; *block is -1
 * for a tensor of a stage outside of its blocks. Returns false for other names. */
static bool read_place(const att_tensor_rules *rules, const char *name, int *stage, int *block, const char **rest)
{
    *stage = *block = -1;
    *rest = name;
    for (const char *at = rules->block; *at; at++) {
        if (*at != '#' && *at != '@') {
            if (*name++ != *at)
                return *stage >= 0;
            continue;
        }
        int *number = *at == '#' ? stage : block;
        *number = att_checkpoint_number(&name) - rules->first;
        if (*number < 0 || *number >= (*at == '#' ? ATT_STAGES : ATT_BLOCKS)) {
            *number = -1;
            return *stage >= 0;
        }
        *rest = name--; /* at the dot */
    }
    return true;
}

int att_rules_layer(const att_tensor_rules *rules, const char *name)
{
    int stage, block;
    const char *rest;
    if (read_place(rules, name, &stage, &block, &rest))
        return 1 + ATT_BLOCKS * stage + (block < 0 ? 0 : block);
    if (att_checkpoint_below(name, rules->stem))
        return 0;
    return rules->last && att_checkpoint_below(name, rules->last) ? ATT_LAYER_LAST_BLOCK : ATT_LAYER_HEAD;
}

bool att_rules_is_added(const att_context *context, const att_tensor_rules *rules, const char *name)
{
    int stage, block;
    const char *rest;
    return read_place(rules, name, &stage, &block, &rest) && block >= 0 &&
           att_detected_owns(context, rest, rules->branch, ATT_ON_MAPS);
}

/* --- rules -------------------------------------------------------------------------------------------------------- */

/* Returns a side of a tensor; 0 if there is none, or none from 1 to 2^24. */
static int64_t side_of(const att_tensors *file, const char *name, int side)
{
    const int index = att_tensors_find(file, name);
    if (index < 0)
        return 0;
    const att_shape shape = att_tensors_at(file, index).shape;
    return side < shape.rank && shape.dims[side] >= 1 && shape.dims[side] <= 1 << 24 ? shape.dims[side] : 0;
}

static int count_blocks(const att_tensor_rules *rules, const att_tensors *file, const char *pattern, int stage)
{
    char name[NAME_BYTES];
    int count = 0;
    while (count < ATT_BLOCKS && att_tensors_find(file, name_of(rules, pattern, stage, count, name)) >= 0)
        count++;
    return count;
}

/* Sets the list of an option with a number for each stage; leaves it unset if there is no first stage. */
static void read_stages(const att_tensor_rules *rules, const att_tensors *file, const att_tensor_rule *rule,
                        att_option_values *found)
{
    int numbers[ATT_STAGES], count = 0;
    char name[NAME_BYTES], text[ATT_OPTION_TEXT_BYTES];
    for (; count < ATT_STAGES; count++) {
        numbers[count] = rule->kind == ATT_RULE_BLOCKS
                             ? count_blocks(rules, file, rule->tensor, count)
                             : (int)side_of(file, name_of(rules, rule->tensor, count, 0, name), rule->side);
        if (numbers[count] == 0)
            break;
    }
    if (count > 0 && att_format_list(numbers, count, text, sizeof text))
        att_options_set_text(found, rule->option, text);
}

/* The value of a rule for one tensor: `yes`, `no`, or a number, which is written to `text`; NULL: none. */
static const char *value_of(const att_tensors *file, const att_tensor_rule *rule, char text[NAME_BYTES])
{
    const int index = att_tensors_find(file, rule->tensor);
    const int64_t side = side_of(file, rule->tensor, rule->side),
                  other = rule->other ? side_of(file, rule->other, rule->other_side) : 0;
    if (rule->kind == ATT_RULE_HAS) {
        const bool has = index >= 0 && (!rule->rank || att_tensors_at(file, index).shape.rank == rule->rank);
        return has ? rule->yes : rule->no;
    }
    if (rule->kind == ATT_RULE_SAME)
        return !side || !other ? NULL : side == other ? rule->yes : rule->no;
    if (!side || (rule->other && !other))
        return rule->no;
    snprintf(text, NAME_BYTES, "%.17g", (double)side / (double)(rule->other ? other : 1));
    return text;
}

static void read_rule(const att_option_table *table, const att_tensor_rules *rules, const att_tensors *file,
                      const att_tensor_rule *rule, att_option_values *found)
{
    char text[NAME_BYTES];
    if (strchr(rule->tensor, '#')) {
        read_stages(rules, file, rule, found);
        return;
    }
    const char *value = value_of(file, rule, text);
    if (value)
        (void)att_option_store(att_option_find(table, rule->option), &value, 1, found);
}

/* --- modules ------------------------------------------------------------------------------------------------------ */

static void describe_block(const att_block_layout *layout, const att_module *module, int hook, int block,
                           att_module_block *site)
{
    const att_tensor_rules *rules = layout->user;
    char name[NAME_BYTES], scope[NAME_BYTES];
    const int stage = att_stages_find(&layout->stages, &block);
    name_of(rules, rules->block, stage, block, scope);
    snprintf(name, sizeof name, "%.60s.%.30s", scope, rules->width);
    *site = (att_module_block){.place = layout->hooks->items[hook].place, .channels = side_of(layout->file, name, 0)};
    snprintf(site->block, sizeof site->block, "%.22s.%.8s", scope, rules->branch);
    att_detected_describe(layout->file, module, site);
}

static att_status read_modules(att_context *context, const att_family *family, const att_tensors *file,
                               att_option_values *found)
{
    const att_tensor_rules *rules = family->rules;
    att_detected_modules detected = {0};
    att_block_layout layout = {.file = file, .hooks = &att_branch_hooks, .site = describe_block, .user = rules};
    for (int i = 0; i < rules->count; i++)
        for (int s = 0; s < ATT_STAGES && rules->rules[i].kind == ATT_RULE_BLOCKS; s++)
            if ((layout.stages.blocks[s] = count_blocks(rules, file, rules->rules[i].tensor, s)) > 0)
                layout.stages.count = s + 1;
    if (att_stages_total(&layout.stages) > ATT_BLOCKS)
        return ATT_OK; /* the network is refused */
    for (int i = 0; i < att_tensors_count(file); i++) {
        int stage, block;
        const char *rest;
        if (!read_place(rules, att_tensors_at(file, i).name, &stage, &block, &rest) || block < 0 ||
            stage >= layout.stages.count || block >= layout.stages.blocks[stage])
            continue;
        const att_module *module = att_detected_find(context, rest, rules->branch, ATT_ON_MAPS);
        if (module)
            att_detected_add(context, &detected, module, ATT_AFTER_BRANCH,
                             att_stages_before(&layout.stages, stage) + block);
    }
    return att_detected_write(context, &layout, &detected, found);
}

/* --- the network that the rules tell ------------------------------------------------------------------------------ */

/* Builds the network. Options that tensors do not tell are those of the family's first named network. */
static att_status build(att_context *context, const att_family *family, const att_tensors *file,
                        att_option_values *found, att_model **model)
{
    const att_variant first = {.family = family, .index = 0, .tag = att_config_none()};
    for (int i = 0; i < family->rules->count; i++)
        read_rule(family->options, family->rules, file, &family->rules->rules[i], found);
    ATT_TRY(read_modules(context, family, file, found));
    return att_model_build(context, &first, found, ATT_F32, model);
}

static int parameter_of(const att_graph *graph, const char *name)
{
    int count = att_graph_parameter_count(graph), index = 0;
    while (index < count && strcmp(att_graph_parameter_at(graph, index).name, name) != 0)
        index++;
    return index < count ? index : -1;
}

/* user: the graph; NULL: there is none */
static bool knows(const void *user, const char *name)
{
    return user && parameter_of(user, name) >= 0;
}

static bool has_signature(const att_family *family, const att_tensors *file)
{
    bool has = false;
    for (const char *const *signature = family->signatures; *signature && !has; signature++)
        has = att_tensors_find(file, *signature) >= 0;
    return has;
}

att_foreign att_rules_foreign(att_context *context, const att_family *family, const att_tensors *file)
{
    att_option_values found = att_options_none();
    att_model *model = NULL;
    const bool built = has_signature(family, file) && build(context, family, file, &found, &model) == ATT_OK;
    const att_foreign foreign = att_foreign_find(context, file, knows, built ? att_model_graph(model) : NULL);
    att_model_destroy(&model);
    return foreign;
}

static att_status check_shapes(att_context *context, const att_tensor_rules *rules, const att_tensors *file,
                               const att_graph *graph)
{
    char own[96], its[96];
    for (int i = 0; i < att_graph_parameter_count(graph); i++) {
        const att_parameter_info parameter = att_graph_parameter_at(graph, i);
        const int index = att_tensors_find(file, parameter.name);
        if (index < 0)
            return att_fail(context, ATT_ERR_UNSUPPORTED,
                            "%s: there is no tensor \"%s\", which a %s with its other tensors has",
                            att_tensors_path(file), parameter.name, rules->what);
        const att_shape shape = att_tensors_at(file, index).shape;
        if (!att_checkpoint_same_shape(shape, parameter.shape))
            return att_fail(context, ATT_ERR_UNSUPPORTED,
                            "%s: tensor \"%s\" is %s; in a %s with its other tensors it is %s", att_tensors_path(file),
                            parameter.name, att_shape_format(shape, its, sizeof its), rules->what,
                            att_shape_format(parameter.shape, own, sizeof own));
    }
    return ATT_OK;
}

/* Completing the options has brought lists to one form. */
static void take_completed(const att_model *model, att_option_values *found)
{
    const att_option_values *options = att_model_options(model);
    for (int i = 0; i < found->count; i++) {
        const att_option_value *value = att_options_find(options, found->items[i].key);
        if (value)
            found->items[i] = *value;
    }
}

att_status att_rules_recognise(att_context *context, const att_family *family, const att_tensors *file,
                               att_option_values *found)
{
    char what[NAME_BYTES], message[256];
    att_model *model;
    const att_status built = build(context, family, file, found, &model);
    if (built == ATT_ERR_MEMORY || built == ATT_ERR_STOPPED)
        return built;
    if (built != ATT_OK) {
        snprintf(message, sizeof message, "%s", att_context_message(context));
        return att_fail(context, ATT_ERR_UNSUPPORTED, "%s: no %s has tensors of these shapes: %s",
                        att_tensors_path(file), family->rules->what, message);
    }
    const att_graph *graph = att_model_graph(model);
    const att_foreign foreign = att_foreign_find(context, file, knows, graph);
    snprintf(what, sizeof what, "%s here", family->rules->what);
    att_status status = att_foreign_refuse(context, file, &foreign, what);
    if (status == ATT_OK)
        status = check_shapes(context, family->rules, file, graph);
    if (status == ATT_OK)
        take_completed(model, found);
    att_model_destroy(&model);
    return status;
}
