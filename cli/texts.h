/* texts.h - for commands that run a network on the texts of a file. */
#ifndef CLI_TEXTS_H
#define CLI_TEXTS_H

#include <attscope/encoder.h>

#include "evaluation.h"

typedef struct cli_text_options {
    const char *tokenizer; /* NULL: that beside the checkpoint */
    int max_length;        /* 0: as many tokens as the network takes */
} cli_text_options;
extern const att_flag_group cli_group_texts;

/* Whether the network's inputs are tokens of texts. */
bool cli_takes_texts(const cli_loaded *loaded);
/* Refuses flags for texts, for a network for images. Returns CLI_OK or CLI_USAGE. */
int cli_texts_refuse(const cli_loaded *loaded, const cli_text_options *options);
/* Takes the flags of data for a network for texts: refuses those that are for images, and sets options->batch_size if
 * it was given. defaults: values of the flags that were not given. Returns CLI_OK or CLI_USAGE. */
int cli_texts_take(const cli_loaded *loaded, const cli_evaluation_data *given, const cli_evaluation_data *defaults,
                   att_texts_options *options);
/* Reads the texts of a file, one a line, as the network's tokens, and notes how many were shortened. limit: keep so
 * many of them, evenly spread over the file; 0: all. *texts is zeroed before the call. The caller frees it with
 * att_token_texts_free(), also after a failure. Returns CLI_OK or an exit code. */
int cli_texts_read(cli_app *cli, const cli_loaded *loaded, const char *path, const cli_text_options *options,
                   int64_t limit, att_token_texts *texts);

#endif
