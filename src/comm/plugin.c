#define _GNU_SOURCE /* dladdr */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "comm/comm.h"
#include "core/error.h"

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

static bool is_plugin(char path[PATH_MAX], const char *folder, const char *below, const char *mpi)
{
    struct stat info;
    int length = snprintf(path, PATH_MAX, "%s%s/%s.so", folder, below, mpi);
    return length < PATH_MAX && access(path, R_OK) == 0 && stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

/* In the folder that the environment's ATTSCOPE_PLUGINS names; else beside the library or program, or in the library
 * folder of the prefix that the program is installed below. */
static bool find_plugin(const char *mpi, char path[PATH_MAX])
{
    const char *named = getenv("ATTSCOPE_PLUGINS");
    char own[PATH_MAX];
    if (named)
        return is_plugin(path, named, "", mpi);
    return find_own_folder(own) &&
           (is_plugin(path, own, "/attscope-plugins", mpi) || is_plugin(path, own, "/" ATT_PLUGINS_FROM_BIN, mpi));
}

att_status att_comm_load(att_context *context, const char *mpi, void **plugin, const att_transport **transport)
{
    char path[PATH_MAX];
    if (!find_plugin(mpi, path))
        return att_fail(context, ATT_ERR_UNSUPPORTED,
                        "the plugin for %s is not installed; it is in the package attscope-%s, or built from source "
                        "where CMake finds %s",
                        mpi, mpi, mpi);
    /* MPI loads components of its own, which look for the symbols of libmpi among the global ones. */
    void *handle = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (!handle)
        return att_fail(context, ATT_ERR_UNSUPPORTED, "%s does not load: %s", path, dlerror());
    const att_transport *found = dlsym(handle, ATT_TRANSPORT_SYMBOL);
    if (!found || found->interface != ATT_TRANSPORT_INTERFACE) {
        dlclose(handle);
        return att_fail(context, ATT_ERR_UNSUPPORTED, "%s is not of this version of attscope", path);
    }
    *plugin = handle;
    *transport = found;
    return ATT_OK;
}

void att_comm_unload(void *plugin)
{
    if (plugin)
        dlclose(plugin);
}
