/* hub/settings.h - what the environment says about caches and servers (attscope/hub.h lists the variables). */
#ifndef ATT_HUB_SETTINGS_H
#define ATT_HUB_SETTINGS_H

#include <attscope/context.h>

enum { ATT_HUB_PATH = 4096 };

typedef struct att_hub_settings {
    char cache[ATT_HUB_PATH]; /* of the Hub; "": below the home folder, which is not known */
    char torch[ATT_HUB_PATH]; /* folder of torch.hub's checkpoints; "" as above */
    char endpoint[256];       /* of the Hub, without a slash at the end */
    char token[512];          /* "": none */
    char token_fault[512];    /* why the file of the token is not used; "": it is, or there is none */
    const char *torch_server; /* torchvision's files */
    int seconds;              /* without a byte, after which a transfer counts as broken off */
    int pause_ms;             /* before the second attempt of a request; doubled before each further one */
    bool offline;
} att_hub_settings;

/* Errors: ERR_ARGUMENT if a variable has a value that cannot be used; ERR_MEMORY. */
att_status att_hub_settings_read(att_context *context, att_hub_settings *settings);
/* Returns ERR_ARGUMENT if the folder, a member of the settings, is "". variable: the one that can name it. */
att_status att_hub_settings_require(att_context *context, const char *folder, const char *variable);

#endif
