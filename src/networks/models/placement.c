#include "networks/models/placement.h"

#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "networks/models/module_options.h"
#include "networks/nn/module.h"

const att_module_hook att_branch_hook_list[1] = {
    [ATT_AFTER_BRANCH] = {"after_branch", "at the end of a residual branch, before the addition", ATT_ON_MAPS},
};
const att_hooks att_branch_hooks = ATT_BRANCH_HOOK_SET;

int att_stages_before(const att_stages *stages, int stage)
{
    int total = 0;
    for (int s = 0; s < stage; s++)
        total += stages->blocks[s];
    return total;
}

int att_stages_total(const att_stages *stages)
{
    return att_stages_before(stages, stages->count);
}

int att_stages_find(const att_stages *stages, int *block)
{
    int stage = 0;
    while (*block >= stages->blocks[stage])
        *block -= stages->blocks[stage++];
    return stage;
}

att_status att_stages_parse(att_context *context, const char *key, const char *text, att_stages *stages)
{
    stages->count = att_text_to_list(text, 1, 65536, stages->blocks, ATT_STAGES);
    if (stages->count > 0 && att_stages_total(stages) <= ATT_BLOCKS)
        return ATT_OK;
    return att_fail(context, ATT_ERR_ARGUMENT,
                    "%s must be the numbers of blocks of 1 to %d stages, as in \"2,2,6,2\", at most %d in all, not "
                    "\"%s\"",
                    key, ATT_STAGES, ATT_BLOCKS, text);
}

att_status att_stages_numbers(att_context *context, const char *key, char *text, size_t size, int low, int stages,
                              int numbers[ATT_STAGES])
{
    bool same = true;
    int count = att_text_to_list(text, low, 65536, numbers, ATT_STAGES);
    if (count != 1 && count != stages)
        return att_fail(context, ATT_ERR_ARGUMENT,
                        "%s must be one number, or one for each of %d stages, from %d to 65536, not \"%s\"", key,
                        stages, low, text);
    for (int s = 0; s < stages; s++) {
        numbers[s] = numbers[count == 1 ? 0 : s];
        same = same && numbers[s] == numbers[0];
    }
    att_format_list(numbers, same ? 1 : stages, text, size);
    return ATT_OK;
}

double att_drop_path_of(double last, int index, int count)
{
    return count > 1 ? last * index / (count - 1) : 0;
}

/* --- parsing ------------------------------------------------------------------------------------------------------ */

typedef struct reading {
    att_context *context;
    const char *text;
    const att_stages *stages;
    int stage; /* 0: the whole network */
    bool *chosen, named[ATT_BLOCKS];
} reading;

static att_status fail_item(const reading *r, const char *item)
{
    return att_fail(r->context, ATT_ERR_ARGUMENT,
                    "modules \"%s\": expected all, none, every:K, a block such as 3 or blocks such as 5-7, with or "
                    "without a stage as in layer2:all, not \"%s\"",
                    r->text, item);
}

/* Parses at most 4 digits up to `end`; returns false for anything else. */
static bool read_number(const char *text, const char *end, int *number)
{
    if (text == end || end - text > 4)
        return false;
    int value = 0;
    for (; text < end; text++) {
        if (*text < '0' || *text > '9')
            return false;
        value = 10 * value + (*text - '0');
    }
    *number = value;
    return true;
}

/* Returns the first block of r->stage, and their number in *count. */
static int first_block(const reading *r, int *count)
{
    *count = r->stage ? r->stages->blocks[r->stage - 1] : att_stages_total(r->stages);
    return att_stages_before(r->stages, r->stage - 1);
}

/* Parses a stage, "layer3:" or "3:", at the front of the item, if there is one. */
static att_status read_stage(reading *r, const char **item)
{
    const char *colon = strchr(*item, ':'), *digits = *item;
    if (strncmp(digits, "layer", 5) == 0)
        digits += 5;
    int stage;
    if (!colon || !read_number(digits, colon, &stage))
        return ATT_OK;
    if (stage < 1 || stage > r->stages->count)
        return att_fail(r->context, ATT_ERR_ARGUMENT,
                        "modules \"%s\": there is no stage %d; the network has layer1 to layer%d", r->text, stage,
                        r->stages->count);
    r->stage = stage;
    *item = colon + 1;
    return ATT_OK;
}

