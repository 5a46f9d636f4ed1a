/* attscope - the command. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "not_here.h"
#include "stop.h"

static const char *command_name(const void *user, int index)
{
    (void)user;
    return cli_command_at(index)->name;
}

static int command_count(void)
{
    int count = 0;
    while (cli_command_at(count))
        count++;
    return count;
}

static void print_overview(FILE *out)
{
    fprintf(out,
            "attscope %s - " CLI_SUMMARY
            "\n\n"
            "Usage: attscope COMMAND [options]\n\nCommands:\n",
            att_version());
    for (int i = 0; i < command_count(); i++)
        fprintf(out, "  %-10s %s\n", cli_command_at(i)->name, cli_command_at(i)->summary);
    fputs("\nattscope COMMAND --help says more, with an example.\n", out);
}

static void print_help(const cli_command *command, const cli_table *table)
{
    printf("attscope %s: %s\n\nUsage: attscope %s %s%s[options]\n", command->name, command->summary, command->name,
           command->operands, *command->operands ? " " : "");
    if (command->about)
        printf("\n%s\n", command->about);
    printf("\nExample:\n%s\n", command->example);
    if (command->explain)
        command->explain(stdout);
    cli_options_help(table, stdout);
}

static bool asks_for_help(int argc, char **argv)
{
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return true;
    return false;
}

/* Reads the config file that the settings name and lays the command line over it. *yaml is the caller's. */
static int apply_config(cli_app *cli, const cli_command *command, int argc, char **argv, const char **operands,
                        int *count, att_yaml **yaml)
{
    char path[4096] = "";
    int code = command->config ? command->config(cli, cli->table.settings, path, sizeof path) : CLI_OK;
    if (code != CLI_OK || !*path)
        return code;
    code = cli_check(cli, att_yaml_read(cli->context, path, yaml));
    if (code != CLI_OK)
        return code;
    cli_options_defaults(&cli->table, command->settings_size);
    bool fine =
        cli_options_config(&cli->table, path, *yaml) && cli_options_parse(&cli->table, argc, argv, operands, count);
    return fine ? CLI_OK : CLI_USAGE;
}

static int refuse_operand(const cli_command *command, const char *operand)
{
    if (command->excess)
        return cli_usage("%s: \"%s\" is one operand too many; %s", command->name, operand, command->excess);
    return cli_usage("%s: \"%s\" is one operand too many; see attscope %s --help", command->name, operand,
                     command->name);
}

static int run_with(cli_app *cli, const cli_command *command, int argc, char **argv, const char **operands)
{
    int count;
    cli_options_defaults(&cli->table, command->settings_size);
    if (asks_for_help(argc, argv)) {
        print_help(command, &cli->table);
        return CLI_OK;
    }
    if (!cli_options_parse(&cli->table, argc, argv, operands, &count))
        return CLI_USAGE;

    /* The config's texts must outlive the command's own context. */
    att_yaml *yaml = NULL;
    int code = command->config ? cli_open(cli, 1) : CLI_OK;
    att_context *reader = cli->context;
    if (code == CLI_OK)
        code = apply_config(cli, command, argc, argv, operands, &count, &yaml);
    if (code == CLI_OK && !cli_options_complete(&cli->table))
        code = CLI_USAGE;
    cli->context = NULL;
    if (code == CLI_OK)
        cli_ignored_say(cli, cli->table.ignored);

    if (code == CLI_OK && count < command->least_operands)
        code = cli_usage("%s needs %s; see attscope %s --help", command->name, command->operands, command->name);
    else if (code == CLI_OK && count > command->most_operands)
        code = refuse_operand(command, operands[command->most_operands]);
    if (code == CLI_OK)
        code = command->run(cli, cli->table.settings, operands, count);
    att_context_destroy(&cli->context);
    att_yaml_destroy(&yaml);
    att_context_destroy(&reader);
    return code;
}

static int run_command(const cli_command *command, int argc, char **argv)
{
    void *settings = calloc(1, command->settings_size), *defaults = calloc(1, command->settings_size);
    const char **operands = calloc((size_t)argc + 1, sizeof *operands);
    cli_ignored ignored = {0};
    cli_app cli = {.table = {command->name, command->uses, command->use_count, settings, defaults,
                             command->explain_unknown, &ignored}};
    bool fine = settings && defaults && operands;
    int code = fine ? run_with(&cli, command, argc, argv, operands) : cli_failure("out of memory");
    free(operands);
    free(defaults);
    free(settings);
    return code;
}

/* NULL: there is no such command. */
static const cli_command *find_command(const char *name)
{
    for (int i = 0; i < command_count(); i++)
        if (strcmp(name, command_name(NULL, i)) == 0)
            return cli_command_at(i);
    return NULL;
}

static int run_named(int argc, char **argv)
{
    if (argc < 2) {
        print_overview(stderr);
        return CLI_USAGE;
    }
    const char *name = argv[1];
    const cli_command *explained = strcmp(name, "help") == 0 && argc == 3 ? find_command(argv[2]) : NULL;
    if (explained)
        return run_command(explained, 1, (char *[]){"--help", NULL});
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) {
        print_overview(stdout);
        return CLI_OK;
    }
    if (strcmp(name, "--version") == 0) {
        printf("attscope %s\n", att_version());
        return CLI_OK;
    }
    cli_stop_on_signals();
    const cli_command *command = find_command(name);
    if (command)
        return run_command(command, argc - 2, argv + 2);
    const char *nearest = att_text_nearest(name, command_name, NULL, command_count());
    if (nearest)
        return cli_usage("unknown command \"%s\"; did you mean %s?", name, nearest);
    return cli_usage("unknown command \"%s\"; see attscope --help", name);
}

/* A file that is opened must not get the number of a standard stream that the caller closed: what is printed would land
 * in it. These streams fail as closed ones do. */
static bool occupy_standard_streams(void)
{
    for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; stream++)
        if (fcntl(stream, F_GETFD) < 0 && open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY) != stream)
            return false;
    return true;
}

/* Nobody reads any more: "attscope ... | head". */
static bool reader_has_left(void)
{
    struct pollfd output = {.fd = STDOUT_FILENO, .events = POLLOUT};
    return poll(&output, 1, 0) == 1 && (output.revents & POLLERR) != 0;
}

/* A command whose reader has left ends as ever: its files are whole, and what nobody reads is no failure. */
int main(int argc, char **argv)
{
    if (!occupy_standard_streams())
        return CLI_FAILURE;
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* beyond the caller's limit (ulimit -f), writing fails as on a full disk */
    int code = run_named(argc, argv);
    if (reader_has_left())
        return code;
    int lost = cli_flush();
    if ((lost != 0 || ferror(stdout)) && code == CLI_OK)
        code = cli_failure("the output could not be written: %s", strerror(lost != 0 ? lost : errno));
    return code;
}
