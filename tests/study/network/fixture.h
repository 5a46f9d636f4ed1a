/* network/fixture.h - for tests of att_network: a file of the fixture's weights, opened or refused. */
#ifndef ATT_TESTS_NETWORK_FIXTURE_H
#define ATT_TESTS_NETWORK_FIXTURE_H

#include "data/picture.h"
#include "study/network/pixels.h"
#include "study/train/fixture.h"

static inline char *path_to(const fixture *f, const char *name, char path[160])
{
    snprintf(path, 160, "%s/%s", f->folder, name);
    return path;
}

/* Exports the fixture's weights to a file. */
static inline const char *export(const fixture *f, char path[160])
{
    path_to(f, "tiny.safetensors", path);
    assert_int_equal(att_checkpoint_export(f->model, f->weights, path), ATT_OK);
    return path;
}

static inline att_network *open_network(const fixture *f, const char *what)
{
    att_network *network = NULL;
    CHECK(f->context, att_network_open(f->context, what, NULL, &network));
    return network;
}

static inline void is_refused(const fixture *f, const char *what, const char *part)
{
    att_network *network = NULL;
    assert_int_not_equal(att_network_open(f->context, what, NULL, &network), ATT_OK);
    assert_null(network);
    assert_message_has(f, part);
}

static inline void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static inline void write_picture(const char *path)
{
    void *picture;
    size_t size;
    picture_make(100, &picture, &size);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(picture, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
    free(picture);
}

#endif
