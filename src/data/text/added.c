#include "data/text/added.h"

#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "data/text/unicode.h"

/* --- reading ------------------------------------------------------------------------------------------------------ */

static att_status read_token(const att_part *part, att_added_token *token)
{
    static const char *const keys[] = {"id",     "content",    "single_word", "lstrip",
                                       "rstrip", "normalized", "special",     NULL};
    ATT_TRY(att_part_check(part, keys));
    ATT_TRY(att_part_number(part, "id", 0, ATT_MOST_PIECES - 1, -1, &token->id));
    ATT_TRY(att_part_text(part, "content", NULL, &token->text));
    ATT_TRY(att_part_flag(part, "single_word", false, &token->single));
    ATT_TRY(att_part_flag(part, "lstrip", false, &token->left));
    ATT_TRY(att_part_flag(part, "rstrip", false, &token->right));
    ATT_TRY(att_part_flag(part, "special", false, &token->special));
    ATT_TRY(att_part_flag(part, "normalized", !token->special, &token->normalized));
    token->text = att_arena_string(part->arena, token->text);
    return token->text ? ATT_OK : att_fail_memory(part->context, sizeof *token, "an added token");
}

att_status att_added_read(const att_part *file, att_added *added)
{
    const json_t *list = json_object_get(file->object, "added_tokens");
    const size_t count = json_array_size(list);
    *added = (att_added){.raw = {.context = file->context}, .normalized = {.context = file->context}};
    if (list && !json_is_null(list) && !json_is_array(list))
        return att_part_fail(file, ATT_ERR_FORMAT, "\"%s\" must be an array", "added_tokens");
    added->tokens = att_arena_allocate(file->arena, att_size_product(count, sizeof *added->tokens));
    if (!added->tokens || count > ATT_MOST_PIECES)
        return att_fail_memory(file->context, att_size_product(count, sizeof *added->tokens), "added tokens");
    for (size_t i = 0; i < count; i++) {
        char name[64];
        att_part part = *file;
        snprintf(name, sizeof name, "added_tokens[%zu]", i);
        part.name = name;
        part.object = json_array_get(list, i);
        att_added_token *token = &added->tokens[added->count];
        ATT_TRY(read_token(&part, token));
        added->ids = token->id >= added->ids ? token->id + 1 : added->ids;
        added->count += *token->text != '\0';
    }
    return ATT_OK;
}

/* Gives the id the token's text, unless the vocabulary has both. */
static att_status name_token(const att_part *file, const att_added_token *token, att_vocabulary *vocabulary)
{
    const char *other = att_vocabulary_piece(vocabulary, token->id);
    const int id = att_vocabulary_find(vocabulary, token->text);
    if (id >= 0 && id != token->id)
        return att_part_fail(file, ATT_ERR_FORMAT, "\"%s\" has id %d as an added token, but id %d in the vocabulary",
                             token->text, token->id, id);
    if (other && strcmp(other, token->text) != 0)
        return att_part_fail(file, ATT_ERR_FORMAT, "the added token \"%s\" has id %d, which is that of \"%s\"",
                             token->text, token->id, other);
    if (!other)
        att_vocabulary_name(vocabulary, token->text, token->id);
    return vocabulary->texts.failed ? att_fail_memory(file->context, strlen(token->text), "an added token") : ATT_OK;
}

/* Adds the token's text in the form in which it is looked for. */
static att_status add_form(const att_part *file, const att_normalizer *normalizer, const att_added_token *token,
                           att_text *forms)
{
    const size_t before = forms->length;
    att_characters codes = {.context = file->context}, other = {.context = file->context};
    att_characters_decode(&codes, token->text, strlen(token->text));
    att_status status = token->normalized ? att_normalizer_apply(normalizer, &codes, &other) : ATT_OK;
    for (size_t i = 0; i < codes.count; i++) {
        char bytes[ATT_CODE_BYTES];
        att_text_append_bytes(forms, bytes, att_code_encode(codes.items[i].code, bytes));
    }
    if (status == ATT_OK && (codes.failed || other.failed || forms->failed))
        status = att_fail_memory(file->context, strlen(token->text), "an added token");
    else if (status == ATT_OK && forms->length == before)
        status = att_part_fail(file, ATT_ERR_FORMAT, "the added token %d (\"%s\") is empty after normalisation",
                               token->id, token->text);
    att_characters_free(&codes);
    att_characters_free(&other);
    return status;
}

