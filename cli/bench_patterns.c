/* bench_patterns.c - attscope bench patterns: what each algebraic rewriting of training plans gains, in f32 and bf16.
 */
#include "bench.h"
#include "stop.h"

typedef struct list {
    const bench_call *call;
    const bench_case *c;
    att_precision precision;
    int shown;
} list;

static const char *name_of(const list *l, const char *pattern, char name[192])
{
    const char *modules = att_options_text(&l->c->network, "modules");
    snprintf(name, 192, "%s/%s%s%.64s/%s", pattern, l->c->model, *modules ? "+" : "", modules,
             att_precision_name(l->precision));
    return name;
}

static bool wants(void *user, const char *pattern)
{
    char name[192];
    const list *l = user;
    return !cli_stop_asked() && bench_wants(l->call->settings, NULL, name_of(l, pattern, name));
}

static void print_row(const list *l, const att_bench_pattern_row *row, const char *name)
{
    const int threads = att_context_threads(l->call->cli->context), turns = l->call->settings->measure.repeats;
    if (l->shown == 0)
        cli_print("training, %d thread%s, medians of at least %d turn%s\n\n%-40s %5s %9s %9s %16s %5s %9s\n", threads,
                  cli_plural(threads), turns, cli_plural(turns), "rewriting", "batch", "ms", "gain", "of turns",
                  "turns", "kept");
    cli_print("%-40s %5d %9.2f %+7.1f %% %+7.1f to %+5.1f %5d %+7.1f %%\n", name, l->c->batch_size, 1e3 * row->seconds,
              100 * row->gain, 100 * row->least, 100 * row->most, row->turns, 100 * row->kept_gain);
    fflush(stdout);
}

static void show_row(void *user, const att_bench_pattern_row *row)
{
    list *l = user;
    att_json_writer *w = l->call->writer;
    char name[192];
    name_of(l, row->pattern, name);
    if (l->call->prints)
        print_row(l, row, name);
    l->shown++;
    if (!w)
        return;
    att_json_begin_object(w);
    att_json_put_string(w, "case", name);
    att_json_put_string(w, "pattern", row->pattern);
    att_json_put_string(w, "model", l->c->model);
    att_json_put_string(w, "attn", att_options_text(&l->c->network, "modules"));
    att_json_put_string(w, "precision", att_precision_name(l->precision));
    att_json_put_integer(w, "batch_size", l->c->batch_size);
    att_json_put_integer(w, "turns", row->turns);
    att_json_put_number(w, "seconds", row->seconds);
    att_json_put_number(w, "gain", row->gain);
    att_json_put_number(w, "gain_least", row->least);
    att_json_put_number(w, "gain_most", row->most);
    att_json_put_number(w, "kept_gain", row->kept_gain);
    att_json_end_object(w);
}

/* Case `index` of the standard cases, or --model. Returns false past the last. */
static bool case_at(const bench_settings *s, int index, bench_case *c)
{
    att_bench_pattern_case standard = att_bench_pattern_case_at(index);
    if (s->network.model)
        standard = (att_bench_pattern_case){s->network.model, "", 0};
    bench_case_of(s, standard.model, standard.modules, true, c);
    if (!s->measure.batch_size && standard.batch_size)
        c->batch_size = standard.batch_size;
    return index < (s->network.model ? 1 : att_bench_pattern_case_count());
}

static int measure(list *l)
{
    att_bench_options options;
    for (int p = ATT_FULL; p <= ATT_MIXED; p++) {
        bench_options_of(l->call, l->c, &options);
        options.precision = l->precision = (att_precision)p;
        int code = cli_check(l->call->cli, att_bench_patterns(l->call->cli->context, &options, wants, show_row, l));
        if (code != CLI_OK || cli_stop_asked())
            return code != CLI_OK ? code : CLI_STOPPED;
    }
    return CLI_OK;
}

static int run(const bench_call *call)
{
    bench_case c;
    list l = {.call = call, .c = &c};
    for (int i = 0; case_at(call->settings, i, &c); i++) {
        int code = measure(&l);
        if (code != CLI_OK)
            return code;
    }
    if (l.shown == 0)
        return bench_nothing(call->settings, "affine_norm/resnet29/f32");
    if (call->prints)
        puts(
            "\ngain = time of a batch without the rewriting / time with all rewritings - 1, in\n"
            "turns: median, minimum and maximum. Kept: the same of the bytes that are kept\n"
            "between segments for each image. A row for each rewriting that changes the plan;\n"
            "none, two equal plans, shows the noise. Plans for inference use no rewriting.\n"
            "--threads 1 measures processor time, which other programs hardly change.");
    return CLI_OK;
}

const bench_what bench_what_patterns = {.name = "patterns", .operands = "", .run = run};
