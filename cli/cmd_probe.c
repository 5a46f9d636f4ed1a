/* attscope probe: a linear classifier on the features of a frozen network. */
#include <attscope/probe.h>

#include "image_features.h"
#include "progress.h"

static const char OPERANDS[] = "CHECKPOINT TRAIN VAL";

typedef struct settings {
    const char *of;
    att_probe_options probe;
    cli_evaluation on;
    cli_output output;
    const char *train, *tested; /* operands */
} settings;

static const att_flag probe_options[] = {
    {"c", .kind = ATT_FLAG_REAL, .value = "X",
     .help = "the inverse of the regularisation, as scikit-learn's LogisticRegression(C=X); without it, C is chosen by "
             "images of TRAIN that are held out",
     ATT_FLAG_AT(settings, probe.c), .low = 1e-12, .high = 1e12, .open = true},
    {"held-out", .kind = ATT_FLAG_REAL, .value = "SHARE", .start = "0.2",
     .help = "share of the images of each class of TRAIN that are held out to choose C",
     ATT_FLAG_AT(settings, probe.held_out), .low = 1e-6, .high = 0.999999},
    {"max-iter", .kind = ATT_FLAG_INT, .value = "N", .start = "1000", .help = "most iterations of L-BFGS for each C",
     ATT_FLAG_AT(settings, probe.iterations), .low = 1, .high = 1e6},
    {"seed", .kind = ATT_FLAG_SEED, .value = "N", .start = "42", .help = "chooses the images that are held out",
     ATT_FLAG_AT(settings, probe.seed)},
};
static const att_flag_group probe_group = {"Classifier", .rows = probe_options,
                                           .row_count = sizeof probe_options / sizeof *probe_options};

static const att_flag_use uses[] = {
    {&cli_group_features, offsetof(settings, of)},
    {&probe_group, 0},
    {&cli_group_operand_data, offsetof(settings, on.data)},
    {&att_recipe_network_group, offsetof(settings, on.network)},
    {&att_recipe_preprocess_group, offsetof(settings, on.preprocess)},
    {&att_recipe_engine_group, offsetof(settings, on.engine)},
    {&cli_group_output, offsetof(settings, output)},
};

typedef struct job {
    cli_app *cli;
    const settings *settings;
    cli_features features;
    att_probe probe;
    att_embedding_result result;
} job;

/* --- result ------------------------------------------------------------------------------------------------------- */

static void write_fits(att_json_writer *writer, const att_probe *probe)
{
    att_json_put_array(writer, "fits");
    for (int i = 0; i < probe->fit_count; i++) {
        att_json_begin_object(writer);
        att_json_put_number(writer, "c", probe->fits[i].c);
        att_json_put_number(writer, "held_out_accuracy", probe->fits[i].top1);
        att_json_put_integer(writer, "iterations", probe->fits[i].iterations);
        att_json_put_bool(writer, "converged", probe->fits[i].converged);
        att_json_end_object(writer);
    }
    att_json_end_array(writer);
}

static void write_result(att_json_writer *writer, const void *from)
{
    const job *j = from;
    const settings *s = j->settings;
    att_json_put_string(writer, "model", j->features.loaded.identity->name);
    att_json_put_string(writer, "checkpoint", s->on.data.checkpoint);
    att_json_put_string(writer, "train", s->train);
    att_json_put_string(writer, "data", s->tested);
    att_json_put_string(writer, "split", att_dataset_split(j->features.dataset));
    att_json_put_string(writer, "of", s->of);
    att_json_put_integer(writer, "channels", j->probe.channels);
    att_json_put_integer(writer, "classes", j->probe.classes);
    att_json_put_integer(writer, "train_count", j->features.train.count);
    att_json_put_integer(writer, "held_out_count", j->probe.held_out_count);
    att_json_put_integer(writer, "count", j->result.count);
    att_json_put_number(writer, "c", j->probe.c);
    att_json_put_number(writer, "objective", j->probe.objective);
    att_json_put_integer(writer, "iterations", j->probe.iterations);
    att_json_put_bool(writer, "converged", j->probe.converged);
    att_json_put_number(writer, "accuracy", j->result.top1);
    if (cli_features_first5(j->probe.classes))
        att_json_put_number(writer, "accuracy_first5", j->result.top5);
    if (j->probe.fit_count > 0)
        write_fits(writer, &j->probe);
}

static void print_result(const job *j)
{
    const att_probe *p = &j->probe;
    char text[CLI_FEATURES_TEXT];
    for (int i = 0; i < p->fit_count; i++)
        cli_print("C = %-11.4g held-out top-1 %6.2f %%%s\n", p->fits[i].c, p->fits[i].top1,
                  p->fits[i].converged ? "" : "   not converged");
    cli_print("C = %-11.4g %s   %lld image%s, %lld to train\n", p->c, cli_features_text(&j->result, p->classes, text),
              (long long)j->result.count, cli_plural(j->result.count), (long long)j->features.train.count);
}

/* --- command ------------------------------------------------------------------------------------------------------ */

