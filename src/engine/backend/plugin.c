#include "engine/backend/plugin.h"

#include <dlfcn.h>
#include <string.h>

#include <attscope/version.h>

#include "base/core/error.h"
#include "base/core/plugin.h"

att_status att_backend_load(att_context *context, const char *name, const att_backend **backend)
{
    char path[PATH_MAX];
    if (!att_plugin_find(name, path))
        return att_fail(context, ATT_ERR_UNSUPPORTED,
                        "the plugin for the backend \"%s\" is not installed; build it from source with "
                        "-DATT_CUDA=ON, or name its folder in ATTSCOPE_PLUGINS",
                        name);
    /* Kernels may be in use until the program ends, so the plugin is never unloaded. */
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!handle)
        return att_fail(context, ATT_ERR_UNSUPPORTED, "%s does not load: %s", path, dlerror());
    const att_backend_plugin *plugin = dlsym(handle, ATT_BACKEND_PLUGIN_SYMBOL);
    att_status status = ATT_OK;
    if (!plugin || strcmp(plugin->version, ATT_VERSION) != 0)
        status = att_fail(context, ATT_ERR_UNSUPPORTED, "%s is not of this version of attscope, %s", path, ATT_VERSION);
    else
        status = plugin->start(context);
    if (status == ATT_OK)
        *backend = plugin->backend;
    dlclose(handle);
    return status;
}
