#include "data/text/split.h"

#include <string.h>

#include "base/core/error.h"
#include "data/text/unicode.h"

typedef struct att_split_kind {
    const char *type;
    const char *const keys[6];                                      /* of its settings, NULL at the end */
    att_status (*read)(const att_part *part, att_split_step *step); /* NULL: no settings */
    /* Divides each of work->words into work->other_words, which is empty. */
    void (*apply)(const att_split_step *step, att_divided *work);
} att_split_kind;

/* Divides the words at blanks, which are left out, and around characters for which is_word() is true. */
static void divide(att_divided *work, bool (*is_word)(uint32_t code))
{
    for (size_t w = 0; w < work->words.count; w++) {
        const att_word word = work->words.items[w];
        const size_t end = word.first + word.count;
        size_t first = word.first;
        for (size_t i = word.first; i < end; i++) {
            const uint32_t code = work->text.items[i].code;
            const bool space = att_code_is_space(code), alone = !space && is_word && is_word(code);
            if (!space && !alone)
                continue;
            att_words_add(&work->other_words, first, i);
            if (alone)
                att_words_add(&work->other_words, i, i + 1);
            first = i + 1;
        }
        att_words_add(&work->other_words, first, end);
    }
}

static void split_bert(const att_split_step *step, att_divided *work)
{
    (void)step;
    divide(work, att_code_is_punctuation);
}

static void split_blanks(const att_split_step *step, att_divided *work)
{
    (void)step;
    divide(work, NULL);
}

/* --- Metaspace ---------------------------------------------------------------------------------------------------- */

static att_status read_prepend(const att_part *part, att_split_step *step)
{
    static const char *const names[] = {"never", "first", "always"};
    const char *scheme;
    bool prefix;
    ATT_TRY(att_part_flag(part, "add_prefix_space", true, &prefix));
    ATT_TRY(att_part_text(part, "prepend_scheme", prefix ? "always" : "never", &scheme));
    for (int i = 0; i < 3; i++)
        if (strcmp(scheme, names[i]) == 0) {
            step->prepend = (att_prepend)i;
            return ATT_OK;
        }
    return att_part_fail(part, ATT_ERR_UNSUPPORTED, "\"prepend_scheme\" is \"%s\"; expected always, first or never",
                         scheme);
}

static att_status read_metaspace(const att_part *part, att_split_step *step)
{
    const char *replacement;
    att_characters codes = {.context = part->context};
    ATT_TRY(att_part_text(part, "replacement", NULL, &replacement));
    att_characters_decode(&codes, replacement, strlen(replacement));
    const bool failed = codes.failed, single = codes.count == 1;
    step->replacement = single ? codes.items[0].code : 0;
    att_characters_free(&codes);
    if (failed)
        return att_fail_memory(part->context, strlen(replacement), "a pre-tokeniser");
    if (!single)
        return att_part_fail(part, ATT_ERR_FORMAT, "\"replacement\" is \"%s\"; expected one character", replacement);
    ATT_TRY(att_part_flag(part, "split", true, &step->divide));
    return read_prepend(part, step);
}

/* Adds the word to work->other_text, with the replacement for blanks and before its first character. */
static void mark_word(const att_split_step *step, att_divided *work, att_word word)
{
    const att_character *items = work->text.items + word.first;
    const bool marked = items[0].code == ' ' || items[0].code == step->replacement;
    if (!marked && (step->prepend == ATT_PREPEND_ALWAYS || (step->prepend == ATT_PREPEND_FIRST && items[0].begin == 0)))
        att_characters_add(&work->other_text, step->replacement, items[0]);
    for (size_t i = 0; i < word.count; i++)
        att_characters_add(&work->other_text, items[i].code == ' ' ? step->replacement : items[i].code, items[i]);
}

static void split_metaspace(const att_split_step *step, att_divided *work)
{
    att_characters *to = &work->other_text;
    for (size_t w = 0; w < work->words.count; w++) {
        size_t first = to->count;
        mark_word(step, work, work->words.items[w]);
        for (size_t i = first + 1; step->divide && i < to->count; i++)
            if (to->items[i].code == step->replacement) {
                att_words_add(&work->other_words, first, i);
                first = i;
            }
        att_words_add(&work->other_words, first, to->count);
    }
    const att_characters kept = work->text;
    work->text = work->other_text;
    work->other_text = kept;
}

/* --- steps -------------------------------------------------------------------------------------------------------- */

static const att_split_kind kinds[] = {
    {"BertPreTokenizer", {NULL}, NULL, split_bert},
    {"WhitespaceSplit", {NULL}, NULL, split_blanks},
    {"Metaspace",
     {"replacement", "str_rep", "add_prefix_space", "prepend_scheme", "split"},
     read_metaspace,
     split_metaspace},
};

static att_status add_step(const att_part *part, size_t kind, void *user)
{
    att_splitter *splitter = user;
    if (splitter->count == ATT_MOST_SPLITS)
        return att_part_fail(part, ATT_ERR_UNSUPPORTED, "more than %d steps are not supported", (int)ATT_MOST_SPLITS);
    att_split_step *step = &splitter->steps[splitter->count++];
    step->kind = &kinds[kind];
    ATT_TRY(att_part_check(part, step->kind->keys));
    return step->kind->read ? step->kind->read(part, step) : ATT_OK;
}

att_status att_splitter_read(const att_part *part, att_splitter *splitter)
{
    const att_part_steps steps = {"pretokenizers", kinds,   sizeof *kinds, sizeof kinds / sizeof *kinds,
                                  add_step,        splitter};
    splitter->count = 0;
    return part->object ? att_part_each_step(part, &steps) : ATT_OK;
}

void att_splitter_apply(const att_splitter *splitter, att_divided *work)
{
    for (int i = 0; i < splitter->count && !work->text.failed && !work->words.failed; i++) {
        work->other_text.count = work->other_words.count = 0;
        splitter->steps[i].kind->apply(&splitter->steps[i], work);
        const att_words kept = work->words;
        work->words = work->other_words;
        work->other_words = kept;
    }
}
