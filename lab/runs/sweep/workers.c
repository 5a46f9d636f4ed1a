#include "lab/runs/sweep/workers.h"

#include <stdio.h>
#include <string.h>

#include "base/core/clock.h"
#include "base/core/error.h"
#include "base/core/text.h"
#include "base/io/file.h"
#include "base/io/journal.h"
#include "lab/runs/sweep/heartbeat.h"

enum { NOBODY = -1, MOST_TRIES = 1000, MOST_STALLS = 6000 };
static const double stall = 0.01; /* seconds */
static const char folder_name[] = ".workers";

typedef struct member {
    char token[ATT_PROCESS_TOKEN];
    att_process process;
    double lease;
    bool gone; /* it has left or is dead */
} member;

typedef struct run_claim {
    att_claim_state state;
    int member; /* who holds it, finished it, or held it last; NOBODY */
    char reason[ATT_SWEEP_REASON];
} run_claim;

struct att_workers {
    att_context *context;
    att_sweep_plan *plan;
    att_journal *journal;
    att_heartbeat *heartbeat;
    char token[ATT_PROCESS_TOKEN];
    att_process process;
    char lease[ATT_RUN_PATH]; /* the path of the mark */
    int64_t entries;          /* that this worker has tried to append; makes each of them unlike all others */
    bool lost;
    int64_t seen; /* entries that were read */
    int stalls;   /* how often in a row an entry could neither be appended nor read */

    /* What the entries say: */
    json_t *definition;
    member *members;
    int count, capacity;
    run_claim *claims; /* [plan->run_count] */
    int recorder;      /* member that is recording, or NOBODY */
    bool unrecorded;   /* entries that change sweep.json or the database came after the last "recorded" */
    int64_t news;      /* number of such entries */
    bool ended;
};

/* An entry to append; NULL: the entry lacks this member. */
typedef struct entry {
    const char *event, *run, *reason, *member;
    bool joins; /* the entry describes this worker */
} entry;

/* --- reading entries ---------------------------------------------------------------------------------------------- */

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static int find_member(const att_workers *w, const char *token)
{
    for (int i = 0; i < w->count; i++)
        if (strcmp(w->members[i].token, token) == 0)
            return i;
    return NOBODY;
}

/* Returns NULL for a name that is no run of the plan. */
static run_claim *find_claim(const att_workers *w, const char *name)
{
    for (int i = 0; i < w->plan->run_count; i++)
        if (strcmp(w->plan->runs[i].name, name) == 0)
            return &w->claims[i];
    return NULL;
}

static att_status fail_entry(const att_workers *w, const char *problem)
{
    return att_fail(w->context, ATT_ERR_FORMAT,
                    "%s/%s has an entry %s; if no sweep is at work there, remove this folder", w->plan->folder,
                    folder_name, problem);
}

/* A token becomes part of the name of a file. */
static bool is_token(const char *text)
{
    return strlen(text) == ATT_PROCESS_TOKEN - 1 && text[strspn(text, "0123456789abcdef")] == '\0';
}

static att_status add_member(att_workers *w, const json_t *object)
{
    const double lease = json_number_value(json_object_get(object, "lease"));
    if (!is_token(text_of(object, "by")) || !(lease > 0 && lease <= ATT_SWEEP_MOST_LEASE))
        return fail_entry(w, "of a worker whose name or lease is damaged");
    if (w->count == w->capacity) {
        const int larger = w->capacity > 0 ? 2 * w->capacity : 8;
        member *grown = att_reallocate(w->context, w->members, (size_t)larger * sizeof *grown);
        if (!grown)
            return att_fail_memory(w->context, (size_t)larger * sizeof *grown, "the workers of a sweep");
        w->members = grown;
        w->capacity = larger;
    }
    member *m = &w->members[w->count++];
    *m = (member){.lease = lease};
    snprintf(m->token, sizeof m->token, "%s", text_of(object, "by"));
    snprintf(m->process.name, sizeof m->process.name, "%s", text_of(object, "name"));
    snprintf(m->process.machine, sizeof m->process.machine, "%s", text_of(object, "machine"));
    m->process.number = json_integer_value(json_object_get(object, "process"));
    m->process.started = json_integer_value(json_object_get(object, "started"));
    return ATT_OK;
}

