/* attscope/tokenizer.h - turns texts into the numbers that text encoders read.
 *
 * A tokenizer has a vocabulary of pieces, each with a number (its id). It normalises a text, divides it into words, the
 * words into pieces, and adds special pieces such as "[CLS]". The result is a list of tokens: ids, with the bytes of
 * the text that each stands for. The ids are those of Hugging Face's library `tokenizers` for the same file.
 *
 *     att_tokenizer *tokenizer;
 *     att_encoding encoding;
 *     att_tokenizer_open(context, "minilm", &tokenizer);
 *     att_tokenizer_encode(tokenizer, &(att_encode_text){"a text", 6}, NULL, NULL, &encoding);
 *     for (int i = 0; i < encoding.count; i++)
 *         printf("%d %s\n", encoding.tokens[i].id, att_tokenizer_piece(tokenizer, encoding.tokens[i].id));
 *     att_encoding_free(context, &encoding);
 *     att_tokenizer_destroy(&tokenizer);
 */
#ifndef ATTSCOPE_TOKENIZER_H
#define ATTSCOPE_TOKENIZER_H

#include <attscope/context.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct att_tokenizer att_tokenizer;

/* Opens a tokenizer. path: a folder with tokenizer.json or, if it has none, vocab.txt; or one of these files, by the
 * ending of its name, .json or .txt. What is read:
 *
 *   tokenizer.json   models WordPiece and Unigram; normalisers BertNormalizer, Replace (of a text, or of the regular
 *                    expression " {2,}"), Strip, StripAccents, Lowercase, NFD, NFKD, Precompiled and Sequence;
 *                    pre-tokenisers BertPreTokenizer, WhitespaceSplit, Metaspace and Sequence; post-processors
 *                    TemplateProcessing, BertProcessing and RobertaProcessing; added tokens. Anything else is refused
 *                    by its name, with ERR_UNSUPPORTED. The decoder and the padding are not used. A truncation is not
 *                    applied by itself, but its length is att_tokenizer_info.limit.
 *                    tokenizer_config.json beside it gives the limit, if there is no truncation, and may not contradict
 *                    BertNormalizer by its do_lower_case.
 *   vocab.txt        pieces of WordPiece, one a line; the first has id 0. tokenizer_config.json and
 *                    special_tokens_map.json beside it are read, if they exist: do_lower_case (default: true),
 *                    strip_accents (default: as do_lower_case), tokenize_chinese_chars (default: true),
 *                    model_max_length, added_tokens_decoder, the special pieces (default: "[UNK]", "[CLS]", "[SEP]",
 *                    "[PAD]", "[MASK]"; of MPNet "<s>", "</s>", "<pad>", "<mask>"), and tokenizer_class, which must be
 *                    that of BERT (the default), DistilBERT, ELECTRA or MPNet.
 *
 * On success the caller owns *tokenizer and frees it with att_tokenizer_destroy(); on failure it is unchanged. Errors:
 * ERR_NOT_FOUND (nothing there, or a folder without either file), ERR_FORMAT (a malformed file, or one that contradicts
 * itself), ERR_UNSUPPORTED, ERR_IO, ERR_MEMORY. */
ATT_API ATT_MUST_CHECK att_status att_tokenizer_open(att_context *context, const char *path, att_tokenizer **tokenizer);
ATT_API void att_tokenizer_destroy(att_tokenizer **tokenizer);

typedef struct att_tokenizer_info {
    const char *model; /* "WordPiece" or "Unigram" */
    int count;         /* ids are below this number: an embedding needs so many rows */
    int unknown;       /* id of the piece that stands for what the vocabulary lacks */
    int limit;         /* the file's greatest length, in tokens, special ones included; 0: none is given */
    int special[2];    /* special tokens that are added to one text, and to two */
} att_tokenizer_info;

