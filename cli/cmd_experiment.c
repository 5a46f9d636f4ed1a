/* attscope experiment: the four tasks of Dong et al. (ICML 2021) on self-attention networks. */
#include <math.h>
#include <string.h>

#include "cli.h"
#include "flags.h"
#include "help.h"
#include "progress.h"

typedef struct experiment_settings {
    int epochs, repeats, threads;
    double lr;
    uint64_t seed;
    const char *texts;
    bool mlp, shuffle;
} experiment_settings;

typedef struct settings {
    experiment_settings experiment;
    cli_output output;
} settings;

#define EXPERIMENT(member) ATT_FLAG_AT(experiment_settings, member)
static const att_flag options[] = {
    {"epochs", .kind = ATT_FLAG_INT, .value = "N", .help = "epochs of the training (default: the experiment's)",
     EXPERIMENT(epochs), .low = 1, .high = 1000000, .open = true},
    {"lr", .kind = ATT_FLAG_REAL, .value = "RATE", .help = "learning rate (default: the experiment's)", EXPERIMENT(lr),
     .low = 1e-12, .high = 1000, .open = true},
    {"repeats", .kind = ATT_FLAG_INT, .value = "N", .help = "draws of paths for each length", EXPERIMENT(repeats),
     .low = 1, .high = 1000},
    {"seed", .kind = ATT_FLAG_SEED, .value = "N", .help = "seed of data, weights, training and paths",
     EXPERIMENT(seed)},
    {"texts", .kind = ATT_FLAG_TEXT, .value = "FILE",
     .help = "memorize: a file with one text per line (default: texts are made)", EXPERIMENT(texts)},
    {"mlp", .kind = ATT_FLAG_SWITCH,
     .help = "an MLP in every layer, as in the public code's memorisation (circle trains both)", EXPERIMENT(mlp)},
    {"shuffle", .kind = ATT_FLAG_SWITCH,
     .help = "train in a new order in every epoch; --no-shuffle is the public code's way except in memorisation",
     EXPERIMENT(shuffle)},
    {"threads", .kind = ATT_FLAG_INT, .value = "N", .help = "threads (default: all)", EXPERIMENT(threads), .low = 1,
     .high = 4096, .open = true},
};

static void defaults(att_context *context, void *values)
{
    (void)context;
    const att_experiment_options o = att_experiment_options_defaults();
    *(experiment_settings *)values =
        (experiment_settings){.repeats = o.repeats, .seed = o.seed, .shuffle = !o.in_order, .mlp = o.mlp};
}

static const att_flag_group group = {"Experiment", options, sizeof options / sizeof *options, .defaults = defaults};

static const att_flag_use uses[] = {{&group, offsetof(settings, experiment)},
                                    {&cli_group_output, offsetof(settings, output)}};

/* --- tables ------------------------------------------------------------------------------------------------------- */

static void print_score(const att_experiment_score *score)
{
    if (isnan(score->deviation))
        cli_print("  %.3f        ", score->mean);
    else
        cli_print("  %.3f ± %.3f", score->mean, score->deviation);
}

static void print_paths(const att_experiment_info *info, const att_experiment_result *r)
{
    cli_print("\nShare of the %lld tokens of %d samples that are classified correctly:\n\n", (long long)r->tokens,
              r->evaluation_samples);
    cli_print("path length");
    for (int sum = 0; sum < ATT_EXPERIMENT_SUMS; sum++)
        cli_print("  %2d paths     ", r->sums[sum]);
    cli_print("\n");
    for (int length = 0; length < r->lengths; length++) {
        cli_print("%11d", length);
        for (int sum = 0; sum < ATT_EXPERIMENT_SUMS; sum++)
            print_score(&r->paths[sum][length]);
        cli_print("\n");
    }
    cli_print("\nwhole network         %.3f  (public code: %.2f)\n", r->whole, info->published_whole);
    cli_print("most frequent class   %.3f  (public code: %.2f)\n", r->baseline, info->published_baseline);
}

