/* WordPiece: the longest piece that begins the rest of the word, again and again. */
#include <string.h>

#include "base/core/error.h"
#include "data/text/model.h"

/* The size of a vocabulary: an object from pieces to ids. */
typedef struct vocabulary_size {
    int count;
    size_t bytes;
} vocabulary_size;

static att_status measure(const att_part *part, const json_t *pieces, vocabulary_size *size)
{
    const char *piece;
    json_t *id;
    json_object_foreach((json_t *)pieces, piece, id)
    {
        const json_int_t number = json_integer_value(id);
        if (!json_is_integer(id) || number < 0 || number >= ATT_MOST_PIECES)
            return att_part_fail(part, ATT_ERR_FORMAT,
                                 "\"vocab\" has \"%s\" with an id that is not a whole number from 0 to %d", piece,
                                 ATT_MOST_PIECES - 1);
        size->count = number >= size->count ? (int)number + 1 : size->count;
        size->bytes += strlen(piece);
    }
    return size->count > 0 ? ATT_OK : att_part_fail(part, ATT_ERR_FORMAT, "\"%s\" has no pieces", "vocab");
}

static att_status add_pieces(const att_part *part, const json_t *pieces, att_vocabulary *vocabulary)
{
    const char *piece;
    json_t *value;
    json_object_foreach((json_t *)pieces, piece, value)
    {
        const int id = (int)json_integer_value(value);
        const char *other = att_vocabulary_piece(vocabulary, id);
        if (other)
            return att_part_fail(part, ATT_ERR_FORMAT, "\"vocab\" gives \"%s\" and \"%s\" the same id, %d", other,
                                 piece, id);
        att_vocabulary_add(vocabulary, piece, id);
        if (vocabulary->texts.failed)
            return att_fail_memory(part->context, strlen(piece), "a vocabulary");
    }
    return ATT_OK;
}

static att_status read_model(const att_part *part, int least, att_text_model *model)
{
    enum { USUAL_WORD = 100 };
    const json_t *pieces = json_object_get(part->object, "vocab");
    const char *unknown, *prefix;
    vocabulary_size size = {least, 0};
    ATT_TRY(att_part_text(part, "unk_token", "[UNK]", &unknown));
    ATT_TRY(att_part_text(part, "continuing_subword_prefix", "##", &prefix));
    ATT_TRY(att_part_number(part, "max_input_chars_per_word", 0, 1 << 30, USUAL_WORD, &model->most));
    if (!json_is_object(pieces))
        return att_part_fail(part, ATT_ERR_FORMAT, "\"%s\" must be an object in {}, from pieces to ids", "vocab");
    ATT_TRY(measure(part, pieces, &size));
    ATT_TRY(att_vocabulary_make(part->context, part->path, size.count, size.bytes, &model->vocabulary));
    ATT_TRY(add_pieces(part, pieces, &model->vocabulary));
    model->unknown = att_vocabulary_find(&model->vocabulary, unknown);
    model->continued = att_trie_find(&model->vocabulary.trie, prefix, strlen(prefix));
    return model->unknown >= 0
               ? ATT_OK
               : att_part_fail(part, ATT_ERR_FORMAT, "\"unk_token\" is \"%s\", which \"vocab\" does not have", unknown);
}

/* Returns the number of characters of the longest piece that begins the word, and sets *id. 0: there is none. */
static size_t find_longest(const att_trie *trie, int32_t node, const att_character *word, size_t count, int *id)
{
    size_t longest = 0;
    for (size_t i = 0; i < count && node >= 0; i++) {
        node = att_trie_step(trie, node, word[i].code);
        if (node >= 0 && trie->values[node] >= 0) {
            longest = i + 1;
            *id = trie->values[node];
        }
    }
    return longest;
}

static void encode(const att_text_model *model, const att_character *word, size_t count, att_token_list *tokens)
{
    const int before = tokens->count;
    int32_t node = ATT_TRIE_ROOT;
    size_t length = count <= (size_t)model->most;
    for (size_t i = 0; i < count && length > 0; i += length) {
        int id = 0;
        length = find_longest(&model->vocabulary.trie, node, word + i, count - i, &id);
        if (length > 0)
            att_token_list_add(tokens, id, word + i, length);
        node = model->continued;
    }
    if (length > 0)
        return;
    tokens->count = before;
    att_token_list_add(tokens, model->unknown, word, count);
}

const att_text_model_kind att_wordpiece = {
    .type = "WordPiece",
    .keys = {"unk_token", "continuing_subword_prefix", "max_input_chars_per_word", "vocab"},
    .read = read_model,
    .encode = encode,
};
