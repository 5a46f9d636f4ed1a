#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <attscope/file.h>

#include "child.h"
#include "paths.h"
#include "processes.h"
#include "progress.h"
#include "said.h"
#include "stop.h"

int cli_flush(void)
{
    static int first;
    int saved_errno = errno;
    if (fflush(stdout) != 0 && first == 0)
        first = errno;
    errno = saved_errno;
    return first;
}

/* Prints text that may contain parts of files or arguments: att_text_printable() removes control characters. */
static void put(FILE *out, bool keep_lines, const char *format, va_list arguments)
{
    va_list again;
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    char *text = length < 0 ? NULL : malloc((size_t)length + 1);
    if (!text)
        return;
    vsnprintf(text, (size_t)length + 1, format, arguments);
    fputs(att_text_printable(text, keep_lines), out);
    free(text);
}

void cli_print(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    put(stdout, true, format, arguments);
    va_end(arguments);
}

/* --- silence ----------------------------------------------------------------------------------------------------- */

static bool silent;
static int hidden_stdout = -1; /* standard output while this process is silent */
static char kept[4096];        /* the last sentence that was not printed */

bool cli_is_silent(void)
{
    return silent;
}

/* Standard output is redirected because many functions print to it. */
static void hide_stdout(void)
{
    int nothing = open("/dev/null", O_WRONLY);
    hidden_stdout = dup(STDOUT_FILENO);
    if (nothing >= 0 && hidden_stdout >= 0)
        dup2(nothing, STDOUT_FILENO);
    if (nothing >= 0)
        close(nothing);
}

static void show_stdout(void)
{
    if (hidden_stdout < 0)
        return;
    dup2(hidden_stdout, STDOUT_FILENO);
    close(hidden_stdout);
    hidden_stdout = -1;
}

void cli_silence(bool on)
{
    if (on == silent)
        return;
    cli_flush();
    silent = on;
    if (on)
        hide_stdout();
    else
        show_stdout();
}

void cli_speak_as(int rank, const char *host)
{
    cli_silence(false);
    if (*kept)
        cli_say("rank %d%s%s: %s", rank, host ? " on " : "", host ? host : "", kept);
}

/* --- messages ---------------------------------------------------------------------------------------------------- */

static void say(const char *format, va_list arguments)
{
    if (silent) {
        vsnprintf(kept, sizeof kept, format, arguments);
        return;
    }
    cli_flush();
    fputs("attscope: ", stderr);
    put(stderr, false, format, arguments);
    fputc('\n', stderr);
}

