#include "texts.h"

static const att_flag text_rows[] = {
    {"tokenizer", .kind = ATT_FLAG_TEXT, .value = "PATH",
     .help = "tokenizer.json, vocab.txt, or a folder with one of them; without it, that in the checkpoint's folder",
     ATT_FLAG_AT(cli_text_options, tokenizer)},
    {"max-length", .kind = ATT_FLAG_INT, .value = "N",
     .help = "shorten longer texts to N tokens, special tokens included; without it, to as many as the network takes",
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

int cli_texts_read(cli_app *cli, const cli_loaded *loaded, const char *path, const cli_text_options *options,
                   att_token_texts *texts)
{
    att_text_file file = {0};
    int code = cli_check(cli, att_text_file_read(cli->context, path, &file));
    if (code == CLI_OK)
        code = cli_check(cli, att_network_tokenize(loaded->network, options->tokenizer, file.texts, file.count,
                                                   options->max_length, path, texts));
    if (code == CLI_OK && texts->shortened > 0)
        cli_note(cli, "shortened to %d tokens: %lld of %lld texts",
                 options->max_length > 0 ? options->max_length : att_network_most_tokens(loaded->network),
                 (long long)texts->shortened, (long long)texts->count);
    att_text_file_free(cli->context, &file);
    return code;
}
