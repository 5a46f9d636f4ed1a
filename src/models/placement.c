#include "models/placement.h"

#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "core/text.h"

int att_stages_total(const att_stages *stages)
{
    int total = 0;
    for (int s = 0; s < stages->count; s++)
        total += stages->blocks[s];
    return total;
}

/* --- reading ----------------------------------------------------------------------------------------------------- */

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
                    "attn_blocks \"%s\": \"%s\" is none of all, none, every:K, a block as 3 and blocks as 5-7, with or "
                    "without a stage before it as in layer2:all",
                    r->text, item);
}

/* Digits up to `end`; false where there is anything else, or too much. */
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

/* Where the blocks of r->stage begin, and how many they are. */
static int first_block(const reading *r, int *count)
{
    int first = 0;
    *count = r->stage ? r->stages->blocks[r->stage - 1] : att_stages_total(r->stages);
    for (int s = 0; s < r->stage - 1; s++)
        first += r->stages->blocks[s];
    return first;
}

/* Takes "layer3:" or "3:" off the item's front, where that is there. */
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
                        "attn_blocks \"%s\": there is no stage %d; the network has layer1 to layer%d", r->text, stage,
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
        return att_fail(r->context, ATT_ERR_ARGUMENT, "attn_blocks \"%s\": %d-%d runs backwards", r->text, from, to);
    return att_fail(r->context, ATT_ERR_ARGUMENT, "attn_blocks \"%s\": there is no block %d; %s has blocks 0 to %d",
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
            return att_fail(r->context, ATT_ERR_ARGUMENT, "attn_blocks \"%s\": block %d%s is named twice", r->text, b,
                            in_stage(r, (char[16]){0}));
        r->named[first + b] = true;
        r->chosen[first + b] = with;
    }
    return ATT_OK;
}

static att_status fail_period(const reading *r, int period, int count)
{
    return att_fail(r->context, ATT_ERR_ARGUMENT, "attn_blocks \"%s\": every:%d, but %s has %d blocks", r->text, period,
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

/* The K of every:K (1: all); 0 where that is not how blocks are chosen. */
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

/* --- widths ------------------------------------------------------------------------------------------------------ */

/* Reads "5x2" or "10" up to a comma or the end. */
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
                            "attn_hidden \"%s\": widths of blocks were expected, as in \"3x2,5x2,10\"", text);
        for (; count > 0 && block < total; count--, block = next_chosen(chosen, total, block + 1))
            widths[block] = (int)width;
        if (count > 0)
            return att_fail(context, ATT_ERR_ARGUMENT,
                            "attn_hidden \"%s\": it has more widths than blocks with a module", text);
    }
    if (block < total)
        return att_fail(context, ATT_ERR_ARGUMENT, "attn_hidden \"%s\": it has fewer widths than blocks with a module",
                        text);
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
