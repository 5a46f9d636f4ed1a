/* Reads the lists of what is removed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "lab/runs/ablation/ablation.h"
#include "networks/models/family.h"
#include "study/network/network.h"

enum { WORD = 256 };

static const char *network_name(const att_ablation *a)
{
    return att_network_identity(a->network)->name;
}

/* --- parts -------------------------------------------------------------------------------------------------------- */

static att_status add_cut(att_ablation *a, att_ablated_part *part, att_cut cut)
{
    if (!att_list_grow(a->context, &part->cuts, part->count, &part->room, sizeof *part->cuts))
        return att_fail_memory(a->context, sizeof cut, "the parts of a network");
    part->cuts[part->count++] = cut;
    return ATT_OK;
}

/* Begins a part; its cuts follow. */
static att_status add_part(att_ablation *a, const char *name)
{
    att_ablated_parts *parts = &a->tried;
    if (!att_list_grow(a->context, &parts->items, parts->count, &parts->room, sizeof *parts->items))
        return att_fail_memory(a->context, sizeof *parts->items, "the parts of a network");
    parts->items[parts->count] = (att_ablated_part){.name = att_arena_string(&a->arena, name)};
    return parts->items[parts->count++].name ? ATT_OK : att_fail_memory(a->context, strlen(name), name);
}

static const char *name_cut(const att_ablation *a, att_cut cut, char name[WORD])
{
    if (cut.kind == ATT_ABLATED_HEADS)
        snprintf(name, WORD, "%s:%d", att_explorer_layer_at(a->explorer, cut.part).scope, cut.head);
    else if (cut.kind == ATT_ABLATED_BRANCHES)
        snprintf(name, WORD, "%s", att_explorer_branch_at(a->explorer, cut.part).scope);
    else
        snprintf(name, WORD, "token %d", cut.part);
    return name;
}

/* Adds the cut to the part of a group, or as a part of its own. */
static att_status take(att_ablation *a, bool group, att_cut cut)
{
    char name[WORD];
    if (!group)
        ATT_TRY(add_part(a, name_cut(a, cut, name)));
    return add_cut(a, &a->tried.items[a->tried.count - 1], cut);
}

/* --- heads -------------------------------------------------------------------------------------------------------- */

static const char *layer_name(const void *user, int index)
{
    return att_explorer_layer_at(user, index).scope;
}

static const char *branch_name(const void *user, int index)
{
    return att_explorer_branch_at(user, index).scope;
}

static att_status fail_name(const att_ablation *a, const char *what, const char *word,
                            const char *(*name)(const void *user, int index), int count)
{
    const char *nearest = att_text_nearest(word, name, a->explorer, count);
    if (nearest)
        return att_fail(a->context, ATT_ERR_ARGUMENT, "%s has no %s \"%s\"; did you mean %s?", network_name(a), what,
                        word, nearest);
    return att_fail(a->context, ATT_ERR_ARGUMENT, "%s has no %s \"%s\", only %s to %s", network_name(a), what, word,
                    name(a->explorer, 0), name(a->explorer, count - 1));
}

/* Whether the word means the scope: "all", a pattern, or the scope without its last part. */
static bool means(const char *word, const char *scope)
{
    const char *dot = strrchr(scope, '.');
    return strcmp(word, "all") == 0 || att_text_matches(word, scope) ||
           (dot && strlen(word) == (size_t)(dot - scope) && strncmp(word, scope, strlen(word)) == 0);
}

/* "3" or "1-4", of numbers below `count`. */
static bool read_range(const char *text, int count, int range[2])
{
    char *end = NULL;
    const long first = strtol(text, &end, 10);
    const long last = *end == '-' ? strtol(end + 1, &end, 10) : first;
    range[0] = (int)first;
    range[1] = (int)last;
    return *text >= '0' && *text <= '9' && *end == '\0' && first <= last && last < count;
}

/* Takes numbers and ranges below `count`, separated by commas. Returns ERR_NOT_FOUND, without a message, if the text
 * is anything else. */
