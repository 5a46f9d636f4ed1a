#include "data/text/vocab_txt.h"

#include <string.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "base/io/file.h"

enum { MOST_VOCABULARY = 64 << 20 };

att_status att_text_settings_read(att_context *context, const char *folder, const char *name, char path[ATT_TEXT_PATH],
                                  json_t **object)
{
    char *bytes;
    size_t size;
    *object = NULL;
    ATT_TRY(att_path_join(context, folder, name, path, ATT_TEXT_PATH));
    if (!att_file_exists(path))
        return ATT_OK;
    ATT_TRY(att_file_read(context, path, ATT_JSON_SETTINGS_BYTES, &bytes, &size));
    /* transformers writes 10^30 for a tokenizer without a limit. */
    att_status status = att_json_parse_reals(context, path, bytes, size, object);
    att_free(context, bytes);
    if (status == ATT_OK && !json_is_object(*object)) {
        json_decref(*object);
        *object = NULL;
        status = att_fail(context, ATT_ERR_FORMAT, "%s: expected an object in {}", path);
    }
    return status;
}

/* --- classes of transformers -------------------------------------------------------------------------------------- */

enum { UNKNOWN, BEGIN, SEPARATOR, PADDING, MASK, SPECIALS };
static const char *const special_keys[SPECIALS] = {"unk_token", "cls_token", "sep_token", "pad_token", "mask_token"};

/* A class of transformers whose files are vocab.txt, its usual special pieces, and the post-processor of a pair. */
typedef struct tokenizer_class {
    const char *name; /* without "Tokenizer" or "TokenizerFast" */
    const char *usual[SPECIALS];
    const char *post_processor;
} tokenizer_class;

#define OF_BERT {"[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"}, "BertProcessing"
static const tokenizer_class classes[] = {
    {"Bert", OF_BERT},
    {"DistilBert", OF_BERT},
    {"Electra", OF_BERT},
    {"MPNet", {"[UNK]", "<s>", "</s>", "<pad>", "<mask>"}, "RobertaProcessing"},
};

/* What vocab.txt and the files beside it say. */
typedef struct beside {
    att_context *context;
    const char *path;     /* of vocab.txt */
    json_t *config, *map; /* tokenizer_config.json and special_tokens_map.json; NULL: there is none */
    json_t *vocabulary;   /* pieces to ids */
    json_t *added;        /* as "added_tokens" in tokenizer.json */
} beside;

static att_status find_class(const beside *b, const tokenizer_class **found)
{
    const char *name = json_string_value(json_object_get(b->config, "tokenizer_class"));
    *found = &classes[0];
    for (size_t i = 0; name && i < sizeof classes / sizeof *classes; i++) {
        const size_t length = strlen(classes[i].name);
        const char *rest = strncmp(name, classes[i].name, length) == 0 ? name + length : "";
        *found = &classes[i];
        if (strcmp(rest, "Tokenizer") == 0 || strcmp(rest, "TokenizerFast") == 0)
            return ATT_OK;
    }
    return !name ? ATT_OK
                 : att_fail(
                       b->context, ATT_ERR_UNSUPPORTED,
                       "%s: tokenizer_config.json names the class \"%s\", whose vocab.txt is not supported; save the "
                       "tokenizer with transformers' save_pretrained(), which writes tokenizer.json",
                       b->path, name);
}

/* --- special pieces ----------------------------------------------------------------------------------------------- */

/* The text of a special piece: "[CLS]", or an object with "content". NULL: none is given. */
static const char *content_of(const json_t *value)
{
    const char *text = json_string_value(json_object_get(value, "content"));
    return text ? text : json_string_value(value);
}

/* Adds a token to the list of added tokens. details: an object with the settings of a token; else all are false. */
static att_status add_token(const beside *b, const json_t *details, const char *piece, json_int_t id)
{
    static const char *const flags[] = {"single_word", "lstrip", "rstrip", "normalized"};
    json_t *token = json_pack("{s:I, s:s, s:b}", "id", id, "content", piece, "special", true);
    const json_t *special = json_object_get(details, "special");
    int failed = !token;
    for (size_t i = 0; token && i < sizeof flags / sizeof *flags; i++)
        failed |= json_object_set_new(token, flags[i], json_boolean(json_is_true(json_object_get(details, flags[i]))));
    if (token && json_is_false(special))
        failed |= json_object_set_new(token, "special", json_false());
    failed |= json_array_append_new(b->added, token);
    return failed ? att_fail_memory(b->context, sizeof *b, "added tokens") : ATT_OK;
}

/* Whether the list of added tokens has the piece. */
static bool is_added(const beside *b, const char *piece)
{
    for (size_t i = 0; i < json_array_size(b->added); i++)
        if (strcmp(content_of(json_array_get(b->added, i)), piece) == 0)
            return true;
    return false;
}

/* Adds the tokens of "added_tokens_decoder", an object from ids to tokens. */
static att_status add_listed(const beside *b)
{
    enum { MOST_LISTED = 4096 };
    const json_t *listed = json_object_get(b->config, "added_tokens_decoder");
    const char *key;
    json_t *value;
    if (json_object_size(listed) > MOST_LISTED)
        return att_fail(b->context, ATT_ERR_UNSUPPORTED, "%s: tokenizer_config.json has more than %d added tokens",
                        b->path, (int)MOST_LISTED);
    json_object_foreach((json_t *)listed, key, value)
    {
        int64_t id;
        if (!att_text_to_i64(key, &id) || !content_of(value))
            return att_fail(
                b->context, ATT_ERR_FORMAT,
                "%s: in tokenizer_config.json, \"added_tokens_decoder\" has \"%s\", which is not an id with a "
                "token",
                b->path, key);
        if (!is_added(b, content_of(value)))
            ATT_TRY(add_token(b, value, content_of(value), id));
    }
    return ATT_OK;
}

