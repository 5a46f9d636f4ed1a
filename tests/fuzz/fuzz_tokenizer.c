/* Tokenizers, and texts that they divide. The input is a tokenizer.json, or, if it does not begin with a brace, a
 * vocab.txt; behind a blank line follow a text and, behind another one, a second text. */
#include "fuzz.h"

#include <attscope/tokenizer.h>

/* Checks the tokens of a text or a pair. */
static void check(const att_tokenizer *tokenizer, const att_encode_text texts[2], const att_encoding *encoding,
                  int most)
{
    fuzz_require(most == 0 || encoding->count <= most, "a length is kept");
    for (int i = 0; i < encoding->count; i++) {
        const att_token *token = &encoding->tokens[i];
        fuzz_require(att_tokenizer_piece(tokenizer, token->id) != NULL, "a token is a piece");
        fuzz_require(token->text < 0 || (token->begin <= token->end && token->end <= texts[token->text].length),
                     "a token lies in its text");
    }
}

static void encode(const att_tokenizer *tokenizer, const att_encode_text texts[2], bool pair, int most)
{
    att_encoding encoding;
    const att_encode_options options = {.max_length = most};
    if (att_tokenizer_encode(tokenizer, &texts[0], pair ? &texts[1] : NULL, &options, &encoding) != ATT_OK)
        return;
    check(tokenizer, texts, &encoding, most);
    att_encoding_free(fuzz_context(), &encoding);
}

/* Returns the part before the next blank line, and removes it from the rest. */
static att_encode_text take(att_encode_text *rest)
{
    size_t length = 0;
    while (length < rest->length && (length + 1 == rest->length || memcmp(rest->bytes + length, "\n\n", 2) != 0))
        length++;
    const att_encode_text part = {rest->bytes, length};
    const size_t taken = length < rest->length ? length + 2 : length;
    *rest = (att_encode_text){rest->bytes + taken, rest->length - taken};
    return part;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { FEW = 9 };
    size_t before = fuzz_begin();
    att_encode_text rest = {(const char *)data, size};
    const att_encode_text file = take(&rest), first = take(&rest), texts[2] = {first, rest};
    const char *name = file.length > 0 && file.bytes[0] == '{' ? "tokenizer.json" : "vocab.txt";
    att_tokenizer *tokenizer = NULL;
    if (att_tokenizer_open(fuzz_context(), fuzz_file(name, file.bytes, file.length), &tokenizer) == ATT_OK) {
        encode(tokenizer, texts, false, 0);
        encode(tokenizer, texts, true, 0);
        encode(tokenizer, texts, true, FEW);
    }
    att_tokenizer_destroy(&tokenizer);
    att_text_file read;
    if (att_text_file_read(fuzz_context(), fuzz_file("texts.txt", texts[1].bytes, texts[1].length), &read) == ATT_OK)
        att_text_file_free(fuzz_context(), &read);
    fuzz_end(before);
    return 0;
}
