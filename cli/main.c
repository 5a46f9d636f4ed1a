/* attscope - the command-line program. */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <attscope/network.h>

#include "commands.h"
#include "help.h"
#include "paths.h"
#include "processes.h"
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
    fputs("\nattscope COMMAND --help describes a command, with an example.\n", out);
}

static void print_help(const cli_command *command, const att_flags *flags)
{
    printf("attscope %s: %s\n\nUsage: attscope %s %s%s[options]\n", command->name, command->summary, command->name,
           command->operands, *command->operands ? " " : "");
    if (command->about)
        printf("\n%s\n", command->about);
    printf("\nExample:\n%s\n", command->example);
    if (command->explain)
        command->explain(stdout);
    cli_flags_help(flags, NULL, stdout);
}

/* One call of a command. */
typedef struct call {
    const cli_command *command;
    int argc;
    char **argv;
    void *settings;
    const char **operands;
    int operand_count;
    att_ignored_flags ignored;
    att_yaml *config; /* owns strings of the settings */
} call;

/* Prints the help that the arguments ask for. Returns whether they ask for any. */
static bool print_asked_help(const call *c, const att_flags *flags)
{
    static const char details[] = "--help-";
    for (int i = 0; i < c->argc && strcmp(c->argv[i], "--") != 0; i++) {
        const char *text = c->argv[i];
        if (strcmp(text, "--help") == 0 || strcmp(text, "-h") == 0)
            return print_help(c->command, flags), true;
        if (c->command->more && strncmp(text, details, strlen(details)) == 0 &&
            strcmp(text + strlen(details), c->command->more) == 0)
            return c->command->explain_more(stdout), true;
        if (strncmp(text, details, strlen(details)) == 0 && cli_has_details(flags, text + strlen(details)))
            return cli_flags_help(flags, text + strlen(details), stdout), true;
    }
    return false;
}

static int parse(cli_app *cli, call *c)
{
    return cli_check(
        cli, att_flags_parse(cli->flags, c->argc, c->argv, c->settings, c->operands, &c->operand_count, &c->ignored));
}

/* Reads the config file that the settings name, then applies the command line again on top. */
static int apply_config(cli_app *cli, call *c)
{
    char path[CLI_PATH] = "";
    int code = c->command->config ? c->command->config(cli, c->settings, path, sizeof path) : CLI_OK;
    if (code != CLI_OK || !*path)
        return code;
    code = cli_check(cli, att_yaml_read(cli->context, path, &c->config));
    if (code != CLI_OK)
        return code;
    att_flags_default(cli->flags, c->settings);
    code = cli_check(cli, att_flags_read(cli->flags, path, c->config, c->settings, &c->ignored));
    return code == CLI_OK ? parse(cli, c) : code;
}

/* Returns the flag of one number that stands two words before the operand, with a number between them, as in
 * "--occlude 112 112"; NULL: none. */
static const char *flag_before(const cli_app *cli, const call *c, const char *operand)
{
    int at = 2;
    while (at < c->argc && c->argv[at] != operand)
        at++;
    const char *flag = at < c->argc && strncmp(c->argv[at - 2], "--", 2) == 0 ? c->argv[at - 2] : NULL;
    const att_flag_place place = flag ? att_flags_find(cli->flags, flag + 2) : (att_flag_place){0};
    return place.flag && att_flag_numbers(place.flag) == 1 && operand[strspn(operand, "0123456789.")] == '\0' ? flag
                                                                                                              : NULL;
}

/* The most operands, without those in place of which flags are given. */
static int most_operands(const cli_app *cli, const call *c)
{
    static const char *const replaced[] = {"checkpoint", "data-dir"};
    char numbers[ATT_MOST_REALS][ATT_FLAG_VALUE_BYTES];
    const char *texts[ATT_MOST_REALS];
    int most = c->command->most_operands;
    for (size_t i = 0; i < sizeof replaced / sizeof *replaced; i++) {
        const att_flag_place place = att_flags_find(cli->flags, replaced[i]);
        most -= c->command->flags_replace && place.flag && att_flag_format(&place, c->settings, numbers, texts) > 0;
    }
    return most;
}

static int refuse_operand(const cli_app *cli, const call *c)
{
    const cli_command *command = c->command;
    const char *operand = c->operands[most_operands(cli, c)];
    for (int i = 0; i < c->operand_count; i++) {
        const char *flag = flag_before(cli, c, c->operands[i]);
        if (flag)
            return cli_usage("%s takes one number; \"%s\" after it is taken as an operand", flag, c->operands[i]);
    }
    if (command->excess)
        return cli_usage("%s: \"%s\" is one operand too many; %s", command->name, operand, command->excess);
    return cli_usage("%s: \"%s\" is one operand too many; see attscope %s --help", command->name, operand,
                     command->name);
}

