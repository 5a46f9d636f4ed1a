/* bench_modules.c - attscope bench modules: the cost of attention modules. The network with a module in its residual
 * blocks and the network without modules run in turns in one process, so that both see the same machine state. */
#include <attscope/nn.h>

#include <stdlib.h>
#include <string.h>

#include "bench.h"

static const char STANDARD_MODEL[] = "resnet164", NONE[] = "none";

/* A module in training or inference: "se/train". */
typedef struct module_case {
    char name[96];
    bench_case with;
} module_case;

/* --- list of cases ------------------------------------------------------------------------------------------------ */

static bool fits_blocks(const att_module *module)
{
    return module->places & ATT_ON_MAPS;
}

/* Case `index`: --modules if given; else "none", whose result shows the measurement noise, then each module for feature
 * maps. NULL past the last. */
static const char *module_text(const bench_settings *s, int index)
{
    const char *attn = att_options_text(&s->network.options, "modules");
    if (*attn)
        return index == 0 ? attn : NULL;
    if (index-- == 0)
        return NONE;
    for (int i = 0; i < att_module_count(NULL); i++)
        if (fits_blocks(att_module_at(NULL, i)) && index-- == 0)
            return att_module_at(NULL, i)->name;
    return NULL;
}

static bool case_at(const bench_settings *s, int index, module_case *p)
{
    int modules = 0;
    while (module_text(s, modules))
        modules++;
    bool training = index < modules;
    if (index >= 2 * modules)
        return false;
    const char *text = module_text(s, index % modules), *model = s->network.model;
    bench_case_of(s, model ? model : STANDARD_MODEL, text, training, &p->with);
    att_options_set_text(&p->with.network, "modules", text);
    snprintf(p->name, sizeof p->name, "%s/%s", text, training ? "train" : "infer");
    return true;
}

/* --- the child ---------------------------------------------------------------------------------------------------- */

enum { WITHOUT, WITH, POINTS };

static void summarise(bench_point *points, int repeats, bench_price *found)
{
    double ratio[BENCH_REPEATS];
    for (int i = 0; i < repeats; i++)
        ratio[i] = points[WITH].seconds[i] / points[WITHOUT].seconds[i];
    found->none_parameters = att_bench_size_of(points[WITHOUT].bench).parameters;
    found->seconds = bench_median(points[WITH].seconds, repeats);
    found->ratio = bench_median(ratio, repeats); /* which sorts */
    found->least = ratio[0];
    found->most = ratio[repeats - 1];
}

/* Creates and runs the network with the module first, so that the peak memory of the process is that of the network
 * with the module. */
static int measure_cost(const bench_call *call, const module_case *p, bench_point *points, bench_price *found)
{
    att_bench_options options;
    module_case none = *p;
    double first;
    for (int i = 0; i < POINTS; i++)
        points[i] = (bench_point){.app = call->cli, .batch = p->with.batch_size, .runs = 1};
    int code = bench_open(call, &p->with, call->settings->engine.threads, &options);
    if (code == CLI_OK)
        code = cli_check(call->cli, att_bench_create(call->cli->context, &options, &points[WITH].bench));
    if (code == CLI_OK)
        code = cli_check(call->cli, att_bench_time(points[WITH].bench, p->with.batch_size, &first));
    if (code != CLI_OK)
        return code;
    found->size = att_bench_size_of(points[WITH].bench);
    att_options_set_text(&none.with.network, "modules", NONE);
    options.network = &none.with.network;
    code = cli_check(call->cli, att_bench_create(call->cli->context, &options, &points[WITHOUT].bench));
    if (code == CLI_OK)
        code = bench_take_turns(call, points, POINTS);
    if (code == CLI_OK)
        summarise(points, call->settings->measure.repeats, found);
    return code;
}

