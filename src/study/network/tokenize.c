/* Texts as the tokens of a network. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include <attscope/encoder.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/core/text.h"
#include "base/io/file.h"
#include "base/io/json.h"
#include "networks/models/family.h"
#include "study/network/network.h"

typedef struct tokenizing {
    const att_network *network;
    att_context *context;
    const char *folder; /* of the weights; NULL: there are no files */
    const char *path;   /* of the tokenizer; NULL: in the folder */
    const char *name;
    const att_encode_text *texts;
    int64_t count;
    int most;
    bool lower; /* texts become lower case */
    att_tokenizer *tokenizer;
    att_encoding *encodings; /* [count] */
    int64_t tokens;          /* of all texts */
} tokenizing;

static att_status open_tokenizer(tokenizing *t)
{
    const att_model *model = t->network->model;
    const char *path = t->path ? t->path : t->folder;
    if (!path)
        return att_fail(t->context, ATT_ERR_NOT_FOUND,
                        "%s was made without files, and so without a tokenizer; give the path of one",
                        att_model_name(model));
    const att_status status = att_tokenizer_open(t->context, path, &t->tokenizer);
    if (status == ATT_ERR_NOT_FOUND && !t->path)
        return att_fail(t->context, status,
                        "%s has no tokenizer (tokenizer.json or vocab.txt); give the path of the network's tokenizer",
                        path);
    ATT_TRY(status);
    const int pieces = att_tokenizer_describe(t->tokenizer).count,
              words = (int)att_options_number(att_model_options(model), "vocab_size", 0);
    if (pieces > words)
        return att_fail(
            t->context, ATT_ERR_MISMATCH,
            "%s: the tokenizer has %d pieces, and the vocabulary of %s has %d: give the tokenizer of this network",
            path, pieces, att_model_name(model), words);
    if (pieces < words)
        att_log(t->context, ATT_LOG_WARNING,
                "%s: the tokenizer has %d pieces, and the vocabulary of %s has %d: if the network's vocabulary is not "
                "padded, this is the tokenizer of another network",
                path, pieces, att_model_name(model), words);
    return ATT_OK;
}

/* What sentence_bert_config.json says. */
typedef struct sentence_settings {
    int length; /* to which texts are shortened; 0: none is given */
    bool lower; /* texts become lower case */
} sentence_settings;
static const char SENTENCE[] = "sentence_bert_config.json";

static att_status read_members(const tokenizing *t, const char *path, const json_t *object, sentence_settings *found)
{
    const json_t *length = json_object_get(object, "max_seq_length"), *lower = json_object_get(object, "do_lower_case");
    const json_int_t number = json_integer_value(length);
    const bool given = length && !json_is_null(length);
    if (given && (number < 1 || number > INT_MAX))
        return att_fail(t->context, ATT_ERR_FORMAT,
                        "%s: \"max_seq_length\" must be a whole number of at least 1, or null", path);
    if (lower && !json_is_null(lower) && !json_is_boolean(lower))
        return att_fail(t->context, ATT_ERR_FORMAT, "%s: \"do_lower_case\" must be true, false or null", path);
    *found = (sentence_settings){given ? (int)number : 0, json_is_true(lower)};
    return ATT_OK;
}

static att_status read_sentence_settings(const tokenizing *t, sentence_settings *found)
{
    char path[ATT_NETWORK_PATH], *bytes;
    size_t size;
    json_t *object = NULL;
    *found = (sentence_settings){0};
    if (!t->folder || !att_file_exists_in(t->folder, SENTENCE))
        return ATT_OK;
    ATT_TRY(att_path_join(t->context, t->folder, SENTENCE, path, sizeof path));
    ATT_TRY(att_file_read(t->context, path, ATT_JSON_SETTINGS_BYTES, &bytes, &size));
    att_status status = att_json_parse(t->context, path, bytes, size, &object);
    att_free(t->context, bytes);
    if (status == ATT_OK)
        status = read_members(t, path, object, found);
    json_decref(object);
    return status;
}

/* Takes the settings with which sentence-transformers uses these weights, and without a given length that of the
 * network. */
static att_status take_sentence_settings(tokenizing *t)
{
    const int longest = att_network_most_tokens(t->network);
    sentence_settings found;
    ATT_TRY(read_sentence_settings(t, &found));
    if (t->most == 0 && found.length > 0 && found.length < longest) {
        t->most = found.length;
        att_log(t->context, ATT_LOG_INFO, "texts are shortened to %d tokens, as %s says; the network takes %d",
                found.length, SENTENCE, longest);
    }
    t->most = t->most > 0 ? t->most : longest;
    t->lower = found.lower;
    return ATT_OK;
}