static att_status fail_range(const reading *r, int from, int to, int count)
{
    char place[32] = "the network";
    if (r->stage)
        snprintf(place, sizeof place, "layer%d", r->stage);
    if (from > to)
        return att_fail(r->context, ATT_ERR_ARGUMENT, "modules \"%s\": %d-%d runs backwards", r->text, from, to);
    return att_fail(r->context, ATT_ERR_ARGUMENT, "modules \"%s\": there is no block %d; %s has blocks 0 to %d",
                    r->text, to, place, count - 1);
}

static const char *in_stage(const reading *r, char text[16])
{
    if (r->stage)
        snprintf(text, 16, " of layer%d", r->stage);
    return text;
}

static att_status choose(reading *r, bool with, int from, int to, int step)
{
    int count, first = first_block(r, &count);
    if (from > to || to >= count)
        return fail_range(r, from, to, count);
    for (int b = from; b <= to; b += step) {
        if (r->named[first + b])
            return att_fail(r->context, ATT_ERR_ARGUMENT, "modules \"%s\": block %d%s is named twice", r->text, b,
                            in_stage(r, (char[16]){0}));
        r->named[first + b] = true;
        r->chosen[first + b] = with;
    }
    return ATT_OK;
}

static att_status fail_period(const reading *r, int period, int count)
{
    return att_fail(r->context, ATT_ERR_ARGUMENT, "modules \"%s\": every:%d, but %s has %d blocks", r->text, period,
                    r->stage ? "the stage" : "the network", count);
}

static att_status read_choice(reading *r, const char *item)
{
    int count, from, to;
    first_block(r, &count);
    const char *end = item + strlen(item), *dash = strchr(item, '-');
    if (strcmp(item, "none") == 0)
        return choose(r, false, 0, count - 1, 1);
    if (strcmp(item, "all") == 0)
        return choose(r, true, 0, count - 1, 1);
    if (strncmp(item, "every:", 6) == 0 && read_number(item + 6, end, &from) && from > 0)
        return from > count ? fail_period(r, from, count) : choose(r, true, 0, count - 1, from);
    if (read_number(item, dash ? dash : end, &from) && (!dash || read_number(dash + 1, end, &to)))
        return choose(r, true, from, dash ? to : from, 1);
    return fail_item(r, item);
}

att_status att_placement_parse(att_context *context, const char *text, const att_stages *stages,
                               bool chosen[ATT_BLOCKS])
{
    reading r = {.context = context, .text = text, .stages = stages, .chosen = chosen};
    memset(chosen, 0, ATT_BLOCKS * sizeof *chosen);
    for (const char *at = text; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        char item[32];
        at += strspn(at, " ");
        size_t length = strcspn(at, ",");
        while (length > 0 && at[length - 1] == ' ')
            length--;
        snprintf(item, sizeof item, "%.*s", (int)(length < sizeof item ? length : sizeof item), at);
        const char *choice = item;
        ATT_TRY(read_stage(&r, &choice));
        ATT_TRY(read_choice(&r, choice));
    }
    return ATT_OK;
}

/* --- writing ----------------------------------------------------------------------------------------------------- */

/* Returns K if the blocks are every:K (1: all); else 0. */
static int period_of(const bool *chosen, int total)
{
    int period = 1;
    while (period < total && !chosen[period])
        period++;
    for (int b = 0; b < total; b++)
        if (chosen[b] != (b % period == 0))
            return 0;
    return period < total || total == 1 ? period : 0;
}

static bool append(char *text, size_t size, int first, int last)
{
    size_t length = strlen(text);
    const char *comma = length ? "," : "";
    int wanted = first == last ? snprintf(text + length, size - length, "%s%d", comma, first)
                               : snprintf(text + length, size - length, "%s%d-%d", comma, first, last);
    return wanted > 0 && (size_t)wanted < size - length;
}

