#include "texts.h"

#include <string.h>

static const att_flag text_rows[] = {
    {"tokenizer", .kind = ATT_FLAG_TEXT, .value = "PATH",
     .help = "tokenizer.json, vocab.txt, or a folder with one of them; without it, that in the checkpoint's folder",
     ATT_FLAG_AT(cli_text_options, tokenizer)},
    {"max-length", .kind = ATT_FLAG_INT, .value = "N",
     .help = "shorten longer texts to N tokens, special tokens included; without it, to the length in "
             "sentence_bert_config.json beside the checkpoint, or else to as many as the network takes",
     ATT_FLAG_AT(cli_text_options, max_length), .low = 1, .high = 65536, .open = true},
};
const att_flag_group cli_group_texts = {
    .title = "Texts", .rows = text_rows, .row_count = sizeof text_rows / sizeof *text_rows};

bool cli_takes_texts(const cli_loaded *loaded)
{
    return att_network_most_tokens(loaded->network) > 0;
}

int cli_texts_refuse(const cli_loaded *loaded, const cli_text_options *options)
{
    return options->tokenizer || options->max_length > 0
               ? cli_usage("--tokenizer and --max-length are for texts; %s is a network for images",
                           loaded->identity->name)
               : CLI_OK;
}

int cli_texts_take(const cli_loaded *loaded, const cli_evaluation_data *given, const cli_evaluation_data *defaults,
                   att_texts_options *options)
{
    const struct {
        const char *flag;
        bool given;
    } flags[] = {{"--split", strcmp(given->split, defaults->split) != 0},
                 {"--class-map", given->class_map},
                 {"--coarse-labels", given->coarse_labels},
                 {"--reduce-zero-label", given->reduce_zero_label != defaults->reduce_zero_label},
                 {"--ignore-label", given->ignore_label != defaults->ignore_label},
                 {"--cache-bytes", given->cache_bytes != defaults->cache_bytes},
                 {"--workers", given->workers != defaults->workers},
                 {"--skip-corrupt", given->skip_corrupt}};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (flags[i].given)
            return cli_usage("%s is for images; %s is a network for texts", flags[i].flag, loaded->identity->name);
    if (given->batch_size != defaults->batch_size)
        options->batch_size = given->batch_size;
    return CLI_OK;
}

/* Keeps `limit` of the texts, evenly spread over them. */
static void limit_texts(att_text_file *file, int64_t limit)
{
    for (int64_t i = 0; i < limit && limit < file->count; i++)
        file->texts[i] = file->texts[i * file->count / limit];
    if (limit > 0 && limit < file->count)
        file->count = (int)limit;
}

int cli_texts_read(cli_app *cli, const cli_loaded *loaded, const char *path, const cli_text_options *options,
                   int64_t limit, att_token_texts *texts)
{
    att_text_file file = {0};
    const int most = att_network_most_tokens(loaded->network);
    if (options->max_length > most)
        return cli_usage("--max-length %d: %s takes at most %d tokens", options->max_length, loaded->identity->name,
                         most);
    int code = cli_check(cli, att_network_check_path(loaded->network, path));
    if (code == CLI_OK)
        code = cli_check(cli, att_text_file_read(cli->context, path, &file));
    limit_texts(&file, limit);
    if (code == CLI_OK)
        code = cli_check(cli, att_network_tokenize(loaded->network, options->tokenizer, file.texts, file.count,
                                                   options->max_length, path, texts));
    if (code == CLI_OK && texts->shortened > 0)
        cli_note(cli, "shortened to %d tokens: %lld of %lld texts", texts->most, (long long)texts->shortened,
                 (long long)texts->count);
    att_text_file_free(cli->context, &file);
    return code;
}
