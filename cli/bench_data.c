/* bench_data.c - attscope bench data: speed of decoding, transforming and loading images. */
#include "bench.h"
#include "network.h"
#include "stop.h"

static void show(const bench_call *call, const att_bench_data_case *c, const att_bench_data_options *options,
                 double rate)
{
    if (call->prints) {
        cli_print("%-20s %9.1f\n", c->name, rate);
        fflush(stdout);
    }
    att_json_writer *w = call->writer;
    if (!w)
        return;
    att_json_begin_object(w);
    att_json_put_string(w, "case", c->name);
    cli_json_sides(w, "img_size", options->height, options->width);
    att_json_put_integer(w, "workers", options->workers);
    att_json_put_number(w, "samples_per_sec", rate);
    att_json_end_object(w);
}

static int run_case(const bench_call *call, const att_dataset *dataset, const att_bench_data_case *c)
{
    const bench_settings *s = call->settings;
    att_bench_data_options options = att_bench_data_options_defaults();
    options.what = c->what;
    options.workers = c->workers;
    const att_option_value *sides = att_options_find(&s->network.options, "img_size");
    if (sides) {
        options.height = (int)sides->numbers[0];
        options.width = (int)sides->numbers[sides->count - 1];
    }
    options.repeats = s->measure.repeats;
    options.warmup = s->measure.warmup;
    double rate;
    int code = cli_check(call->cli, att_bench_data(call->cli->context, dataset, &options, &rate));
    if (code == CLI_OK)
        show(call, c, &options, rate);
    return code;
}

static int open_data(const bench_call *call, att_dataset **dataset)
{
    char text[CLI_PATH + 256];
    int code = cli_check(call->cli, att_dataset_open(call->cli->context, call->operands[0], NULL, dataset));
    if (code == CLI_OK)
        cli_note(call->cli, "%s", att_dataset_describe(*dataset, text, sizeof text));
    return code;
}

static int run(const bench_call *call)
{
    att_dataset *dataset = NULL;
    int code = open_data(call, &dataset), shown = 0;
    for (int i = 0; code == CLI_OK && i < att_bench_data_case_count(); i++) {
        att_bench_data_case c = att_bench_data_case_at(i);
        if (!bench_wants(call->settings, NULL, c.name))
            continue;
        if (call->prints && shown == 0)
            cli_print("median of %d passes over all images\n\n%-20s %9s\n", call->settings->measure.repeats, "case",
                      "images/s");
        shown++;
        code = cli_stop_asked() ? CLI_STOPPED : run_case(call, dataset, &c);
    }
    att_dataset_close(&dataset);
    if (code == CLI_OK && shown == 0)
        return bench_nothing(call->settings, att_bench_data_case_at(0).name);
    if (code == CLI_OK && call->prints)
        puts(
            "\ndecode, evaluate, train: one thread, files to pixels; also with the transform of\n"
            "evaluation or of training. loader-N: training's transform, N threads.");
    return code;
}

const bench_what bench_what_data = {
    .name = "data", .operands = "DATA", .least_operands = 1, .most_operands = 1, .run = run};