/* Adds the tokens that are special, or those that are not. ends: where the forms of the tokens end. */
static void add_tokens(att_added *added, bool special, const att_text *forms, const size_t *ends)
{
    for (int i = 0; i < added->count; i++) {
        att_trie *trie = added->tokens[i].normalized ? &added->normalized : &added->raw;
        const size_t begin = i > 0 ? ends[i - 1] : 0;
        const int32_t node = att_trie_find(trie, forms->data + begin, ends[i] - begin);
        const bool taken = node >= 0 && trie->values[node] >= 0;
        if (added->tokens[i].special == special && !taken)
            att_trie_set(trie, forms->data + begin, ends[i] - begin, i);
    }
}

static att_status place_tokens(const att_part *file, att_added *added, const att_normalizer *normalizer,
                               att_text *forms)
{
    size_t *ends = att_arena_allocate(file->arena, att_size_product((size_t)added->count, sizeof *ends));
    if (!ends)
        return att_fail_memory(file->context, (size_t)added->count * sizeof *ends, "added tokens");
    for (int i = 0; i < added->count; i++) {
        ATT_TRY(add_form(file, normalizer, &added->tokens[i], forms));
        ends[i] = forms->length;
    }
    ATT_TRY(att_trie_make(file->context, file->path, forms->length, &added->raw));
    ATT_TRY(att_trie_make(file->context, file->path, forms->length, &added->normalized));
    add_tokens(added, true, forms, ends); /* first, so that of equal forms the special token is found */
    add_tokens(added, false, forms, ends);
    return ATT_OK;
}

att_status att_added_place(const att_part *file, att_added *added, att_vocabulary *vocabulary,
                           const att_normalizer *normalizer)
{
    att_text forms = {.context = file->context};
    for (int i = 0; i < added->count; i++)
        ATT_TRY(name_token(file, &added->tokens[i], vocabulary));
    att_status status = place_tokens(file, added, normalizer, &forms);
    att_text_free(&forms);
    return status;
}

void att_added_free(att_added *added)
{
    if (added->raw.context) {
        att_trie_free(&added->raw);
        att_trie_free(&added->normalized);
    }
    *added = (att_added){.count = 0};
}

/* --- search ------------------------------------------------------------------------------------------------------- */

/* Sets *index to the longest token that begins at `first`. Returns its number of characters; 0: there is none. */
static size_t find_longest(const att_trie *trie, const att_characters *text, size_t first, int *index)
{
    size_t longest = 0;
    int32_t node = ATT_TRIE_ROOT;
    for (size_t i = first; i < text->count; i++) {
        node = att_trie_step(trie, node, text->items[i].code);
        if (node < 0)
            break;
        if (trie->values[node] >= 0) {
            longest = i + 1 - first;
            *index = trie->values[node];
        }
    }
    return longest;
}

static bool is_word_at(const att_characters *text, size_t at)
{
    return at < text->count && att_code_is_word(text->items[at].code);
}

static bool is_space_at(const att_characters *text, size_t at)
{
    return at < text->count && att_code_is_space(text->items[at].code);
}

const att_added_token *att_added_next(const att_added *added, const att_trie *trie, const att_characters *text,
                                      att_added_search *search, size_t *first, size_t *end)
{
    for (size_t at = search->at; at < text->count; at++) {
        int index = 0;
        const size_t length = find_longest(trie, text, at, &index);
        if (length == 0)
            continue;
        const att_added_token *token = &added->tokens[index];
        *first = at;
        *end = search->at = at + length;
        at = *end - 1;
        if (token->single && ((*first > 0 && is_word_at(text, *first - 1)) || is_word_at(text, *end)))
            continue;
        while (token->left && *first > search->taken && is_space_at(text, *first - 1))
            --*first;
        while (token->right && is_space_at(text, *end))
            ++*end;
        search->taken = *end;
        return token;
    }
    return NULL;
}