/* Thread-safe, as the next two. */
ATT_API att_tokenizer_info att_tokenizer_describe(const att_tokenizer *tokenizer);
/* Returns the piece with this id, which lives as long as the tokenizer: "##ing"; NULL if there is none. */
ATT_API const char *att_tokenizer_piece(const att_tokenizer *tokenizer, int id);
/* Returns the id of a piece; -1 if there is none. */
ATT_API int att_tokenizer_find(const att_tokenizer *tokenizer, const char *piece);

/* A text in memory: UTF-8, of at most 64 MiB. Zero bytes are characters like others. */
typedef struct att_encode_text {
    const char *bytes; /* need not end in a zero byte; NULL if length is 0 */
    size_t length;
} att_encode_text;

typedef struct att_encode_options {
    int max_length;   /* most tokens, special ones included; 0: no limit. Tokens are removed at the end of the text, of
                         two texts at the end of the longer one, until both are equally long. Must be at least the
                         number of special tokens */
    bool plain;       /* add no special tokens */
    bool lower;       /* first make each character of the text lower case, whatever the tokenizer then does with it; so
                         "[MASK]" in the text is no special token any more */
    const char *name; /* of the text in messages, as "texts.txt: line 7"; NULL: "the text" */
} att_encode_options;

typedef struct att_token {
    int32_t id;
    int32_t type;      /* "token type" or "segment", as the post-processor says: usually 1 for a second text, else 0 */
    int32_t text;      /* the text that it is part of, 0 or 1; -1: a special token that was added */
    size_t begin, end; /* the bytes [begin, end) of that text; 0 and 0 if text is -1 */
} att_token;

typedef struct att_encoding {
    att_token *tokens;
    int count;
    int removed; /* tokens that max_length removed */
} att_encoding;

/* Divides a text, or a pair of texts, into tokens. pair: the second text, NULL: none. options: NULL means no limit,
 * special tokens, "the text". An empty text has no tokens beside special ones. On success the caller frees *encoding
 * with att_encoding_free(); on failure it is unchanged. Thread-safe. Errors: ERR_FORMAT (the text is not UTF-8; the
 * message has the byte), ERR_ARGUMENT (max_length, or a text that is too long), ERR_MEMORY.
 *
 * WordPiece takes the longest piece that begins the rest of the word, again and again; a word that cannot be divided,
 * or of more characters than the file allows, becomes the unknown piece (Wu et al., arXiv:1609.08144, with BERT's
 * longest-match rule). Unigram takes the division with the greatest sum of the pieces' scores (Kudo, ACL 2018). A
 * character that is no piece has the least score of all pieces minus 10, and such neighbours become one token. */
ATT_API ATT_MUST_CHECK att_status att_tokenizer_encode(const att_tokenizer *tokenizer, const att_encode_text *text,
                                                       const att_encode_text *pair, const att_encode_options *options,
                                                       att_encoding *encoding);
/* Frees the array and sets *encoding to zero. context: the tokenizer's. */
ATT_API void att_encoding_free(att_context *context, att_encoding *encoding);

/* Texts of a file, one a line. */
typedef struct att_text_file {
    int count;
    att_encode_text *texts; /* [count]; each is followed by a zero byte */
    char *bytes;            /* that all texts point into */
} att_text_file;

/* Reads a file of texts, one a line. Empty lines are empty texts, also at the end; a line end at the very end of the
 * file begins no further line. Line ends are "\n" or "\r\n". On success the caller frees *file with
 * att_text_file_free(); on failure it is unchanged. Errors: ERR_FORMAT (a line that is not UTF-8 or has a zero byte;
 * the message has the line and the byte), ERR_ARGUMENT (an empty file), ERR_NOT_FOUND, ERR_IO, ERR_MEMORY. */
ATT_API ATT_MUST_CHECK att_status att_text_file_read(att_context *context, const char *path, att_text_file *file);
/* Frees the arrays and sets *file to zero. */
ATT_API void att_text_file_free(att_context *context, att_text_file *file);

#ifdef __cplusplus
}
#endif
#endif