void cli_say_item(const char *format, ...)
{
    va_list arguments;
    if (silent)
        return;
    va_start(arguments, format);
    fputs("  ", stderr);
    put(stderr, false, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
}

void cli_say(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say(format, arguments);
    va_end(arguments);
}

int cli_usage(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say(format, arguments);
    va_end(arguments);
    return CLI_USAGE;
}

int cli_failure(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say(format, arguments);
    va_end(arguments);
    return CLI_FAILURE;
}

int cli_check(cli_app *cli, att_status status)
{
    if (status == ATT_OK)
        return CLI_OK;
    cli_bar_clear(cli);
    const char *message = att_context_message(cli->context);
    cli_say("%s", *message ? message : att_status_meaning(status));
    return status == ATT_ERR_STOPPED ? CLI_STOPPED : status == ATT_ERR_ARGUMENT ? CLI_USAGE : CLI_FAILURE;
}

void cli_note(cli_app *cli, const char *format, ...)
{
    if (silent)
        return;
    cli_bar_clear(cli);
    cli_flush();
    va_list arguments;
    va_start(arguments, format);
    put(stderr, false, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
}

/* Warnings that have been given, one per line. They are stored in the environment, so that child processes do not
 * repeat them. */
static const char warned_variable[] = "ATTSCOPE_WARNED";

static const char *warned(void)
{
    const char *lines = getenv(warned_variable);
    return lines ? lines : "";
}

static bool is_warned(const char *line)
{
    size_t length = strlen(line);
    for (const char *at = warned(); *at;) {
        size_t own = strcspn(at, "\n");
        if (own == length && memcmp(at, line, length) == 0)
            return true;
        at += own + (at[own] != '\0');
    }
    return false;
}

/* The size of the environment is limited. Warnings that do not fit are repeated. */
static void remember_warning(const char *line)
{
    enum { MOST = 1 << 16 };
    size_t size = strlen(warned()) + strlen(line) + 2;
    char *lines = size <= MOST ? malloc(size) : NULL;
    if (!lines)
        return;
    snprintf(lines, size, "%s%s\n", warned(), line);
    setenv(warned_variable, lines, true);
    free(lines);
}

void cli_warn(cli_app *cli, const char *format, ...)
{
    char line[4096];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    att_text_printable(line, false);
    if (is_warned(line))
        return;
    if (cli->warns_once)
        remember_warning(line);
    cli_note(cli, "warning: %s", line);
}

static void log_line(void *user, att_log_level level, const char *line)
{
    if (level == ATT_LOG_WARNING)
        cli_warn(user, "%s", line);
    else if (!cli_said(line))
        cli_note(user, "%s", line);
}

static bool asked_to_stop(void *user)
{
    (void)user;
    return cli_stop_asked();
}

int cli_open(cli_app *cli, int threads)
{
    att_settings settings = att_settings_defaults();
    settings.threads = threads > 0 ? threads : cli_processes_threads();
    settings.log = log_line;
    settings.log_user = cli;
    settings.stop = asked_to_stop;
    const char *lease = getenv(CLI_LEASE_VARIABLE);
    att_status status = att_context_create(&settings, &cli->context);
    if (status == ATT_OK)
        cli_progress_of_downloads(cli);
    if (status == ATT_OK && lease)
        status = att_sweep_guard_step(cli->context, lease);
    return status == ATT_OK ? CLI_OK : cli_failure("the library could not be started: %s", att_status_meaning(status));
}

/* --- files -------------------------------------------------------------------------------------------------------- */

int cli_file_check(const char *flag, const char *path)
{
    if (!path || access(path, R_OK) == 0)
        return CLI_OK;
    return cli_failure("%s%s%s could not be opened: %s", flag ? flag : "", flag ? " " : "", path, strerror(errno));
}

static bool is_regular_or_new(const char *path)
{
    struct stat info;
    return lstat(path, &info) != 0 || S_ISREG(info.st_mode);
}

/* The only place where the command follows links when it writes: the user named the path. */
static int write_through(const char *path, const char *text, size_t length)
{
    bool standard = strcmp(path, "-") == 0;
    FILE *out = standard ? stdout : fopen(path, "w");
    if (!out)
        return cli_failure("%s: %s", path, strerror(errno));
    bool ok = fwrite(text, 1, length, out) == length && fflush(out) == 0;
    int reason = errno;
    if (!ok && standard && reason == EPIPE)
        return CLI_OK; /* the reader has closed the pipe */
    if (!standard && fclose(out) != 0 && ok) {
        ok = false;
        reason = errno;
    }
    return ok ? CLI_OK : cli_failure("%s could not be written: %s", path, strerror(reason));
}

int cli_file_write(cli_app *cli, const char *path, const char *text, size_t length)
{
    if (silent)
        return CLI_OK;
    if (strcmp(path, "-") != 0 && is_regular_or_new(path))
        return cli_check(cli, att_file_replace(cli->context, path, text, length));
    return write_through(path, text, length);
}

const char *cli_file_target(const char *path, char target[CLI_PATH])
{
    char *resolved = is_regular_or_new(path) ? NULL : realpath(path, NULL);
    bool fits = resolved && snprintf(target, CLI_PATH, "%s", resolved) < CLI_PATH;
    free(resolved);
    return fits ? target : path;
}

/* --- JSON --------------------------------------------------------------------------------------------------------- */

void cli_json_numbers(att_json_writer *writer, const char *key, const double *values, int count)
{
    att_json_put_array(writer, key);
    for (int i = 0; i < count; i++)
        att_json_number(writer, values[i]);
    att_json_end_array(writer);
}

int cli_json_save(cli_app *cli, const char *path, void (*fill)(att_json_writer *writer, const void *from),
                  const void *from)
{
    att_json_writer *writer = NULL;
    int code = path ? cli_check(cli, att_json_writer_create(cli->context, true, &writer)) : CLI_OK;
    if (!writer)
        return code;
    att_json_begin_object(writer);
    fill(writer, from);
    att_json_end_object(writer);
    return cli_json_write(cli, writer, path);
}

bool cli_prints(const char *path)
{
    return !path || strcmp(path, "-") != 0;
}

int cli_output_check(const char *path)
{
    char folder[CLI_PATH];
    if (!path || strcmp(path, "-") == 0)
        return CLI_OK;
    if (cli_is_folder(path))
        return cli_failure("%s: %s", path, strerror(EISDIR));
    if (!is_regular_or_new(path))
        return CLI_OK;
    return access(cli_folder_of(path, folder, sizeof folder), W_OK) == 0 ? CLI_OK
                                                                         : cli_failure("%s: %s", path, strerror(errno));
}

/* Whether both are one file, which need not exist yet. Devices such as /dev/null take several outputs. */
static bool is_same_output(const char *a, const char *b)
{
    char folder_a[CLI_PATH], folder_b[CLI_PATH];
    const char *name_a = strrchr(a, '/'), *name_b = strrchr(b, '/');
    if (strcmp(a, "-") == 0 || strcmp(b, "-") == 0)
        return strcmp(a, b) == 0;
    struct stat found;
    if (stat(a, &found) == 0)
        return S_ISREG(found.st_mode) && cli_is_same_file(a, b);
    return strcmp(name_a ? name_a + 1 : a, name_b ? name_b + 1 : b) == 0 &&
           cli_is_same_file(cli_folder_of(a, folder_a, CLI_PATH), cli_folder_of(b, folder_b, CLI_PATH));
}

int cli_outputs_check(const cli_named_output *outputs, int count)
{
    int code = CLI_OK;
    for (int i = 0; i < count && code == CLI_OK; i++) {
        for (int j = 0; j < i; j++)
            if (outputs[i].path && outputs[j].path && is_same_output(outputs[i].path, outputs[j].path))
                return cli_usage("%s and %s both write to %s: name another file for one of them", outputs[j].flag,
                                 outputs[i].flag,
                                 strcmp(outputs[i].path, "-") == 0 ? "standard output" : outputs[i].path);
        code = outputs[i].may_be_folder ? CLI_OK : cli_output_check(outputs[i].path);
    }
    return code;
}

int cli_json_write(cli_app *cli, att_json_writer *writer, const char *path)
{
    const char *text;
    size_t length;
    att_status status = att_json_writer_finish(writer, &text, &length);
    char *lines = status == ATT_OK ? malloc(length + 1) : NULL;
    int code = cli_check(cli, status);
    if (code == CLI_OK && !lines)
        code = cli_failure("out of memory for %s", path);
    if (code == CLI_OK) {
        memcpy(lines, text, length);
        lines[length] = '\n';
        code = cli_file_write(cli, path, lines, length + 1);
    }
    free(lines);
    att_json_writer_destroy(&writer);
    return code;
}

int cli_json_begin_list(cli_app *cli, const char *path, att_json_writer **writer)
{
    int code = path ? cli_check(cli, att_json_writer_create(cli->context, true, writer)) : CLI_OK;
    if (*writer)
        att_json_begin_array(*writer);
    return code;
}

int cli_json_end_list(cli_app *cli, att_json_writer *writer, const char *path, int code)
{
    if (writer && code == CLI_OK) {
        att_json_end_array(writer);
        return cli_json_write(cli, writer, path);
    }
    att_json_writer_destroy(&writer);
    return code;
}
