/* Folders of runs. */
#include <attscope/lab/runs.h>

#include <limits.h>

#include "base/io/scratch.h"
#include "lab/runs/records/folder.h"

static void write_file(const char *folder, const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* Creates FOLDER/NAME and returns its path. */
static const char *folder_in(const scratch *self, const char *name, char path[128])
{
    snprintf(path, 128, "%s/%s", self->folder, name);
    assert_int_equal(mkdir(path, 0777), 0);
    return path;
}

SCRATCH_TEST(a_folder_with_options_or_records_is_a_runs)
{
    char a[128], b[128];
    assert_false(att_run_is_folder(self->folder));
    write_file(folder_in(self, "a", a), "args.yaml", "");
    write_file(folder_in(self, "b", b), "metrics.jsonl", "");
    assert_true(att_run_is_folder(a));
    assert_true(att_run_is_folder(b));
    assert_false(att_run_is_folder("/no/such/folder"));
}

static bool owns(const scratch *self, const char *folder, const char *checkpoint)
{
    bool belongs = false;
    assert_int_equal(att_run_owns(self->context, folder, checkpoint, &belongs), ATT_OK);
    return belongs;
}

SCRATCH_TEST(a_checkpoint_and_its_copy_belong_to_their_run)
{
    char run[128], other[128], path[256];
    write_file(folder_in(self, "run", run), "last.safetensors", "weights");
    folder_in(self, "other", other);
    snprintf(path, sizeof path, "%s/x.safetensors", other);
    write_file(other, "x.safetensors", "weights");
    assert_true(owns(self, run, path));
    write_file(other, "x.safetensors", "Weights");
    assert_false(owns(self, run, path));
    write_file(other, "x.safetensors", "weights, more");
    assert_false(owns(self, run, path));
    assert_true(owns(self, other, path));

    bool belongs = true;
    snprintf(path, sizeof path, "%s/missing.safetensors", other);
    assert_int_equal(att_run_owns(self->context, run, path, &belongs), ATT_ERR_NOT_FOUND);
    assert_true(belongs);
}

/* Writes `size` bytes of which the last one is `last`. */
static void write_large(const char *folder, const char *name, size_t size, char last)
{
    char *text = calloc(size + 1, 1);
    assert_non_null(text);
    memset(text, 'w', size);
    text[size - 1] = last;
    write_file(folder, name, text);
    free(text);
}

SCRATCH_TEST(large_checkpoints_are_compared_to_their_end)
{
    enum { SIZE = (1 << 16) + 100 };
    char run[128], other[128], path[256];
    write_large(folder_in(self, "run", run), "last.safetensors", SIZE, 'a');
    write_large(folder_in(self, "other", other), "x.safetensors", SIZE, 'a');
    snprintf(path, sizeof path, "%s/x.safetensors", other);
    assert_true(owns(self, run, path));
    write_large(other, "x.safetensors", SIZE, 'b');
    assert_false(owns(self, run, path));
}

SCRATCH_TEST(unreadable_files_in_a_folder_are_no_copies)
{
    char run[128], other[128], inner[256], path[256];
    folder_in(self, "run", run);
    snprintf(inner, sizeof inner, "%s/folder.safetensors", run);
    assert_int_equal(mkdir(inner, 0777), 0);
    snprintf(inner, sizeof inner, "%s/pipe.safetensors", run);
    assert_int_equal(mkfifo(inner, 0666), 0);
    write_file(folder_in(self, "other", other), "x.safetensors", "weights");
    snprintf(path, sizeof path, "%s/x.safetensors", other);
    assert_false(owns(self, run, path));
}

static char compared[2][256]; /* a run's folder and a checkpoint */

static att_status look_for_compared(scratch *self)
{
    bool belongs;
    return att_run_owns(self->context, compared[0], compared[1], &belongs);
}

SCRATCH_TEST(comparing_survives_lack_of_memory)
{
    char run[128], other[128];
    write_file(folder_in(self, "run", run), "last.safetensors", "weights");
    write_file(folder_in(self, "other", other), "x.safetensors", "weighty");
    snprintf(compared[0], sizeof compared[0], "%s", run);
    snprintf(compared[1], sizeof compared[1], "%s/x.safetensors", other);
    assert_survives_lack_of_memory(self, look_for_compared);
}

static void assert_database(const scratch *self, const char *folder, const char *expected)
{
    char path[64];
    assert_int_equal(att_run_database(self->context, folder, path, sizeof path), ATT_OK);
    assert_string_equal(path, expected);
}

SCRATCH_TEST(the_database_lies_beside_the_folder)
{
    char path[16];
    assert_database(self, "output/run", "output/runs.sqlite");
    assert_database(self, "output/run//", "output/runs.sqlite");
    assert_database(self, "run", "./runs.sqlite");
    assert_database(self, ".", "./../runs.sqlite");
    assert_database(self, "output/run/..", "output/run/../../runs.sqlite");
    assert_database(self, "/run", "/runs.sqlite");
    assert_fails(self->context, att_run_database(self->context, "a long folder/run", path, sizeof path),
                 ATT_ERR_ARGUMENT, "the buffer of 16 bytes is too small for a path of 25 bytes");
}

static void assert_refused(const scratch *self, const att_run_place *place, const char *part)
{
    char path[ATT_RUN_PATH];
    att_run_folder run = {.unnamed = true};
    assert_fails(self->context, att_run_place_check(self->context, place), ATT_ERR_ARGUMENT, part);
    assert_int_equal(att_run_find_resume(self->context, place, path, sizeof path), ATT_ERR_ARGUMENT);
    assert_int_equal(att_run_folder_choose(self->context, place, "resnet20", 32, 32, &run), ATT_ERR_ARGUMENT);
    assert_true(run.unnamed && !*run.folder);
}

SCRATCH_TEST(names_that_are_paths_or_too_long_are_refused)
{
    char name[NAME_MAX + 2];
    memset(name, 'x', sizeof name);
    name[NAME_MAX + 1] = '\0';
    assert_refused(self, &(att_run_place){.output = "out", .experiment = "../x"}, "\"../x\" is a path");
    assert_refused(self, &(att_run_place){.output = "out", .experiment = ".."}, "is a path");
    assert_refused(self, &(att_run_place){.output = "out", .experiment = name}, "has 256 bytes");
    assert_refused(self, &(att_run_place){.output = "out", .resume = "auto"}, "needs an experiment");
}

SCRATCH_TEST(null_is_refused)
{
    char path[ATT_RUN_PATH];
    bool belongs;
    att_run_folder run = {.unnamed = true};
    const att_run_place nowhere = {.experiment = "run"}, unnamed = {.output = self->folder};
    assert_false(att_run_is_folder(NULL));
    assert_int_equal(att_run_owns(self->context, NULL, "x.safetensors", &belongs), ATT_ERR_ARGUMENT);
    assert_int_equal(att_run_owns(self->context, self->folder, NULL, &belongs), ATT_ERR_ARGUMENT);
    assert_int_equal(att_run_owns(self->context, self->folder, "x.safetensors", NULL), ATT_ERR_ARGUMENT);
    assert_int_equal(att_run_folder_claim(self->context, NULL), ATT_ERR_ARGUMENT);
    assert_int_equal(att_run_database(self->context, NULL, path, sizeof path), ATT_ERR_ARGUMENT);
    assert_int_equal(att_run_place_check(self->context, NULL), ATT_ERR_ARGUMENT);
    assert_int_equal(
        att_run_find_resume(self->context, &(att_run_place){.experiment = "run", .resume = "auto"}, path, sizeof path),
        ATT_ERR_ARGUMENT);
    assert_fails(self->context, att_run_folder_choose(self->context, &nowhere, "resnet20", 32, 32, &run),
                 ATT_ERR_ARGUMENT, "the output folder of runs is missing: the pointer is NULL");
    assert_int_equal(att_run_folder_choose(self->context, &unnamed, NULL, 32, 32, &run), ATT_ERR_ARGUMENT);
    assert_true(run.unnamed && !*run.folder);
}

SCRATCH_TEST(empty_texts_are_not_given)
{
    char path[256];
    att_run_folder run;
    const att_run_place unnamed = {self->folder, "", ""}, nowhere = {"", "run", NULL}, automatic = {"out", "", "auto"};
    assert_int_equal(att_run_folder_choose(self->context, &unnamed, "resnet20", 32, 32, &run), ATT_OK);
    assert_true(run.unnamed);
    assert_non_null(strstr(run.folder, "-resnet20-32"));
    assert_int_equal(att_run_folder_choose(self->context, &nowhere, "resnet20", 32, 32, &run), ATT_ERR_ARGUMENT);
    assert_int_equal(att_run_find_resume(self->context, &unnamed, path, sizeof path), ATT_OK);
    assert_string_equal(path, "");
    assert_int_equal(att_run_place_check(self->context, &automatic), ATT_ERR_ARGUMENT);
}

SCRATCH_TEST(long_paths_are_refused)
{
    char output[ATT_RUN_PATH + 1];
    att_run_folder run = {.unnamed = true};
    memset(output, '/', sizeof output);
    output[ATT_RUN_PATH] = '\0';
    const att_run_place places[] = {{.output = output, .experiment = "x"},
                                    {.output = output},
                                    {.output = output, .experiment = "x", .resume = "auto"},
                                    {.output = "out", .resume = output}};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        assert_fails(self->context, att_run_folder_choose(self->context, &places[i], "resnet20", 32, 32, &run),
                     ATT_ERR_ARGUMENT, "is longer than a path may be");
    }
    assert_true(run.unnamed && !*run.folder);
}

