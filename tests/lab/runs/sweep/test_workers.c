/* The workers of a sweep: who gets a run, takes over from the dead, and records. */
#include "lab/runs/sweep/workers.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/wait.h>

#include <attscope/file.h>

#include "lab/runs/recipe/small.h"
#include "lab/runs/sweep/steps.h"

enum { CONTENDERS = 3 };

/* A worker of a thread or process, with a context and a plan of its own. */
typedef struct contender {
    att_context *context;
    att_sweep_plan *plan;
    att_workers *workers;
    pthread_barrier_t *start;
    bool won;
} contender;

static const uint64_t seeds[] = {1, 2};

static void open_contender(const fixture *f, const char *recipe, contender *c)
{
    const att_sweep_options options = {
        .recipe = recipe, .seeds = seeds, .seed_count = 2, .output = f->folder, .measure = "accuracy"};
    att_settings settings = att_settings_defaults();
    settings.threads = 1;
    *c = (contender){0};
    assert_int_equal(att_context_create(&settings, &c->context), ATT_OK);
    CHECK(c->context, att_sweep_plan_open(c->context, &options, &c->plan));
}

static void open_contenders(const fixture *f, contender *c, int count)
{
    static char recipe[160];
    att_recipe small = small_recipe(f);
    small.files.experiment = NULL;
    assert_int_equal(att_recipe_write(f->context, path_in(f, "tiny.yaml", recipe), &small), ATT_OK);
    for (int i = 0; i < count; i++)
        open_contender(f, recipe, &c[i]);
}

static void assert_file_has(const fixture *f, const char *name, const char *text)
{
    size_t size;
    char *found = read_all(f, name, &size);
    assert_int_equal(size, strlen(text));
    assert_memory_equal(found, text, size);
    free(found);
}

static void join(contender *c)
{
    CHECK(c->context, att_workers_join(c->plan, &c->workers));
}

static void leave(contender *c)
{
    bool left;
    assert_int_equal(att_workers_leave(&c->workers, true, &left), ATT_OK);
    assert_true(left);
}

static void close_contenders(contender *c, int count)
{
    for (int i = 0; i < count; i++) {
        att_workers_abandon(&c[i].workers);
        att_sweep_plan_close(&c[i].plan);
        att_context_destroy(&c[i].context);
    }
}