/* Says why the choice of C is not to be relied on. */
static void note_choice(const job *j)
{
    enum { FEW = 100 }; /* held-out images, of which one is a percentage point */
    const att_probe *p = &j->probe;
    double least = p->c, most = p->c;
    for (int i = 0; i < p->fit_count; i++) {
        least = p->fits[i].c < least ? p->fits[i].c : least;
        most = p->fits[i].c > most ? p->fits[i].c : most;
    }
    if (p->fit_count > 0 && (p->c == least || p->c == most))
        cli_note(j->cli, "the chosen C = %g is the %s value that is tried; --c X fits with another one", p->c,
                 p->c == least ? "least" : "largest");
    if (p->fit_count > 0 && p->held_out_count < FEW)
        cli_note(
            j->cli,
            "C was chosen by %lld held-out image%s, of which one is %.2g percentage points; --held-out SHARE holds "
            "out more, --c X sets C",
            (long long)p->held_out_count, cli_plural(p->held_out_count), 100 / (double)p->held_out_count);
}

static int fit(job *j)
{
    cli_progress progress = cli_progress_to(j->cli, 1, 1);
    att_probe_options options = j->settings->probe;
    options.progress = cli_progress_show;
    options.progress_user = &progress;
    const int code = cli_check(j->cli, att_embedding_probe(j->cli->context, &j->features.train, &options, &j->probe));
    cli_bar_clear(j->cli);
    if (code == CLI_OK && !j->probe.converged)
        cli_note(j->cli,
                 "the classifier has not converged after %d iterations at C = %g; --max-iter N allows more of them",
                 j->probe.iterations, j->probe.c);
    if (code == CLI_OK)
        note_choice(j);
    return code;
}

static int open_data(job *j)
{
    const settings *s = j->settings;
    cli_evaluation on = s->on;
    on.data.data_dir = s->tested;
    const int code = cli_evaluation_open(j->cli, &on, &j->features.loaded, &j->features.dataset);
    if (code != CLI_OK)
        return code;
    return cli_features_open_train(j->cli, &s->on, &j->features.loaded, s->train, j->features.dataset,
                                   &j->features.train_dataset);
}

static int run_all(job *j)
{
    const settings *s = j->settings;
    int code = cli_evaluation_load(j->cli, &s->on, &j->features.loaded);
    if (code == CLI_OK)
        code = open_data(j);
    if (code == CLI_OK)
        code = cli_features_find(j->cli, &s->on, &j->features.loaded, s->of, j->features.train_dataset,
                                 &j->features.train);
    if (code == CLI_OK)
        code = cli_features_find(j->cli, &s->on, &j->features.loaded, s->of, j->features.dataset, &j->features.found);
    if (code == CLI_OK)
        code = fit(j);
    if (code == CLI_OK)
        code = cli_check(j->cli, att_probe_classify(j->cli->context, &j->probe, &j->features.found, &j->result));
    if (code == CLI_OK && cli_prints(s->output.json))
        print_result(j);
    return code == CLI_OK ? cli_json_save(j->cli, s->output.json, write_result, j) : code;
}

static int check(const settings *s)
{
    const cli_named_output outputs[] = {{"--json", s->output.json, false}};
    const int code = cli_features_check("probe", OPERANDS, &s->on.data);
    return code == CLI_OK ? cli_outputs_check(outputs, sizeof outputs / sizeof *outputs) : code;
}

static int run(cli_app *cli, void *user, const char *const *operands, int count)
{
    settings *s = user;
    job j = {.cli = cli, .settings = s};
    (void)count;
    int code = check(s);
    s->on.data.checkpoint = operands[0];
    s->train = operands[1];
    s->tested = operands[2];
    if (!s->of)
        s->of = "features";
    if (code == CLI_OK)
        code = cli_engine_open(cli, &s->on.engine);
    if (code == CLI_OK)
        code = run_all(&j);
    if (cli->context)
        att_probe_free(cli->context, &j.probe);
    cli_features_close(cli, &j.features);
    return code;
}

const cli_command cli_command_probe = {
    .name = "probe",
    .summary = "fits a linear classifier to features of a frozen network",
    .operands = OPERANDS,
    .least_operands = 3,
    .most_operands = 3,
    .about = CLI_CHECKPOINT_HELP
    "\n\n"
    "Computes the features of the images of TRAIN (its split train) and of VAL (its\n"
    "split validation, unless --split names another), fits logistic regression to\n"
    "those of TRAIN by L-BFGS, and prints top-1 on VAL. The network's weights stay as\n"
    "they are. C, the inverse of the regularisation, is chosen as in the evaluation of\n"
    "CLIP, by images of TRAIN that are held out. VAL does not choose anything. TRAIN\n"
    "and VAL can be the same data set with two splits. Each is given as DATA is for\n"
    "other commands:\n\n" CLI_DATA_HELP,
    .example =
        "  attscope probe deit_tiny_patch16_224.safetensors cifar10 cifar10\n"
        "  attscope probe deit_tiny_patch16_224.safetensors imagenet/train imagenet/val --c 1",
    .uses = uses,
    .use_count = sizeof uses / sizeof *uses,
    .settings_size = sizeof(settings),
    .run = run,
};