static const char *resume_of(const scratch *self, const char *output, const char *experiment, const char *resume,
                             char path[256])
{
    const att_run_place place = {output, experiment, resume};
    assert_int_equal(att_run_find_resume(self->context, &place, path, 256), ATT_OK);
    return path;
}

SCRATCH_TEST(a_resume_begins_at_the_last_checkpoint)
{
    char run[128], last[256], path[256];
    folder_in(self, "run", run);
    snprintf(last, sizeof last, "%s/last.safetensors", run);
    assert_string_equal(resume_of(self, self->folder, NULL, NULL, path), "");
    assert_string_equal(resume_of(self, self->folder, "run", "auto", path), "");
    assert_string_equal(resume_of(self, NULL, NULL, "some/file", path), "some/file");
    assert_string_equal(resume_of(self, NULL, NULL, run, path), last);
    write_file(run, "last.safetensors", "");
    assert_string_equal(resume_of(self, self->folder, "run", "auto", path), last);
}

SCRATCH_TEST(a_run_that_goes_on_stays_in_its_folder)
{
    att_run_folder run;
    const att_run_place place = {.output = "elsewhere", .resume = "out/run/checkpoint-3.safetensors"};
    assert_int_equal(att_run_folder_choose(self->context, &place, "resnet20", 32, 32, &run), ATT_OK);
    assert_string_equal(run.folder, "out/run");
    assert_string_equal(run.resume, "out/run/checkpoint-3.safetensors");
    assert_string_equal(run.database, "out/runs.sqlite");
    assert_false(run.unnamed);
}