/* Lets another process join, claim a run and record, and die without a word. */
static void let_one_die(contender *c)
{
    pid_t child = fork();
    int status;
    if (child == 0) {
        bool taken = false, begun = false;
        if (att_workers_join(c->plan, &c->workers) != ATT_OK || att_workers_take(c->workers, 0, &taken) != ATT_OK ||
            att_workers_begin_record(c->workers, &begun) != ATT_OK || !taken)
            _exit(1);
        _exit(begun ? 0 : 2);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* Makes the worker's mark 1000 s old. */
static void make_old(const contender *c)
{
    struct stat info;
    assert_int_equal(stat(att_workers_lease(c->workers), &info), 0);
    const struct timespec old = {.tv_sec = info.st_mtime - 1000}, times[] = {old, old};
    assert_int_equal(utimensat(AT_FDCWD, att_workers_lease(c->workers), times, 0), 0);
}

static void *take_run(void *user)
{
    contender *c = user;
    pthread_barrier_wait(c->start);
    if (att_workers_take(c->workers, 0, &c->won) != ATT_OK)
        abort();
    return NULL;
}

static void *begin_record(void *user)
{
    contender *c = user;
    pthread_barrier_wait(c->start);
    if (att_workers_begin_record(c->workers, &c->won) != ATT_OK)
        abort();
    return NULL;
}

/* Calls the function for all contenders at the same time. Returns how many won. */
static int race(contender *c, void *(*run)(void *))
{
    pthread_barrier_t start;
    pthread_t threads[CONTENDERS];
    int won = 0;
    pthread_barrier_init(&start, NULL, CONTENDERS);
    for (int i = 0; i < CONTENDERS; i++) {
        c[i].start = &start;
        c[i].won = false;
        assert_int_equal(pthread_create(&threads[i], NULL, run, &c[i]), 0);
    }
    for (int i = 0; i < CONTENDERS; i++) {
        pthread_join(threads[i], NULL);
        won += c[i].won;
    }
    pthread_barrier_destroy(&start);
    return won;
}

FIXTURE_TEST(one_of_several_takes_over_from_the_dead)
{
    enum { REPEATS = 40 };
    contender c[CONTENDERS + 1];
    open_contenders(f, c, CONTENDERS + 1);
    for (int repeat = 0; repeat < REPEATS; repeat++) {
        join(&c[0]); /* so that the dead one's journal is not ended with it */
        let_one_die(&c[CONTENDERS]);
        for (int i = 1; i < CONTENDERS; i++)
            join(&c[i]);
        assert_int_equal(race(c, take_run), 1);
        assert_int_equal(race(c, begin_record), 1);
        for (int i = 0; i < CONTENDERS; i++) {
            assert_int_equal(att_workers_look(c[i].workers), ATT_OK);
            const att_claim claim = att_workers_claim(c[i].workers, 0);
            assert_int_equal(claim.state, ATT_CLAIM_HELD);
        }
        for (int i = 0; i < CONTENDERS; i++)
            leave(&c[i]);
        assert_false(exists(f, "tiny/.workers"));
    }
    close_contenders(c, CONTENDERS + 1);
}

static void *join_at_once(void *user)
{
    contender *c = user;
    pthread_barrier_wait(c->start);
    c->won = att_workers_join(c->plan, &c->workers) == ATT_OK;
    return NULL;
}

FIXTURE_TEST(several_start_at_the_same_time)
{
    enum { REPEATS = 20 };
    contender c[CONTENDERS];
    open_contenders(f, c, CONTENDERS);
    for (int repeat = 0; repeat < REPEATS; repeat++) {
        assert_int_equal(race(c, join_at_once), CONTENDERS);
        assert_int_equal(race(c, take_run), 1);
        for (int i = 0; i < CONTENDERS; i++)
            leave(&c[i]);
        assert_false(exists(f, "tiny/.workers"));
    }
    close_contenders(c, CONTENDERS);
}

FIXTURE_TEST(a_worker_whose_mark_is_old_loses_its_run)
{
    contender c[2];
    bool taken;
    char file[160];
    open_contenders(f, c, 2);
    join(&c[0]);
    assert_int_equal(att_workers_take(c[0].workers, 0, &taken), ATT_OK);
    assert_true(taken);
    assert_int_equal(att_sweep_guard_step(c[0].context, att_workers_lease(c[0].workers)), ATT_OK);
    join(&c[1]);
    assert_int_equal(att_workers_take(c[1].workers, 0, &taken), ATT_OK);
    assert_false(taken); /* alive */
    assert_string_equal(att_workers_claim(c[1].workers, 0).worker, att_workers_own_name(c[0].workers));
    make_old(&c[0]);
    assert_int_equal(att_file_replace(c[0].context, path_in(f, "file.txt", file), "a", 1), ATT_OK);
    assert_int_equal(att_workers_take(c[1].workers, 0, &taken), ATT_OK);
    assert_false(taken); /* writing has renewed the mark */
    make_old(&c[0]);
    assert_int_equal(att_workers_take(c[1].workers, 0, &taken), ATT_OK);
    assert_true(taken);
    assert_true(att_workers_claim(c[1].workers, 0).own);

    /* The first worker can no longer write, and finds out. */
    assert_fails(c[0].context, att_file_replace(c[0].context, path_in(f, "file.txt", file), "b", 1), ATT_ERR_IO,
                 "another worker of the sweep took the run over");
    assert_file_has(f, "file.txt", "a");
    assert_int_equal(att_workers_check(c[0].workers), ATT_ERR_IO);
    assert_true(att_workers_are_lost(c[0].workers));
    assert_fails(c[0].context, att_workers_give(c[0].workers, 0, ATT_CLAIM_DONE, ""), ATT_ERR_IO,
                 "did not renew its claims for 60 s");
    assert_int_equal(att_workers_look(c[1].workers), ATT_OK);
    assert_int_equal(att_workers_claim(c[1].workers, 0).state, ATT_CLAIM_HELD);
    leave(&c[1]);
    close_contenders(c, 2);
}

FIXTURE_TEST(a_journal_whose_removal_has_begun_is_not_continued)
{
    contender c[2];
    bool taken;
    char first[160];
    open_contenders(f, c, 2);
    join(&c[0]);
    assert_int_equal(att_workers_take(c[0].workers, 0, &taken), ATT_OK);
    assert_true(taken);
    assert_int_equal(unlink(path_in(f, "tiny/.workers/00000001", first)), 0);
    join(&c[1]);
    assert_int_equal(att_workers_claim(c[1].workers, 0).state, ATT_CLAIM_FREE);
    assert_int_equal(att_workers_check(c[0].workers), ATT_ERR_IO);
    leave(&c[1]);
    assert_false(exists(f, "tiny/.workers"));
    close_contenders(c, 2);
}

FIXTURE_TEST(recording_ends_when_everything_was_seen)
{
    contender c[2];
    bool taken, begun, ended, left;
    open_contenders(f, c, 2);
    join(&c[0]);
    join(&c[1]);
    assert_int_equal(att_workers_begin_record(c[0].workers, &begun), ATT_OK);
    assert_true(begun);
    assert_int_equal(att_workers_take(c[1].workers, 1, &taken), ATT_OK);
    assert_int_equal(att_workers_give(c[1].workers, 1, ATT_CLAIM_FAILED, "for a test"), ATT_OK);
    assert_int_equal(att_workers_begin_record(c[1].workers, &begun), ATT_OK);
    assert_false(begun); /* the first worker will see that the run has failed */
    assert_int_equal(att_workers_end_record(c[0].workers, &ended), ATT_OK);
    assert_false(ended);
    const att_claim claim = att_workers_claim(c[0].workers, 1);
    assert_int_equal(claim.state, ATT_CLAIM_FAILED);
    assert_string_equal(claim.reason, "for a test");
    assert_int_equal(att_workers_end_record(c[0].workers, &ended), ATT_OK);
    assert_true(ended);
    assert_int_equal(att_workers_begin_record(c[1].workers, &begun), ATT_OK);
    assert_false(begun); /* nothing is new */
    assert_int_equal(att_workers_take(c[1].workers, 0, &taken), ATT_OK);
    assert_int_equal(att_workers_leave(&c[0].workers, false, &left), ATT_OK);
    assert_false(left); /* the claim is not recorded */
    leave(&c[1]);
    assert_true(exists(f, "tiny/.workers"));
    assert_int_equal(att_workers_begin_record(c[0].workers, &begun), ATT_OK);
    assert_true(begun);
    assert_int_equal(att_workers_end_record(c[0].workers, &ended), ATT_OK);
    assert_int_equal(att_workers_leave(&c[0].workers, false, &left), ATT_OK);
    assert_true(left);
    assert_false(exists(f, "tiny/.workers"));
    close_contenders(c, 2);
}

TEST(a_process_number_that_is_used_again_is_another_process)
{
    att_process self = att_process_self();
    assert_false(att_process_has_ended(&self));
    self.started--;
    assert_true(att_process_has_ended(&self));
    strcpy(self.machine, "another machine");
    assert_false(att_process_has_ended(&self));
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    self = att_process_self();
    self.number = child;
    self.started = -1;
    siginfo_t info;
    assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
    assert_true(att_process_has_ended(&self)); /* although its parent has not waited for it */
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_true(att_process_has_ended(&self));
}
