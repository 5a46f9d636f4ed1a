/* attscope bench: speed of networks and their parts on this machine. */
#include <string.h>

#include "bench.h"
#include "network.h"

static const att_flag measure_options[] = {
    {"filter", .kind = ATT_FLAG_TEXT, .value = "PATTERN",
     .help = "only cases whose name matches, with wildcards * and ?: 'vit_tiny*/train'",
     ATT_FLAG_AT(bench_measure, filter)},
    {"batch-size", .letter = 'b', .kind = ATT_FLAG_INT, .value = "N",
     .help = "images per run (default: 32; 128 for images below 64 pixels)", ATT_FLAG_AT(bench_measure, batch_size),
     .low = 1, .high = 65536, .open = true},
    {"repeats", .kind = ATT_FLAG_INT, .value = "N", .help = "timed runs of each case",
     ATT_FLAG_AT(bench_measure, repeats), .low = 1, .high = BENCH_REPEATS},
    {"warmup", .kind = ATT_FLAG_INT, .value = "N", .help = "untimed runs before the timed ones",
     ATT_FLAG_AT(bench_measure, warmup), .low = 1, .high = BENCH_REPEATS},
    {"points", .kind = ATT_FLAG_TEXT, .value = "N,N...", .help = "tokens, batch sizes or threads to visit",
     ATT_FLAG_AT(bench_measure, points)},
    {"profile", .kind = ATT_FLAG_SWITCH,
     .help = "cases: memory by purpose, time to compile, time by kernel with lower bounds",
     ATT_FLAG_AT(bench_measure, profile)},
    {"sync-bn", .kind = ATT_FLAG_SWITCH, .help = "processes: batch norm takes statistics over all processes",
     ATT_FLAG_AT(bench_measure, sync_bn)},
    {"freeze", .kind = ATT_FLAG_TEXT, .value = "PATTERN,PATTERN...",
     .help = "training: parameters that are not trained, as attscope train has it", ATT_FLAG_AT(bench_measure, freeze)},
    {"report-to", .kind = ATT_FLAG_INT, .value = "FD", ATT_FLAG_AT(bench_measure, report_to), .low = 3, .high = 65536,
     .open = true},
    {"only", .kind = ATT_FLAG_TEXT, .value = "JOB", ATT_FLAG_AT(bench_measure, only)},
};

static void measure_defaults(att_context *context, void *values)
{
    (void)context;
    att_bench_options options = att_bench_options_defaults();
    bench_measure *m = values;
    m->repeats = options.repeats;
    m->warmup = options.warmup;
}

static const att_flag_group measure_group = {
    "Measuring", measure_options, sizeof measure_options / sizeof *measure_options, .defaults = measure_defaults};

static const att_flag_use uses[] = {
    {&measure_group, offsetof(bench_settings, measure)},
    {&att_recipe_network_group, offsetof(bench_settings, network)},
    {&att_recipe_engine_group, offsetof(bench_settings, engine)},
    {&cli_group_processes, offsetof(bench_settings, processes)},
    {&cli_group_output, offsetof(bench_settings, output)},
};

static const bench_what *const whats[] = {
#define WHAT_ENTRY(name) &bench_what_##name,
    BENCH_WHAT_LIST(WHAT_ENTRY)
#undef WHAT_ENTRY
};
enum { WHAT_COUNT = sizeof whats / sizeof *whats };

static const char *what_name(const void *user, int index)
{
    (void)user;
    return whats[index]->name;
}

/* Finds a benchmark by its name. name: NULL means the first of the list. */
static int find_what(const char *name, const bench_what **found)
{
    *found = whats[0];
    for (int i = 0; name && i < WHAT_COUNT; i++) {
        *found = whats[i];
        if (strcmp(name, whats[i]->name) == 0)
            return CLI_OK;
    }
    if (!name)
        return CLI_OK;
    const char *nearest = att_text_nearest(name, what_name, NULL, WHAT_COUNT);
    return nearest ? cli_usage("bench cannot measure \"%s\"; did you mean %s?", name, nearest)
                   : cli_usage("bench cannot measure \"%s\"; see attscope bench --help", name);
}

