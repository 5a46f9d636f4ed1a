#include "networks/hub/url.h"

#include <ctype.h>
#include <string.h>

/* Reads ":8080" at *at and moves *at behind it; without it, the scheme's port. */
static bool read_port(const char **at, att_origin *origin)
{
    origin->port = origin->secure ? 443 : 80;
    if (**at != ':')
        return true;
    int port = 0, digits = 0;
    for ((*at)++; isdigit((unsigned char)**at) && digits < 6; (*at)++, digits++)
        port = 10 * port + (**at - '0');
    origin->port = port;
    return digits > 0 && port > 0 && port < 65536;
}

static bool read_host(const char **at, att_origin *origin)
{
    static const char loopback6[] = "[::1]";
    size_t length = 0;
    if (strncmp(*at, loopback6, sizeof loopback6 - 1) == 0)
        length = sizeof loopback6 - 1;
    else
        while (isalnum((unsigned char)(*at)[length]) || ((*at)[length] && strchr(".-", (*at)[length])))
            length++;
    if (length == 0 || length >= sizeof origin->host)
        return false;
    for (size_t i = 0; i < length; i++)
        origin->host[i] = (char)tolower((unsigned char)(*at)[i]);
    origin->host[length] = '\0';
    *at += length;
    return true;
}

bool att_url_parse(const char *url, att_origin *origin)
{
    *origin = (att_origin){.secure = strncmp(url, "https://", 8) == 0};
    if (!origin->secure && strncmp(url, "http://", 7) != 0)
        return false;
    const char *at = url + (origin->secure ? 8 : 7);
    if (!read_host(&at, origin) || !read_port(&at, origin) || (*at && !strchr("/?", *at)))
        return false;
    for (; *at; at++)
        if (*at <= ' ' || *at > '~' || *at == '\\')
            return false;
    return true;
}

bool att_origin_same(const att_origin *a, const att_origin *b)
{
    return a->secure == b->secure && a->port == b->port && strcmp(a->host, b->host) == 0;
}

static bool is_this_machine(const att_origin *origin)
{
    return strcmp(origin->host, "localhost") == 0 || strcmp(origin->host, "127.0.0.1") == 0 ||
           strcmp(origin->host, "[::1]") == 0;
}

bool att_origin_allowed(const att_origin *endpoint, const att_origin *to)
{
    return to->secure || (!endpoint->secure && is_this_machine(endpoint) && is_this_machine(to));
}