/* Finds the text of a special piece, and adds it to the list of added tokens if it has an id. */
static att_status read_special(const beside *b, const char *key, const char *usual, bool required, const char **piece)
{
    const json_t *values[] = {json_object_get(b->config, key), json_object_get(b->map, key)};
    const char *texts[] = {content_of(values[0]), content_of(values[1])};
    if (texts[0] && texts[1] && strcmp(texts[0], texts[1]) != 0)
        return att_fail(
            b->context, ATT_ERR_FORMAT,
            "%s: \"%s\" is \"%s\" in tokenizer_config.json, but \"%s\" in special_tokens_map.json; remove one", b->path,
            key, texts[0], texts[1]);
    *piece = texts[0] ? texts[0] : texts[1] ? texts[1] : usual;
    const json_t *id = json_object_get(b->vocabulary, *piece);
    if (!id && required)
        return att_fail(b->context, ATT_ERR_FORMAT, "%s: no line is \"%s\", the \"%s\"", b->path, *piece, key);
    if (!id || is_added(b, *piece))
        return ATT_OK;
    return add_token(b, json_is_object(values[0]) ? values[0] : values[1], *piece, json_integer_value(id));
}

/* --- tokenizer.json ----------------------------------------------------------------------------------------------- */

/* Reads the lines of vocab.txt into b->vocabulary. Of equal lines the last counts. */
static att_status read_pieces(beside *b, att_arena *arena)
{
    const char **lines;
    char *bytes;
    size_t size;
    int count;
    ATT_TRY(att_file_read(b->context, b->path, MOST_VOCABULARY, &bytes, &size));
    att_status status = att_text_lines(arena, b->path, bytes, size, &lines, &count);
    for (int i = 0; i < count && status == ATT_OK; i++) {
        if (!att_utf8_valid(lines[i]))
            status = att_fail(b->context, ATT_ERR_FORMAT, "%s: line %d is not UTF-8", b->path, i + 1);
        else if (*lines[i] && json_object_set_new(b->vocabulary, lines[i], json_integer(i)) != 0)
            status = att_fail_memory(b->context, size, b->path);
    }
    att_free(b->context, bytes);
    return status;
}

/* Refuses settings that would divide texts in another way. */
static att_status check_settings(const beside *b)
{
    const json_t *kept = json_object_get(b->config, "never_split");
    if (json_array_size(kept) > 0)
        return att_fail(b->context, ATT_ERR_UNSUPPORTED,
                        "%s: the setting \"never_split\" of tokenizer_config.json is not supported", b->path);
    if (json_is_false(json_object_get(b->config, "do_basic_tokenize")))
        return att_fail(b->context, ATT_ERR_UNSUPPORTED,
                        "%s: \"do_basic_tokenize\": false in tokenizer_config.json is not supported", b->path);
    return ATT_OK;
}

/* A setting of tokenizer_config.json; NULL: it is missing or null. */
static json_t *setting(const beside *b, const char *key)
{
    json_t *value = json_object_get(b->config, key);
    return json_is_null(value) ? NULL : value;
}

static att_status make_object(const beside *b, json_t **root)
{
    const char *pieces[SPECIALS];
    const tokenizer_class *class;
    ATT_TRY(check_settings(b));
    ATT_TRY(find_class(b, &class));
    ATT_TRY(add_listed(b));
    for (int i = 0; i < SPECIALS; i++)
        ATT_TRY(read_special(b, special_keys[i], class->usual[i], i <= SEPARATOR, &pieces[i]));
    *root =
        json_pack("{s:O, s:{s:s, s:O*, s:O*, s:O*}, s:{s:s}, s:{s:s, s:[s,O], s:[s,O]}, s:{s:s, s:s, s:O}}",
                  "added_tokens", b->added, "normalizer", "type", "BertNormalizer", "handle_chinese_chars",
                  setting(b, "tokenize_chinese_chars"), "strip_accents", setting(b, "strip_accents"), "lowercase",
                  setting(b, "do_lower_case"), "pre_tokenizer", "type", "BertPreTokenizer", "post_processor", "type",
                  class->post_processor, "cls", pieces[BEGIN], json_object_get(b->vocabulary, pieces[BEGIN]), "sep",
                  pieces[SEPARATOR], json_object_get(b->vocabulary, pieces[SEPARATOR]), "model", "type", "WordPiece",
                  "unk_token", pieces[UNKNOWN], "vocab", b->vocabulary);
    return *root ? ATT_OK : att_fail_memory(b->context, sizeof *b, "a tokenizer");
}

att_status att_vocab_txt_read(att_context *context, att_arena *arena, const char *path, const char *folder,
                              json_t **root)
{
    char config[ATT_TEXT_PATH], map[ATT_TEXT_PATH];
    beside b = {.context = context, .path = path, .vocabulary = json_object(), .added = json_array()};
    att_status status = b.vocabulary && b.added ? ATT_OK : att_fail_memory(context, sizeof b, path);
    if (status == ATT_OK)
        status = read_pieces(&b, arena);
    if (status == ATT_OK)
        status = att_text_settings_read(context, folder, "tokenizer_config.json", config, &b.config);
    if (status == ATT_OK)
        status = att_text_settings_read(context, folder, "special_tokens_map.json", map, &b.map);
    if (status == ATT_OK)
        status = make_object(&b, root);
    json_decref(b.vocabulary);
    json_decref(b.added);
    json_decref(b.config);
    json_decref(b.map);
    return status;
}
