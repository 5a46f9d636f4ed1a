/* A command's options and its recipe: the first byte chooses the command; lines up to an empty one are the words of the
 * command line, what follows is the recipe. What was accepted is written as args.yaml, which must be accepted too. */
#include "fuzz.h"

#include "commands.h"

enum { MOST_WORDS = 64 };

/* Cuts the text into lines up to an empty one; *rest is what follows that. */
static int cut_words(char *text, char *words[MOST_WORDS], char **rest)
{
    int count = 0;
    while (*text && *text != '\n' && count < MOST_WORDS) {
        words[count++] = text;
        text += strcspn(text, "\n");
        if (*text)
            *text++ = '\0';
    }
    *rest = *text == '\n' ? text + 1 : text;
    return count;
}

static void write_and_take(const cli_command *command, const cli_table *table)
{
    char path[300];
    att_yaml *yaml = NULL;
    snprintf(path, sizeof path, "%s/args.yaml", fuzz_folder());
    if (cli_options_write(table, fuzz_context(), path) == ATT_OK) {
        fuzz_require(att_yaml_read(fuzz_context(), path, &yaml) == ATT_OK, "written options can be read");
        cli_options_defaults(table, command->settings_size);
        fuzz_require(cli_options_config(table, path, yaml), "written options are accepted");
    }
    att_yaml_destroy(&yaml);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    size_t before = fuzz_begin();
    int commands = 0;
    while (cli_command_at(commands))
        commands++;
    const cli_command *command = cli_command_at(data[0] % commands);
    char *text = calloc(1, size), *words[MOST_WORDS], *recipe;
    void *settings = calloc(1, command->settings_size), *defaults = calloc(1, command->settings_size);
    fuzz_require(text && settings && defaults, "memory");
    memcpy(text, data + 1, size - 1);
    cli_ignored ignored = {0};
    cli_table table = {command->name, command->uses, command->use_count, settings, defaults, command->explain_unknown,
                       &ignored};
    cli_options_defaults(&table, command->settings_size);

    const char *operands[MOST_WORDS];
    int count, operand_count;
    count = cut_words(text, words, &recipe);
    att_yaml *yaml = NULL;
    bool fine = att_yaml_parse(fuzz_context(), "recipe", recipe, strlen(recipe), &yaml) != ATT_OK ||
                cli_options_config(&table, "recipe", yaml);
    if (fine && cli_options_parse(&table, count, words, operands, &operand_count)) {
        fuzz_require(operand_count <= count, "operands are words");
        write_and_take(command, &table);
    }
    att_yaml_destroy(&yaml);
    free(defaults);
    free(settings);
    free(text);
    fuzz_end(before);
    return 0;
}
