/* attscope bench: how fast networks run here, each case in a process of its own. */
#include <errno.h>
#include <fnmatch.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <attscope/bench.h>

#include "cli.h"
#include "flags.h"
#include "stop.h"

typedef struct measure {
    const char *filter;
    int batch_size, repeats, warmup;
    bool profile;
    int report_to; /* the child's end of the pipe */
    const char *only;
} measure;

typedef struct settings {
    measure measure;
    cli_network network;
    cli_engine engine;
    cli_output output;
} settings;

static const cli_option measure_options[] = {
    {"filter", .kind = CLI_TEXT, .value = "PATTERN", .help = "cases by name, * and ? allowed: 'vit_tiny*/train'",
     CLI_AT(measure, filter)},
    {"batch-size", .letter = 'b', .kind = CLI_INT, .value = "N", .help = "images of a run", CLI_AT(measure, batch_size),
     .low = 1, .high = 65536},
    {"repeats", .kind = CLI_INT, .value = "N", .help = "timed runs of each case", CLI_AT(measure, repeats), .low = 1,
     .high = 1000},
    {"warmup", .kind = CLI_INT, .value = "N", .help = "runs before those", CLI_AT(measure, warmup), .low = 1,
     .high = 1000},
    {"profile", .kind = CLI_FLAG, .help = "where the time goes, by kernel", CLI_AT(measure, profile)},
    {"report-to", .kind = CLI_INT, .value = "FD", CLI_AT(measure, report_to), .low = 3, .high = 65536, .open = true},
    {"only", .kind = CLI_TEXT, .value = "CASE", CLI_AT(measure, only)},
};

static void measure_defaults(void *values)
{
    att_bench_options options = att_bench_options_defaults();
    measure *m = values;
    m->batch_size = options.batch_size;
    m->repeats = options.repeats;
    m->warmup = options.warmup;
}

static const cli_group measure_group = {"Measuring", measure_options, sizeof measure_options / sizeof *measure_options,
                                        measure_defaults};

static const cli_use uses[] = {
    {&measure_group, offsetof(settings, measure)},
    {&cli_group_network, offsetof(settings, network)},
    {&cli_group_engine, offsetof(settings, engine)},
    {&cli_group_output, offsetof(settings, output)},
};

/* --- cases -------------------------------------------------------------------------------------------------------- */

typedef struct bench_case {
    char name[96];
    const char *model;
    bool training;
} bench_case;

/* Case `index`: the standard ones, or those of --model; false past the last. */
static bool case_at(const settings *s, int index, bench_case *found)
{
    if (s->network.model) {
        *found = (bench_case){.model = s->network.model, .training = index == 1};
        snprintf(found->name, sizeof found->name, "%.80s/%s", found->model, index == 1 ? "train" : "infer");
        return index < 2;
    }
    att_bench_case standard = att_bench_case_at(index);
    *found = (bench_case){.model = standard.model, .training = standard.training};
    snprintf(found->name, sizeof found->name, "%s", standard.name);
    return index < att_bench_case_count();
}

static bool is_wanted(const settings *s, const bench_case *c)
{
    return !s->measure.filter || fnmatch(s->measure.filter, c->name, 0) == 0;
}

/* --- the child ---------------------------------------------------------------------------------------------------- */

/* What the child sends: profile rows, then the result. Both ends are the same program. */
typedef struct record {
    bool is_row;
    att_bench_result result;
    char op[48], kernel[48];
    int64_t calls;
    double seconds, flops;
} record;

/* The pipe takes whole records: they are shorter than PIPE_BUF. */
static void send_record(int fd, const record *r)
{
    if (write(fd, r, sizeof *r) != (ssize_t)sizeof *r)
        cli_say("bench: the case's result could not be passed on");
}

static void send_row(void *user, const att_profile_row *row)
{
    record r = {.is_row = true, .calls = row->calls, .seconds = row->seconds, .flops = row->flops};
    snprintf(r.op, sizeof r.op, "%s", row->op);
    snprintf(r.kernel, sizeof r.kernel, "%s", row->kernel);
    send_record(*(const int *)user, &r);
}

static int run_child(cli_app *cli, const settings *s, const bench_case *c)
{
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    int code = cli_engine_open(cli, &s->engine), fd = s->measure.report_to;
    if (code != CLI_OK)
        return code;
    att_bench_options options = att_bench_options_defaults();
    options.model = c->model;
    options.network = &s->network.options;
    options.training = c->training;
    options.backend = s->engine.backend;
    options.precision = cli_engine_precision(&s->engine);
    options.batch_size = s->measure.batch_size;
    options.repeats = s->measure.repeats;
    options.warmup = s->measure.warmup;
    options.profile = s->measure.profile;
    options.row = send_row;
    options.row_user = &fd;
    record r = {.is_row = false};
    code = cli_check(cli, att_bench_run(cli->context, &options, &r.result));
    if (code == CLI_OK)
        send_record(fd, &r);
    return code;
}

