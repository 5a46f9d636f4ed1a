#include "lab/serve/access.h"

#include <errno.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#include "base/core/error.h"

static const att_refusal accepted;

att_status att_random_text(att_context *context, char *text, size_t size)
{
    static const char digits[] = "0123456789abcdef";
    unsigned char bytes[ATT_TOKEN_TEXT / 2];
    const size_t wanted = (size - 1) / 2;
    if (getrandom(bytes, wanted, 0) != (ssize_t)wanted)
        return att_fail(context, ATT_ERR_IO, "the system gives no random numbers: %s", strerror(errno));
    for (size_t i = 0; i < wanted; i++) {
        text[2 * i] = digits[bytes[i] >> 4];
        text[2 * i + 1] = digits[bytes[i] & 15];
    }
    text[2 * wanted] = '\0';
    return ATT_OK;
}

bool att_host_is_name(const char *name)
{
    const size_t length = strlen(name);
    const bool address = name[0] == '[';
    const char *allowed =
        address ? "0123456789abcdefABCDEF:.[]" : "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-._";
    return length > 0 && length < 256 && strspn(name, allowed) == length &&
           (!address || strchr(name, ']') == name + length - 1);
}

/* The length of the host's name in "name:port" or "[address]:port"; 0 if the text is malformed. */
static size_t name_length(const char *host)
{
    size_t length = strcspn(host, host[0] == '[' ? "]" : ":");
    if (host[0] == '[' && host[length++] != ']')
        return 0;
    const char *port = host + length + 1;
    const bool valid = host[length] == '\0' ||
                       (host[length] == ':' && strspn(port, "0123456789") == strlen(port) && strlen(port) <= 5);
    return valid ? length : 0;
}

static bool is_same_name(const char *host, size_t length, const char *name)
{
    return strlen(name) == length && strncasecmp(host, name, length) == 0;
}

static bool is_allowed_host(const att_access *access, const char *host)
{
    static const char *const local[] = {"localhost", "127.0.0.1", "[::1]"};
    const size_t length = name_length(host);
    bool allowed = false;
    for (size_t i = 0; i < sizeof local / sizeof *local; i++)
        allowed = allowed || is_same_name(host, length, local[i]);
    for (int i = 0; i < access->host_count; i++)
        allowed = allowed || is_same_name(host, length, access->hosts[i]);
    return length > 0 && allowed;
}

/* Origin is "http://HOST" or, behind a proxy, "https://HOST". */
static bool is_own_origin(const att_head *head)
{
    static const char *const schemes[] = {"http://", "https://"};
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
        if (strncasecmp(head->origin, schemes[i], strlen(schemes[i])) == 0)
            return strcasecmp(head->origin + strlen(schemes[i]), head->host) == 0;
    return false;
}

static bool is(const char *value, const char *expected)
{
    return value != NULL && strcmp(value, expected) == 0;
}

bool att_is_api(const char *target)
{
    return strncmp(target, "/api/", 5) == 0;
}

/* Requests of other sites' pages may only open a page of ours as a document: a link. Pages of other ports of this host
 * may also open it in a frame, if that is allowed. */
static bool is_own_fetch(const att_access *access, const att_head *head)
{
    if (head->fetch_site == NULL || is(head->fetch_site, "same-origin") || is(head->fetch_site, "none"))
        return true;
    const bool reads = is(head->method, "GET") || is(head->method, "HEAD");
    const bool frame = access->framed && is(head->fetch_site, "same-site") && is(head->fetch_dest, "iframe");
    return !att_is_api(head->target) && reads && is(head->fetch_mode, "navigate") &&
           (frame || is(head->fetch_dest, "document"));
}

static bool is_plain_target(const char *target)
{
    for (const char *c = target; *c != '\0'; c++)
        if (*c <= ' ' || *c >= 127 || *c == '#')
            return false;
    return target[0] == '/';
}

att_refusal att_access_check_sender(const att_access *access, const att_head *head)
{
    if (!is_plain_target(head->target))
        return (att_refusal){400, "The target of the request is malformed: expected a path and printable characters."};
    if (head->repeated != NULL)
        return (att_refusal){400, "A header that may occur once was sent twice."};
    if (head->host == NULL || !is_allowed_host(access, head->host))
        return (att_refusal){421,
                             "This server does not answer under this host name: use localhost or 127.0.0.1, or "
                             "start attscope serve with --allow-host."};
    if (head->origin != NULL && !is_own_origin(head))
        return (att_refusal){403, "Requests from pages of other sites are refused."};
    if (!is_own_fetch(access, head))
        return (att_refusal){403, "Requests from pages of other sites are refused."};
    return accepted;
}

bool att_access_is_token(const att_access *access, const char *text, size_t length)
{
    if (length != sizeof access->token - 1)
        return false;
    volatile unsigned char difference = 0; /* volatile: compilers must not end the loop early */
    for (size_t i = 0; i < length; i++)
        difference |= (unsigned char)(text[i] ^ access->token[i]);
    return difference == 0;
}

/* Looks for "NAME=TOKEN" among "name=value; name=value". */
static bool has_cookie(const att_access *access, const char *cookies)
{
    const size_t name = strlen(access->cookie);
    bool found = false;
    for (const char *at = cookies; at != NULL;) {
        at += strspn(at, " \t");
        size_t length = strcspn(at, ";");
        const char *end = at + length;
        while (length > 0 && (at[length - 1] == ' ' || at[length - 1] == '\t'))
            length--;
        if (length > name && strncmp(at, access->cookie, name) == 0 && at[name] == '=')
            found = att_access_is_token(access, at + name + 1, length - name - 1) || found;
        at = *end == ';' ? end + 1 : NULL;
    }
    return found;
}

att_refusal att_access_check_token(const att_access *access, const att_head *head)
{
    static const char scheme[] = "token ";
    const char *given = head->authorization;
    if (given != NULL && strncasecmp(given, scheme, sizeof scheme - 1) == 0) {
        given += sizeof scheme - 1;
        if (att_access_is_token(access, given, strlen(given)))
            return accepted;
    } else if (head->cookie != NULL && has_cookie(access, head->cookie)) {
        return accepted;
    }
    return (att_refusal){403,
                         "This server needs its token: open the address that attscope serve printed, which contains "
                         "?token=, or send the header \"Authorization: token TOKEN\"."};
}