static void note_news(att_workers *w)
{
    w->unrecorded = true;
    w->news++;
}

/* Frees the runs of a worker that has left or is dead. Its mark is removed before anybody claims one of them. */
static void end_member(att_workers *w, int index)
{
    if (index == NOBODY || w->members[index].gone)
        return;
    w->members[index].gone = true;
    att_journal_unmark(w->journal, w->members[index].token);
    for (int i = 0; i < w->plan->run_count; i++)
        if (w->claims[i].state == ATT_CLAIM_HELD && w->claims[i].member == index) {
            w->claims[i].state = ATT_CLAIM_FREE;
            note_news(w);
        }
    if (w->recorder == index) {
        w->recorder = NOBODY;
        note_news(w);
    }
    if (strcmp(w->members[index].token, w->token) == 0)
        w->lost = true;
}

static void set_claim(att_workers *w, const json_t *object, att_claim_state state, int by)
{
    run_claim *claim = find_claim(w, text_of(object, "run"));
    if (!claim)
        return;
    claim->state = state;
    claim->member = state == ATT_CLAIM_FREE ? NOBODY : by;
    snprintf(claim->reason, sizeof claim->reason, "%s", text_of(object, "reason"));
    note_news(w);
}

/* Returns false for an unknown event. */
static bool apply_event(att_workers *w, const char *event, const json_t *object, int by)
{
    static const struct {
        const char *event;
        att_claim_state state;
    } of_runs[] = {
        {"claim", ATT_CLAIM_HELD}, {"free", ATT_CLAIM_FREE}, {"done", ATT_CLAIM_DONE}, {"failed", ATT_CLAIM_FAILED}};
    for (size_t i = 0; i < sizeof of_runs / sizeof *of_runs; i++)
        if (strcmp(event, of_runs[i].event) == 0) {
            set_claim(w, object, of_runs[i].state, by);
            return true;
        }
    if (strcmp(event, "record") == 0) {
        w->recorder = by;
    } else if (strcmp(event, "recorded") == 0) {
        w->recorder = NOBODY;
        w->unrecorded = false;
    } else if (strcmp(event, "leave") == 0) {
        end_member(w, by);
    } else if (strcmp(event, "dead") == 0) {
        end_member(w, find_member(w, text_of(object, "member")));
    } else if (strcmp(event, "end") == 0) {
        w->ended = true;
    } else {
        return false;
    }
    return true;
}

static att_status apply(att_workers *w, const json_t *object)
{
    const char *event = text_of(object, "event");
    w->seen++;
    if (strcmp(event, "start") == 0 && w->count == 0) {
        w->definition = json_incref(json_object_get(object, "definition"));
        note_news(w);
        return add_member(w, object);
    }
    if (strcmp(event, "join") == 0)
        return add_member(w, object);
    const int by = find_member(w, text_of(object, "by"));
    /* A process that has not joined yet may declare others dead. */
    if (by == NOBODY && (strcmp(event, "claim") == 0 || strcmp(event, "record") == 0))
        return fail_entry(w, "of a worker that has not joined");
    return apply_event(w, event, object, by) ? ATT_OK : fail_entry(w, "of an unknown kind, perhaps of a newer version");
}

static att_status fail_lost(att_workers *w)
{
    w->lost = true;
    return att_fail(w->context, ATT_ERR_IO,
                    "%s: this worker, %s, did not renew its claims for %g s, and other workers took them over",
                    w->plan->folder, w->process.name, w->plan->options.lease);
}

/* Reads the entries that are new. */
static att_status read_entries(att_workers *w)
{
    for (;;) {
        char *text;
        json_t *object = NULL;
        ATT_TRY(att_journal_read(w->journal, &text));
        if (!text)
            return w->lost ? fail_lost(w) : ATT_OK;
        char what[ATT_RUN_PATH + sizeof folder_name];
        snprintf(what, sizeof what, "%s/%s", w->plan->folder, folder_name);
        att_status status = att_json_parse(w->context, what, text, strlen(text), &object);
        if (status == ATT_OK)
            status = apply(w, object);
        json_decref(object);
        att_free(w->context, text);
        ATT_TRY(status);
    }
}

/* --- appending entries -------------------------------------------------------------------------------------------- */

static void put_text(att_json_writer *json, const char *key, const char *text)
{
    if (!text)
        return;
    att_json_put_string(json, key, text);
}

