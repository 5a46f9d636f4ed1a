/* attscope tokenize: the tokens of texts. */
#include <string.h>

#include <attscope/tokenizer.h>

#include "flags.h"

typedef struct settings {
    att_encode_options encode;
    const char *texts;
    cli_output output;
} settings;

static const att_flag options[] = {
    {"texts", .kind = ATT_FLAG_TEXT, .value = "FILE", .help = "divide the texts of this file, one a line",
     ATT_FLAG_AT(settings, texts)},
    {"max-length", .kind = ATT_FLAG_INT, .value = "N",
     .help = "keep at most N tokens of a text or pair, special tokens included; default: all",
     ATT_FLAG_AT(settings, encode.max_length), .low = 1, .high = 1 << 24, .open = true},
    {"plain", .kind = ATT_FLAG_SWITCH, .help = "add no special tokens, such as [CLS]",
     ATT_FLAG_AT(settings, encode.plain)},
};

static const att_flag_group group = {"Tokens", .rows = options, .row_count = sizeof options / sizeof *options};
static const att_flag_use uses[] = {{&group, 0}, {&cli_group_output, offsetof(settings, output)}};

typedef struct job {
    cli_app *cli;
    const settings *settings;
    att_tokenizer *tokenizer;
    att_text_file file;
    att_json_writer *writer; /* NULL: no JSON */
} job;

/* --- output ------------------------------------------------------------------------------------------------------- */

static void print_tokens(const job *j, const att_encoding *encoding)
{
    for (int i = 0; i < encoding->count; i++)
        cli_print("%s%s", i > 0 ? " " : "", att_tokenizer_piece(j->tokenizer, encoding->tokens[i].id));
    cli_print("\n");
    for (int i = 0; i < encoding->count; i++)
        cli_print("%s%d", i > 0 ? " " : "", (int)encoding->tokens[i].id);
    cli_print("\n");
    if (encoding->removed > 0)
        cli_note(j->cli, "%d token%s removed at the end", encoding->removed, cli_plural(encoding->removed));
}

static void write_token(att_json_writer *writer, const job *j, const att_token *token)
{
    att_json_begin_object(writer);
    att_json_put_integer(writer, "id", token->id);
    att_json_put_string(writer, "piece", att_tokenizer_piece(j->tokenizer, token->id));
    att_json_put_integer(writer, "type", token->type);
    if (token->text >= 0) {
        att_json_put_integer(writer, "text", token->text);
        att_json_put_integer(writer, "begin", (int64_t)token->begin);
        att_json_put_integer(writer, "end", (int64_t)token->end);
    }
    att_json_end_object(writer);
}

static void write_tokens(const job *j, const att_encoding *encoding)
{
    att_json_begin_object(j->writer);
    att_json_put_array(j->writer, "tokens");
    for (int i = 0; i < encoding->count; i++)
        write_token(j->writer, j, &encoding->tokens[i]);
    att_json_end_array(j->writer);
    att_json_put_integer(j->writer, "removed", encoding->removed);
    att_json_end_object(j->writer);
}

/* --- command ------------------------------------------------------------------------------------------------------ */

static int show(job *j, const att_encode_text *text, const att_encode_text *pair, const char *name)
{
    att_encoding encoding;
    att_encode_options encode = j->settings->encode;
    encode.name = name;
    const int code = cli_check(j->cli, att_tokenizer_encode(j->tokenizer, text, pair, &encode, &encoding));
    if (code != CLI_OK)
        return code;
    if (cli_prints(j->settings->output.json))
        print_tokens(j, &encoding);
    if (j->writer)
        write_tokens(j, &encoding);
    att_encoding_free(j->cli->context, &encoding);
    return CLI_OK;
}

static int show_all(job *j, const char *const *operands, int count)
{
    const char *path = j->settings->texts;
    int code = CLI_OK;
    if (!path) {
        const att_encode_text texts[] = {{operands[1], strlen(operands[1])},
                                         {count > 2 ? operands[2] : "", count > 2 ? strlen(operands[2]) : 0}};
        return show(j, &texts[0], count > 2 ? &texts[1] : NULL, NULL);
    }
    for (int i = 0; i < j->file.count && code == CLI_OK; i++) {
        char name[CLI_PATH + 32];
        snprintf(name, sizeof name, "%.4000s: line %d", path, i + 1);
        code = show(j, &j->file.texts[i], NULL, name);
    }
    return code;
}

static int check(const settings *s, int count)
{
    if (s->texts && count > 1)
        return cli_usage("give texts as operands or as --texts FILE, not both");
    if (!s->texts && count < 2)
        return cli_usage("tokenize needs TOKENIZER TEXT, or TOKENIZER --texts FILE; see attscope tokenize --help");
    return cli_output_check(s->output.json);
}

static int run(cli_app *cli, void *user, const char *const *operands, int count)
{
    const settings *s = user;
    job j = {.cli = cli, .settings = s};
    int code = check(s, count);
    if (code == CLI_OK)
        code = cli_open(cli, 1);
    if (code == CLI_OK)
        code = cli_check(cli, att_tokenizer_open(cli->context, operands[0], &j.tokenizer));
    if (code == CLI_OK && s->texts)
        code = cli_check(cli, att_text_file_read(cli->context, s->texts, &j.file));
    if (code == CLI_OK)
        code = cli_json_begin_list(cli, s->output.json, &j.writer);
    if (code == CLI_OK)
        code = show_all(&j, operands, count);
    code = cli_json_end_list(cli, j.writer, s->output.json, code);
    if (cli->context)
        att_text_file_free(cli->context, &j.file);
    att_tokenizer_destroy(&j.tokenizer);
    return code;
}

const cli_command cli_command_tokenize = {
    .name = "tokenize",
    .summary = "divides texts into tokens, as a text encoder reads them",
    .operands = "TOKENIZER [TEXT [SECOND]]",
    .least_operands = 1,
    .most_operands = 3,
    .about =
        "TOKENIZER is a folder with tokenizer.json or vocab.txt, as transformers writes\n"
        "it, or one of these files. SECOND makes a pair of texts.\n\n"
        "Prints two lines for each text: the pieces of the vocabulary, and their numbers.\n"
        "--json also writes the bytes of the text that each token stands for.",
    .example =
        "  attscope tokenize minilm \"Attention is not all you need.\"\n"
        "  attscope tokenize minilm --texts texts.txt --max-length 128 --json tokens.json",
    .uses = uses,
    .use_count = sizeof uses / sizeof *uses,
    .settings_size = sizeof(settings),
    .run = run,
};
