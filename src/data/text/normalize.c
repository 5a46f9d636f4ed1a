#include "data/text/normalize.h"

#include <string.h>

#include "base/core/error.h"
#include "data/text/charsmap.h"
#include "data/text/unicode.h"

typedef struct att_normal_kind {
    const char *type;
    const char *const keys[5];                                       /* of its settings, NULL at the end */
    att_status (*read)(const att_part *part, att_normal_step *step); /* NULL: no settings */
    /* Leaves the result in *text. `other` is empty. */
    att_status (*apply)(const att_normal_step *step, att_characters *text, att_characters *other);
} att_normal_kind;

static void swap(att_characters *a, att_characters *b)
{
    const att_characters kept = *a;
    *a = *b;
    *b = kept;
    a->failed = a->failed || b->failed;
    b->count = 0;
}

/* Keeps the characters for which remove() is false. */
static void filter(att_characters *text, bool (*remove)(uint32_t code))
{
    size_t kept = 0;
    for (size_t i = 0; i < text->count; i++)
        if (!remove(text->items[i].code))
            text->items[kept++] = text->items[i];
    text->count = kept;
}

/* --- BertNormalizer ----------------------------------------------------------------------------------------------- */

static bool is_unclean(uint32_t code)
{
    enum { REPLACEMENT = 0xFFFD };
    return code == 0 || code == REPLACEMENT || att_code_is_control(code);
}

static void clean(att_characters *text)
{
    filter(text, is_unclean);
    for (size_t i = 0; i < text->count; i++)
        if (att_code_is_space(text->items[i].code))
            text->items[i].code = ' ';
}

static void surround_ideographs(att_characters *text, att_characters *other)
{
    for (size_t i = 0; i < text->count; i++) {
        const att_character c = text->items[i];
        const bool alone = att_code_is_ideograph(c.code);
        if (alone)
            att_characters_add(other, ' ', c);
        att_characters_add(other, c.code, c);
        if (alone)
            att_characters_add(other, ' ', c);
    }
    swap(text, other);
}

static att_status decompose(att_characters *text, att_characters *other, bool compatibility)
{
    att_characters_decompose(text, other, compatibility);
    swap(text, other);
    return ATT_OK;
}

static att_status lower(const att_normal_step *step, att_characters *text, att_characters *other)
{
    (void)step;
    att_characters_lower(text, other);
    swap(text, other);
    return ATT_OK;
}

static att_status read_bert(const att_part *part, att_normal_step *step)
{
    ATT_TRY(att_part_flag(part, "clean_text", true, &step->clean));
    ATT_TRY(att_part_flag(part, "handle_chinese_chars", true, &step->ideographs));
    ATT_TRY(att_part_flag(part, "lowercase", true, &step->lower));
    return att_part_flag(part, "strip_accents", step->lower, &step->accents);
}

static att_status apply_bert(const att_normal_step *step, att_characters *text, att_characters *other)
{
    if (step->clean)
        clean(text);
    if (step->ideographs)
        surround_ideographs(text, other);
    if (step->accents) {
        ATT_TRY(decompose(text, other, false));
        filter(text, att_code_is_nonspacing);
    }
    return step->lower ? lower(step, text, other) : ATT_OK;
}

/* --- Replace ------------------------------------------------------------------------------------------------------ */

/* Reads what is to be replaced. Of regular expressions, there is " {2,}" only, which leaves the pattern empty. */
static att_status read_pattern(const att_part *part, const char **pattern)
{
    const json_t *given = json_object_get(part->object, "pattern");
    const char *text = json_string_value(json_object_get(given, "String"));
    const char *expression = json_string_value(json_object_get(given, "Regex"));
    *pattern = text ? text : "";
    if (expression && strcmp(expression, " {2,}") != 0)
        return att_part_fail(part, ATT_ERR_UNSUPPORTED,
                             "the regular expression \"%s\" is not supported; the only one that is: \" {2,}\"",
                             expression);
    if (!expression && !**pattern)
        return att_part_fail(part, ATT_ERR_FORMAT,
                             "\"%s\" must be an object with a \"String\" that is not empty, or a "
                             "\"Regex\"",
                             "pattern");
    return ATT_OK;
}

static att_status read_replace(const att_part *part, att_normal_step *step)
{
    const char *pattern, *content;
    ATT_TRY(read_pattern(part, &pattern));
    ATT_TRY(att_part_text(part, "content", NULL, &content));
    if (!*pattern && strchr(content, '$'))
        return att_part_fail(part, ATT_ERR_UNSUPPORTED,
                             "\"content\" is \"%s\"; groups of a regular expression are not "
                             "supported",
                             content);
    step->pattern.context = step->content.context = part->context;
    att_characters_decode(&step->pattern, pattern, strlen(pattern));
    att_characters_decode(&step->content, content, strlen(content));
    if (step->pattern.failed || step->content.failed)
        return att_fail_memory(part->context, strlen(pattern) + strlen(content), "a normaliser");
    return ATT_OK;
}

