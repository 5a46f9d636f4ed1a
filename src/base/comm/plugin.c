#include <dlfcn.h>

#include "base/comm/comm.h"
#include "base/core/error.h"
#include "base/core/plugin.h"

att_status att_comm_load(att_context *context, const char *mpi, void **plugin, const att_transport **transport)
{
    char path[PATH_MAX];
    if (!att_plugin_find(mpi, path))
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
