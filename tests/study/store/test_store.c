#include <signal.h>
#include <sys/resource.h>

#include "study/store/run.h"

SCRATCH_TEST(events_become_lines_and_epochs_a_summary)
{
    att_sink sink = open_store(self, NULL);
    emit_begin(&sink);
    assert_int_equal(emit(&sink, ATT_EVENT_STEP, 0, 1, FIELDS({"loss", NAN, NULL}, {"note", 0, "a \"b\"\n"})), ATT_OK);
    assert_int_equal(emit(&sink, ATT_EVENT_EPOCH, 0, 1,
                          FIELDS({"lr", 0.1, NULL}, {"eval_loss", NAN, NULL}, {"train_loss", 0.1 + 0.2, NULL},
                                 {"eval_note", 0, "a,\"b\"\n"}, {"speed", 7, NULL})),
                     ATT_OK);
    /* Another order, a missing field, an additional field. */
    assert_int_equal(
        emit(&sink, ATT_EVENT_EPOCH, 1, 2, FIELDS({"train_loss", 3, NULL}, {"eval_new", 4, NULL}, {"lr", 1e-5, NULL})),
        ATT_OK);
    emit_end(&sink, 2);
    sink.close(sink.user);
    assert_text_file(
        path_of(self, "metrics.jsonl"),
        "{\"event\":\"run_begin\",\"epoch\":0,\"step\":0,\"seconds\":0.5,\"model\":\"vit\",\"seed\":\"42\"}\n"
        "{\"event\":\"step\",\"epoch\":0,\"step\":1,\"seconds\":0.5,\"loss\":null,\"note\":\"a "
        "\\\"b\\\"\\n\"}\n"
        "{\"event\":\"epoch\",\"epoch\":0,\"step\":1,\"seconds\":0.5,\"lr\":0.1,\"eval_loss\":null,"
        "\"train_loss\":0.30000000000000004,\"eval_note\":\"a,\\\"b\\\"\\n\",\"speed\":7}\n"
        "{\"event\":\"epoch\",\"epoch\":1,\"step\":2,\"seconds\":0.5,\"train_loss\":3,\"eval_new\":4,"
        "\"lr\":1e-05}\n"
        "{\"event\":\"run_end\",\"epoch\":0,\"step\":2,\"seconds\":0.5,\"status\":\"OK\"}\n");
    assert_text_file(path_of(self, "summary.csv"),
                     "epoch,train_loss,eval_loss,eval_note,lr,update\n"
                     "0,0.30000000000000004,nan,\"a,\"\"b\"\" \",0.1,1\n"
                     "1,3,,,1e-05,2\n");
}

/* Stopped after any number of updates and resumed from a checkpoint of any earlier moment: the logs are those of one
 * run. */
static void resume_anywhere(scratch *self, int every)
{
    enum { STEPS = 10 };
    att_sink sink = open_store(self, NULL);
    emit_begin(&sink);
    emit_run_every(&sink, 0, STEPS, every);
    emit_end(&sink, STEPS);
    sink.close(sink.user);
    char *metrics = read_log(self, "metrics.jsonl"), *summary = read_log(self, "summary.csv");
    for (int64_t stop = 0; stop <= STEPS; stop++)
        for (int64_t saved = 0; saved <= stop; saved++) {
            sink = open_store(self, NULL);
            emit_begin(&sink);
            emit_run_every(&sink, 0, stop, every);
            if (stop % 2 == 0) /* otherwise it was killed */
                emit_end(&sink, stop);
            sink.close(sink.user);
            const att_store_resume resume = {saved / STEPS_PER_EPOCH, saved, saved % every != 0};
            sink = open_store(self, &(att_store_options){.resume = &resume});
            emit_begin(&sink);
            emit_run_every(&sink, saved, STEPS, every);
            emit_end(&sink, STEPS);
            sink.close(sink.user);
            assert_text_file(path_of(self, "metrics.jsonl"), metrics);
            assert_text_file(path_of(self, "summary.csv"), summary);
        }
    free(metrics);
    free(summary);
}

SCRATCH_TEST(a_resumed_log_equals_that_of_one_run)
{
    resume_anywhere(self, STEPS_PER_EPOCH);
}

