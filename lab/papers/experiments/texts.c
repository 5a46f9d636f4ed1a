#include "lab/papers/experiments/texts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <attscope/tokenizer.h>

#include "base/core/error.h"
#include "base/core/random.h"
#include "base/core/text.h"
#include "base/io/file.h"

enum { SHORTEST_MADE = 20, MOST_BYTES = 64 << 20 };

static att_status allocate(att_arena *arena, int count, int tokens, att_texts_table *texts)
{
    size_t ids = (size_t)count * (size_t)tokens * sizeof *texts->ids, lengths = (size_t)count * sizeof *texts->lengths;
    *texts = (att_texts_table){.tokens = tokens};
    texts->ids = att_arena_allocate(arena, ids);
    texts->lengths = att_arena_allocate(arena, lengths);
    return texts->ids && texts->lengths ? ATT_OK : att_fail_memory(arena->context, ids + lengths, "texts");
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

typedef struct word {
    const unsigned char *begin;
    size_t length;
    int64_t place; /* index in att_texts_table.ids */
} word;

static bool is_of_word(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c >= 0x80;
}

/* Advances *at to the end of the next token before `end`. Returns false if there is none. */
static bool next_word(const unsigned char **at, const unsigned char *end, word *found)
{
    while (*at < end && (**at <= ' ' || **at == 0x7f))
        ++*at;
    if (*at == end)
        return false;
    found->begin = *at;
    do
        ++*at;
    while (is_of_word(*found->begin) && *at < end && is_of_word(**at));
    found->length = (size_t)(*at - found->begin);
    return true;
}

static int compare_words(const void *a, const void *b)
{
    const word *p = a, *q = b;
    size_t shorter = p->length < q->length ? p->length : q->length;
    int order = memcmp(p->begin, q->begin, shorter);
    return order ? order : (p->length > q->length) - (p->length < q->length);
}

/* bytes: as from att_file_read(), which appends a NUL */
static att_status check_text(att_context *context, const char *path, const char *bytes, size_t size)
{
    size_t at = 0, length = 1;
    while (at < size && length > 0) {
        length = bytes[at] == '\0' ? 0 : att_utf8_length(bytes + at);
        at += length;
    }
    return at == size ? ATT_OK
                      : att_fail(context, ATT_ERR_FORMAT,
                                 "\"%s\" is no text in UTF-8: byte 0x%02x at offset %zu; expected one text per line",
                                 path, (unsigned)(unsigned char)bytes[at], at);
}

static void lower(char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        bytes[i] = bytes[i] >= 'A' && bytes[i] <= 'Z' ? (char)(bytes[i] - 'A' + 'a') : bytes[i];
}

/* Divides the bytes into texts and words; returns the number of words. */
static int64_t divide(const char *bytes, size_t size, int count, att_texts_table *texts, word *words)
{
    const unsigned char *at = (const unsigned char *)bytes, *end = at + size;
    int64_t found = 0;
    while (at < end && texts->count < count) {
        const unsigned char *line_end = memchr(at, '\n', (size_t)(end - at));
        line_end = line_end ? line_end : end;
        int length = 0;
        while (length < texts->tokens && next_word(&at, line_end, &words[found]))
            words[found++].place = (int64_t)texts->count * texts->tokens + length++;
        if (length > 0)
            texts->lengths[texts->count++] = length;
        at = line_end < end ? line_end + 1 : end;
    }
    return found;
}

/* Numbers the words in alphabetical order. */
static void number(att_texts_table *texts, word *words, int64_t count)
{
    qsort(words, (size_t)count, sizeof *words, compare_words);
    for (int64_t i = 0; i < count; i++) {
        texts->vocabulary += i == 0 || compare_words(&words[i - 1], &words[i]) != 0;
        texts->ids[words[i].place] = texts->vocabulary - 1;
    }
}

static att_status fail_empty(att_context *context, const char *path)
{
    return att_fail(context, ATT_ERR_FORMAT, "\"%s\" has no text; expected one text per line", path);
}

att_status att_texts_read(att_arena *arena, const char *path, int count, int tokens, att_texts_table *texts)
{
    char *bytes = NULL;
    size_t size, room = (size_t)count * (size_t)tokens * sizeof(word);
    ATT_TRY(allocate(arena, count, tokens, texts));
    ATT_TRY(att_file_read(arena->context, path, MOST_BYTES, &bytes, &size));
    word *words = att_allocate(arena->context, room);
    att_status status =
        words ? check_text(arena->context, path, bytes, size) : att_fail_memory(arena->context, room, "texts");
    if (status == ATT_OK) {
        lower(bytes, size);
        int64_t found = divide(bytes, size, count, texts, words);
        number(texts, words, found);
        if (found == 0)
            status = fail_empty(arena->context, path);
    }
    att_free(arena->context, words);
    att_free(arena->context, bytes);
    return status;
}

/* --- tokenizers --------------------------------------------------------------------------------------------------- */

typedef struct tokenizing {
    att_context *context;
    att_tokenizer *tokenizer;
    att_text_file file;
    int32_t *numbers; /* [pieces]: 1 + the number of a piece; 0: it has not occurred */
} tokenizing;

static int32_t number_of(const tokenizing *t, int32_t id, att_texts_table *texts)
{
    if (t->numbers[id] == 0)
        t->numbers[id] = ++texts->vocabulary;
    return t->numbers[id] - 1;
}

/* Adds the tokens of a line as a text, if it has any beside special ones. */
static att_status add_line(const tokenizing *t, const char *path, int line, att_texts_table *texts)
{
    char name[4096];
    const att_encode_options options = {.max_length = texts->tokens, .name = name};
    att_encoding encoding;
    snprintf(name, sizeof name, "%s: line %d", path, line + 1);
    ATT_TRY(att_tokenizer_encode(t->tokenizer, &t->file.texts[line], NULL, &options, &encoding));
    int32_t *row = texts->ids + (int64_t)texts->count * texts->tokens;
    if (encoding.count > att_tokenizer_describe(t->tokenizer).special[0])
        texts->lengths[texts->count++] = encoding.count;
    else
        encoding.count = 0;
    for (int i = 0; i < encoding.count; i++)
        row[i] = number_of(t, encoding.tokens[i].id, texts);
    att_encoding_free(t->context, &encoding);
    return ATT_OK;
}

static att_status tokenize(tokenizing *t, const char *path, const char *tokenizer, int count, att_texts_table *texts)
{
    ATT_TRY(att_text_file_read(t->context, path, &t->file));
    ATT_TRY(att_tokenizer_open(t->context, tokenizer, &t->tokenizer));
    const int pieces = att_tokenizer_describe(t->tokenizer).count;
    ATT_TRY(att_new(t->context, &t->numbers, (size_t)pieces, "the pieces of a tokenizer"));
    for (int line = 0; line < t->file.count && texts->count < count; line++)
        ATT_TRY(add_line(t, path, line, texts));
    return texts->count > 0 ? ATT_OK : fail_empty(t->context, path);
}

att_status att_texts_tokenize(att_arena *arena, const char *path, const char *tokenizer, int count, int tokens,
                              att_texts_table *texts)
{
    tokenizing t = {.context = arena->context};
    ATT_TRY(allocate(arena, count, tokens, texts));
    const att_status status = tokenize(&t, path, tokenizer, count, texts);
    att_free(t.context, t.numbers);
    att_tokenizer_destroy(&t.tokenizer);
    att_text_file_free(t.context, &t.file);
    return status;
}

/* --- making ------------------------------------------------------------------------------------------------------- */

/* The number whose share of the distribution contains x in [0, 1). */
static int32_t draw(const double *cumulative, double x)
{
    int32_t low = 0, high = ATT_TEXTS_WORDS - 1;
    x *= cumulative[ATT_TEXTS_WORDS - 1];
    while (low < high) {
        int32_t middle = (low + high) / 2;
        if (cumulative[middle] > x)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

att_status att_texts_make(att_arena *arena, uint64_t seed, int count, int tokens, att_texts_table *texts)
{
    double cumulative[ATT_TEXTS_WORDS], sum = 0;
    for (int r = 0; r < ATT_TEXTS_WORDS; r++)
        cumulative[r] = sum += 1 / (double)(r + 1);
    ATT_TRY(allocate(arena, count, tokens, texts));
    texts->count = count;
    texts->vocabulary = ATT_TEXTS_WORDS;
    int shortest = tokens < SHORTEST_MADE ? tokens : SHORTEST_MADE;
    for (int text = 0; text < count; text++) {
        att_random random = att_random_from(att_random_key(seed, att_random_hash("texts"), (uint64_t)text));
        texts->lengths[text] = shortest + (int)att_random_below(&random, tokens - shortest + 1);
        for (int i = 0; i < texts->lengths[text]; i++)
            texts->ids[(int64_t)text * tokens + i] = draw(cumulative, att_random_uniform(&random));
    }
    return ATT_OK;
}
