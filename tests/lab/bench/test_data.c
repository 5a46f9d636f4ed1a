/* The benchmark of data on a few tiny images: every case gives a figure, and an unreadable file gives an error. */
#include <sys/stat.h>
#include <unistd.h>

#include "data/picture.h"
#include "test.h"

#include <attscope/lab.h>

enum { PICTURES = 6 };

static void make_set(char folder[64])
{
    char path[160];
    strcpy(folder, "/tmp/att_bench_XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/cat", folder);
    assert_int_equal(mkdir(path, 0700), 0);
    for (int i = 0; i < PICTURES; i++) {
        void *bytes;
        size_t size;
        picture_make(40 * i, &bytes, &size);
        snprintf(path, sizeof path, "%s/cat/%d.png", folder, i);
        FILE *file = fopen(path, "wb");
        assert_non_null(file);
        assert_int_equal(fwrite(bytes, 1, size, file), size);
        assert_int_equal(fclose(file), 0);
        free(bytes);
    }
}

static void remove_set(const char *folder)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    assert_int_equal(system(command), 0);
}

TEST(every_case_gives_a_figure)
{
    char folder[64], path[160];
    att_context *context;
    att_dataset *dataset;
    make_set(folder);
    assert_int_equal(att_context_create(NULL, &context), ATT_OK);
    assert_int_equal(att_dataset_open(context, folder, NULL, &dataset), ATT_OK);
    att_bench_data_options options = att_bench_data_options_defaults();
    options.height = options.width = 8;
    options.repeats = 2;
    double rate = 0;
    for (int i = 0; i < att_bench_data_case_count(); i++) {
        att_bench_data_case c = att_bench_data_case_at(i);
        assert_int_equal(strncmp(c.name, "data/", 5), 0);
        options.what = c.what;
        options.workers = c.workers;
        rate = 0;
        assert_int_equal(att_bench_data(context, dataset, &options, &rate), ATT_OK);
        assert_true(rate > 0);
    }
    assert_null(att_bench_data_case_at(-1).name);
    assert_null(att_bench_data_case_at(att_bench_data_case_count()).name);
    options.repeats = 0;
    assert_int_equal(att_bench_data(context, dataset, &options, &rate), ATT_ERR_ARGUMENT);
    options.repeats = 1;
    snprintf(path, sizeof path, "%s/cat/3.png", folder);
    assert_int_equal(truncate(path, 30), 0);
    for (options.what = ATT_BENCH_DECODE; options.what <= ATT_BENCH_LOADER; options.what++)
        assert_int_equal(att_bench_data(context, dataset, &options, &rate), ATT_ERR_FORMAT);
    att_dataset_close(&dataset);
    att_context_destroy(&context);
    remove_set(folder);
}