SCRATCH_TEST(a_resumed_log_with_evaluations_within_epochs_equals_that_of_one_run)
{
    resume_anywhere(self, 3);
}

/* Files of the first versions have no column "update". */
SCRATCH_TEST(a_summary_of_epochs_alone_is_continued)
{
    const att_store_resume resume = {1, 4, true};
    FILE *file = fopen(path_of(self, "summary.csv"), "w");
    assert_non_null(file);
    fputs("epoch,train_loss,lr\n0,3,0.1\n1,2,0.1\n", file);
    fclose(file);
    att_sink sink = open_store(self, &(att_store_options){.resume = &resume});
    emit_run(&sink, 4, 8);
    sink.close(sink.user);
    assert_text_file(path_of(self, "summary.csv"), "epoch,train_loss,lr\n0,3,0.1\n1,0.25,0.1\n");
}

/* A checkpoint written between an epoch's last update and its evaluation. */
SCRATCH_TEST(resuming_before_an_evaluation_drops_its_epoch)
{
    att_sink sink = open_store(self, NULL);
    emit_begin(&sink);
    emit_run(&sink, 0, 8);
    sink.close(sink.user);
    const att_store_resume resume = {1, 8, true};
    sink = open_store(self, &(att_store_options){.resume = &resume});
    sink.close(sink.user);
    char *summary = read_log(self, "summary.csv"), *metrics = read_log(self, "metrics.jsonl");
    assert_string_equal(summary, "epoch,train_loss,eval_loss,eval_top1,lr,update\n0,0.25,2,0,0.1,4\n");
    assert_non_null(strstr(metrics, "\"step\":8"));
    assert_null(strstr(metrics, "\"event\":\"epoch\",\"epoch\":1"));
    free(summary);
    free(metrics);
}