/* The number of characters from `first` that are to be replaced; 0: none. */
static size_t count_match(const att_normal_step *step, const att_characters *text, size_t first)
{
    const att_characters *pattern = &step->pattern;
    size_t count = 0;
    if (pattern->count == 0) {
        while (first + count < text->count && text->items[first + count].code == ' ')
            count++;
        return count > 1 ? count : 0;
    }
    while (count < pattern->count && first + count < text->count &&
           text->items[first + count].code == pattern->items[count].code)
        count++;
    return count == pattern->count ? count : 0;
}

static att_status apply_replace(const att_normal_step *step, att_characters *text, att_characters *other)
{
    for (size_t i = 0; i < text->count;) {
        const size_t count = count_match(step, text, i);
        if (count == 0) {
            att_characters_add(other, text->items[i].code, text->items[i]);
            i++;
            continue;
        }
        for (size_t k = 0; k < step->content.count; k++)
            att_characters_add(other, step->content.items[k].code, text->items[i + count - 1]);
        i += count;
    }
    swap(text, other);
    return ATT_OK;
}

/* --- other kinds -------------------------------------------------------------------------------------------------- */

static att_status read_strip(const att_part *part, att_normal_step *step)
{
    ATT_TRY(att_part_flag(part, "strip_left", true, &step->left));
    return att_part_flag(part, "strip_right", true, &step->right);
}

static att_status apply_strip(const att_normal_step *step, att_characters *text, att_characters *other)
{
    size_t first = 0;
    (void)other;
    while (step->right && text->count > 0 && att_code_is_space(text->items[text->count - 1].code))
        text->count--;
    while (step->left && first < text->count && att_code_is_space(text->items[first].code))
        first++;
    if (first > 0)
        memmove(text->items, text->items + first, (text->count - first) * sizeof *text->items);
    text->count -= first;
    return ATT_OK;
}

static att_status strip_accents(const att_normal_step *step, att_characters *text, att_characters *other)
{
    (void)step, (void)other;
    filter(text, att_code_is_mark);
    return ATT_OK;
}

static att_status apply_nfd(const att_normal_step *step, att_characters *text, att_characters *other)
{
    (void)step;
    return decompose(text, other, false);
}

static att_status apply_nfkd(const att_normal_step *step, att_characters *text, att_characters *other)
{
    (void)step;
    return decompose(text, other, true);
}

static att_status read_precompiled(const att_part *part, att_normal_step *step)
{
    return att_charsmap_read(part, &step->charsmap);
}

static att_status apply_precompiled(const att_normal_step *step, att_characters *text, att_characters *other)
{
    ATT_TRY(att_charsmap_apply(step->charsmap, text, other));
    swap(text, other);
    return ATT_OK;
}

/* --- steps -------------------------------------------------------------------------------------------------------- */

static const att_normal_kind kinds[] = {
    {"BertNormalizer", {"clean_text", "handle_chinese_chars", "strip_accents", "lowercase"}, read_bert, apply_bert},
    {"Replace", {"pattern", "content"}, read_replace, apply_replace},
    {"Strip", {"strip_left", "strip_right"}, read_strip, apply_strip},
    {"StripAccents", {NULL}, NULL, strip_accents},
    {"Lowercase", {NULL}, NULL, lower},
    {"NFD", {NULL}, NULL, apply_nfd},
    {"NFKD", {NULL}, NULL, apply_nfkd},
    {"Precompiled", {"precompiled_charsmap"}, read_precompiled, apply_precompiled},
};

static att_status add_step(const att_part *part, size_t kind, void *user)
{
    att_normalizer *normalizer = user;
    if (normalizer->count == ATT_MOST_STEPS)
        return att_part_fail(part, ATT_ERR_UNSUPPORTED, "more than %d steps are not supported", (int)ATT_MOST_STEPS);
    att_normal_step *step = &normalizer->steps[normalizer->count++];
    step->kind = &kinds[kind];
    ATT_TRY(att_part_check(part, step->kind->keys));
    return step->kind->read ? step->kind->read(part, step) : ATT_OK;
}

att_status att_normalizer_read(const att_part *part, att_normalizer *normalizer)
{
    const att_part_steps steps = {"normalizers", kinds,     sizeof *kinds, sizeof kinds / sizeof *kinds,
                                  add_step,      normalizer};
    normalizer->count = 0;
    return part->object ? att_part_each_step(part, &steps) : ATT_OK;
}

void att_normalizer_free(att_normalizer *normalizer)
{
    for (int i = 0; i < normalizer->count; i++) {
        att_characters_free(&normalizer->steps[i].pattern);
        att_characters_free(&normalizer->steps[i].content);
    }
    normalizer->count = 0;
}

int att_normalizer_lowers(const att_normalizer *normalizer)
{
    for (int i = 0; i < normalizer->count; i++)
        if (normalizer->steps[i].kind->apply == apply_bert)
            return normalizer->steps[i].lower;
    return -1;
}

att_status att_normalizer_apply(const att_normalizer *normalizer, att_characters *text, att_characters *other)
{
    for (int i = 0; i < normalizer->count; i++) {
        other->count = 0;
        ATT_TRY(normalizer->steps[i].kind->apply(&normalizer->steps[i], text, other));
    }
    return ATT_OK;
}