static int run_job(const bench_call *call, const char *job)
{
    module_case p;
    int index = 0;
    while (case_at(call->settings, index, &p) && strcmp(p.name, job) != 0)
        index++;
    if (!case_at(call->settings, index, &p))
        return cli_usage("bench has no module \"%s\"", job);
    bench_point *points = calloc(POINTS, sizeof *points);
    if (!points)
        return cli_failure("out of memory");
    bench_record r = {.is_row = false};
    int code = measure_cost(call, &p, points, &r.of.price);
    if (code == CLI_OK)
        bench_send(call, &r);
    att_bench_destroy(&points[WITHOUT].bench);
    att_bench_destroy(&points[WITH].bench);
    free(points);
    return code;
}

/* --- output ------------------------------------------------------------------------------------------------------- */

static void print_head(const bench_call *call, const module_case *p)
{
    const int threads = att_context_threads(call->cli->context), turns = call->settings->measure.repeats;
    cli_print("%s, batch %d, %d thread%s, %s, medians of %d turn%s\n\n", p->with.model, p->with.batch_size, threads,
              cli_plural(threads), bench_precision(call), turns, cli_plural(turns));
    cli_print("%-22s %9s %9s %16s %12s %9s\n", "module", "images/s", "price", "of turns", "parameters", "peak");
}

static void show(const bench_call *call, const module_case *p, const bench_price *found)
{
    double rate = p->with.batch_size / found->seconds;
    int64_t more = found->size.parameters - found->none_parameters;
    if (call->prints) {
        cli_print("%-22s %9.2f %+7.1f %% %+7.1f to %+5.1f %+12lld %5.0f MiB\n", p->name, rate, 100 * (found->ratio - 1),
                  100 * (found->least - 1), 100 * (found->most - 1), (long long)more,
                  (double)found->size.peak_bytes / (1 << 20));
        fflush(stdout);
    }
    att_json_writer *w = call->writer;
    if (!w)
        return;
    att_json_begin_object(w);
    att_json_put_string(w, "case", p->name);
    att_json_put_string(w, "model", p->with.model);
    att_json_put_string(w, "attn", att_options_text(&p->with.network, "modules"));
    att_json_put_string(w, "precision", bench_precision(call));
    att_json_put_integer(w, "batch_size", p->with.batch_size);
    att_json_put_number(w, "samples_per_sec", rate);
    att_json_put_number(w, "price", found->ratio - 1);
    att_json_put_number(w, "price_least", found->least - 1);
    att_json_put_number(w, "price_most", found->most - 1);
    att_json_put_integer(w, "extra_parameters", more);
    att_json_put_integer(w, "parameters", found->size.parameters);
    att_json_put_integer(w, "peak_bytes", found->size.peak_bytes);
    att_json_end_object(w);
}

/* --- the parent --------------------------------------------------------------------------------------------------- */

static int run_all(const bench_call *call, bench_records *records, int *shown)
{
    module_case p;
    for (int i = 0; case_at(call->settings, i, &p); i++) {
        if (!bench_wants(call->settings, NULL, p.name))
            continue;
        int code = bench_run_job(p.name, i > 0, records);
        if (code != CLI_OK)
            return code;
        if ((*shown)++ == 0 && call->prints)
            print_head(call, &p);
        show(call, &p, &records->items[0].of.price);
    }
    return CLI_OK;
}

static int run(const bench_call *call)
{
    bench_records *records = malloc(sizeof *records);
    int shown = 0;
    if (!records)
        return cli_failure("out of memory");
    int code = run_all(call, records, &shown);
    free(records);
    if (code == CLI_OK && shown == 0)
        return bench_nothing(call->settings, "se/train");
    if (code == CLI_OK && call->prints)
        puts(
            "\nprice = time of a batch with the module / time without it - 1, in turns in one\n"
            "process: median, minimum and maximum over the turns. The price of none shows the\n"
            "noise of the machine. Parameters: in addition to the network without modules.\n"
            "Peak: VmHWM with the module only.");
    return code;
}

const bench_what bench_what_modules = {.name = "modules", .operands = "", .run = run, .job = run_job};
