#include "networks/tasks/caption.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/names.h"

enum { REPLACEMENT_BYTES = 3, DIGITS = 3 };

void att_caption_truncate(att_text *text)
{
    size_t at = 0, bytes = 0;
    while (at < text->length) {
        size_t length = att_utf8_length(text->data + at);
        bytes += length > 0 ? length : REPLACEMENT_BYTES;
        if (bytes > ATT_CAPTION_BYTES)
            break;
        at += length > 0 ? length : 1;
    }
    if (at < text->length)
        text->data[text->length = at] = '\0';
}

/* Appends a percentage with three significant digits, without trailing zeros. Ties round up: 1/32 is 3.13 %. */
static void append_share(att_text *text, const char *before, double share)
{
    static const double above = 1 + 1e-15; /* printf() rounds ties to even digits */
    char rounded[ATT_NUMBER_TEXT], shortest[ATT_NUMBER_TEXT];
    snprintf(rounded, sizeof rounded, "%.*e", DIGITS - 1, 100 * share * above);
    att_format_number(strtod(rounded, NULL), shortest);
    char *padded = strstr(shortest, "e-0");
    if (padded)
        memmove(padded + 2, padded + 3, strlen(padded + 2)); /* 1e-5, not 1e-05 */
    att_text_append(text, "%s%s %%", before, shortest);
}

/* Returns NULL for an empty name. */
static const char *known(const char *name)
{
    return name && *name ? name : NULL;
}

static const char *name_of(const att_answer_options *names, int number)
{
    return number >= 0 && number < names->label_count ? known(names->labels[number]) : NULL;
}

/* Appends a class; a name is truncated to the size of a caption. */
static void append_class(att_text *text, int number, const char *name)
{
    const char *label = name ? att_synset_label(name) : NULL;
    if (name)
        att_text_append(text, "%.*s%s%s", (int)ATT_CAPTION_BYTES, name, label ? " " : "", label ? label : "");
    else
        att_text_append(text, "class %d", number);
}

static void append_next(att_text *text, const att_answer_options *names, const att_ranked *next, int count)
{
    for (int i = 0; i < count && text->length <= ATT_CAPTION_BYTES; i++) {
        att_text_append(text, i == 0 ? " Next: " : ", ");
        append_class(text, next[i].class_number, name_of(names, next[i].class_number));
        append_share(text, " ", next[i].probability);
    }
    if (count > 0)
        att_text_append(text, ".");
}

void att_caption_classes(att_text *text, const att_answer_options *names, int label, const char *label_name,
                         const att_ranked *top, int count)
{
    const char *own = name_of(names, label), *name = own ? own : known(label_name);
    bool labelled = name || label >= 0;
    if (labelled)
        append_class(text, label, name);
    if (count == 0) {
        att_text_append(text, labelled ? "." : "");
        return;
    }
    att_text_append(text, !labelled ? "predicted: " : label == top[0].class_number ? ", recognised" : ", predicted: ");
    if (label != top[0].class_number)
        append_class(text, top[0].class_number, name_of(names, top[0].class_number));
    append_share(text, " (", top[0].probability);
    att_text_append(text, ").");
    append_next(text, names, top + 1, count - 1);
}