/* --- what is shown ------------------------------------------------------------------------------------------------ */

static void print_head(const settings *s, int threads)
{
    printf("batch %d, %d threads, %s, median of %d\n\n", s->measure.batch_size, threads,
           att_precision_name(cli_engine_precision(&s->engine)), s->measure.repeats);
    printf("%-30s %9s %12s %7s %11s\n", "case", "images/s", "GEMM GFLOP/s", "share", "peak memory");
}

static void print_result(const bench_case *c, const att_bench_result *r)
{
    printf("%-30s %9.2f %12.1f %5.1f %% %7.0f MiB\n", c->name, r->images_per_second, 1e-9 * r->gemm_rate,
           100 * r->share, (double)r->peak_bytes / (1 << 20));
}

static void print_formula(bool profile)
{
    puts(
        "\nshare = images/s x operations per image / GEMM rate. Operations: two for each multiply-add of\n"
        "the matrix products, forward; three times that for training. GEMM rate: oneDNN's matmul on\n"
        "all threads over the same products, weights packed, nothing fused, whole-batch forward\n"
        "shapes, Q K' and P V per head; it takes turns with the network. Peak memory: VmHWM.");
    if (profile)
        puts(
            "Below a case: its kernels in all timed runs, seconds summed over the threads, so that GFLOP/s\n"
            "are those of one thread.");
}

static void print_row(const record *r, double total)
{
    printf("  %-28s %-10s %7lld calls %8.3f s %5.1f %%", r->op, r->kernel, (long long)r->calls, r->seconds,
           100 * r->seconds / total);
    if (r->flops > 0)
        printf(" %8.1f GFLOP/s", 1e-9 * r->flops / r->seconds);
    putchar('\n');
}

static void write_result(att_json_writer *w, const bench_case *c, const att_bench_result *r, const settings *s,
                         int threads)
{
    char key[48];
    const char *prefix = c->training ? "train" : "infer";
    cli_json_text(w, "case", c->name);
    cli_json_text(w, "model", c->model);
    cli_json_text(w, "precision", att_precision_name(cli_engine_precision(&s->engine)));
#define KEY(name) (snprintf(key, sizeof key, "%s_" name, prefix), key)
    cli_json_number(w, KEY("samples_per_sec"), r->images_per_second);
    cli_json_number(w, KEY("step_time"), 1e3 * r->step_seconds);
    cli_json_integer(w, KEY("batch_size"), s->measure.batch_size);
    cli_json_integer(w, KEY("img_size"), r->img_size);
    if (!c->training)
        cli_json_number(w, "infer_gmacs", r->gmacs);
#undef KEY
    cli_json_number(w, "param_count", 1e-6 * (double)r->parameters);
    cli_json_number(w, "gemm_gflops", 1e-9 * r->gemm_rate);
    cli_json_number(w, "gemm_share", r->share);
    cli_json_integer(w, "peak_bytes", r->peak_bytes);
    cli_json_integer(w, "threads", threads);
    cli_json_integer(w, "group", r->plan.group);
    cli_json_integer(w, "arena_bytes", (int64_t)r->plan.arena_bytes);
    cli_json_integer(w, "gradient_bytes", (int64_t)r->plan.gradient_bytes);
    cli_json_integer(w, "packed_bytes", (int64_t)r->plan.packed_bytes);
}

static void write_row(att_json_writer *w, const record *r)
{
    att_json_begin_object(w);
    cli_json_text(w, "op", r->op);
    cli_json_text(w, "kernel", r->kernel);
    cli_json_integer(w, "calls", r->calls);
    cli_json_number(w, "seconds", r->seconds);
    cli_json_number(w, "flops", r->flops);
    att_json_end_object(w);
}

/* --- the parent --------------------------------------------------------------------------------------------------- */

enum { MOST_ROWS = 128, MOST_ARGUMENTS = 512 };

typedef struct records {
    record rows[MOST_ROWS];
    int row_count;
    bool has_result;
    record result;
} records;

static void receive(int fd, records *got)
{
    record r;
    for (;;) {
        ssize_t size = read(fd, &r, sizeof r);
        if (size < 0 && errno == EINTR)
            continue;
        if (size != (ssize_t)sizeof r)
            return;
        if (!r.is_row) {
            got->result = r;
            got->has_result = true;
        } else if (got->row_count < MOST_ROWS) {
            got->rows[got->row_count++] = r;
        }
    }
}

