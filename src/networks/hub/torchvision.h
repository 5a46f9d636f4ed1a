/* hub/torchvision.h - finds torchvision's weights, in the cache of torch.hub or on PyTorch's server. */
#ifndef ATT_HUB_TORCHVISION_H
#define ATT_HUB_TORCHVISION_H

#include "networks/hub/settings.h"

/* text: what follows "torchvision/". Errors: as att_hub_find() (attscope/hub.h). */
att_status att_hub_torchvision_find(att_context *context, const att_hub_settings *settings, const char *text,
                                    char *path, size_t size);

#endif
