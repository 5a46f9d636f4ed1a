/* All measured runs of a database: their settings, and the images on which they were measured. */
#include <attscope/lab/collection.h>

#include "base/io/scratch.h"
#include "study/store/import.h"

enum { RUNS = 8 };

static const struct {
    const char *name, *options, *contents;
    double top1, tns;
} made[RUNS] = {{"a1", "model: small\nseed: 1\nlr: 0.1\nthreads: 2\n", "x", 90, 1},
                {"a2", "model: small\nseed: 2\nlr: 0.1\n", "x", 91, 2},
                {"b1", "model: small\nseed: 1\nlr: 0.2\n", "x", 92, 3},
                {"b2", "model: small\nseed: 2\nlr: 0.2\n", "x", 93, 4},
                {"c1", "model: large\nseed: 1\nlr: 0.1\n", "x", 94, 5},
                {"other", "model: small\nseed: 1\nlr: 0.1\n", "y", 10, 9},
                {"untrained", NULL, "x", 95, 6},
                {"unmeasured", "model: small\n", NULL, 0, 0}};

static void write_text(const scratch *self, int run, const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", self->folder, made[run].name);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/%s/%s", self->folder, made[run].name, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void write_run(const scratch *self, int i)
{
    char text[1024], model[8] = "";
    if (made[i].options) {
        sscanf(made[i].options, "model: %5s", model);
        write_text(self, i, "args.yaml", made[i].options);
        snprintf(text, sizeof text,
                 "{\"event\":\"run_begin\",\"model\":\"%s\"}\n{\"event\":\"run_end\",\"step\":1,\"status\":\"OK\"}\n",
                 model);
        write_text(self, i, "metrics.jsonl", text);
    }
    if (!made[i].contents)
        return;
    snprintf(
        text, sizeof text,
        "{\"event\":\"run_begin\",\"data\":\"folder\",\"contents\":\"%s\",\"split\":\"test\",\"images\":64}\n"
        "{\"event\":\"measure\",\"step\":1,\"measurements\":["
        "{\"instrument\":\"accuracy\",\"node\":\"\",\"statistic\":\"top1\",\"mean\":%g,\"deviation\":1,\"n\":64},"
        "{\"instrument\":\"tns\",\"node\":\"\",\"statistic\":\"tns unit\",\"mean\":%g,\"deviation\":1,\"n\":64}]}\n"
        "{\"event\":\"run_end\",\"status\":\"OK\"}\n",
        made[i].contents, made[i].top1, made[i].tns);
    write_text(self, i, "measure.jsonl", text);
}

static void write_runs(const scratch *self, char database[256])
{
    char folders[RUNS][256];
    const char *list[RUNS];
    for (int i = 0; i < RUNS; i++) {
        write_run(self, i);
        snprintf(folders[i], sizeof folders[i], "%s/%s", self->folder, made[i].name);
        list[i] = folders[i];
    }
    snprintf(database, 256, "%s/runs.sqlite", self->folder);
    CHECK(self->context, att_store_import(self->context, database, list, RUNS));
}

static att_collection *open_runs(const scratch *self, const char *database, const char *pattern)
{
    att_collection *collection = NULL;
    CHECK(self->context, att_collection_read(self->context, database, pattern, &collection));
    return collection;
}

SCRATCH_TEST(runs_are_sorted_by_images_and_grouped_by_options)
{
    char database[256];
    write_runs(self, database);
    att_collection *collection = open_runs(self, database, NULL);
    assert_int_equal(att_collection_count(collection), 2);
    att_collection_part part = att_collection_at(collection, 0);
    assert_true(part.runs == 6 && part.settings == 4 && part.images == 64);
    assert_string_equal(part.data, "folder");
    assert_string_equal(part.split, "test");
    assert_int_equal(att_collection_at(collection, 1).runs, 1);
    assert_null(att_collection_at(collection, 2).data);

    att_sweep *sweep = NULL;
    assert_int_equal(att_collection_sweep(collection, 0, NULL, 0, 0, &sweep), ATT_OK);
    att_collection_destroy(&collection);
    assert_null(collection);
    assert_int_equal(att_sweep_setting_count(sweep), 4);
    att_sweep_setting a = att_sweep_setting_at(sweep, 0);
    assert_string_equal(a.name, "model=small lr=0.1"); /* without seed and threads */
    assert_true(a.runs == 2 && a.seeds[1] == 2);
    assert_string_equal(att_sweep_setting_at(sweep, 2).name, "model=large lr=0.1");
    assert_string_equal(att_sweep_setting_at(sweep, 3).name, "untrained"); /* named by its folder */
    att_sweep_correlation all = att_sweep_correlation_at(sweep, 0), within = att_sweep_correlation_at(sweep, 1);
    assert_true(all.runs.count == 6 && all.runs.groups == 4 && all.means.count == 4);
    assert_true(all.runs.permutations == 4); /* two settings have two runs, two have one */
    assert_true(all.runs.kendall.value == 1 && fabs(all.runs.kendall.p - 0.25) < 1e-15);
    assert_string_equal(within.model, "small"); /* the only architecture with two settings */
    assert_true(within.runs.count == 4 && within.runs.groups == 2);
    att_sweep_destroy(&sweep);
}

SCRATCH_TEST(runs_can_be_selected)
{
    char database[256];
    write_runs(self, database);
    att_collection *collection = open_runs(self, database, "?1");
    assert_int_equal(att_collection_count(collection), 1);
    assert_int_equal(att_collection_at(collection, 0).runs, 3);
    att_sweep *sweep = NULL;
    assert_int_equal(att_collection_sweep(collection, 1, NULL, 0, 0, &sweep), ATT_ERR_ARGUMENT);
    att_collection_destroy(&collection);
    collection = open_runs(self, database, "nothing");
    assert_int_equal(att_collection_count(collection), 0);
    att_collection_destroy(&collection);
}

SCRATCH_TEST(files_that_are_no_database_are_refused)
{
    att_collection *collection = NULL;
    assert_int_equal(att_collection_read(self->context, "/nowhere", NULL, &collection), ATT_ERR_NOT_FOUND);
    write_run(self, 0);
    char path[256];
    snprintf(path, sizeof path, "%s/a1/args.yaml", self->folder);
    assert_int_equal(att_collection_read(self->context, path, NULL, &collection), ATT_ERR_FORMAT);
    assert_int_equal(att_collection_read(self->context, NULL, NULL, &collection), ATT_ERR_ARGUMENT);
    assert_null(collection);
}

SCRATCH_TEST(a_database_is_only_read)
{
    char database[256];
    write_runs(self, database);
    struct stat before, after;
    assert_int_equal(stat(database, &before), 0);
    att_collection *collection = open_runs(self, database, NULL);
    att_collection_destroy(&collection);
    assert_int_equal(stat(database, &after), 0);
    assert_true(before.st_size == after.st_size && before.st_mtim.tv_nsec == after.st_mtim.tv_nsec);
}