static att_status take_numbers(att_ablation *a, char *text, int count, bool group, att_cut cut)
{
    for (char *at = text; at;) {
        char *comma = strchr(at, ',');
        int range[2];
        if (comma)
            *comma = '\0';
        if (!read_range(at, count, range))
            return ATT_ERR_NOT_FOUND;
        for (int n = range[0]; n <= range[1]; n++) {
            *(cut.kind == ATT_ABLATED_HEADS ? &cut.head : &cut.part) = n;
            ATT_TRY(take(a, group, cut));
        }
        at = comma ? comma + 1 : NULL;
    }
    return ATT_OK;
}

/* heads: NULL: all */
static att_status take_heads_of(att_ablation *a, int layer, const char *heads, bool group)
{
    const att_explorer_layer l = att_explorer_layer_at(a->explorer, layer);
    char numbers[WORD];
    if (!heads || strcmp(heads, "*") == 0)
        snprintf(numbers, sizeof numbers, "0-%d", l.heads - 1);
    else
        snprintf(numbers, sizeof numbers, "%s", heads);
    const att_status status = take_numbers(a, numbers, l.heads, group, (att_cut){ATT_ABLATED_HEADS, layer, -1});
    if (status != ATT_ERR_NOT_FOUND)
        return status;
    return att_fail(a->context, ATT_ERR_ARGUMENT,
                    "heads \"%s\" of %s: expected numbers and ranges from 0 to %d, separated by commas, or *", heads,
                    l.scope, l.heads - 1);
}

/* word: "LAYER" or "LAYER:HEADS". */
static att_status take_heads(att_ablation *a, char *word, bool group)
{
    const int layers = att_explorer_layer_count(a->explorer);
    char *colon = strrchr(word, ':');
    bool found = false;
    if (layers == 0)
        return att_fail(a->context, ATT_ERR_UNSUPPORTED,
                        "%s has no attention layers, so it has no heads; residual branches can be removed "
                        "(--branches all)",
                        network_name(a));
    if (colon)
        *colon = '\0';
    for (int l = 0; l < layers; l++) {
        if (!means(word, att_explorer_layer_at(a->explorer, l).scope))
            continue;
        found = true;
        ATT_TRY(take_heads_of(a, l, colon ? colon + 1 : NULL, group));
    }
    return found ? ATT_OK : fail_name(a, "attention layer", word, layer_name, layers);
}

/* --- branches ----------------------------------------------------------------------------------------------------- */

/* Whether the word means the branch: "all", a pattern of its scope, or its content ("mlp"). */
static bool means_branch(const char *word, att_explorer_branch branch)
{
    return strcmp(word, "all") == 0 || att_text_matches(word, branch.scope) ||
           (*branch.content && strcasecmp(word, branch.content) == 0);
}

static att_status take_branches(att_ablation *a, char *word, bool group)
{
    const int branches = att_explorer_branch_count(a->explorer);
    bool found = false;
    if (branches == 0)
        return att_fail(a->context, ATT_ERR_UNSUPPORTED, "%s has no residual branches", network_name(a));
    for (int b = 0; b < branches; b++) {
        if (!means_branch(word, att_explorer_branch_at(a->explorer, b)))
            continue;
        found = true;
        ATT_TRY(take(a, group, (att_cut){ATT_ABLATED_BRANCHES, b, -1}));
    }
    return found ? ATT_OK : fail_name(a, "residual branch", word, branch_name, branches);
}

/* --- tokens ------------------------------------------------------------------------------------------------------- */