/* Refuses DATA before CHECKPOINT: a file of weights behind data that hold none. */
static int check_order(cli_app *cli, const call *c)
{
    static const char first[] = "CHECKPOINT ";
    const cli_command *command = c->command;
    const char *const *operands = c->operands;
    char path[CLI_PATH];
    if (strncmp(command->operands, first, strlen(first)) != 0 || command->operands[strlen(first)] == '[' ||
        c->operand_count < 2 || !cli_is_checkpoint(operands[1]) || cli_is_checkpoint(operands[0]) ||
        !cli_exists(operands[0]) ||
        (cli_is_folder(operands[0]) && att_network_find_file(cli->context, operands[0], path, sizeof path) == ATT_OK))
        return CLI_OK;
    return cli_usage("%s takes the checkpoint first: attscope %s %s", command->name, command->name, command->operands);
}

/* Reads the command line and the config file. */
static int read_settings(cli_app *cli, call *c)
{
    int code = parse(cli, c);
    if (code == CLI_OK)
        code = apply_config(cli, c);
    if (code == CLI_OK)
        code = cli_check(cli, att_flags_complete(cli->flags, c->settings));
    if (code == CLI_OK)
        att_ignored_flags_log(cli->context, &c->ignored);
    if (code == CLI_OK && c->operand_count < c->command->least_operands)
        return cli_usage("%s needs %s; see attscope %s --help", c->command->name, c->command->operands,
                         c->command->name);
    if (code == CLI_OK && c->operand_count > most_operands(cli, c))
        return refuse_operand(cli, c);
    return code == CLI_OK ? check_order(cli, c) : code;
}

/* Settings are parsed with a separate context, since they determine the number of threads of the command's context. */
static int run_with(cli_app *cli, call *c)
{
    int code = cli_open(cli, 1);
    if (code == CLI_OK)
        code = cli_check(cli, cli_flags_create(cli->context, c->command, &cli->flags));
    if (code != CLI_OK)
        return code;
    if (print_asked_help(c, cli->flags))
        return CLI_OK;
    att_flags_default(cli->flags, c->settings);
    code = read_settings(cli, c);
    if (code != CLI_OK)
        return c->command->processes ? cli_processes_refuse(cli, code) : code;
    att_context *reader = cli->context;
    cli->context = NULL;
    code = c->command->run(cli, c->settings, c->operands, c->operand_count);
    if (c->command->processes)
        code = cli_processes_close(cli, code);
    att_context_destroy(&cli->context);
    cli->context = reader;
    return code;
}

static int run_command(const cli_command *command, int argc, char **argv)
{
    cli_app cli = {0};
    call c = {.command = command, .argc = argc, .argv = argv};
    cli_silence(command->processes && cli_processes_follows());
    c.settings = calloc(1, command->settings_size);
    c.operands = calloc((size_t)argc + 1, sizeof *c.operands);
    int code = c.settings && c.operands ? run_with(&cli, &c) : cli_failure("out of memory");
    att_yaml_destroy(&c.config);
    att_flags_destroy(&cli.flags);
    att_context_destroy(&cli.context);
    free(c.operands);
    free(c.settings);
    return code;
}

/* Returns NULL if there is no such command. */
static const cli_command *find_command(const char *name)
{
    for (int i = 0; i < command_count(); i++)
        if (strcmp(name, command_name(NULL, i)) == 0)
            return cli_command_at(i);
    return NULL;
}

/* The command whose help has what the word asks for, before a space; "" if none is known. */
static const char *described_by(const char *word)
{
    static const char *const known[][2] = {{"instruments", "measure "}, {"instrument", "measure "},
                                           {"evaluate", "validate "},   {"eval", "validate "},
                                           {"infer", "predict "},       {"classify", "predict "}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(word, known[i][0]) == 0)
            return known[i][1];
    return "";
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
    return cli_usage("unknown command \"%s\"; see attscope %s--help", name, described_by(name));
}

/* Opens /dev/null for standard streams that the caller has closed. Otherwise an opened file could get the number of
 * such a stream, and output would be written into it. /dev/null is opened for the opposite direction, so that using
 * these streams fails as with closed streams. */
static bool occupy_standard_streams(void)
{
    for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; stream++)
        if (fcntl(stream, F_GETFD) < 0 && open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY) != stream)
            return false;
    return true;
}

/* Whether the reader of stdout has closed the pipe, as in "attscope ... | head". */
static bool reader_has_left(void)
{
    struct pollfd output = {.fd = STDOUT_FILENO, .events = POLLOUT};
    return poll(&output, 1, 0) == 1 && (output.revents & POLLERR) != 0;
}

/* Under a limit on the address space (ulimit -v) all threads allocate from one heap. By default glibc reserves 64 MiB
 * for each of the first threads, so that the threads that happen to start first would leave too little for the rest. */
static void share_heap(void)
{
    struct rlimit space;
    if (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY)
        mallopt(M_ARENA_MAX, 1);
}

/* If the reader of stdout has left, main() still returns the exit code of the command: the files are complete, and
 * unread output is not a failure. */
int main(int argc, char **argv)
{
    if (!occupy_standard_streams())
        return CLI_FAILURE;
    share_heap();
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* beyond the limit of ulimit -f, write() then fails like on a full disk */
    int code = run_named(argc, argv);
    if (reader_has_left())
        return code;
    int lost = cli_flush();
    if ((lost != 0 || ferror(stdout)) && code == CLI_OK)
        code = cli_failure("the output could not be written: %s", strerror(lost != 0 ? lost : errno));
    return code;
}