static void put_self(const att_workers *w, att_json_writer *json)
{
    put_text(json, "name", w->process.name);
    put_text(json, "machine", w->process.machine);
    att_json_put_integer(json, "process", w->process.number);
    att_json_put_integer(json, "started", w->process.started);
    att_json_put_number(json, "lease", w->plan->options.lease);
}

static att_status write_entry(att_workers *w, const entry *e, att_json_writer *json, att_text *line)
{
    const char *text;
    size_t length;
    att_json_begin_object(json);
    put_text(json, "by", w->token);
    att_json_put_integer(json, "number", w->entries++);
    put_text(json, "event", e->event);
    put_text(json, "run", e->run);
    put_text(json, "reason", e->reason);
    put_text(json, "member", e->member);
    if (e->joins)
        put_self(w, json);
    if (strcmp(e->event, "start") == 0) {
        att_json_key(json, "definition");
        ATT_TRY(att_plan_write_definition(w->plan, json));
    }
    att_json_end_object(json);
    ATT_TRY(att_json_writer_finish(json, &text, &length));
    att_text_append_bytes(line, text, length);
    att_text_append_bytes(line, "\n", 1);
    return line->failed ? att_fail_memory(w->context, length, "an entry of the workers") : ATT_OK;
}

/* Makes the entry's line, which the caller frees. */
static att_status make_line(att_workers *w, const entry *e, att_text *line)
{
    att_json_writer *json;
    *line = (att_text){.context = w->context};
    ATT_TRY(att_json_writer_create(w->context, false, &json));
    att_status status = write_entry(w, e, json, line);
    att_json_writer_destroy(&json);
    return status;
}

/* After an entry that was not appended, although no other one can be read: the journal was removed, because this worker
 * counts as dead; or another entry is being written. */
static att_status wait_for_entry(att_workers *w)
{
    if (!att_journal_exists(w->journal))
        return w->heartbeat ? fail_lost(w) : ATT_OK;
    ATT_TRY(att_check_stop(w->context, w->plan->folder));
    if (++w->stalls > MOST_STALLS)
        return att_fail(w->context, ATT_ERR_FORMAT,
                        "the last entry of %s/%s is incomplete; if no sweep is at work there, remove this folder",
                        w->plan->folder, folder_name);
    att_sleep(stall);
    return ATT_OK;
}

/* Appends the entry if no other one came first. */
static att_status publish(att_workers *w, const entry *e, bool *appended)
{
    att_text line;
    att_status status = make_line(w, e, &line);
    *appended = false;
    if (status == ATT_OK)
        status = att_journal_append(w->journal, line.data, appended);
    att_text_free(&line);
    return status;
}

/* Reads the new entries after publish(), of which there should be at least one. */
static att_status read_published(att_workers *w)
{
    const int64_t seen = w->seen;
    ATT_TRY(read_entries(w));
    if (w->seen == seen)
        return wait_for_entry(w);
    w->stalls = 0;
    return ATT_OK;
}

static att_status append(att_workers *w, const entry *e, bool *appended)
{
    ATT_TRY(publish(w, e, appended));
    return read_published(w);
}

/* --- the dead ----------------------------------------------------------------------------------------------------- */

/* Judges by marks only if this worker's own mark was renewed in time: otherwise all marks may be old for one reason. */
static bool is_dead(const att_workers *w, const member *m)
{
    if (att_process_has_ended(&m->process))
        return true;
    const bool judges = !w->heartbeat || att_heartbeat_is_steady(w->heartbeat);
    return judges && att_journal_mark_age(w->journal, m->token) > m->lease;
}

/* Returns a worker that is dead and has not been declared dead, or NOBODY. */
static int find_dead(const att_workers *w)
{
    for (int i = 0; i < w->count; i++)
        if (!w->members[i].gone && strcmp(w->members[i].token, w->token) != 0 && is_dead(w, &w->members[i]))
            return i;
    return NOBODY;
}

att_status att_workers_look(att_workers *w)
{
    ATT_TRY(att_journal_look(w->journal));
    ATT_TRY(read_entries(w));
    for (int dead = find_dead(w); dead != NOBODY && !w->ended; dead = find_dead(w)) {
        bool appended;
        ATT_TRY(att_check_stop(w->context, w->plan->folder));
        ATT_TRY(append(w, &(entry){.event = "dead", .member = w->members[dead].token}, &appended));
        if (!appended && !att_journal_exists(w->journal))
            return ATT_OK;
    }
    return ATT_OK;
}

