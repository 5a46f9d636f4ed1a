/* report/page_data.h - for tests: folders written by hand, and the data of the report made from them. */
#ifndef TESTS_REPORT_PAGE_DATA_H
#define TESTS_REPORT_PAGE_DATA_H

#include <attscope/lab/report.h>

#include "base/io/json.h"
#include "base/io/scratch.h"
#include "lab/report/page.h"

static inline const char *page_path(scratch *self)
{
    snprintf(self->path, sizeof(self->path), "%s/page.html", self->folder);
    return self->path;
}

static inline char *read_text(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    *size = (size_t)ftell(file);
    rewind(file);
    char *text = calloc(1, *size + 1);
    assert_int_equal(fread(text, 1, *size, file), *size);
    fclose(file);
    return text;
}

/* Parses the data of a page [size]. */
static inline json_t *parse_page(scratch *self, const att_page *page, const char *text, size_t size)
{
    const size_t around = page->before_size + att_page_middle_size + page->after_size;
    assert_true(size > around);
    const char *middle = text + size - page->after_size - att_page_middle_size;
    assert_memory_equal(text, page->before, page->before_size);
    assert_memory_equal(middle, att_page_middle, att_page_middle_size);
    assert_memory_equal(middle + att_page_middle_size, page->after, page->after_size);
    json_t *root = NULL;
    CHECK(self->context, att_json_parse(self->context, "page", text + page->before_size, size - around, &root));
    return root;
}

/* Parses the data of the page in the file. */
static inline json_t *page_data(scratch *self)
{
    size_t size;
    char *text = read_text(page_path(self), &size);
    json_t *root = parse_page(self, &att_page_report, text, size);
    free(text);
    return root;
}

/* Writes the text to <folder>/<name> and creates the folder. */
static inline void write_text(const char *folder, const char *name, const char *text)
{
    char path[400];
    mkdir(folder, 0777);
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static inline const json_t *run_of(const json_t *data, size_t index)
{
    return json_array_get(json_object_get(data, "runs"), index);
}

/* Writes the report of one run, whose folder is the test's. */
static inline att_status write_page_of(scratch *self)
{
    const char *folders[] = {self->folder};
    return att_report_write(self->context, folders, 1, NULL, page_path(self), NULL);
}

#endif