static int run_parent(bench_call *call, const bench_what *what)
{
    cli_app *cli = call->cli;
    const char *json = call->settings->output.json;
    int code = cli_output_check(json);
    if (code == CLI_OK)
        code = cli_engine_open(cli, &call->settings->engine);
    if (code == CLI_OK && what->processes)
        code = cli_processes_open(cli, &call->settings->processes);
    if (code == CLI_OK && call->settings->network.model)
        code = cli_model_check(cli, call->settings->network.model);
    if (code == CLI_OK)
        code = cli_json_begin_list(cli, json, &call->writer);
    if (code == CLI_OK)
        code = what->run(call);
    return cli_json_end_list(cli, call->writer, json, code);
}

static int run(cli_app *cli, void *user, const char *const *operands, int count)
{
    const bench_settings *s = user;
    const bench_what *what;
    int code = find_what(count > 0 ? operands[0] : NULL, &what), operand_count = count > 0 ? count - 1 : 0;
    if (code != CLI_OK)
        return code;
    if (operand_count < what->least_operands)
        return cli_usage("bench %s needs %s; see attscope bench --help", what->name, what->operands);
    if (operand_count > what->most_operands)
        return cli_usage("bench %s: \"%s\" is one operand too many; see attscope bench --help", what->name,
                         operands[1 + what->most_operands]);
    bench_call call = {.cli = cli, .settings = s, .operands = operands + 1, .prints = cli_prints(s->output.json)};
    if (!s->measure.only)
        return run_parent(&call, what);
    return what->job ? what->job(&call, s->measure.only) : cli_usage("bench %s has no jobs", what->name);
}

const cli_command cli_command_bench = {
    .name = "bench",
    .summary = "measures how fast networks run on this machine",
    .operands = "[WHAT]",
    .most_operands = 3,
    .about =
        "WHAT is one of\n"
        "  cases    networks, compared with the rates of matrix products and memory on\n"
        "           this machine: ViT-Ti, ViT-S and ResNet-50 at 224 pixels, ResNet-20,\n"
        "           ResNet-164 and SE-ResNet-164 at 32, or --model; inference and\n"
        "           training (default)\n"
        "  tokens   attention alone by number of tokens, with and without statistics:\n"
        "           3 heads of width 64, or --num-heads and --embed-dim\n"
        "  batch    a network by batch size (ViT-Ti, or --model or --filter)\n"
        "  threads  a network by number of threads: images/s, and the time of one image\n"
        "  instruments  the cost of instruments that observe every run of a network\n"
        "  modules  the cost of each attention module in the blocks of a residual network\n"
        "           (ResNet-164, or --model; one module with --modules)\n"
        "  patterns  what each algebraic rewriting of training plans gains, in f32 and\n"
        "           bf16, for residual networks or --model\n"
        "  start CHECKPOINT IMAGE   from the start of a process to the first logits\n"
        "  kernels  every kernel on the shapes of ViT-Ti and ViT-S, one thread (--filter\n"
        "           'attention*')\n"
        "  data DATA   decoding and transforming the images of a data set\n"
        "  processes   training with the processes that mpirun or srun started: images/s,\n"
        "           bytes sent, time spent waiting (ViT-Ti, or --model)\n"
        "Except for start and data, images are random numbers. Cases run in separate\n"
        "processes.",
    .example =
        "  attscope bench --filter 'vit_tiny*' --profile\n"
        "  attscope bench threads --model vit_small_patch16_224\n"
        "  mpirun -n 2 --bind-to none attscope bench processes --threads 1",
    .uses = uses,
    .use_count = sizeof uses / sizeof *uses,
    .settings_size = sizeof(bench_settings),
    .processes = true,
    .run = run,
};