static int count_living(const att_workers *w)
{
    int living = 0;
    for (int i = 0; i < w->count; i++)
        living += !w->members[i].gone;
    return living;
}

/* --- joining ------------------------------------------------------------------------------------------------------ */

static void forget_entries(att_workers *w)
{
    att_journal_close(&w->journal);
    json_decref(w->definition);
    w->definition = NULL;
    w->count = 0;
    w->recorder = NOBODY;
    w->ended = w->unrecorded = false;
    memset(w->claims, 0, (size_t)w->plan->run_count * sizeof *w->claims);
    for (int i = 0; i < w->plan->run_count; i++)
        w->claims[i].member = NOBODY;
}

/* Ends a journal without living workers, and removes it. If another process has begun to remove it, nothing is
 * appended: the entry would take the number of the first one, which is removed first. */
static att_status end_journal(att_workers *w)
{
    bool appended = false;
    if (!w->ended && att_journal_exists(w->journal))
        ATT_TRY(append(w, &(entry){.event = "end"}, &appended));
    if (w->ended || !att_journal_exists(w->journal))
        att_journal_remove(w->journal);
    return ATT_OK;
}

/* Becomes the first worker. *joined: false if another one was faster. */
static att_status start_journal(att_workers *w, const char *path, bool *joined)
{
    att_text line;
    att_status status = make_line(w, &(entry){.event = "start", .joins = true}, &line);
    if (status == ATT_OK)
        status = att_journal_create(w->context, path, w->token, line.data, &w->journal);
    att_text_free(&line);
    *joined = status == ATT_OK && w->journal;
    return *joined ? read_entries(w) : status;
}

/* Joins an existing journal. *joined: false if it has no living workers; then it is removed. */
static att_status join_journal(att_workers *w, bool *joined)
{
    bool marked = false;
    att_status status = att_workers_look(w);
    *joined = false;
    while (status == ATT_OK && !*joined && count_living(w) > 0 && !w->ended && att_journal_exists(w->journal)) {
        status = att_plan_compare_definition(w->plan, w->definition);
        if (status == ATT_OK && !marked)
            status = att_journal_mark(w->journal);
        marked |= status == ATT_OK;
        if (status == ATT_OK)
            status = append(w, &(entry){.event = "join", .joins = true}, joined);
    }
    if (marked && !*joined)
        att_journal_unmark(w->journal, w->token);
    return status == ATT_OK && !*joined ? end_journal(w) : status;
}

static att_status try_to_join(att_workers *w, const char *path, bool *joined)
{
    forget_entries(w);
    ATT_TRY(att_journal_open(w->context, path, w->token, &w->journal));
    return w->journal ? join_journal(w, joined) : start_journal(w, path, joined);
}

static att_status join(att_workers *w)
{
    char path[ATT_RUN_PATH];
    bool joined = false;
    ATT_TRY(att_file_make_folders(w->context, w->plan->folder));
    ATT_TRY(att_path_join(w->context, w->plan->folder, folder_name, path, sizeof path));
    for (int i = 0; i < MOST_TRIES && !joined; i++) {
        ATT_TRY(try_to_join(w, path, &joined));
        if (!joined && i > 0)
            att_sleep(stall);
    }
    if (!joined)
        return att_fail(w->context, ATT_ERR_IO,
                        "%s could not be joined nor removed; if no sweep is at work there, remove this folder", path);
    ATT_TRY(att_journal_mark_path(w->journal, w->token, w->lease, sizeof w->lease));
    return att_heartbeat_start(w->context, w->lease, w->plan->options.lease, &w->heartbeat);
}

att_status att_workers_join(att_sweep_plan *plan, att_workers **workers)
{
    att_workers *w = att_allocate(plan->context, sizeof *w);
    if (w)
        w->claims = att_allocate_array(plan->context, (size_t)plan->run_count, sizeof *w->claims);
    if (!w || !w->claims) {
        att_free(plan->context, w);
        return att_fail_memory(plan->context, (size_t)plan->run_count * sizeof *w->claims, "the workers of a sweep");
    }
    w->context = plan->context;
    w->plan = plan;
    w->process = att_process_self();
    att_process_make_token(w->token);
    att_status status = join(w);
    if (status != ATT_OK)
        att_workers_abandon(&w);
    else
        *workers = w;
    return status;
}