/* This program again, with the case and the pipe's end after what the user said. */
static void exec_child(const bench_case *c, int fd)
{
    char report[32], self[] = "/proc/self/exe";
    FILE *file = fopen("/proc/self/cmdline", "rb");
    static char line[1 << 16];
    char *arguments[MOST_ARGUMENTS];
    size_t length = file ? fread(line, 1, sizeof line - 1, file) : 0;
    int count = 0;
    for (size_t at = 0; at < length && count < MOST_ARGUMENTS - 5; at += strlen(line + at) + 1)
        arguments[count++] = line + at;
    snprintf(report, sizeof report, "%d", fd);
    arguments[count++] = (char *)"--report-to";
    arguments[count++] = report;
    arguments[count++] = (char *)"--only";
    arguments[count++] = (char *)c->name;
    arguments[count] = NULL;
    execv(self, arguments);
}

static int run_in_child(const bench_case *c, records *got)
{
    int ends[2], status = 0;
    if (pipe(ends) != 0)
        return cli_failure("bench: no pipe: %s", strerror(errno));
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        exec_child(c, ends[1]);
        cli_say("bench: this program could not be started again: %s", strerror(errno));
        _exit(CLI_FAILURE);
    }
    close(ends[1]);
    if (child > 0)
        receive(ends[0], got);
    close(ends[0]);
    if (child < 0)
        return cli_failure("bench: no process: %s", strerror(errno));
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    if (cli_stop_asked())
        return CLI_STOPPED;
    if (WIFSIGNALED(status))
        return cli_failure("%s ended by signal %d", c->name, WTERMSIG(status));
    if (WEXITSTATUS(status) != CLI_OK)
        return WEXITSTATUS(status);
    return got->has_result ? CLI_OK : cli_failure("%s gave no result", c->name);
}

static void show(const settings *s, att_json_writer *w, const bench_case *c, const records *got, int threads)
{
    double total = 0;
    for (int i = 0; i < got->row_count; i++)
        total += got->rows[i].seconds;
    if (cli_prints(s->output.json)) {
        print_result(c, &got->result.result);
        for (int i = 0; i < got->row_count; i++)
            print_row(&got->rows[i], total);
        fflush(stdout);
    }
    if (!w)
        return;
    att_json_begin_object(w);
    write_result(w, c, &got->result.result, s, threads);
    if (s->measure.profile) {
        att_json_key(w, "profile");
        att_json_begin_array(w);
        for (int i = 0; i < got->row_count; i++)
            write_row(w, &got->rows[i]);
        att_json_end_array(w);
    }
    att_json_end_object(w);
}

static int run_cases(cli_app *cli, const settings *s, att_json_writer *w)
{
    int threads = att_context_threads(cli->context), shown = 0, code = CLI_OK;
    bench_case c;
    records *got = malloc(sizeof *got);
    if (!got)
        return cli_failure("out of memory");
    for (int i = 0; code == CLI_OK && case_at(s, i, &c); i++) {
        if (!is_wanted(s, &c))
            continue;
        if (cli_prints(s->output.json) && shown == 0)
            print_head(s, threads);
        memset(got, 0, sizeof *got);
        code = run_in_child(&c, got);
        if (code == CLI_OK)
            show(s, w, &c, got, threads);
        shown++;
    }
    free(got);
    if (code == CLI_OK && shown == 0) {
        case_at(s, 0, &c);
        return cli_usage("--filter %s fits no case; the first is called %s", s->measure.filter, c.name);
    }
    if (code == CLI_OK && cli_prints(s->output.json))
        print_formula(s->measure.profile);
    return code;
}

static int run_parent(cli_app *cli, const settings *s)
{
    int code = cli_engine_open(cli, &s->engine);
    att_json_writer *w = NULL;
    if (code == CLI_OK && s->output.json)
        code = cli_check(cli, att_json_writer_create(cli->context, true, &w));
    if (w)
        att_json_begin_array(w);
    if (code == CLI_OK)
        code = run_cases(cli, s, w);
    if (w)
        att_json_end_array(w);
    if (code == CLI_OK && w)
        return cli_json_write(cli, w, s->output.json);
    att_json_writer_destroy(&w);
    return code;
}

static int run(cli_app *cli, void *user, const char *const *operands, int count)
{
    (void)operands;
    (void)count;
    const settings *s = user;
    bench_case c;
    if (!s->measure.only)
        return run_parent(cli, s);
    for (int i = 0; case_at(s, i, &c); i++)
        if (strcmp(c.name, s->measure.only) == 0)
            return run_child(cli, s, &c);
    return cli_usage("bench has no case \"%s\"", s->measure.only);
}

const cli_command cli_command_bench = {
    .name = "bench",
    .summary = "measures how fast networks run here",
    .operands = "",
    .about =
        "Without --model: ViT-Ti and ViT-S at 224 pixels, inference and training. Images\n"
        "are made in memory; each case runs in a process of its own.",
    .example = "  attscope bench --filter 'vit_tiny*' --profile",
    .uses = uses,
    .use_count = sizeof uses / sizeof *uses,
    .settings_size = sizeof(settings),
    .run = run,
};
