#include "paths.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

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

bool cli_is_folder(const char *path)
{
    struct stat found;
    return stat(path, &found) == 0 && S_ISDIR(found.st_mode);
}

bool cli_is_collection(const char *path)
{
    static const char *const endings[] = {".tar", ".tar.gz", ".tgz", ".zip"};
    if (cli_is_folder(path))
        return true;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t length = strlen(path), end = strlen(endings[i]);
        if (length > end && strcasecmp(path + length - end, endings[i]) == 0)
            return true;
    }
    return false;
}

static bool has_ending(const char *path, const char *ending)
{
    const size_t length = strlen(path), end = strlen(ending);
    return length > end && strcmp(path + length - end, ending) == 0;
}

bool cli_is_checkpoint(const char *path)
{
    static const char *const endings[] = {".safetensors", ".pth", ".pt", ".th", ".pth.tar"};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (has_ending(path, endings[i]))
            return !cli_is_folder(path);
    char start[4] = "";
    /* O_NONBLOCK: opening a pipe must not wait for its writer. */
    int file = has_ending(path, ".bin") ? open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC) : -1;
    const bool is_zip = file >= 0 && read(file, start, 4) == 4 && memcmp(start, "PK\3\4", 4) == 0;
    if (file >= 0)
        close(file);
    return is_zip;
}

bool cli_is_same_file(const char *a, const char *b)
{
    struct stat of_a, of_b;
    return stat(a, &of_a) == 0 && stat(b, &of_b) == 0 && of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
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

bool cli_is_within(const char *folder, const char *path)
{
    char at[CLI_PATH], parent[CLI_PATH];
    snprintf(at, sizeof at, "%s", path);
    while (!cli_exists(at)) { /* up to the part that exists */
        cli_folder_of(at, parent, sizeof parent);
        if (strcmp(at, parent) == 0)
            return false;
        snprintf(at, sizeof at, "%s", parent);
    }
    char *real = realpath(at, NULL), *real_folder = realpath(folder, NULL);
    const size_t length = real_folder ? strlen(real_folder) : 0;
    const bool within = real && real_folder && strncmp(real, real_folder, length) == 0 &&
                        (real[length] == '/' || real[length] == '\0' || strcmp(real_folder, "/") == 0);
    free(real);
    free(real_folder);
    return within;
}