/* The tokens that a word names, which are part of the prefix: class token first, registers last. */
static att_status take_named_tokens(att_ablation *a, const char *word, int tokens, bool group, bool *known)
{
    const att_option_values *options = att_model_options(att_network_model(a->network));
    const int prefix = att_explorer_layer_at(a->explorer, 0).prefix;
    const int registers = (int)att_options_number(options, "reg_tokens", 0);
    const bool all = strcmp(word, "all") == 0, is_class = strcmp(word, "class") == 0;
    const bool is_register = strcmp(word, "registers") == 0;
    *known = all || is_class || is_register;
    if ((is_register && registers == 0) || (is_class && prefix == registers))
        return att_fail(a->context, ATT_ERR_ARGUMENT, "%s has no %s", network_name(a),
                        is_register ? "register tokens" : "class token");
    const int first = is_register ? prefix - registers : 0, end = all ? tokens : is_class ? 1 : prefix;
    for (int t = first; *known && t < end; t++)
        ATT_TRY(take(a, group, (att_cut){ATT_ABLATED_TOKENS, t, -1}));
    return ATT_OK;
}

static att_status take_tokens(att_ablation *a, char *word, bool group)
{
    bool known;
    if (!att_explorer_has_removable_tokens(a->explorer))
        return att_explorer_remove_token(a->explorer, 0, true); /* the reason */
    const int tokens = att_explorer_layer_at(a->explorer, 0).tokens;
    ATT_TRY(take_named_tokens(a, word, tokens, group, &known));
    const att_status status =
        known ? ATT_OK : take_numbers(a, word, tokens, group, (att_cut){ATT_ABLATED_TOKENS, 0, -1});
    if (status != ATT_ERR_NOT_FOUND)
        return status;
    return att_fail(a->context, ATT_ERR_ARGUMENT,
                    "tokens \"%s\": expected all, class, registers, or numbers and ranges from 0 to %d", word,
                    tokens - 1);
}

/* --- lists -------------------------------------------------------------------------------------------------------- */

typedef struct list_kind {
    const char *name;
    att_status (*take)(att_ablation *a, char *word, bool group);
    const char *joined; /* characters that make one part of a word without '+' */
} list_kind;
static const list_kind kinds[] = {[ATT_ABLATED_HEADS] = {"heads", take_heads, ":"},
                                  [ATT_ABLATED_BRANCHES] = {"branches", take_branches, ""},
                                  [ATT_ABLATED_TOKENS] = {"tokens", take_tokens, ",-"}};

/* Takes an item, whose words '+' joins. */
static att_status take_item(att_ablation *a, const list_kind *kind, char *item)
{
    const bool group = strchr(item, '+') || strpbrk(item, kind->joined);
    char name[WORD];
    if (!*item)
        return att_fail(a->context, ATT_ERR_ARGUMENT, "%s: a part of the list is empty", kind->name);
    if (group)
        ATT_TRY(add_part(a, item));
    att_ablated_part *part = group ? &a->tried.items[a->tried.count - 1] : NULL; /* a group adds no further part */
    for (char *word = item; word;) {
        char *plus = strchr(word, '+');
        if (plus)
            *plus = '\0';
        ATT_TRY(kind->take(a, word, group));
        word = plus ? plus + 1 : NULL;
    }
    if (part && part->count == 1)
        part->name = att_arena_string(&a->arena, name_cut(a, part->cuts[0], name));
    return !part || part->name ? ATT_OK : att_fail_memory(a->context, strlen(item), item);
}

static att_status take_list(att_ablation *a, att_ablated which, const char *list)
{
    if (!list)
        return ATT_OK;
    char *text = att_arena_string(&a->arena, list);
    if (!text)
        return att_fail_memory(a->context, strlen(list), "a list of parts");
    for (char *item = text; item;) {
        char *next = strchr(item, ';');
        if (next)
            *next = '\0';
        ATT_TRY(take_item(a, &kinds[which], item));
        item = next ? next + 1 : NULL;
    }
    return ATT_OK;
}

att_status att_ablation_select(att_ablation *a, const att_ablation_options *options)
{
    const bool none = !options->heads && !options->branches && !options->tokens;
    ATT_TRY(take_list(a, ATT_ABLATED_HEADS, none ? "all" : options->heads));
    ATT_TRY(take_list(a, ATT_ABLATED_BRANCHES, options->branches));
    return take_list(a, ATT_ABLATED_TOKENS, options->tokens);
}
