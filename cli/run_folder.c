#include "run_folder.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

static const char last_name[] = "last.safetensors";

char *cli_join(const char *folder, const char *name, char *path, size_t size)
{
    size_t length = strlen(folder);
    int written = snprintf(path, size, "%s%s%s", folder, length > 0 && folder[length - 1] != '/' ? "/" : "", name);
    if (written < 0 || (size_t)written >= size)
        *path = '\0';
    return path;
}

bool cli_exists(const char *path)
{
    struct stat found;
    return stat(path, &found) == 0;
}

bool cli_is_run_folder(const char *folder)
{
    char path[CLI_PATH];
    return cli_exists(cli_join(folder, "args.yaml", path, sizeof path)) ||
           cli_exists(cli_join(folder, "metrics.jsonl", path, sizeof path));
}

static bool is_one(const char *a, const char *b)
{
    struct stat of_a, of_b;
    return stat(a, &of_a) == 0 && stat(b, &of_b) == 0 && of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
}

static bool same_bytes(const char *a, const char *b)
{
    enum { PIECE = 1 << 16 };
    static char from_a[PIECE], from_b[PIECE];
    FILE *file_a = fopen(a, "rb"), *file_b = fopen(b, "rb");
    bool same = file_a && file_b;
    while (same) {
        size_t read = fread(from_a, 1, PIECE, file_a);
        same = fread(from_b, 1, PIECE, file_b) == read && memcmp(from_a, from_b, read) == 0;
        if (read < PIECE)
            break;
    }
    if (file_a)
        fclose(file_a);
    if (file_b)
        fclose(file_b);
    return same;
}

bool cli_is_of_run(const char *folder, const char *checkpoint)
{
    char path[CLI_PATH];
    bool found = is_one(folder, cli_folder_of(checkpoint, path, sizeof path));
    DIR *files = found ? NULL : opendir(folder);
    for (struct dirent *entry; files && !found && (entry = readdir(files));) {
        const char *dot = strrchr(entry->d_name, '.');
        found = dot && strcmp(dot, ".safetensors") == 0 &&
                same_bytes(cli_join(folder, entry->d_name, path, sizeof path), checkpoint);
    }
    if (files)
        closedir(files);
    return found;
}

static void last_of(const char *output, const char *experiment, char *path, size_t size)
{
    char folder[CLI_PATH];
    cli_join(cli_join(output, experiment, folder, sizeof folder), last_name, path, size);
}

int cli_experiment_check(const char *experiment)
{
    if (experiment && (strchr(experiment, '/') || strcmp(experiment, ".") == 0 || strcmp(experiment, "..") == 0))
        return cli_usage("--experiment: \"%s\" is a path; it names a folder in --output", experiment);
    if (experiment && strlen(experiment) > NAME_MAX)
        return cli_usage("--experiment: \"%.32s...\" has %zu bytes; the name of a folder has at most %d", experiment,
                         strlen(experiment), NAME_MAX);
    return CLI_OK;
}

int cli_resume_check(const char *resume, const char *experiment)
{
    if (resume && strcmp(resume, "auto") != 0)
        return CLI_OK;
    if (resume && !experiment)
        return cli_usage("--resume auto needs --experiment NAME, the run to continue");
    return cli_experiment_check(experiment);
}

void cli_resume_path(const char *resume, const char *output, const char *experiment, char *path, size_t size)
{
    struct stat found;
    *path = '\0';
    if (resume && strcmp(resume, "auto") != 0 && stat(resume, &found) == 0 && S_ISDIR(found.st_mode))
        cli_join(resume, last_name, path, size);
    else if (resume && strcmp(resume, "auto") != 0)
        snprintf(path, size, "%s", resume);
    else if (resume && experiment)
        last_of(output, experiment, path, size);
    if (resume && strcmp(resume, "auto") == 0 && !cli_exists(path))
        *path = '\0';
}

