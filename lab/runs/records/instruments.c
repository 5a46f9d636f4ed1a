#include "lab/runs/records/instruments.h"

#include <string.h>

#include <attscope/measure.h>

bool att_instruments_name(const char *with, const char *item)
{
    size_t length = strlen(item);
    for (const char *at = with;; at++) {
        if (strncmp(at, item, length) == 0 && (at[length] == '\0' || at[length] == ',' || at[length] == ':'))
            return true;
        at += att_instruments_item(at);
        if (!*at)
            return false;
    }
}

bool att_instruments_take_all(const char *with)
{
    for (const char *at = with; *at == '-'; at++) {
        at += strcspn(at, ",");
        if (!*at)
            return true;
    }
    return att_instruments_name(with, "all");
}

const char *att_instruments_needing_labels(const att_context *context, const char *with)
{
    for (int i = 0; i < att_instrument_count(context); i++)
        if (att_instrument_at(context, i).needs_labels &&
            att_instruments_name(with, att_instrument_at(context, i).name))
            return att_instrument_at(context, i).name;
    return NULL;
}

void att_instruments_leave_out_labels(att_text *with)
{
    for (int i = 0; i < att_instrument_count(with->context); i++)
        if (att_instrument_at(with->context, i).needs_labels)
            att_text_append(with, ",-%s", att_instrument_at(with->context, i).name);
}