static att_status encode(tokenizing *t, int64_t index, int64_t *shortened)
{
    char name[ATT_NETWORK_PATH + 32];
    const att_encode_options options = {.max_length = t->most, .lower = t->lower, .name = name};
    att_encoding *encoding = &t->encodings[index];
    if (t->name)
        snprintf(name, sizeof name, "%s: line %lld", t->name, (long long)index + 1);
    else
        snprintf(name, sizeof name, "text %lld", (long long)index);
    ATT_TRY(att_tokenizer_encode(t->tokenizer, &t->texts[index], NULL, &options, encoding));
    if (encoding->count == 0)
        return att_fail(t->context, ATT_ERR_ARGUMENT, "%s has no tokens", name);
    t->tokens += encoding->count;
    *shortened += encoding->removed > 0;
    return ATT_OK;
}

/* Copies ids, types and which are special out of the encodings. */
static att_status copy(const tokenizing *t, att_token_texts *made)
{
    ATT_TRY(att_new(t->context, &made->texts, (size_t)t->count, "the tokens of texts"));
    ATT_TRY(att_new(t->context, &made->numbers, 3 * (size_t)t->tokens, "the tokens of texts"));
    int32_t *at = made->numbers;
    for (made->count = 0; made->count < t->count; made->count++) {
        const att_encoding *e = &t->encodings[made->count];
        made->texts[made->count] = (att_token_ids){
            .tokens = at, .types = at + e->count, .special = at + 2 * (ptrdiff_t)e->count, .count = e->count};
        for (int i = 0; i < e->count; i++, at++) {
            at[0] = e->tokens[i].id;
            at[e->count] = e->tokens[i].type;
            at[2 * (ptrdiff_t)e->count] = e->tokens[i].text < 0;
        }
        at += 2 * (ptrdiff_t)e->count;
    }
    return ATT_OK;
}

static att_status tokenize(tokenizing *t, att_token_texts *made)
{
    const int longest = att_network_most_tokens(t->network);
    char inputs[ATT_INPUTS_TEXT];
    if (longest == 0)
        return att_fail(t->context, ATT_ERR_UNSUPPORTED, "%s takes no tokens of texts; its inputs are: %s",
                        att_model_name(t->network->model), att_model_inputs_describe(t->network->model, inputs));
    if (t->most > longest || t->most < 0)
        return att_fail(t->context, ATT_ERR_ARGUMENT, "texts of %d tokens; %s takes 1 to %d", t->most,
                        att_model_name(t->network->model), longest);
    if (t->count < 1)
        return att_fail(t->context, ATT_ERR_ARGUMENT, "%s%sthere are no texts", t->name ? t->name : "",
                        t->name ? ": " : "");
    ATT_TRY(att_require(t->context, t->texts, "the texts of a network"));
    ATT_TRY(open_tokenizer(t));
    ATT_TRY(take_sentence_settings(t));
    made->most = t->most;
    ATT_TRY(att_new(t->context, &t->encodings, (size_t)t->count, "the tokens of texts"));
    for (int64_t i = 0; i < t->count; i++)
        ATT_TRY(encode(t, i, &made->shortened));
    return copy(t, made);
}

att_status att_network_tokenize(const att_network *network, const char *tokenizer, const att_encode_text *texts,
                                int64_t count, int most, const char *name, att_token_texts *made)
{
    char folder[ATT_NETWORK_PATH];
    const char *slash = strrchr(network->path, '/');
    att_token_texts all = {0};
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - network->path) : 1, slash ? network->path : ".");
    tokenizing t = {.network = network,
                    .context = network->context,
                    .folder = *network->path ? folder : NULL,
                    .path = tokenizer,
                    .name = name,
                    .texts = texts,
                    .count = count,
                    .most = most};
    const att_status status = tokenize(&t, &all);
    for (int64_t i = 0; t.encodings && i < count; i++)
        att_encoding_free(t.context, &t.encodings[i]);
    att_free(t.context, t.encodings);
    all.tokenizer = t.tokenizer;
    if (status == ATT_OK)
        *made = all;
    else
        att_token_texts_free(t.context, &all);
    return status;
}

void att_token_texts_free(att_context *context, att_token_texts *texts)
{
    att_free(context, texts->texts);
    att_free(context, texts->numbers);
    att_tokenizer_destroy(&texts->tokenizer);
    *texts = (att_token_texts){0};
}

att_batch att_network_text_inputs(const att_network *network, const att_token_ids *text, att_text_inputs *room)
{
    att_batch batch = {.count = 1, .rows = 1, .fields = room->fields, .data = room->data};
    att_field field;
    room->count = text->count;
    for (int i = 0; att_network_most_tokens(network) > 0 && (field = att_model_input_at(network->model, i).field).name;
         i++) {
        room->data[i] = strcmp(field.name, ATT_TOKENS) == 0        ? (const void *)text->tokens
                        : strcmp(field.name, ATT_TOKEN_TYPES) == 0 ? text->types
                                                                   : &room->count;
        field.shape = field.shape.rank > 0 ? att_shape_of(text->count) : field.shape;
        room->fields[batch.field_count++] = field;
    }
    return batch;
}
