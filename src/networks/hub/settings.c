#include "networks/hub/settings.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/core/text.h"
#include "base/io/file.h"
#include "networks/hub/url.h"

enum { DEFAULT_SECONDS = 10, PAUSE_MS = 250, MOST_TOKEN_FILE = 1 << 12 };

/* A variable with an empty value counts as missing. */
static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

/* As huggingface_hub reads its switches. */
static bool is_on(const char *name)
{
    static const char *const words[] = {"1", "ON", "YES", "TRUE"};
    const char *value = variable(name);
    for (size_t i = 0; value && i < sizeof words / sizeof *words; i++)
        if (strcasecmp(value, words[i]) == 0)
            return true;
    return false;
}

att_status att_hub_settings_require(att_context *context, const char *folder, const char *name)
{
    return *folder ? ATT_OK
                   : att_fail(context, ATT_ERR_ARGUMENT,
                              "the cache of downloads cannot be found: the environment variable HOME is not set, and "
                              "%s names no folder outside of it",
                              name);
}

/* Writes the path, in which a leading "~/" is the home folder; "" if that is not known. */
static att_status expand(att_context *context, const char *from, char *path, size_t size)
{
    const char *home = variable("HOME");
    if (strncmp(from, "~/", 2) != 0)
        return att_path_copy(context, from, path, size);
    *path = '\0';
    return home ? att_path_join(context, home, from + 2, path, size) : ATT_OK;
}

/* Writes "FOLDER/BELOW"; "" if the folder is. */
static att_status join(att_context *context, const char *folder, const char *below, char *path, size_t size)
{
    *path = '\0';
    return *folder ? att_path_join(context, folder, below, path, size) : ATT_OK;
}

/* Writes the path in the variable `name`; without it, "FOLDER/BELOW", where the folder is that of cached files. */
static att_status find_home(att_context *context, const char *name, const char *below, char *path, size_t size)
{
    const char *given = variable(name), *caches = variable("XDG_CACHE_HOME");
    char folder[ATT_HUB_PATH];
    if (given)
        return expand(context, given, path, size);
    ATT_TRY(expand(context, caches ? caches : "~/.cache", folder, sizeof folder));
    return join(context, folder, below, path, size);
}

static att_status find_caches(att_context *context, const char *home, att_hub_settings *s)
{
    const char *given = variable("HF_HUB_CACHE");
    char torch[ATT_HUB_PATH];
    ATT_TRY(given ? expand(context, given, s->cache, sizeof s->cache)
                  : join(context, home, "hub", s->cache, sizeof s->cache));
    ATT_TRY(find_home(context, "TORCH_HOME", "torch", torch, sizeof torch));
    return join(context, torch, "hub/checkpoints", s->torch, sizeof s->torch);
}

static att_status find_endpoint(att_context *context, att_hub_settings *s)
{
    const char *given = variable("HF_ENDPOINT");
    att_origin origin;
    size_t length = (size_t)snprintf(s->endpoint, sizeof s->endpoint, "%s", given ? given : "https://huggingface.co");
    if (length >= sizeof s->endpoint || !att_url_parse(s->endpoint, &origin) || strchr(s->endpoint, '?'))
        return att_fail(context, ATT_ERR_ARGUMENT,
                        "HF_ENDPOINT is \"%.100s\"; expected an address such as https://huggingface.co", given);
    if (!att_origin_allowed(&origin, &origin))
        return att_fail(context, ATT_ERR_ARGUMENT,
                        "HF_ENDPOINT is \"%s\"; only https:// is allowed, because http:// is not encrypted",
                        s->endpoint);
    while (length > 0 && s->endpoint[length - 1] == '/')
        s->endpoint[--length] = '\0';
    return ATT_OK;
}

/* Copies the token without blanks and newlines around it. Other control characters could add headers to a request. */
static att_status take_token(att_context *context, const char *from, const char *text, att_hub_settings *s)
{
    while (isspace((unsigned char)*text))
        text++;
    size_t length = strlen(text);
    while (length > 0 && isspace((unsigned char)text[length - 1]))
        length--;
    if (length >= sizeof s->token)
        return att_fail(context, ATT_ERR_ARGUMENT, "%s holds no access token: it is too long", from);
    for (size_t i = 0; i < length; i++)
        if (text[i] <= ' ' || text[i] > '~')
            return att_fail(context, ATT_ERR_ARGUMENT,
                            "%s holds no access token: expected one word of printable characters", from);
    memcpy(s->token, text, length);
    s->token[length] = '\0';
    return ATT_OK;
}

static att_status read_token(att_context *context, const char *path, att_hub_settings *s)
{
    char *text;
    size_t size;
    ATT_TRY(att_file_read(context, path, MOST_TOKEN_FILE, &text, &size));
    att_status status = take_token(context, path, text, s);
    att_free(context, text);
    return status;
}

/* Files that are public or in the cache need no token, so one that cannot be read only matters to a server that wants
 * one. */
static att_status find_token(att_context *context, const char *home, att_hub_settings *s)
{
    const char *given = variable("HF_TOKEN"), *place = variable("HF_TOKEN_PATH");
    char path[ATT_HUB_PATH];
    if (is_on("HF_HUB_DISABLE_IMPLICIT_TOKEN"))
        return ATT_OK;
    if (given)
        return take_token(context, "HF_TOKEN", given, s);
    ATT_TRY(place ? expand(context, place, path, sizeof path) : join(context, home, "token", path, sizeof path));
    if (!att_file_exists(path))
        return ATT_OK;
    att_status status = read_token(context, path, s);
    if (status == ATT_OK || status == ATT_ERR_MEMORY)
        return status;
    snprintf(s->token_fault, sizeof s->token_fault, "%s", att_context_message(context));
    return ATT_OK;
}

att_status att_hub_settings_read(att_context *context, att_hub_settings *settings)
{
    const char *timeout = variable("HF_HUB_DOWNLOAD_TIMEOUT");
    char home[ATT_HUB_PATH];
    int64_t seconds = DEFAULT_SECONDS;
    *settings = (att_hub_settings){.torch_server = "https://download.pytorch.org/models",
                                   .pause_ms = PAUSE_MS,
                                   .offline = is_on("HF_HUB_OFFLINE")};
    if (timeout && (!att_text_to_i64(timeout, &seconds) || seconds < 1 || seconds > 3600))
        return att_fail(context, ATT_ERR_ARGUMENT, "HF_HUB_DOWNLOAD_TIMEOUT is \"%.20s\"; expected seconds, 1 to 3600",
                        timeout);
    settings->seconds = (int)seconds;
    ATT_TRY(find_home(context, "HF_HOME", "huggingface", home, sizeof home));
    ATT_TRY(find_caches(context, home, settings));
    ATT_TRY(find_endpoint(context, settings));
    return find_token(context, home, settings);
}
