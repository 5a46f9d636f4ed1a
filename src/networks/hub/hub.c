#include "networks/hub/hub.h"

#include <string.h>

#include "base/core/context.h"
#include "base/core/error.h"
#include "networks/hub/name.h"
#include "networks/hub/repository.h"
#include "networks/hub/torchvision.h"

static const char TORCHVISION[] = "torchvision/";

static bool begins(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

bool att_hub_is_name(const char *text)
{
    return begins(text, "timm/") || begins(text, "hf-hub:") || begins(text, "hf_hub:") || begins(text, TORCHVISION);
}

att_status att_hub_find_with(att_context *context, const att_hub_settings *settings, const char *name, char *path,
                             size_t size)
{
    att_hub_name repository;
    if (begins(name, TORCHVISION))
        return att_hub_torchvision_find(context, settings, name + sizeof TORCHVISION - 1, path, size);
    ATT_TRY(att_hub_name_parse(context, name, &repository));
    return att_hub_repository_find(context, settings, &repository, path, size);
}

att_status att_hub_find(att_context *context, const char *name, char *path, size_t size)
{
    att_hub_settings settings;
    ATT_TRY(att_require(context, name, "the name of pretrained weights"));
    ATT_TRY(att_require(context, path, "the buffer for a path"));
    ATT_TRY(att_hub_settings_read(context, &settings));
    return att_hub_find_with(context, &settings, name, path, size);
}

void att_hub_show_progress(att_context *context, att_progress_fn show, void *user)
{
    att_context_set_progress(context, show, user);
}
