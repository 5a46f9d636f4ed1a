#include "study/train/history.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "study/train/numbers.h"

static void clear(att_history *history)
{
    history->count = 0;
    history->best_metric = NAN;
    history->best = -1;
    history->evicted = -1;
}

att_status att_history_create(att_context *context, int capacity, bool smaller_is_better, att_history *history)
{
    att_kept *kept;
    ATT_TRY(att_new(context, &kept, (size_t)capacity, "the list of checkpoints"));
    *history =
        (att_history){.context = context, .smaller_is_better = smaller_is_better, .capacity = capacity, .kept = kept};
    clear(history);
    return ATT_OK;
}

void att_history_free(att_history *history)
{
    if (history->context)
        att_free(history->context, history->kept);
    *history = (att_history){0};
}

static bool better(const att_history *history, double a, double b)
{
    return history->smaller_is_better ? a < b : a > b;
}

/* Position of a new entry with this metric. */
static int position_of(const att_history *history, double metric)
{
    int at = 0;
    while (at < history->count && !isnan(history->kept[at].metric) &&
           (isnan(metric) || !better(history, metric, history->kept[at].metric)))
        at++;
    return at;
}

void att_history_add(att_history *history, int64_t number, double metric)
{
    history->evicted = -1;
    if (!isnan(metric) && (history->best < 0 || better(history, metric, history->best_metric))) {
        history->best_metric = metric;
        history->best = number;
    }
    int at = position_of(history, metric);
    if (at == history->capacity)
        return;
    if (history->count == history->capacity)
        history->evicted = history->kept[--history->count].number;
    memmove(&history->kept[at + 1], &history->kept[at], (size_t)(history->count - at) * sizeof *history->kept);
    history->kept[at] = (att_kept){number, metric};
    history->count++;
}

bool att_history_keeps(const att_history *history, int64_t number)
{
    for (int i = 0; i < history->count; i++) {
        if (history->kept[i].number == number)
            return true;
    }
    return false;
}

void att_history_write(const att_history *history, att_text *text)
{
    char bits[ATT_NUMBER_TEXT];
    for (int i = 0; i < history->count; i++)
        att_text_append(text, "%s%" PRId64 ":%s", i ? " " : "", history->kept[i].number,
                        att_bits_format(history->kept[i].metric, bits));
}

/* Parses "4:<bits>", and a space if another entry follows. Returns the position after it; NULL if the text is
 * invalid. */
static const char *read_entry(const char *text, att_kept *kept)
{
    char *end;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (end == text || *end != ':' || number < 0 || errno != 0 || !att_bits_parse(end + 1, &kept->metric))
        return NULL;
    kept->number = number;
    text = end + 1 + strlen("0123456789abcdef");
    if (!*text)
        return text;
    return *text == ' ' && text[1] ? text + 1 : NULL;
}

bool att_history_read(att_history *history, const char *text)
{
    clear(history);
    while (*text && history->count < history->capacity) {
        text = read_entry(text, &history->kept[history->count]);
        if (!text) {
            clear(history);
            return false;
        }
        history->count++;
    }
    return true;
}
