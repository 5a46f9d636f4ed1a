/* Unigram: the division into pieces with the greatest sum of scores. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/core/error.h"
#include "data/text/model.h"

/* Returns the score as `tokenizers` reads it from the number's shortest digits: it divides them, as a whole number, by
 * a power of ten, and so rounds twice. The last bit matters: divisions into the same pieces in another order have equal
 * sums but for rounding. */
static double rounded_twice(double score)
{
    enum { MOST_DECIMALS = 22 }; /* larger powers of ten are not exact */
    char text[ATT_NUMBER_TEXT];
    double power = 1;
    uint64_t whole = 0;
    int decimals = -1;
    for (const char *at = att_format_number(fabs(score), text); *at; at++) {
        if (*at != '.' && (*at < '0' || *at > '9'))
            return score;
        whole = *at == '.' ? whole : 10 * whole + (uint64_t)(*at - '0');
        decimals += decimals >= 0 || *at == '.';
    }
    if (decimals > MOST_DECIMALS)
        return score;
    for (int i = 0; i < decimals; i++)
        power *= 10;
    return copysign((double)whole / power, score);
}

static att_status read_piece(const att_part *part, const json_t *pieces, size_t index, const char **piece,
                             double *score)
{
    const json_t *entry = json_array_get(pieces, index), *number = json_array_get(entry, 1);
    *piece = json_string_value(json_array_get(entry, 0));
    *score = json_number_value(number);
    if (json_array_size(entry) != 2 || !*piece || !json_is_number(number))
        return att_part_fail(part, ATT_ERR_FORMAT, "\"vocab\", element %zu: expected an array of a piece and its score",
                             index);
    return ATT_OK;
}

static att_status measure(const att_part *part, const json_t *pieces, size_t *bytes)
{
    for (size_t i = 0; i < json_array_size(pieces); i++) {
        const char *piece;
        double score;
        ATT_TRY(read_piece(part, pieces, i, &piece, &score));
        *bytes += strlen(piece);
    }
    return ATT_OK;
}

static att_status add_pieces(const att_part *part, const json_t *pieces, att_text_model *model)
{
    const double penalty = 10; /* as in SentencePiece */
    double least = DBL_MAX;
    for (size_t i = 0; i < json_array_size(pieces); i++) {
        const char *piece;
        double score;
        ATT_TRY(read_piece(part, pieces, i, &piece, &score));
        model->scores[i] = rounded_twice(score);
        att_vocabulary_add(&model->vocabulary, piece, (int)i);
        least = model->scores[i] < least ? model->scores[i] : least;
    }
    model->least_score = least - penalty;
    return ATT_OK;
}

static att_status read_model(const att_part *part, int least, att_text_model *model)
{
    const json_t *pieces = json_object_get(part->object, "vocab");
    const size_t count = json_array_size(pieces);
    size_t bytes = 0;
    bool by_bytes;
    if (count == 0 || count > ATT_MOST_PIECES)
        return att_part_fail(part, ATT_ERR_FORMAT, "\"vocab\" must be an array of 1 to %d pieces with scores",
                             (int)ATT_MOST_PIECES);
    ATT_TRY(att_part_flag(part, "byte_fallback", false, &by_bytes));
    if (by_bytes)
        return att_part_fail(part, ATT_ERR_UNSUPPORTED, "\"%s\", pieces for single bytes, is not supported",
                             "byte_fallback");
    ATT_TRY(att_part_number(part, "unk_id", 0, (int)count - 1, -1, &model->unknown));
    ATT_TRY(measure(part, pieces, &bytes));
    ATT_TRY(att_vocabulary_make(part->context, part->path, (int)count > least ? (int)count : least, bytes,
                                &model->vocabulary));
    ATT_TRY(att_new(part->context, &model->scores, count, "a vocabulary"));
    return add_pieces(part, pieces, model);
}

/* The best division of the characters before a place: its score, and its last piece. */
typedef struct best_end {
    double score;
    size_t first; /* where that piece begins */
    int id;       /* -1: no division ends here */
} best_end;

static void offer(best_end *end, double score, size_t first, int id)
{
    if (end->id < 0 || score > end->score)
        *end = (best_end){score, first, id};
}

/* Extends the best division of the characters before `first` by each piece that begins there. */
static void extend(const att_text_model *model, const att_character *word, size_t count, size_t first, best_end *best)
{
    const att_trie *trie = &model->vocabulary.trie;
    const double before = best[first].score;
    bool single = false;
    int32_t node = ATT_TRIE_ROOT;
    for (size_t i = first; i < count; i++) {
        node = att_trie_step(trie, node, word[i].code);
        if (node < 0)
            break;
        const int id = trie->values[node];
        if (id < 0)
            continue;
        offer(&best[i + 1], model->scores[id] + before, first, id);
        single = single || i == first;
    }
    if (!single)
        offer(&best[first + 1], model->least_score + before, first, model->unknown);
}

/* Whether the piece before `end` is unknown. */
static bool is_unknown(const att_text_model *model, const best_end *best, size_t end)
{
    return end > 0 && best[end].id == model->unknown;
}

/* Adds the pieces in the order from the last to the first. Neighbours that are unknown are one token. */
static void add_backwards(const att_text_model *model, const att_character *word, size_t count, const best_end *best,
                          att_token_list *tokens)
{
    for (size_t end = count; end > 0;) {
        size_t first = best[end].first;
        while (is_unknown(model, best, end) && is_unknown(model, best, first))
            first = best[first].first;
        att_token_list_add(tokens, best[end].id, word + first, end - first);
        end = first;
    }
}

static void encode(const att_text_model *model, const att_character *word, size_t count, att_token_list *tokens)
{
    best_end *best = att_token_list_buffer(tokens, att_size_product(count + 1, sizeof *best));
    const int before = tokens->count;
    if (!best)
        return;
    for (size_t i = 0; i <= count; i++)
        best[i] = (best_end){0, 0, -1};
    for (size_t i = 0; i < count; i++)
        extend(model, word, count, i, best);
    add_backwards(model, word, count, best, tokens);
    for (int a = before, b = tokens->count - 1; a < b; a++, b--) {
        const att_token kept = tokens->items[a];
        tokens->items[a] = tokens->items[b];
        tokens->items[b] = kept;
    }
}

const att_text_model_kind att_unigram = {
    .type = "Unigram",
    .keys = {"unk_id", "vocab", "byte_fallback"},
    .read = read_model,
    .encode = encode,
};