static void print_circle(const att_experiment_result *r)
{
    cli_print("\n%d steps, each from the output of the last:\n\n", ATT_CIRCLE_STEPS);
    cli_print("variant  loss of a sample  mean error of the radius  distance of the points: start     end\n");
    for (int i = 0; i < r->circle_count; i++) {
        const att_circle_result *c = &r->circle[i];
        cli_print("%-7s  %16.3g  %24.3g  %30.3f  %6.3g\n", c->name, c->loss, c->radius_error, c->distance[0],
                  c->distance[1]);
    }
}

static void print_result(const att_experiment_info *info, const att_experiment_options *o,
                         const att_experiment_result *r)
{
    cli_print("%s: %s\n", info->name, info->summary);
    cli_print_wrapped(stdout, info->reading, 0);
    cli_print("\n");
    cli_print(
        "%d layers, %d heads, width %d, dropout 0.1%s; %s, learning rate %g, batches of %d, %d epochs, %lld updates, "
        "%s; seed %llu\n",
        info->depth, info->heads, info->width, o->mlp ? ", MLP in every layer" : "", info->optimizer, r->lr,
        info->batch_size, r->epochs, (long long)r->updates, o->in_order ? "not shuffled" : "shuffled",
        (unsigned long long)o->seed);
    if (!info->paths) {
        print_circle(r);
        return;
    }
    cli_print("loss of the last epoch, with dropout: %.4f per token\n", r->loss);
    print_paths(info, r);
    cli_print(
        "\nA path of length k uses k of the %d layers and one head in each, without skip connections; the states\n"
        "of several random paths are added, normed and classified. Mean ± standard deviation over %d draws of\n"
        "paths through one trained network (Dong et al. 2021, as in their public code).\n",
        info->depth, o->repeats);
}

/* --- JSON --------------------------------------------------------------------------------------------------------- */

static void write_score(att_json_writer *writer, const att_experiment_score *score)
{
    att_json_begin_object(writer);
    cli_json_number(writer, "mean", score->mean);
    cli_json_number(writer, "deviation", score->deviation);
    att_json_end_object(writer);
}

static void write_paths(att_json_writer *writer, const att_experiment_result *r)
{
    cli_json_integer(writer, "tokens", r->tokens);
    cli_json_number(writer, "loss", r->loss);
    cli_json_number(writer, "whole", r->whole);
    cli_json_number(writer, "baseline", r->baseline);
    att_json_key(writer, "paths");
    att_json_begin_array(writer);
    for (int sum = 0; sum < ATT_EXPERIMENT_SUMS; sum++) {
        att_json_begin_object(writer);
        cli_json_integer(writer, "summed", r->sums[sum]);
        att_json_key(writer, "by_length");
        att_json_begin_array(writer);
        for (int length = 0; length < r->lengths; length++)
            write_score(writer, &r->paths[sum][length]);
        att_json_end_array(writer);
        att_json_end_object(writer);
    }
    att_json_end_array(writer);
}

static void write_point(att_json_writer *writer, const double point[2])
{
    att_json_begin_array(writer);
    att_json_number(writer, point[0]);
    att_json_number(writer, point[1]);
    att_json_end_array(writer);
}

static void write_variant(att_json_writer *writer, const att_circle_result *c)
{
    static const char *const keys[] = {"first", "second"};
    att_json_begin_object(writer);
    cli_json_text(writer, "variant", c->name);
    cli_json_number(writer, "loss", c->loss);
    cli_json_number(writer, "radius_error", c->radius_error);
    cli_json_number(writer, "distance_start", c->distance[0]);
    cli_json_number(writer, "distance_end", c->distance[1]);
    for (int n = 0; n < 2; n++) {
        att_json_key(writer, keys[n]);
        att_json_begin_array(writer);
        for (int i = 0; i < ATT_CIRCLE_STEPS; i++)
            write_point(writer, c->points[i][n]);
        att_json_end_array(writer);
    }
    att_json_end_object(writer);
}

static void write_circle(att_json_writer *writer, const att_experiment_result *r)
{
    att_json_key(writer, "circle");
    att_json_begin_array(writer);
    for (int i = 0; i < r->circle_count; i++)
        write_variant(writer, &r->circle[i]);
    att_json_end_array(writer);
}

