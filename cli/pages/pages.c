/* pages FOLDER - writes the manual pages and the completion scripts as they lie below share/. */
#include "pages/pages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

page_value page_value_of(const cli_option *option)
{
    static const char *const files[] = {"FILE", "DATA", "CHECKPOINT", "IMAGE"};
    if (option->choice)
        return PAGE_CHOICE;
    if (option->value && strcmp(option->value, "FOLDER") == 0)
        return PAGE_FOLDER;
    for (size_t i = 0; option->value && i < sizeof files / sizeof *files; i++)
        if (strcmp(option->value, files[i]) == 0)
            return PAGE_FILE;
    return PAGE_NOTHING;
}

const cli_option *page_option(const cli_command *command, int index)
{
    for (int use = 0; use < command->use_count; use++) {
        int count;
        const cli_option *rows = cli_group_rows(command->uses[use].group, &count);
        for (int row = 0; row < count; row++)
            if (rows[row].help && index-- == 0)
                return &rows[row];
    }
    return NULL;
}

bool page_takes_models(const cli_command *command)
{
    return strstr(command->operands, "PATTERN") != NULL;
}

static FILE *open_page(const char *folder, const char *below, const char *prefix, const char *name, const char *suffix)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, below);
    for (char *slash = path + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = '\0';
        mkdir(path, 0755);
    }
    mkdir(path, 0755);
    snprintf(path, sizeof path, "%s/%s/%s%s%s", folder, below, prefix, name, suffix);
    FILE *out = fopen(path, "w");
    if (!out) {
        fprintf(stderr, "pages: %s: %s\n", path, strerror(errno));
        exit(1);
    }
    return out;
}

static void close_page(FILE *out)
{
    bool failed = ferror(out);
    if (fclose(out) != 0 || failed) {
        fprintf(stderr, "pages: a page could not be written: %s\n", strerror(errno));
        exit(1);
    }
}

static void write_command(const char *folder, const cli_command *command)
{
    void *settings = calloc(1, command->settings_size), *defaults = calloc(1, command->settings_size);
    if (!settings || !defaults)
        exit(1);
    const cli_table table = {command->name, command->uses, command->use_count, settings, defaults, NULL, NULL};
    cli_options_defaults(&table, command->settings_size);
    FILE *out = open_page(folder, "man/man1", "attscope-", command->name, ".1");
    page_command(command, &table, out);
    close_page(out);
    free(settings);
    free(defaults);
}

int main(int count, char **arguments)
{
    if (count != 2) {
        fprintf(stderr, "pages FOLDER\n");
        return 2;
    }
    const char *folder = arguments[1];
    FILE *out = open_page(folder, "man/man1", "attscope", "", ".1");
    page_overview(out);
    close_page(out);
    const cli_command *command;
    for (int i = 0; (command = cli_command_at(i)); i++)
        write_command(folder, command);
    out = open_page(folder, "bash-completion/completions", "attscope", "", "");
    page_bash(out);
    close_page(out);
    out = open_page(folder, "zsh/site-functions", "_", "attscope", "");
    page_zsh(out);
    close_page(out);
    return 0;
}
