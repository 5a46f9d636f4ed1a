#include "cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "progress.h"

int cli_flush(void)
{
    static int first;
    int kept = errno;
    if (fflush(stdout) != 0 && first == 0)
        first = errno;
    errno = kept;
    return first;
}

static void say(const char *format, va_list arguments)
{
    cli_flush();
    fputs("attscope: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
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
    return status == ATT_ERR_ARGUMENT ? CLI_USAGE : CLI_FAILURE;
}

void cli_note(cli_app *cli, const char *format, ...)
{
    cli_bar_clear(cli);
    cli_flush();
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
}

static void log_line(void *user, att_log_level level, const char *line)
{
    cli_note(user, "%s%s", level == ATT_LOG_WARNING ? "warning: " : "", line);
}

int cli_open(cli_app *cli, int threads)
{
    att_settings settings = att_settings_defaults();
    settings.threads = threads;
    settings.log = log_line;
    settings.log_user = cli;
    att_status status = att_context_create(&settings, &cli->context);
    return status == ATT_OK ? CLI_OK : cli_failure("the library could not be started: %s", att_status_meaning(status));
}

/* --- files -------------------------------------------------------------------------------------------------------- */

int cli_file_check(const char *flag, const char *path)
{
    if (!path || access(path, R_OK) == 0)
        return CLI_OK;
    return cli_failure("%s %s could not be opened: %s", flag, path, strerror(errno));
}

/* Takes the path's place only once all of it is on the disk; pipes, devices and links are written to as they are. */
static FILE *open_output(const char *path, char *temporary, size_t size)
{
    struct stat info;
    *temporary = '\0';
    if (strcmp(path, "-") == 0)
        return stdout;
    if (lstat(path, &info) == 0 && !S_ISREG(info.st_mode))
        return fopen(path, "w");
    if (snprintf(temporary, size, "%s.tmp", path) < (int)size)
        return fopen(temporary, "w");
    *temporary = '\0';
    errno = ENAMETOOLONG;
    return NULL;
}

int cli_file_write(const char *path, const char *text, size_t length)
{
    char temporary[4096];
    FILE *out = open_output(path, temporary, sizeof temporary);
    if (!out)
        return cli_failure("%s: %s", path, strerror(errno));
    bool fine = fwrite(text, 1, length, out) == length && fflush(out) == 0;
    if (*temporary)
        fine = fine && fsync(fileno(out)) == 0;
    int reason = errno;
    if (!fine && out == stdout && reason == EPIPE)
        return CLI_OK; /* nobody reads any more */
    if (out != stdout && fclose(out) != 0 && fine) {
        fine = false;
        reason = errno;
    }
    if (fine && *temporary && rename(temporary, path) != 0) {
        fine = false;
        reason = errno;
    }
    if (!fine && *temporary)
        unlink(temporary);
    return fine ? CLI_OK : cli_failure("%s could not be written: %s", path, strerror(reason));
}

/* --- JSON --------------------------------------------------------------------------------------------------------- */

void cli_json_text(att_json_writer *writer, const char *key, const char *text)
{
    att_json_key(writer, key);
    att_json_string(writer, text);
}

void cli_json_number(att_json_writer *writer, const char *key, double value)
{
    att_json_key(writer, key);
    att_json_number(writer, value);
}

void cli_json_integer(att_json_writer *writer, const char *key, int64_t value)
{
    att_json_key(writer, key);
    att_json_integer(writer, value);
}

bool cli_prints(const char *json_path)
{
    return !json_path || strcmp(json_path, "-") != 0;
}

int cli_output_check(const char *path)
{
    char folder[4096];
    struct stat info;
    if (!path || strcmp(path, "-") == 0 || (lstat(path, &info) == 0 && !S_ISREG(info.st_mode)))
        return CLI_OK;
    const char *slash = strrchr(path, '/');
    int length = slash && slash > path ? (int)(slash - path) : 1;
    snprintf(folder, sizeof folder, "%.*s", length, slash ? path : ".");
    return access(folder, W_OK) == 0 ? CLI_OK : cli_failure("%s: %s", path, strerror(errno));
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
        code = cli_file_write(path, lines, length + 1);
    }
    free(lines);
    att_json_writer_destroy(&writer);
    return code;
}