static int write_result(cli_app *cli, const char *path, const att_experiment_info *info,
                        const att_experiment_options *o, const att_experiment_result *r)
{
    att_json_writer *writer = NULL;
    int code = cli_check(cli, att_json_writer_create(cli->context, true, &writer));
    if (code != CLI_OK)
        return code;
    att_json_begin_object(writer);
    cli_json_text(writer, "experiment", info->name);
    cli_json_text(writer, "reading", info->reading);
    cli_json_integer(writer, "seed", (int64_t)o->seed);
    cli_json_integer(writer, "epochs", r->epochs);
    cli_json_integer(writer, "updates", r->updates);
    cli_json_number(writer, "lr", r->lr);
    cli_json_integer(writer, "training_samples", r->training_samples);
    if (info->paths) {
        cli_json_integer(writer, "evaluation_samples", r->evaluation_samples);
        cli_json_integer(writer, "repeats", o->repeats);
        write_paths(writer, r);
    } else {
        write_circle(writer, r);
    }
    att_json_end_object(writer);
    return cli_json_write(cli, writer, path);
}

/* --- the command -------------------------------------------------------------------------------------------------- */

static int run_experiment(cli_app *cli, const settings *s, const char *name)
{
    const experiment_settings *e = &s->experiment;
    const att_experiment_info *info = NULL;
    att_experiment_result result;
    cli_progress progress = cli_progress_to(cli, 1, 1000);
    const att_experiment_options o = {.epochs = e->epochs,
                                      .lr = e->lr,
                                      .repeats = e->repeats,
                                      .seed = e->seed,
                                      .texts = e->texts,
                                      .mlp = e->mlp,
                                      .in_order = !e->shuffle,
                                      .progress = cli_progress_show,
                                      .user = &progress};
    int code = cli_check(cli, att_experiment_find(cli->context, name, &info));
    if (code != CLI_OK)
        return CLI_USAGE;
    code = cli_check(cli, att_experiment_run(cli->context, name, &o, &result));
    cli_bar_clear(cli);
    if (code == CLI_OK && cli_prints(s->output.json))
        print_result(info, &o, &result);
    return code == CLI_OK && s->output.json ? write_result(cli, s->output.json, info, &o, &result) : code;
}

static int run(cli_app *cli, void *user, const char *const *names, int count)
{
    (void)count;
    const settings *s = user;
    int code = cli_file_check("--texts", s->experiment.texts);
    if (code == CLI_OK)
        code = cli_output_check(s->output.json);
    if (code == CLI_OK)
        code = cli_open(cli, s->experiment.threads);
    return code == CLI_OK ? run_experiment(cli, s, names[0]) : code;
}

const cli_command cli_command_experiment = {
    .name = "experiment",
    .summary = "repeats four published tasks on rank collapse",
    .operands = "NAME",
    .least_operands = 1,
    .most_operands = 1,
    .about =
        "The tasks of \"Attention is not all you need\" (Dong et al., ICML 2021).\n"
        "NAME is one of\n"
        "  sort      sorts 8 digits\n"
        "  hull      finds the vertices of the convex hull of 10 points\n"
        "  memorize  memorises random classes of the tokens of 500 texts\n"
        "  circle    moves two points along a circle, 300 steps from its own output\n"
        "The first three train a self-attention network of 6 layers without MLPs, and\n"
        "show how well single paths through it do: a path of length k uses k of the\n"
        "layers and one head in each, without skip connections. circle trains one layer\n"
        "with and without a skip connection and an MLP.",
    .example =
        "  attscope experiment sort\n"
        "  attscope experiment sort --lr 1e-5 --no-shuffle\n"
        "  attscope experiment memorize --texts sentences.txt --epochs 10\n"
        "  attscope experiment circle --json circle.json",
    .uses = uses,
    .use_count = sizeof uses / sizeof *uses,
    .settings_size = sizeof(settings),
    .run = run,
};