SCRATCH_TEST(a_folder_takes_one_training)
{
    char path[128];
    att_run_folder run;
    const att_run_place place = {.output = self->folder, .experiment = "run"};
    assert_int_equal(att_run_folder_choose(self->context, &place, "resnet20", 32, 32, &run), ATT_OK);
    assert_int_equal(att_run_folder_claim(self->context, &run), ATT_OK);
    assert_int_equal(scratch_file_count(self), 0);
    folder_in(self, "run", path);
    assert_int_equal(att_run_folder_claim(self->context, &run), ATT_OK);
    write_file(path, "model_best.safetensors", "");
    write_file(path, "last.safetensors", "");
    assert_fails(self->context, att_run_folder_choose(self->context, &place, "resnet20", 32, 32, &run),
                 ATT_ERR_MISMATCH, "holds a training run already");
    assert_message_has(self, "run/last.safetensors to continue");
    assert_int_equal(att_run_folder_claim(self->context, &run), ATT_ERR_MISMATCH); /* written after the choice */
    assert_message_has(self, "holds a training run already");
}

/* A killed run may leave records without checkpoints. */
SCRATCH_TEST(only_checkpoints_of_trainings_are_protected)
{
    static const char *const taken[] = {"model_best.safetensors", "checkpoint-0.safetensors",
                                        "checkpoint-12.safetensors"};
    static const char *const ignored[] = {"args.yaml",
                                          "metrics.jsonl",
                                          "model.safetensors",
                                          "checkpoint-x.safetensors",
                                          "last.safetensors.part",
                                          "my_model_best.safetensors",
                                          ".safetensors"};
    const att_run_place place = {.output = self->folder, .experiment = "run"};
    char path[128], file[256];
    att_run_folder run;
    folder_in(self, "run", path);
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        write_file(path, ignored[i], "");
    assert_int_equal(att_run_folder_choose(self->context, &place, "resnet20", 32, 32, &run), ATT_OK);
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
        write_file(path, taken[i], "");
        assert_fails(self->context, att_run_folder_choose(self->context, &place, "resnet20", 32, 32, &run),
                     ATT_ERR_MISMATCH, taken[i]);
        snprintf(file, sizeof file, "%s/%s", path, taken[i]);
        assert_int_equal(unlink(file), 0);
    }
}

SCRATCH_TEST(a_file_is_no_folder_of_runs)
{
    char output[128];
    att_run_folder run = {.unnamed = true};
    write_file(self->folder, "file", "");
    snprintf(output, sizeof output, "%s/file", self->folder);
    const att_run_place places[] = {
        {.output = output, .experiment = "run"}, {.output = self->folder, .experiment = "file"}, {.output = output}};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        assert_fails(self->context, att_run_folder_choose(self->context, &places[i], "resnet20", 32, 32, &run),
                     ATT_ERR_IO, "cannot be the folder of");
    }
    assert_true(run.unnamed && !*run.folder);
}

SCRATCH_TEST(runs_of_one_second_get_folders_of_their_own)
{
    char output[128];
    att_run_folder first, second;
    snprintf(output, sizeof output, "%s/new/output", self->folder);
    const att_run_place place = {.output = output};
    assert_int_equal(att_run_folder_choose(self->context, &place, "resnet20", 32, 16, &first), ATT_OK);
    assert_non_null(strstr(first.folder, "-resnet20-32x16"));
    second = first;
    assert_int_equal(att_run_folder_claim(self->context, &first), ATT_OK);
    assert_int_equal(att_run_folder_claim(self->context, &second), ATT_OK);
    assert_true(strcmp(first.folder, second.folder) != 0);
    assert_non_null(strstr(second.folder, "-resnet20-32x16-2"));

    write_file(self->folder, "file", "");
    snprintf(second.folder, sizeof second.folder, "%s/file/run", self->folder);
    assert_int_equal(att_run_folder_claim(self->context, &second), ATT_ERR_IO);
}
