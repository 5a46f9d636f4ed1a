#define _GNU_SOURCE /* dladdr */
#include "base/core/plugin.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The folder of the object that this file is part of: libattscope.so, or a program that is linked statically. */
static bool find_own_folder(char folder[PATH_MAX])
{
    static const char inside;
    Dl_info info;
    char path[PATH_MAX];
    if (!dladdr(&inside, &info) || !info.dli_fname)
        return false;
    /* A program's name is as it was called, which need not be a path. */
    bool is_program = !strstr(info.dli_fname, ".so");
    if (!realpath(is_program ? "/proc/self/exe" : info.dli_fname, path))
        return false;
    char *slash = strrchr(path, '/');
    if (!slash)
        return false;
    *slash = 0;
    snprintf(folder, PATH_MAX, "%s", path);
    return true;
}

static bool is_plugin(char path[PATH_MAX], const char *folder, const char *below, const char *name)
{
    struct stat info;
    int length = snprintf(path, PATH_MAX, "%s%s/%s.so", folder, below, name);
    return length < PATH_MAX && access(path, R_OK) == 0 && stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

bool att_plugin_find(const char *name, char path[PATH_MAX])
{
    const char *named = getenv("ATTSCOPE_PLUGINS");
    char own[PATH_MAX];
    if (named)
        return is_plugin(path, named, "", name);
    return find_own_folder(own) &&
           (is_plugin(path, own, "/attscope-plugins", name) || is_plugin(path, own, "/" ATT_PLUGINS_FROM_BIN, name));
}
