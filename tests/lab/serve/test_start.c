/* Starts of the server that fail. */
#include "data/picture.h"
#include "lab/serve/routes.h"

static att_status refuse_to_open(att_context *context, att_site *site, void **state)
{
    (void)site, (void)state;
    return att_fail(context, ATT_ERR_FORMAT, "this group does not open");
}

SERVED_TEST(a_server_that_cannot_start_leaves_nothing)
{
    static const att_route_group bad = {routes, 1, .open = refuse_to_open};
    static const att_route_group *const both[] = {&group, &bad};
    const att_serve_limits limits = att_serve_limits_defaults();
    const char *const paths[] = {"/nowhere"}, *const names[] = {"nowhere"}, *const hosts[] = {"a b"},
                      *const ports[] = {"example.org:80"};
    const struct {
        att_serve_options options;
        int groups;
        att_status status;
        const char *message;
    } cases[] = {{{.port = self->port}, 1, ATT_ERR_IO, "is in use by another program: choose another --port"},
                 {{.port = 65536}, 1, ATT_ERR_ARGUMENT, "the port 65536 is outside 1..65535"},
                 {{.paths = paths, .path_count = 1}, 1, ATT_ERR_NOT_FOUND, "/nowhere: there is no such file or folder"},
                 {{.paths = names, .path_count = 1}, 1, ATT_ERR_NOT_FOUND, "there is no model \"nowhere\""},
                 {{.images = "/nowhere"}, 1, ATT_ERR_NOT_FOUND, "/nowhere: there is no such folder of images"},
                 {{.hosts = hosts, .host_count = 1}, 1, ATT_ERR_ARGUMENT, "\"a b\" is not the name of a host"},
                 {{.hosts = ports, .host_count = 1}, 1, ATT_ERR_ARGUMENT, "without a port"},
                 {{.port = 0}, 2, ATT_ERR_FORMAT, "this group does not open"}};
    const size_t before = att_context_allocations(self->context).bytes_now;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        att_server *server = NULL;
        assert_int_equal(
            att_server_start_with(self->context, &cases[i].options, &limits, both, cases[i].groups, &server),
            cases[i].status);
        assert_null(server);
        assert_message_has(self, cases[i].message);
        assert_int_equal(att_context_allocations(self->context).bytes_now, before);
    }
}

/* Writes a picture into the folder; path: its path. */
static void write_picture(const scratch *self, char *path, size_t size)
{
    void *bytes;
    size_t count;
    snprintf(path, size, "%s/picture.png", self->folder);
    picture_make(100, &bytes, &count);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
    free(bytes);
}

/* Fails each allocation of a start in turn. */
SCRATCH_TEST(a_server_without_memory_leaves_nothing)
{
    char picture[512];
    write_picture(self, picture, sizeof picture);
    const char *const paths[] = {self->folder}, *const hosts[] = {"example.org"};
    const att_serve_options options = {
        .paths = paths, .path_count = 1, .images = picture, .hosts = hosts, .host_count = 1};
    lack of = lack_of_memory(self->context, &self->memory);
    while (lack_again(&of)) {
        att_server *server = NULL;
        of.status = att_server_start(self->context, &options, &server);
        assert_true(of.status == ATT_OK || !server);
        att_server_close(&server);
    }
    assert_true(of.allowed >= 8);
}
