/* The options and the recipe of a command. The first byte chooses the command; the lines up to an empty one are the
 * arguments of the command line, the rest is the recipe. Accepted options are written as args.yaml, which must be
 * accepted too. */
#include "fuzz.h"

#include "base/flags/flags.h"
#include "base/io/yaml.h"
#include "commands.h"
#include "help.h"

enum { MOST_WORDS = 64 };

/* Splits the text into lines up to an empty one; *rest is the text after it. */
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

static void write_and_take(const att_flags *flags, void *settings)
{
    char path[300];
    att_yaml *yaml = NULL;
    snprintf(path, sizeof path, "%s/args.yaml", fuzz_folder());
    if (att_flags_write(flags, settings, path) == ATT_OK) {
        fuzz_require(att_yaml_read(fuzz_context(), path, &yaml) == ATT_OK, "written options can be read");
        att_flags_default(flags, settings);
        fuzz_require(att_flags_read(flags, path, yaml, settings, NULL) == ATT_OK, "written options are accepted");
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
    void *settings = calloc(1, command->settings_size);
    fuzz_require(text && settings, "memory");
    memcpy(text, data + 1, size - 1);
    att_ignored_flags ignored = {0};
    att_flags *flags = NULL;
    fuzz_require(cli_flags_create(fuzz_context(), command, &flags) == ATT_OK, "a table of flags");
    att_flags_default(flags, settings);

    const char *operands[MOST_WORDS];
    int count, operand_count;
    count = cut_words(text, words, &recipe);
    att_yaml *yaml = NULL;
    bool fine = att_yaml_parse(fuzz_context(), "recipe", recipe, strlen(recipe), &yaml) != ATT_OK ||
                att_flags_read(flags, "recipe", yaml, settings, &ignored) == ATT_OK;
    if (fine && att_flags_parse(flags, count, words, settings, operands, &operand_count, &ignored) == ATT_OK) {
        fuzz_require(operand_count <= count, "operands are arguments of the command line");
        write_and_take(flags, settings);
    }
    att_yaml_destroy(&yaml);
    att_flags_destroy(&flags);
    free(settings);
    free(text);
    fuzz_end(before);
    return 0;
}
