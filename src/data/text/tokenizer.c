#include <attscope/tokenizer.h>

#include <string.h>

#include "base/core/error.h"
#include "base/io/file.h"
#include "data/text/added.h"
#include "data/text/normalize.h"
#include "data/text/split.h"
#include "data/text/template.h"
#include "data/text/unicode.h"
#include "data/text/vocab_txt.h"

enum { MOST_FILE = 256 << 20, MOST_TEXT = 64 << 20 };

struct att_tokenizer {
    att_context *context;
    att_arena arena;
    att_normalizer normalizer;
    att_splitter splitter;
    att_text_model model;
    att_added added;
    att_template templates[2]; /* of one text, and of two */
    int limit;
};

/* --- opening ------------------------------------------------------------------------------------------------------ */

static att_status read_truncation(const att_part *part, int *limit)
{
    static const char *const keys[] = {"direction", "max_length", "strategy", "stride", NULL};
    const char *direction, *strategy;
    if (!part->object)
        return ATT_OK;
    ATT_TRY(att_part_check(part, keys));
    ATT_TRY(att_part_number(part, "max_length", 1, 1 << 30, 0, limit));
    ATT_TRY(att_part_text(part, "direction", "Right", &direction));
    ATT_TRY(att_part_text(part, "strategy", "LongestFirst", &strategy));
    if (strcmp(direction, "Right") != 0)
        return att_part_fail(part, ATT_ERR_UNSUPPORTED, "the direction \"%s\" is not supported; expected Right",
                             direction);
    if (strcmp(strategy, "LongestFirst") != 0)
        return att_part_fail(part, ATT_ERR_UNSUPPORTED, "the strategy \"%s\" is not supported; expected LongestFirst",
                             strategy);
    return ATT_OK;
}

static att_status read_object(att_tokenizer *t, const char *path, const json_t *root)
{
    static const char *const keys[] = {"version",       "truncation",     "padding", "added_tokens", "normalizer",
                                       "pre_tokenizer", "post_processor", "decoder", "model",        NULL};
    const att_part file = {t->context, &t->arena, path, "the file", root};
    const att_part added = {t->context, &t->arena, path, "added_tokens", root};
    const att_part truncation = att_part_member(&file, "truncation", "truncation"),
                   normalizer = att_part_member(&file, "normalizer", "normalizer"),
                   splitter = att_part_member(&file, "pre_tokenizer", "pre_tokenizer"),
                   model = att_part_member(&file, "model", "model"),
                   templates = att_part_member(&file, "post_processor", "post_processor");
    ATT_TRY(att_part_check(&file, keys));
    ATT_TRY(read_truncation(&truncation, &t->limit));
    ATT_TRY(att_normalizer_read(&normalizer, &t->normalizer));
    ATT_TRY(att_splitter_read(&splitter, &t->splitter));
    ATT_TRY(att_added_read(&added, &t->added));
    ATT_TRY(att_text_model_read(&model, t->added.ids, &t->model));
    ATT_TRY(att_added_place(&added, &t->added, &t->model.vocabulary, &t->normalizer));
    return att_templates_read(&templates, &t->model.vocabulary, t->templates);
}

/* Refuses a setting that the tokenizer contradicts: transformers would follow it, `tokenizers` would not. */
static att_status check_lower(const att_tokenizer *t, const char *path, const json_t *config)
{
    const json_t *lower = json_object_get(config, "do_lower_case");
    const int found = att_normalizer_lowers(&t->normalizer);
    if (found >= 0 && json_is_boolean(lower) && json_is_true(lower) != (found == 1))
        return att_fail(
            t->context, ATT_ERR_FORMAT,
            "%s: \"do_lower_case\" is %s, but the \"lowercase\" of tokenizer.json is %s; make both the same", path,
            found ? "false" : "true", found ? "true" : "false");
    return ATT_OK;
}

/* Takes the limit from tokenizer_config.json, unless it is "no limit", a very large number. */
static att_status read_config(att_tokenizer *t, const char *folder)
{
    enum { UNLIMITED = 1000000 };
    char path[ATT_TEXT_PATH];
    json_t *config;
    ATT_TRY(att_text_settings_read(t->context, folder, "tokenizer_config.json", path, &config));
    const double limit = json_number_value(json_object_get(config, "model_max_length"));
    if (t->limit == 0 && limit >= 1 && limit <= UNLIMITED)
        t->limit = (int)limit;
    const att_status status = check_lower(t, path, config);
    json_decref(config);
    return status;
}