static bool list_blocks(const bool *chosen, int total, char *text, size_t size)
{
    text[0] = '\0';
    for (int b = 0; b < total; b++) {
        if (!chosen[b])
            continue;
        int first = b;
        while (b + 1 < total && chosen[b + 1])
            b++;
        if (!append(text, size, first, b))
            return false;
    }
    return true;
}

bool att_placement_format(const bool *chosen, const att_stages *stages, char *text, size_t size)
{
    int total = att_stages_total(stages), period = period_of(chosen, total);
    if (period > 1)
        return snprintf(text, size, "every:%d", period) < (int)size;
    if (!list_blocks(chosen, total, text, size))
        return false;
    const char *word = period == 1 ? "all" : "none";
    return (period == 0 && text[0]) || snprintf(text, size, "%s", word) < (int)size;
}

/* --- modules ----------------------------------------------------------------------------------------------------- */

static const char KEY[] = "modules";

static const char *hook_name(const void *hooks, int index)
{
    return ((const att_hooks *)hooks)->items[index].name;
}

static att_status find_hook(att_context *context, const att_hooks *hooks, const char *name, int *hook)
{
    char names[256] = "";
    for (int i = 0; i < hooks->count; i++) {
        if (strcmp(hooks->items[i].name, name) == 0) {
            *hook = i;
            return ATT_OK;
        }
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", i ? ", " : "", hooks->items[i].name);
    }
    const char *nearest = att_text_nearest(name, hook_name, hooks, hooks->count);
    if (nearest)
        return att_fail(context, ATT_ERR_ARGUMENT, "%s: this network has no \"@%.32s\"; did you mean \"@%s\"?", KEY,
                        name, nearest);
    return att_fail(context, ATT_ERR_ARGUMENT, "%s: this network has no \"@%.32s\", only %s", KEY, name, names);
}

/* The default hook of a module is the first that it fits. */
static int default_hook(const att_hooks *hooks, const att_module *module)
{
    for (int i = 0; i < hooks->count; i++)
        if (module && (hooks->items[i].place & module->places))
            return i;
    return 0;
}

static att_status check_fit(att_context *context, const att_hooks *hooks, const att_placed_module *placed)
{
    const att_module *module = placed->choice.module;
    if (!module)
        return ATT_OK;
    const att_module_hook *hook = &hooks->items[placed->hook];
    if (module->places & hook->place)
        return ATT_OK;
    return att_fail(context, ATT_ERR_ARGUMENT, "%s: module \"%s\" works on %s, and \"@%s\" has %s", KEY, module->name,
                    att_module_places_text(module->places, (char[96]){0}, 96), hook->name,
                    att_module_places_text(hook->place, (char[96]){0}, 96));
}

/* Parses "se:ratio=8@after_branch:every:2", which is a part of `text`. Modifies `item`. */
static att_status parse_placed(att_context *context, const att_hooks *hooks, const att_stages *stages, const char *text,
                               char *item, att_placed_module *placed)
{
    char *hook = strchr(item, '@'), *places = NULL;
    if (hook) {
        *hook++ = '\0';
        places = strchr(hook, ':');
    }
    if (places)
        *places++ = '\0';
    if (!*item)
        return att_fail(context, ATT_ERR_ARGUMENT, "%s \"%s\": the name of a module is missing", KEY, text);
    ATT_TRY(att_module_parse(context, item, &placed->choice));
    if (placed->choice.module && hooks->count == 0)
        return att_fail(context, ATT_ERR_ARGUMENT, "%s: this network has no place for modules", KEY);
    placed->hook = default_hook(hooks, placed->choice.module);
    if (hook)
        ATT_TRY(find_hook(context, hooks, hook, &placed->hook));
    ATT_TRY(check_fit(context, hooks, placed));
    return att_placement_parse(context, places ? places : "all", stages, placed->at);
}

/* Whether both would have parameters in the same scope of some block. */
static bool collide(const att_placed_module *a, const att_placed_module *b)
{
    bool both = false;
    for (int block = 0; block < ATT_BLOCKS; block++)
        both |= a->at[block] && b->at[block];
    return both && a->hook == b->hook && att_module_has_parameters(&a->choice) &&
           att_module_has_parameters(&b->choice) && strcmp(a->choice.module->scope, b->choice.module->scope) == 0;
}