/* --- leaving ------------------------------------------------------------------------------------------------------ */

void att_workers_abandon(att_workers **workers)
{
    if (!workers || !*workers)
        return;
    att_workers *w = *workers;
    att_heartbeat_stop(&w->heartbeat);
    if (w->journal)
        att_journal_unmark(w->journal, w->token);
    att_journal_close(&w->journal);
    json_decref(w->definition);
    att_free(w->context, w->members);
    att_free(w->context, w->claims);
    att_free(w->context, w);
    *workers = NULL;
}

att_status att_workers_leave(att_workers **workers, bool anyway, bool *left)
{
    att_workers *w = *workers;
    *left = false;
    ATT_TRY(att_workers_look(w));
    while (!*left) {
        const bool is_last = count_living(w) == 1;
        if (!anyway && w->unrecorded && w->recorder == NOBODY)
            return ATT_OK;
        ATT_TRY(publish(w, &(entry){.event = is_last ? "end" : "leave"}, left));
        if (*left && is_last)
            att_journal_remove(w->journal);
        if (!*left)
            ATT_TRY(read_published(w));
    }
    att_workers_abandon(workers);
    return ATT_OK;
}

/* --- runs --------------------------------------------------------------------------------------------------------- */

att_claim att_workers_claim(const att_workers *w, int run)
{
    const run_claim *claim = &w->claims[run];
    const bool known = claim->member != NOBODY;
    return (att_claim){.state = claim->state,
                       .own = known && claim->state == ATT_CLAIM_HELD &&
                              strcmp(w->members[claim->member].token, w->token) == 0,
                       .worker = known ? w->members[claim->member].process.name : "",
                       .reason = claim->reason};
}

att_status att_workers_take(att_workers *w, int run, bool *taken)
{
    *taken = false;
    ATT_TRY(att_workers_look(w));
    while (!*taken && w->claims[run].state == ATT_CLAIM_FREE)
        ATT_TRY(append(w, &(entry){.event = "claim", .run = w->plan->runs[run].name}, taken));
    return ATT_OK;
}

att_status att_workers_give(att_workers *w, int run, att_claim_state state, const char *reason)
{
    const char *event = state == ATT_CLAIM_DONE ? "done" : state == ATT_CLAIM_FAILED ? "failed" : "free";
    bool appended = false;
    ATT_TRY(read_entries(w));
    while (!appended)
        ATT_TRY(append(w, &(entry){.event = event, .run = w->plan->runs[run].name, .reason = reason}, &appended));
    return ATT_OK;
}

/* --- recording ---------------------------------------------------------------------------------------------------- */

att_status att_workers_begin_record(att_workers *w, bool *begun)
{
    *begun = false;
    ATT_TRY(att_workers_look(w));
    while (!*begun && w->unrecorded && w->recorder == NOBODY)
        ATT_TRY(append(w, &(entry){.event = "record"}, begun));
    return ATT_OK;
}

att_status att_workers_end_record(att_workers *w, bool *ended)
{
    const int64_t news = w->news;
    *ended = false;
    while (!*ended && w->news == news)
        ATT_TRY(append(w, &(entry){.event = "recorded"}, ended));
    return ATT_OK;
}

/* --- this worker -------------------------------------------------------------------------------------------------- */

att_status att_workers_check(att_workers *w)
{
    if (w->lost || att_heartbeat_is_lost(w->heartbeat) || att_mark_renew(w->lease) == ATT_MARK_GONE)
        return fail_lost(w);
    return ATT_OK;
}

bool att_workers_are_lost(const att_workers *w)
{
    return w->lost || att_heartbeat_is_lost(w->heartbeat);
}

bool att_workers_are_several(const att_workers *w)
{
    return count_living(w) > 1;
}

const char *att_workers_own_name(const att_workers *w)
{
    return w->process.name;
}

const char *att_workers_lease(const att_workers *w)
{
    return w->lease;
}

double att_workers_pause(const att_workers *w)
{
    const double most = 1, share = w->plan->options.lease / 8;
    return share < most ? share : most;
}