char *cli_folder_of(const char *path, char *folder, size_t size)
{
    const char *slash = strrchr(path, '/');
    int length = slash ? (int)(slash - path) : 0;
    if (slash)
        snprintf(folder, size, "%.*s", length > 0 ? length : 1, path);
    else
        snprintf(folder, size, ".");
    return folder;
}

char *cli_database_of(const char *folder, char *path, size_t size)
{
    char trimmed[CLI_PATH], output[CLI_PATH];
    size_t length = (size_t)snprintf(trimmed, sizeof trimmed, "%s", folder);
    length = length < sizeof trimmed ? length : sizeof trimmed - 1;
    while (length > 1 && trimmed[length - 1] == '/')
        trimmed[--length] = '\0';
    const char *slash = strrchr(trimmed, '/'), *last = slash ? slash + 1 : trimmed;
    if (strcmp(last, ".") == 0 || strcmp(last, "..") == 0)
        cli_join(folder, "..", output, sizeof output);
    else
        cli_folder_of(trimmed, output, sizeof output);
    return cli_join(output, "runs.sqlite", path, size);
}

int cli_make_folders(const char *path)
{
    char part[CLI_PATH];
    snprintf(part, sizeof part, "%s", path);
    for (char *slash = strchr(part + 1, '/');; slash = strchr(slash + 1, '/')) {
        if (slash)
            *slash = '\0';
        struct stat found;
        if (mkdir(part, 0777) != 0 && errno != EEXIST)
            return cli_failure("%s: %s", part, strerror(errno));
        if (stat(part, &found) == 0 && !S_ISDIR(found.st_mode))
            return cli_failure("%s is a file; a folder is needed in its place", part);
        if (!slash)
            return CLI_OK;
        *slash = '/';
    }
}

int cli_run_folder_settle(const char *resume, const char *output, const char *experiment, const char *model,
                          const char *size, cli_run_folder *run)
{
    cli_resume_path(resume, output, experiment, run->resume, sizeof run->resume);
    if (*run->resume) {
        cli_folder_of(run->resume, run->folder, sizeof run->folder);
        cli_database_of(run->folder, run->database, sizeof run->database);
        return CLI_OK;
    }
    char name[256], stamp[32];
    time_t now = time(NULL);
    struct tm local;
    if (!localtime_r(&now, &local) || strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", &local) == 0)
        return cli_failure("the clock gives no date to name the run by");
    snprintf(name, sizeof name, "%s-%.200s-%.16s", stamp, model, size);
    cli_join(output, experiment ? experiment : name, run->folder, sizeof run->folder);
    if (!*run->folder)
        return cli_usage("--output: \"%.32s...\" is longer than a path may be", output);
    cli_database_of(run->folder, run->database, sizeof run->database);
    run->unnamed = !experiment;
    char last[CLI_PATH];
    if (experiment && cli_exists(cli_join(run->folder, last_name, last, sizeof last)))
        return cli_failure(
            "%s holds a training already; another --experiment begins a new one, --resume %s goes on with "
            "this one where it is not finished",
            run->folder, last);
    return CLI_OK;
}

int cli_run_folder_claim(cli_run_folder *run)
{
    enum { TRIES = 1000 };
    char output[CLI_PATH], name[CLI_PATH];
    if (!run->unnamed)
        return CLI_OK;
    int code = cli_make_folders(cli_folder_of(run->folder, output, sizeof output));
    snprintf(name, sizeof name, "%s", run->folder);
    for (int i = 1; code == CLI_OK && mkdir(run->folder, 0777) != 0; i++) {
        if (errno != EEXIST || i == TRIES)
            return cli_failure("%s could not be made: %s", run->folder, strerror(errno));
        int length = snprintf(run->folder, sizeof run->folder, "%.*s-%d", (int)sizeof name - 8, name, i + 1);
        if (length < 0 || (size_t)length >= sizeof run->folder)
            return cli_failure("%s: its name is too long", name);
    }
    return code;
}