static void append(scratch *self, const char *name, const char *text)
{
    FILE *file = fopen(path_of(self, name), "ab");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void count_warning(void *user, att_log_level level, const char *line)
{
    assert_int_equal(level, ATT_LOG_WARNING);
    assert_non_null(strstr(line, "unreadable"));
    ++*(int *)user;
}

SCRATCH_TEST(damaged_lines_are_dropped)
{
    att_sink sink = open_store(self, NULL);
    emit_begin(&sink);
    emit_run(&sink, 0, 4);
    sink.close(sink.user);
    char *metrics = read_log(self, "metrics.jsonl"), *summary = read_log(self, "summary.csv");
    const att_store_resume never = {9, 99, false};
    const att_store_options later = {.resume = &never};

    /* Truncated lines are dropped without a message. */
    append(self, "metrics.jsonl", "{\"event\":\"step\",\"epoch\":1,\"step\":5}");
    append(self, "summary.csv", "1,0.");
    sink = open_store(self, &later);
    sink.close(sink.user);
    assert_text_file(path_of(self, "metrics.jsonl"), metrics);
    assert_text_file(path_of(self, "summary.csv"), summary);

    int warnings = 0;
    att_context *context;
    att_settings settings = att_settings_defaults();
    settings.log = count_warning;
    settings.log_user = &warnings;
    assert_int_equal(att_context_create_with(&settings, NULL, &context), ATT_OK);
    const char *const junk[] = {"[]\n",
                                "{}\n",
                                "\n",
                                "x\n",
                                "{\"event\":1,\"epoch\":1,\"step\":5}\n",
                                "{\"event\":\"step\",\"epoch\":1,\"step\":\"5\"}\n"};
    for (int i = 0; i < 6; i++) {
        append(self, "metrics.jsonl", junk[i]);
        append(self, "metrics.jsonl", "{\"event\":\"step\",\"epoch\":1,\"step\":5}\n");
        append(self, "summary.csv", i == 0 ? "9999999999999999999,1\n" : i == 1 ? "1,0.25,2,0,0.1,x\n" : "");
        assert_int_equal(att_store_open(context, self->folder, &later, &sink), ATT_OK);
        sink.close(sink.user);
        assert_text_file(path_of(self, "metrics.jsonl"), metrics);
        assert_text_file(path_of(self, "summary.csv"), summary);
        assert_int_equal(warnings, i + 2 + (i > 0));
    }
    att_context_destroy(&context);
    free(metrics);
    free(summary);
}

SCRATCH_TEST(a_run_resumes_in_a_new_folder)
{
    char folder[200];
    snprintf(folder, sizeof(folder), "%s/not/there", self->folder);
    const att_store_resume resume = {1, 4, false};
    att_sink sink;
    assert_int_equal(att_store_open(self->context, folder, &(att_store_options){.resume = &resume}, &sink), ATT_OK);
    emit_begin(&sink);
    emit_run(&sink, 4, 8);
    sink.close(sink.user);
    char *metrics = read_log(self, "not/there/metrics.jsonl"), *summary = read_log(self, "not/there/summary.csv");
    assert_non_null(strstr(metrics, "run_begin"));
    assert_string_equal(summary, "epoch,train_loss,eval_loss,eval_top1,lr,update\n1,0.25,2,1,0.1,8\n");
    free(metrics);
    free(summary);
}

SCRATCH_TEST(a_summary_of_another_program_is_kept)
{
    const att_store_resume resume = {1, 4, false};
    append(self, "summary.csv", "my,own,table\n1,2,3\n");
    att_sink sink;
    assert_fails(self->context,
                 att_store_open(self->context, self->folder, &(att_store_options){.resume = &resume}, &sink),
                 ATT_ERR_FORMAT, "summary.csv");
    assert_text_file(path_of(self, "summary.csv"), "my,own,table\n1,2,3\n");
    assert_int_equal(att_store_open(self->context, path_of(self, "summary.csv"), NULL, &sink), ATT_ERR_IO);
}

SCRATCH_TEST(fields_that_cannot_be_written_are_refused)
{
    att_sink sink = open_store(self, NULL);
    assert_fails(self->context, emit(&sink, ATT_EVENT_STEP, 0, 1, FIELDS({"step", 1, NULL})), ATT_ERR_ARGUMENT, "step");
    assert_int_equal(emit(&sink, ATT_EVENT_STEP, 0, 1, FIELDS({"a", 1, NULL}, {"a", 2, NULL})), ATT_ERR_ARGUMENT);
    assert_int_equal(emit(&sink, ATT_EVENT_EPOCH, 0, 1, FIELDS({"train_a,b", 1, NULL})), ATT_ERR_ARGUMENT);
    emit_run(&sink, 0, 4);
    sink.close(sink.user);
    char *summary = read_log(self, "summary.csv");
    assert_string_equal(summary, "epoch,train_loss,eval_loss,eval_top1,lr,update\n0,0.25,2,0,0.1,4\n");
    free(summary);
}

SCRATCH_TEST(a_full_disk_leaves_no_half_line)
{
    struct rlimit before, small;
    signal(SIGXFSZ, SIG_IGN);
    att_sink sink = open_store(self, NULL);
    emit_begin(&sink);
    char *metrics = read_log(self, "metrics.jsonl");
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = strlen(metrics) + 10;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    att_status status = emit(&sink, ATT_EVENT_STEP, 0, 1, FIELDS({"loss", 1, NULL}));
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(status, ATT_ERR_IO);
    assert_message_has(self, "metrics.jsonl");
    sink.close(sink.user);
    assert_text_file(path_of(self, "metrics.jsonl"), metrics);
    free(metrics);
}

static att_status open_and_emit(scratch *self)
{
    const att_store_resume resume = {1, 4, false};
    att_sink sink;
    att_status status = att_store_open(self->context, self->folder, &(att_store_options){.resume = &resume}, &sink);
    if (status != ATT_OK)
        return status;
    status = emit(&sink, ATT_EVENT_EPOCH, 1, 8, FIELDS({"train_loss", 1, NULL}, {"lr", 1, NULL}));
    sink.close(sink.user);
    return status;
}

SCRATCH_TEST(lack_of_memory_is_reported_without_leaks)
{
    assert_survives_lack_of_memory(self, open_and_emit);
    char *summary = read_log(self, "summary.csv");
    assert_string_equal(summary, "epoch,train_loss,lr,update\n1,1,1,8\n");
    free(summary);
}