static att_status check_collisions(att_context *context, const att_hooks *hooks, const char *text,
                                   const att_modules *modules)
{
    const att_placed_module *last = &modules->items[modules->count - 1];
    for (const att_placed_module *placed = modules->items; placed < last; placed++)
        if (collide(placed, last))
            return att_fail(context, ATT_ERR_ARGUMENT,
                            "%s \"%s\": \"%s\" and \"%s\" cannot both be at \"@%s\" of a block: their parameters have "
                            "the same names",
                            KEY, text, placed->choice.module->name, last->choice.module->name,
                            hooks->items[last->hook].name);
    return ATT_OK;
}

att_status att_modules_parse(att_context *context, const att_hooks *hooks, const att_stages *stages, const char *text,
                             att_modules *modules)
{
    char copy[ATT_OPTION_TEXT_BYTES];
    *modules = (att_modules){.count = 0};
    snprintf(copy, sizeof copy, "%s", text);
    for (char *item = copy, *next; item; item = next) {
        next = strchr(item, '+');
        if (next)
            *next++ = '\0';
        if (modules->count == ATT_MOST_MODULES)
            return att_fail(context, ATT_ERR_ARGUMENT, "%s \"%s\": a network has at most %d modules", KEY, text,
                            ATT_MOST_MODULES);
        att_placed_module *placed = &modules->items[modules->count];
        ATT_TRY(parse_placed(context, hooks, stages, text, item, placed));
        if (!placed->choice.module && (modules->count > 0 || next || strchr(text, '@')))
            return att_fail(context, ATT_ERR_ARGUMENT, "%s \"%s\": \"none\" cannot be combined with anything", KEY,
                            text);
        if (!placed->choice.module)
            continue;
        modules->count++;
        ATT_TRY(check_collisions(context, hooks, text, modules));
    }
    return ATT_OK;
}

bool att_modules_find_missing(const att_context *context, const char *text, char *name, size_t size)
{
    for (const char *at = text; *at; at += strcspn(at, "+"), at += *at == '+') {
        snprintf(name, size, "%.*s", (int)strcspn(at, ":@+"), at);
        if (*name && strcmp(name, "none") != 0 && !att_module_find(context, name))
            return true;
    }
    return false;
}

bool att_placed_format(const att_module *module, const char *module_text, const att_hooks *hooks, int hook,
                       const bool *chosen, const att_stages *stages, char *text, size_t size)
{
    char places[ATT_OPTION_TEXT_BYTES];
    if (!att_placement_format(chosen, stages, places, sizeof places))
        return false;
    bool everywhere = strcmp(places, "all") == 0;
    if (everywhere && hook == default_hook(hooks, module))
        return snprintf(text, size, "%s", module_text) < (int)size;
    return snprintf(text, size, "%s@%s%s%s", module_text, hooks->items[hook].name, everywhere ? "" : ":",
                    everywhere ? "" : places) < (int)size;
}

bool att_modules_any(const att_modules *modules, int hook, int block)
{
    for (int i = 0; i < modules->count; i++)
        if (modules->items[i].hook == hook && modules->items[i].at[block])
            return true;
    return false;
}

int att_modules_replaced_heads(const att_modules *modules, int hook, int block)
{
    int count = 0;
    for (int i = 0; i < modules->count; i++) {
        const att_placed_module *placed = &modules->items[i];
        if (placed->hook == hook && placed->at[block] && placed->choice.module->replaced_heads)
            count += placed->choice.module->replaced_heads(placed->choice.values);
    }
    return count;
}

att_value att_modules_apply(const att_modules *modules, int hook, int block, const att_scope *scope,
                            const att_module_site *at)
{
    att_module_site site = *at;
    for (int i = 0; i < modules->count; i++) {
        const att_placed_module *placed = &modules->items[i];
        att_module_choice choice = placed->choice;
        if (placed->hook != hook || !placed->at[block])
            continue;
        if (placed->hidden[block] > 0)
            att_module_set_hidden(&choice, placed->hidden[block]);
        site.branch = att_module_apply(&choice, scope, &site);
    }
    return site.branch;
}

