/* The first line: a name of pretrained weights, and an address. The others: headers of a server's reply. */
#include "fuzz.h"

#include "networks/hub/name.h"
#include "networks/hub/transport.h"
#include "networks/hub/url.h"

enum { MOST = 1 << 14 };

static void check_name(const char *text)
{
    att_hub_name name;
    if (att_hub_name_parse(fuzz_context(), text, &name) != ATT_OK)
        return;
    const char *slash = strchr(name.repository, '/');
    fuzz_require(slash && slash[1] && !strchr(slash + 1, '/'), "a repository has two parts");
    fuzz_require(!strstr(name.repository, "..") && name.repository[0] != '.', "a repository stays in the cache");
    fuzz_require(*name.revision && !strstr(name.revision, "..") && name.revision[0] != '/' &&
                     !strstr(name.revision, "/."),
                 "a revision stays below refs");
}

static void check_url(const char *text)
{
    att_origin origin;
    if (!att_url_parse(text, &origin))
        return;
    fuzz_require(*origin.host && !strpbrk(origin.host, "@/\\ ?#"), "a host has no other parts");
    fuzz_require(origin.port > 0 && origin.port < 65536, "a port is one");
}

static void check_reply(const att_reply *reply)
{
    fuzz_require(reply->length >= -1 && reply->linked_size >= -1, "sizes are not negative");
    fuzz_require(reply->range_begin < reply->range_total || reply->range_total == -1, "a range is in its file");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[MOST + 1];
    if (size > MOST)
        return 0;
    const size_t before = fuzz_begin();
    memcpy(text, data, size);
    text[size] = '\0';
    char *rest = text + strcspn(text, "\n");
    bool more = *rest != '\0';
    *rest = '\0';
    check_name(text);
    check_url(text);
    att_reply reply;
    att_reply_clear(&reply);
    while (more) {
        char *line = rest + 1;
        rest = line + strcspn(line, "\n");
        more = *rest != '\0';
        *rest = '\0';
        att_reply_add(&reply, line);
    }
    check_reply(&reply);
    fuzz_end(before);
    return 0;
}
