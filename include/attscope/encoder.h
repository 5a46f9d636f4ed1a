/* attscope/encoder.h - vectors of texts, and figures of the attention between their tokens, by networks whose inputs
 * are tokens (att_model_input_at()), such as BERT.
 *
 *     const att_encode_text text = {"Skip connections slow down rank collapse.", 41};
 *     att_texts_options options = att_texts_options_defaults();
 *     att_token_texts ids = {0};
 *     att_embedding vectors;
 *     if (att_network_tokenize(network, NULL, &text, 1, 0, NULL, &ids) == ATT_OK &&
 *         att_network_embed_texts(network, ids.texts, ids.count, &options, &vectors) == ATT_OK) {
 *         ... vectors.values, vectors.shape ...
 *         att_embedding_free(context, &vectors);
 *     }
 *     att_token_texts_free(context, &ids);
 *
 * Padding changes nothing: no token attends to it, it has no share in a mean, and no figure counts it.
 */
#ifndef ATTSCOPE_ENCODER_H
#define ATTSCOPE_ENCODER_H

#include <attscope/embed.h>
#include <attscope/tokenizer.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A text, as ids of the network's vocabulary, special tokens included. */
typedef struct att_token_ids {
    const int32_t *tokens;  /* [count] */
    const int32_t *types;   /* [count], for networks with types of tokens; NULL: all 0 */
    const int32_t *special; /* [count]: 1: a special token that was added, such as "[CLS]"; NULL: unknown */
    int count;
} att_token_ids;

/* The tokens of the longest text that the network takes; 0: its inputs are no tokens. */
ATT_API int att_network_most_tokens(const att_network *network);

/* Texts as ids. Zero-initialise. */
typedef struct att_token_texts {
    int64_t count;
    att_token_ids *texts;     /* [count] */
    int64_t shortened;        /* texts of which tokens were left out */
    int most;                 /* tokens to which texts were shortened */
    int32_t *numbers;         /* that the texts point into */
    att_tokenizer *tokenizer; /* whose ids they have: for att_tokenizer_piece() */
} att_token_texts;

/* Divides texts into the network's tokens. tokenizer: the path of its tokenizer, as for att_tokenizer_open(); NULL: the
 * folder of the network's file. most: tokens of a text, special ones included, to which longer texts are shortened; 0:
 * att_network_most_tokens(), or less if sentence_bert_config.json in the folder of the network's file has a lower
 * "max_seq_length", to which sentence-transformers shortens texts; the log says so. If that file has "do_lower_case":
 * true, texts become lower case first, as there. name: of the texts in messages, as
 * "texts.txt", whose lines are then counted from 1; NULL: "text", counted from 0. On success the caller frees *made
 * with att_token_texts_free(); on failure it is unchanged. Errors: ERR_NOT_FOUND (no tokenizer), ERR_MISMATCH (it has
 * more pieces than the network's vocabulary; of fewer pieces the log warns, since vocabularies of networks may be
 * padded), ERR_FORMAT (sentence_bert_config.json), ERR_ARGUMENT (no texts; a text without tokens; `most` is more than
 * the network takes); ERR_UNSUPPORTED (the network's inputs are no tokens); those of att_tokenizer_open() and
 * att_tokenizer_encode(). */
ATT_API ATT_MUST_CHECK att_status att_network_tokenize(const att_network *network, const char *tokenizer,
                                                       const att_encode_text *texts, int64_t count, int most,
                                                       const char *name, att_token_texts *made);
/* Frees the arrays and the tokenizer, and sets *texts to zero. */
ATT_API void att_token_texts_free(att_context *context, att_token_texts *texts);

/* Room for the inputs of one text. */
typedef struct att_text_inputs {
    att_field fields[ATT_MAX_INPUTS];
    const void *data[ATT_MAX_INPUTS];
    int32_t count;
} att_text_inputs;
/* One text as the inputs of att_network_run(), att_explorer_create_for() and att_explorer_run(), without padding. The
 * text must have types if the network has them. The batch points into `text` and `room`. A network whose inputs are no
 * tokens gets a batch without inputs, which runs refuse. */
ATT_API att_batch att_network_text_inputs(const att_network *network, const att_token_ids *text, att_text_inputs *room);

typedef struct att_texts_options {
    const char *output; /* one name that att_network_select_outputs() takes, of one vector for each text: "mean", the
                           mean over all tokens of the last block; "class", its first token; "both"; "features", what a
                           head reads */
    bool unit;          /* divide each vector by its Euclidean norm; a vector of zeros stays */
    int batch_size;     /* most texts of a run; changes only speed and memory */
    att_progress_fn progress;
    void *progress_user;
} att_texts_options;
/* "mean", not divided, 32 texts, no progress. */
ATT_API att_texts_options att_texts_options_defaults(void);

/* Runs the network on every text, and keeps one output of it in the order of the texts. Texts of similar length run
 * together, padded to a multiple of 8 tokens. The network's outputs are selected as by att_network_select_outputs().
 * options: NULL means the defaults. On success the caller frees *vectors with att_embedding_free(), with indices 0 to
 * count - 1; on failure it is unchanged. Errors: ERR_ARGUMENT (no text; a text without tokens, with more than
 * att_network_most_tokens(), or with an id that the network does not have; `output` names several outputs, or none that
 * is one vector for each text); ERR_UNSUPPORTED (the network's inputs are no tokens); ERR_STOPPED; those of
 * att_network_select_outputs() and att_network_run(). */
ATT_API ATT_MUST_CHECK att_status att_network_embed_texts(att_network *network, const att_token_ids *texts,
                                                          int64_t count, const att_texts_options *options,
                                                          att_embedding *vectors);

/* Measures the network on texts, as att_network_observe() and att_network_measure() do on images. Texts of one length
 * run together, without padding, so that every bound is that of a text's own tokens; of texts of several lengths a
 * bound is the mean. with, nodes: as in att_measure_create(); left out of "all", with a line in the log, are
 * instruments that need classes and, if the texts have several lengths, those whose figure is not a mean over samples.
 * batch_size: as above. On success the caller owns *measure and frees it with att_measure_destroy(); on failure it is
 * unchanged. Errors: as above; ERR_UNSUPPORTED also for such an instrument that `with` names; those of
 * att_measure_create(). */
ATT_API ATT_MUST_CHECK att_status att_network_measure_texts(att_network *network, const att_token_ids *texts,
                                                            int64_t count, const char *with, const char *nodes,
                                                            const att_texts_options *options, att_measure **measure);

#ifdef __cplusplus
}
#endif
#endif
