/* data/opened.h - for tests: checks of opened data sets. */
#ifndef TESTS_DATA_OPENED_H
#define TESTS_DATA_OPENED_H

#include <attscope/data.h>

#include "data/dataset.h"
#include "data/pictures.h"

/* The log of a context. */
typedef struct said {
    char text[2000];
    size_t length;
} said;

static inline void keep_line(void *user, att_log_level level, const char *line)
{
    said *log = user;
    (void)level;
    if (log->length < sizeof log->text)
        log->length += (size_t)snprintf(log->text + log->length, sizeof log->text - log->length, "%s\n", line);
}

/* Returns a context whose notes and warnings are recorded. */
static inline att_context *said_context(said *log)
{
    att_settings settings = att_settings_defaults();
    att_context *context = NULL;
    *log = (said){.length = 0};
    settings.threads = 1;
    settings.log = keep_line;
    settings.log_user = log;
    assert_int_equal(att_context_create_with(&settings, NULL, &context), ATT_OK);
    return context;
}

static inline void assert_said(const said *log, const char *part)
{
    if (!strstr(log->text, part))
        fail_msg("the log \"%s\" lacks \"%s\"", log->text, part);
}

static inline att_dataset *open_set(scratch *self, const char *path, const char *split, const char *map)
{
    att_dataset *dataset = NULL;
    att_dataset_options options = att_dataset_options_defaults();
    options.split = split;
    options.class_map = map;
    CHECK(self->context, att_dataset_open(self->context, path, &options, &dataset));
    return dataset;
}

static inline void expect_failure(scratch *self, const char *path, const char *split, const char *map,
                                  att_status status, const char *part)
{
    att_dataset *dataset = NULL;
    att_dataset_options options = att_dataset_options_defaults();
    options.split = split;
    options.class_map = map;
    size_t allocated = att_context_allocations(self->context).bytes_now;
    assert_int_equal(att_dataset_open(self->context, path, &options, &dataset), status);
    assert_null(dataset);
    assert_message_has(self, part);
    assert_int_equal(att_context_allocations(self->context).bytes_now, allocated);
}

/* Checks that image `index` has this label and is filled with this value, in grey and in colour. */
static inline void assert_image(scratch *self, const att_dataset *dataset, int64_t index, int label, int value)
{
    assert_int_equal(att_dataset_label(dataset, index), label);
    for (int channels = 1; channels <= 3; channels += 2) {
        att_image image;
        CHECK(self->context, att_dataset_read(dataset, self->context, index, channels, &image));
        assert_int_equal(image.width, PICTURE_SIDE);
        assert_int_equal(image.height, PICTURE_SIDE);
        assert_int_equal(image.channels, channels);
        for (int i = 0; i < PICTURE_SIDE * PICTURE_SIDE * channels; i++)
            assert_int_equal(image.pixels[i], value);
        att_image_free(self->context, &image);
    }
}

static inline void assert_name_ends(const att_dataset *dataset, int64_t index, const char *end)
{
    char name[1024];
    att_dataset_name(dataset, index, name, sizeof(name));
    size_t length = strlen(name);
    assert_true(length >= strlen(end));
    assert_string_equal(name + length - strlen(end), end);
}

static inline void assert_short_name(const att_dataset *dataset, int64_t index, const char *wanted)
{
    char name[300];
    assert_string_equal(att_dataset_short_name(dataset, index, name, sizeof(name)), wanted);
}

/* Opens a data set, reads its first image, and closes it. */
static inline att_status open_and_read(scratch *self, const char *path, const char *split, const char *map)
{
    att_dataset *dataset;
    att_image image;
    att_dataset_options options = att_dataset_options_defaults();
    options.split = split;
    options.class_map = map;
    att_status status = att_dataset_open(self->context, path, &options, &dataset);
    if (status != ATT_OK)
        return status;
    status = att_dataset_read(dataset, self->context, 0, 3, &image);
    if (status == ATT_OK)
        att_image_free(self->context, &image);
    att_dataset_close(&dataset);
    return status;
}

#endif