static att_status read_json(att_tokenizer *t, const char *path, json_t **root)
{
    char *bytes;
    size_t size;
    ATT_TRY(att_file_read(t->context, path, MOST_FILE, &bytes, &size));
    att_status status = att_json_parse(t->context, path, bytes, size, root);
    att_free(t->context, bytes);
    return status;
}

static bool ends_in(const char *path, const char *ending)
{
    const size_t length = strlen(path), count = strlen(ending);
    return length >= count && strcmp(path + length - count, ending) == 0;
}

static att_status read_file(att_tokenizer *t, const char *path, const char *folder)
{
    json_t *root = NULL;
    att_status status;
    if (ends_in(path, ".json"))
        status = read_json(t, path, &root);
    else if (ends_in(path, ".txt"))
        status = att_vocab_txt_read(t->context, &t->arena, path, folder, &root);
    else
        status = att_fail(t->context, ATT_ERR_UNSUPPORTED,
                          "%s: expected a tokenizer.json, a vocab.txt, or a folder with one of them", path);
    if (status == ATT_OK)
        status = read_object(t, path, root);
    json_decref(root);
    return status == ATT_OK ? read_config(t, folder) : status;
}

static att_status fail_missing(att_context *context, const char *folder)
{
    static const char *const others[] = {"spiece.model", "sentencepiece.bpe.model", "tokenizer.model", "vocab.json"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (att_file_exists_in(folder, others[i]))
            return att_fail(context, ATT_ERR_UNSUPPORTED,
                            "%s: %s is not read; make tokenizer.json by transformers: "
                            "AutoTokenizer.from_pretrained(\"%s\").save_pretrained(\"%s\")",
                            folder, others[i], folder, folder);
    return att_fail(context, ATT_ERR_NOT_FOUND, "%s has neither tokenizer.json nor vocab.txt", folder);
}

static att_status read_tokenizer(att_tokenizer *t, const char *path)
{
    char buffer[ATT_TEXT_PATH];
    if (!att_file_is_folder(path)) {
        ATT_TRY(att_path_folder(t->context, path, buffer, sizeof buffer));
        return read_file(t, path, buffer);
    }
    const char *const names[] = {"tokenizer.json", "vocab.txt"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        ATT_TRY(att_path_join(t->context, path, names[i], buffer, sizeof buffer));
        if (att_file_exists(buffer))
            return read_file(t, buffer, path);
    }
    return fail_missing(t->context, path);
}

att_status att_tokenizer_open(att_context *context, const char *path, att_tokenizer **tokenizer)
{
    att_tokenizer *made;
    ATT_TRY(att_require(context, path, "the path of the tokenizer"));
    ATT_TRY(att_new(context, &made, 1, "a tokenizer"));
    made->context = made->arena.context = context;
    att_status status = read_tokenizer(made, path);
    if (status == ATT_OK)
        *tokenizer = made;
    else
        att_tokenizer_destroy(&made);
    return status;
}

void att_tokenizer_destroy(att_tokenizer **tokenizer)
{
    if (!tokenizer || !*tokenizer)
        return;
    att_tokenizer *t = *tokenizer;
    att_normalizer_free(&t->normalizer);
    att_text_model_free(&t->model);
    att_added_free(&t->added);
    att_arena_free(&t->arena);
    att_free(t->context, t);
    *tokenizer = NULL;
}

att_tokenizer_info att_tokenizer_describe(const att_tokenizer *tokenizer)
{
    return (att_tokenizer_info){.model = tokenizer->model.kind->type,
                                .count = tokenizer->model.vocabulary.count,
                                .unknown = tokenizer->model.unknown,
                                .limit = tokenizer->limit,
                                .special = {tokenizer->templates[0].special, tokenizer->templates[1].special}};
}

const char *att_tokenizer_piece(const att_tokenizer *tokenizer, int id)
{
    return att_vocabulary_piece(&tokenizer->model.vocabulary, id);
}

int att_tokenizer_find(const att_tokenizer *tokenizer, const char *piece)
{
    const int id = att_vocabulary_find(&tokenizer->model.vocabulary, piece);
    for (int i = 0; i < tokenizer->added.count && id < 0; i++)
        if (strcmp(tokenizer->added.tokens[i].text, piece) == 0)
            return tokenizer->added.tokens[i].id;
    return id;
}

/* --- encoding ----------------------------------------------------------------------------------------------------- */

/* What encoding a text needs. */
typedef struct encode_work {
    const att_tokenizer *tokenizer;
    att_characters raw, normal; /* the text; a part of it between added tokens, normalised */
    att_divided divided;
    att_token_list tokens;
} encode_work;

static void begin_work(const att_tokenizer *tokenizer, encode_work *work)
{
    att_context *context = tokenizer->context;
    *work = (encode_work){.tokenizer = tokenizer,
                          .raw = {.context = context},
                          .normal = {.context = context},
                          .tokens = {.context = context}};
    work->divided =
        (att_divided){{.context = context}, {.context = context}, {.context = context}, {.context = context}};
}

static void end_work(encode_work *work)
{
    att_characters_free(&work->raw);
    att_characters_free(&work->normal);
    att_characters_free(&work->divided.text);
    att_characters_free(&work->divided.other_text);
    att_words_free(&work->divided.words);
    att_words_free(&work->divided.other_words);
    att_token_list_free(&work->tokens);
}

static bool lacks_memory(const encode_work *work)
{
    const att_divided *d = &work->divided;
    return work->raw.failed || work->normal.failed || d->text.failed || d->other_text.failed || d->words.failed ||
           d->other_words.failed || work->tokens.failed;
}

/* Encodes a part of the normalised text without added tokens. */
static void encode_words(encode_work *work, size_t first, size_t end)
{
    const att_text_model *model = &work->tokenizer->model;
    att_divided *d = &work->divided;
    d->text.count = d->words.count = 0;
    att_characters_append(&d->text, work->normal.items + first, end - first);
    att_words_add(&d->words, 0, end - first);
    if (d->text.failed)
        return;
    att_splitter_apply(&work->tokenizer->splitter, d);
    for (size_t i = 0; i < d->words.count && !lacks_memory(work); i++)
        model->kind->encode(model, d->text.items + d->words.items[i].first, d->words.items[i].count, &work->tokens);
}

/* Encodes a part of the original text without added tokens that are found there. */
static att_status encode_part(encode_work *work, size_t first, size_t end)
{
    const att_added *added = &work->tokenizer->added;
    const att_added_token *token;
    att_added_search search = {0, 0};
    size_t from, to;
    if (first >= end)
        return ATT_OK;
    work->normal.count = 0;
    att_characters_append(&work->normal, work->raw.items + first, end - first);
    ATT_TRY(att_normalizer_apply(&work->tokenizer->normalizer, &work->normal, &work->divided.other_text));
    for (size_t taken = 0; !lacks_memory(work); taken = search.taken) {
        token = att_added_next(added, &added->normalized, &work->normal, &search, &from, &to);
        const size_t until = token ? from : work->normal.count;
        if (until > taken)
            encode_words(work, taken, until);
        if (!token)
            break;
        att_token_list_add(&work->tokens, token->id, work->normal.items + from, to - from);
    }
    return ATT_OK;
}

static void make_lower(encode_work *work)
{
    work->normal.count = 0;
    att_characters_append(&work->normal, work->raw.items, work->raw.count);
    work->raw.count = 0;
    att_characters_lower(&work->normal, &work->raw);
}

/* Encodes the whole text into work->tokens. */
static att_status encode_text(encode_work *work, const att_encode_text *text, bool lower, const char *name)
{
    const att_added *added = &work->tokenizer->added;
    const att_added_token *token;
    att_context *context = work->tokenizer->context;
    att_added_search search = {0, 0};
    size_t from, to;
    if (text->length > MOST_TEXT)
        return att_fail(context, ATT_ERR_ARGUMENT, "%s has %zu bytes, above the limit of %d", name, text->length,
                        (int)MOST_TEXT);
    const size_t valid = att_characters_decode(&work->raw, text->bytes, text->length);
    if (valid < text->length)
        return att_fail(context, ATT_ERR_FORMAT, "%s is not UTF-8 at byte %zu (0x%02X); convert it to UTF-8", name,
                        valid, (unsigned)(unsigned char)text->bytes[valid]);
    if (lower)
        make_lower(work);
    for (size_t taken = 0; !lacks_memory(work); taken = search.taken) {
        token = att_added_next(added, &added->raw, &work->raw, &search, &from, &to);
        ATT_TRY(encode_part(work, taken, token ? from : work->raw.count));
        if (!token)
            break;
        att_token_list_add(&work->tokens, token->id, work->raw.items + from, to - from);
    }
    return lacks_memory(work) ? att_fail_memory(context, text->length, "the tokens of a text") : ATT_OK;
}

/* Shortens two texts to `most` tokens together, the longer one first. */
static void shorten(int counts[2], int most)
{
    int shorter = counts[0] <= counts[1] ? counts[0] : counts[1];
    if (counts[0] + counts[1] <= most)
        return;
    shorter = shorter < most / 2 ? shorter : most / 2;
    const int longer = most - shorter;
    const bool second = counts[0] <= counts[1];
    counts[second] = longer;
    counts[!second] = shorter;
}

/* Puts the tokens of the texts, of which the first counts[i] are kept, and special tokens together. */
static att_status assemble(const encode_work work[2], const att_template *template, const int counts[2], bool plain,
                           att_encoding *encoding)
{
    att_context *context = work[0].tokenizer->context;
    const int count = counts[0] + counts[1] + (plain ? 0 : template->special);
    att_token *tokens;
    int at = 0;
    ATT_TRY(att_new(context, &tokens, (size_t)(count > 0 ? count : 1), "the tokens of a text"));
    for (int i = 0; i < template->count; i++) {
        const att_template_item *item = &template->items[i];
        if (item->text < 0 && !plain)
            tokens[at++] = (att_token){.id = item->id, .type = item->type, .text = -1};
        for (int k = 0; item->text >= 0 && k < counts[item->text]; k++) {
            tokens[at] = work[item->text].tokens.items[k];
            tokens[at].type = item->type;
            tokens[at++].text = item->text;
        }
    }
    *encoding = (att_encoding){tokens, count, work[0].tokens.count + work[1].tokens.count - counts[0] - counts[1]};
    return ATT_OK;
}

static att_status encode_both(encode_work work[2], const att_encode_text *text, const att_encode_text *pair,
                              const att_encode_options *options, att_encoding *encoding)
{
    const att_tokenizer *t = work[0].tokenizer;
    const att_template *template = &t->templates[pair != NULL];
    const char *name = options->name ? options->name : "the text";
    const int special = options->plain ? 0 : template->special;
    if (options->max_length < 0 || (options->max_length > 0 && options->max_length < special))
        return att_fail(t->context, ATT_ERR_ARGUMENT,
                        "%s: a length of at most %d tokens has no room for the %d special tokens", name,
                        options->max_length, special);
    ATT_TRY(encode_text(&work[0], text, options->lower, name));
    if (pair)
        ATT_TRY(encode_text(&work[1], pair, options->lower, options->name ? options->name : "the second text"));
    int counts[2] = {work[0].tokens.count, work[1].tokens.count};
    if (options->max_length > 0)
        shorten(counts, options->max_length - special);
    return assemble(work, template, counts, options->plain, encoding);
}

att_status att_tokenizer_encode(const att_tokenizer *tokenizer, const att_encode_text *text,
                                const att_encode_text *pair, const att_encode_options *options, att_encoding *encoding)
{
    static const att_encode_options usual = {.max_length = 0};
    encode_work work[2];
    begin_work(tokenizer, &work[0]);
    begin_work(tokenizer, &work[1]);
    const att_status status = encode_both(work, text, pair, options ? options : &usual, encoding);
    end_work(&work[0]);
    end_work(&work[1]);
    return status;
}

void att_encoding_free(att_context *context, att_encoding *encoding)
{
    att_free(context, encoding->tokens);
    *encoding = (att_encoding){.count = 0};
}
