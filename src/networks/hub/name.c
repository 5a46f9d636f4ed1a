#include "networks/hub/name.h"

#include <attscope/models.h>

#include <stdio.h>
#include <string.h>

#include "base/core/error.h"

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

static const char TIMM[] = "timm/";

bool att_hub_is_commit(const char *text)
{
    return strlen(text) == 40 && strspn(text, "0123456789abcdef") == 40;
}

bool att_hub_is_file(const char *text)
{
    size_t length = strlen(text);
    return length > 0 && length < 256 && *text != '.' && strspn(text, LETTERS) == length;
}

/* As the Hub checks it: one or more of LETTERS, no dash or dot at an end, no "--" and no "..". */
static bool is_part(const char *text, size_t length)
{
    if (length == 0 || strspn(text, LETTERS) < length || strchr("-.", text[0]) || strchr("-.", text[length - 1]))
        return false;
    for (size_t i = 0; i + 1 < length; i++)
        if (text[i] == text[i + 1] && strchr("-.", text[i]))
            return false;
    return true;
}

static bool is_repository(const char *text)
{
    const char *slash = strchr(text, '/');
    return slash && is_part(text, (size_t)(slash - text)) && is_part(slash + 1, strlen(slash + 1));
}

/* A revision becomes a path below refs/: "refs/pr/1" is one, "../x" is none. */
static bool is_revision(const char *text)
{
    for (const char *part = text; part; part = strchr(part, '/') ? strchr(part, '/') + 1 : NULL)
        if (!is_part(part, strcspn(part, "/")))
            return false;
    return true;
}

/* Appends the default tag to the name of a network of timm's, and replaces a deprecated name. */
static void complete(att_context *context, att_hub_name *name)
{
    att_network_name found;
    att_model_tag tag;
    if (att_model_resolve(context, name->network, &found) != ATT_OK)
        return;
    if (!found.tag[0] && att_model_tag_at(context, found.network, 0, &tag) == ATT_OK)
        snprintf(found.tag, sizeof found.tag, "%s", tag.name);
    char full[sizeof TIMM + sizeof found.network + sizeof found.tag];
    size_t length =
        (size_t)snprintf(full, sizeof full, "%s%s%s%s", TIMM, found.network, found.tag[0] ? "." : "", found.tag);
    if (length >= sizeof name->repository)
        return;
    memcpy(name->repository, full, length + 1);
    memcpy(name->network, full + sizeof TIMM - 1, length + 2 - sizeof TIMM);
}

static att_status refuse(att_context *context, const char *text)
{
    return att_fail(context, ATT_ERR_ARGUMENT,
                    "\"%.120s\" is no name of pretrained weights; expected timm/NETWORK.TAG, hf-hub:ORG/NAME or "
                    "hf-hub:ORG/NAME@REVISION",
                    text);
}

att_status att_hub_name_parse(att_context *context, const char *text, att_hub_name *name)
{
    bool prefixed = strncmp(text, "hf-hub:", 7) == 0 || strncmp(text, "hf_hub:", 7) == 0;
    const char *from = text + (prefixed ? 7 : 0), *at = strchr(from, '@');
    size_t length = at ? (size_t)(at - from) : strlen(from);
    att_hub_name found = {.revision = "main"};
    if (length >= sizeof found.repository || (at && strlen(at + 1) >= sizeof found.revision))
        return refuse(context, text);
    memcpy(found.repository, from, length);
    if (at)
        snprintf(found.revision, sizeof found.revision, "%s", at + 1);
    if (!is_repository(found.repository) || !is_revision(found.revision))
        return refuse(context, text);
    if (strncmp(found.repository, TIMM, sizeof TIMM - 1) == 0) {
        memcpy(found.network, found.repository + sizeof TIMM - 1, sizeof found.repository + 1 - sizeof TIMM);
        complete(context, &found);
    }
    *name = found;
    return ATT_OK;
}

att_status att_hub_name_check(att_context *context, const att_hub_name *name)
{
    att_network_name found;
    if (!*name->network)
        return ATT_OK;
    att_status status = att_model_resolve(context, name->network, &found);
    return status == ATT_ERR_UNSUPPORTED || status == ATT_ERR_MEMORY ? status : ATT_OK;
}