bool att_placed_same(const char *a, const char *b)
{
    size_t length = strcspn(a, ":@");
    bool none = (!*a || strcmp(a, "none") == 0) && (!*b || strcmp(b, "none") == 0);
    return none || (!strchr(a, '+') && !strchr(b, '+') && strcspn(b, ":@") == length && strncmp(a, b, length) == 0);
}

att_status att_placed_complete(att_context *context, const char *known, att_option_values *given)
{
    char text[2 * ATT_OPTION_TEXT_BYTES];
    const char *own = att_options_text(given, KEY);
    bool any = *own == '@', none = !*known || strcmp(known, "none") == 0;
    if (any && (none || strchr(known, '+')))
        return att_fail(context, ATT_ERR_ARGUMENT,
                        "%s \"%s\" places a module without naming it, but the network has %s; name the module", KEY,
                        own, none ? "none" : "several");
    if (!*own || none || (!any && !att_placed_same(own, known)))
        return ATT_OK;
    size_t own_length = strcspn(own, "@"), known_length = strcspn(known, "@");
    bool has_options = memchr(own, ':', own_length) != NULL;
    const char *module = has_options ? own : known, *place = own[own_length] ? own + own_length : known + known_length;
    snprintf(text, sizeof text, "%.*s%s", (int)(has_options ? own_length : known_length), module, place);
    att_options_set_text(given, KEY, text);
    return ATT_OK;
}

/* --- widths ------------------------------------------------------------------------------------------------------ */

/* Parses "5x2" or "10" up to a comma or the end. */
static bool read_run(const char **at, int64_t *width, int64_t *count)
{
    char run[32];
    size_t length = strcspn(*at, ",");
    if (length >= sizeof run)
        return false;
    memcpy(run, *at, length);
    run[length] = '\0';
    *at += length + ((*at)[length] == ',');
    char *times = strchr(run, 'x');
    if (times)
        *times++ = '\0';
    *count = 1;
    return att_text_to_i64(run, width) && (!times || att_text_to_i64(times, count)) && *width >= 1 &&
           *width <= 1 << 24 && *count >= 1 && *count <= ATT_BLOCKS;
}

static int next_chosen(const bool *chosen, int total, int block)
{
    while (block < total && !chosen[block])
        block++;
    return block;
}

att_status att_widths_parse(att_context *context, const char *text, const bool *chosen, int total,
                            int widths[ATT_BLOCKS])
{
    int block = next_chosen(chosen, total, 0);
    memset(widths, 0, ATT_BLOCKS * sizeof *widths);
    for (const char *at = text; *at;) {
        int64_t width, count;
        if (!read_run(&at, &width, &count))
            return att_fail(context, ATT_ERR_ARGUMENT,
                            "modules_hidden \"%s\": widths of blocks were expected, as in \"3x2,5x2,10\"", text);
        for (; count > 0 && block < total; count--, block = next_chosen(chosen, total, block + 1))
            widths[block] = (int)width;
        if (count > 0)
            return att_fail(context, ATT_ERR_ARGUMENT,
                            "modules_hidden \"%s\": it has more widths than blocks with a module", text);
    }
    if (block < total)
        return att_fail(context, ATT_ERR_ARGUMENT,
                        "modules_hidden \"%s\": it has fewer widths than blocks with a module", text);
    return ATT_OK;
}

bool att_widths_format(const int *widths, int count, char *text, size_t size)
{
    size_t length = 0;
    text[0] = '\0';
    for (int i = 0, run; i < count; i += run) {
        for (run = 1; i + run < count && widths[i + run] == widths[i];)
            run++;
        char times[16] = "";
        if (run > 1)
            snprintf(times, sizeof times, "x%d", run);
        int wanted = snprintf(text + length, size - length, "%s%d%s", length ? "," : "", widths[i], times);
        if (wanted < 0 || (size_t)wanted >= size - length)
            return false;
        length += (size_t)wanted;
    }
    return true;
}
