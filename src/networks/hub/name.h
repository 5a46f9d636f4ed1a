/* hub/name.h - the parts of a name of pretrained weights. */
#ifndef ATT_HUB_NAME_H
#define ATT_HUB_NAME_H

#include <attscope/context.h>

/* A repository of the Hub at one revision. */
typedef struct att_hub_name {
    char repository[97]; /* "timm/vit_tiny_patch16_224.augreg_in21k" */
    char revision[129];  /* a branch, tag or commit; "main" */
    char network[97];    /* for a repository of timm's: what follows "timm/"; else "" */
} att_hub_name;

/* Parses "timm/...", "hf-hub:..." or "hf_hub:...". A name of timm's without a tag gets the network's default tag.
 * Errors: ERR_ARGUMENT. */
att_status att_hub_name_parse(att_context *context, const char *text, att_hub_name *name);
/* Fails with ERR_UNSUPPORTED if timm has the network and attscope lacks it. */
att_status att_hub_name_check(att_context *context, const att_hub_name *name);
/* Returns whether the text is the name of a commit: 40 hexadecimal digits in lower case. */
bool att_hub_is_commit(const char *text);
/* Returns whether the text may be the name of a file in a cache: letters, digits and ._-, not beginning with a dot. */
bool att_hub_is_file(const char *text);

#endif
