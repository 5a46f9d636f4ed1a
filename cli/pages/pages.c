/* pages FOLDER - writes the manual pages and completion scripts to FOLDER, in the layout of share/. */
#include "pages/pages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

void page_put_value(FILE *out, const att_flag *option, const page_values *texts)
{
    static const char *const files[] = {"FILE", "DATA", "CHECKPOINT", "IMAGE"};
    const char *value = option->value ? option->value : "";
    const char *text = strcmp(value, "FOLDER") == 0 ? texts->folder : texts->nothing;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        text = strcmp(value, files[i]) == 0 ? texts->file : text;
    const bool chooses = att_flag_choice(option, 0);
    fputs(chooses ? texts->before : text, out);
    for (int i = 0; att_flag_choice(option, i); i++)
        fprintf(out, "%s%s", i ? " " : "", att_flag_choice(option, i));
    fputs(chooses ? texts->after : "", out);
}

const att_flag *page_option(const page *p, int index)
{
    for (int i = 0; i < att_flags_count(p->flags); i++) {
        const att_flag *flag = att_flags_at(p->flags, i).flag;
        if (flag->help && index-- == 0)
            return flag;
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

enum { MOST_COMMANDS = 32 };

static void make_pages(att_context *context, page pages[MOST_COMMANDS])
{
    const cli_command *command;
    for (int i = 0; i + 1 < MOST_COMMANDS && (command = cli_command_at(i)); i++) {
        pages[i].command = command;
        if (cli_flags_create(context, command, &pages[i].flags) != ATT_OK)
            exit(1);
    }
}

static void write_pages(const page *pages, const char *folder)
{
    FILE *out = open_page(folder, "man/man1", "attscope", "", ".1");
    page_overview(out);
    close_page(out);
    for (const page *p = pages; p->command; p++) {
        out = open_page(folder, "man/man1", "attscope-", p->command->name, ".1");
        page_command(p, out);
        close_page(out);
    }
    out = open_page(folder, "bash-completion/completions", "attscope", "", "");
    page_bash(pages, out);
    close_page(out);
    out = open_page(folder, "zsh/site-functions", "_", "attscope", "");
    page_zsh(pages, out);
    close_page(out);
}

int main(int count, char **arguments)
{
    att_settings settings = att_settings_defaults();
    att_context *context;
    page pages[MOST_COMMANDS] = {0};
    settings.threads = 1;
    if (count != 2) {
        fprintf(stderr, "pages FOLDER\n");
        return 2;
    }
    if (att_context_create(&settings, &context) != ATT_OK)
        return 1;
    make_pages(context, pages);
    write_pages(pages, arguments[1]);
    for (page *p = pages; p->command; p++)
        att_flags_destroy(&p->flags);
    att_context_destroy(&context);
    return 0;
}
