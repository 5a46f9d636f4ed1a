/* attscope inspect: shows the contents of a checkpoint or of a data set. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "convert_heads.h"
#include "inspect_data.h"
#include "network.h"

enum { SHOWN = 512 }; /* as long as att_identity.origin */

typedef struct settings {
    att_recipe_network network;
    cli_output output;
} settings;

static const att_flag_use uses[] = {
    {&att_recipe_network_group, offsetof(settings, network)},
    {&cli_group_output, offsetof(settings, output)},
};

/* The file's contents, for output as text or JSON. */
typedef struct facts {
    const att_tensors *file;
    bool identified;
    att_identity identity;
    att_checkpoint_info training;
    int64_t parameters; /* number of elements in weights */
    bool has_forms;     /* there are heads that attend by position with a quadratic form */
    cli_degenerate degenerate;
    int code;           /* of the command: not CLI_OK if the weights do not fit the network */
    char refusal[1024]; /* why they do not; "": they do */
} facts;

/* Copies text from the file, truncated to fit and without control characters. Returns `shown`. */
static char *printable(const char *text, char shown[SHOWN])
{
    snprintf(shown, SHOWN, "%.*s", SHOWN - 1, text);
    return att_text_printable(shown, false);
}

/* Whether a tensor is a parameter: not a run's slot nor a buffer of batch norm. */
static bool is_parameter(const att_tensors *file, const char *name)
{
    static const char *const buffers[] = {".running_mean", ".running_var", ".num_batches_tracked"};
    for (int i = 0; i < 3; i++) {
        const char *end = strrchr(name, '.');
        if (end && strcmp(end, buffers[i]) == 0)
            return false;
    }
    return !att_checkpoint_owns(file, name);
}

/* Whether the caller changes what a new training run would start with other values: the head and the modules. */
static bool is_changed(const settings *s)
{
    static const char *const keys[] = {"task", "num_classes", "modules", "head"};
    bool changed = false;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        changed = changed || att_options_find(&s->network.options, keys[i]);
    return changed;
}

/* Says what a command that runs the network would say. */
static void refuse(cli_app *cli, att_status status, facts *f)
{
    snprintf(f->refusal, sizeof f->refusal, "%s", att_context_message(cli->context));
    f->code = cli_check(cli, status);
}

/* weights: NULL: those of the file are checked only. */
static int load_weights(cli_app *cli, const att_model *model, att_weights *weights, facts *f)
{
    const att_status status = weights ? att_model_load(model, f->file, weights) : att_model_check_file(model, f->file);
    if (status != ATT_OK)
        refuse(cli, status, f);
    return status == ATT_ERR_STOPPED ? f->code : CLI_OK;
}

/* Finds the degenerate heads of the network. */
static int collect_heads(cli_app *cli, const att_model *model, const att_weights *weights, facts *f)
{
    int count, code = CLI_OK;
    if (att_model_degenerate_heads(model, weights, NULL, 0, &count) != ATT_OK) {
        cli_note(cli, "%s", att_context_message(cli->context));
        return CLI_OK;
    }
    code = cli_heads_have_forms(cli, model, weights, &f->has_forms);
    return code == CLI_OK && f->has_forms ? cli_degenerate_find(cli, model, weights, &f->degenerate) : code;
}

static int collect_weights(cli_app *cli, facts *f)
{
    att_model *model = NULL;
    att_weights *weights = NULL;
    int code = cli_check(cli, att_model_create(cli->context, f->identity.name, &f->identity.options, ATT_F32, &model));
    if (code == CLI_OK && att_position_layers(model) > 0)
        code = cli_check(cli, att_weights_create(att_model_graph(model), "cpu", &weights));
    if (code == CLI_OK)
        code = load_weights(cli, model, weights, f);
    if (code == CLI_OK && f->code == CLI_OK && weights)
        code = collect_heads(cli, model, weights, f);
    att_weights_destroy(&weights);
    att_model_destroy(&model);
    return code;
}

static int collect(cli_app *cli, const settings *s, const char *path, facts *f)
{
    for (int i = 0; i < att_tensors_count(f->file); i++)
        if (is_parameter(f->file, att_tensors_at(f->file, i).name))
            f->parameters += att_tensors_at(f->file, i).count;
    att_status status =
        att_model_identify(cli->context, f->file, path, s->network.model, &s->network.options, &f->identity);
    f->identified = status == ATT_OK;
    if (!f->identified && (s->network.model || status == ATT_ERR_STOPPED))
        return cli_identity_check(cli, s->network.model, status);
    if (status == ATT_ERR_MISMATCH || status == ATT_ERR_FORMAT)
        refuse(cli, status, f);
    else if (!f->identified)
        cli_note(cli, "%s", att_context_message(cli->context));
    int code = f->identified && !is_changed(s) ? collect_weights(cli, f) : CLI_OK;
    if (code != CLI_OK)
        return code;
    return cli_check(cli, att_checkpoint_describe(cli->context, f->file, &f->training));
}

/* --- text --------------------------------------------------------------------------------------------------------- */

/* Width of the column of keys; 14 is enough for most networks. */
static int key_width(const facts *f, const att_family_info *family)
{
    char texts[ATT_OPTION_NUMBERS][ATT_OPTION_TEXT_BYTES];
    int width = 14;
    for (int i = 0; i < family->option_count; i++) {
        int length = (int)strlen(family->options[i].key);
        if (length > width && att_option_format(&family->options[i], &f->identity.options, texts) > 0)
            width = length;
    }
    return width;
}

/* Prints all options of the network's family. */
static void print_options(const facts *f)
{
    const char *title = "options";
    att_family_info family = cli_family_of(&f->identity);
    for (int i = 0; i < family.option_count; i++) {
        char texts[ATT_OPTION_NUMBERS][ATT_OPTION_TEXT_BYTES];
        int count = att_option_format(&family.options[i], &f->identity.options, texts);
        if (count == 0)
            continue;
        cli_print("%-12s %-*s %s%s%s\n", title, key_width(f, &family), family.options[i].key, texts[0],
                  count > 1 ? " x " : "", count > 1 ? texts[1] : "");
        title = "";
    }
}

static void print_network(const facts *f)
{
    const att_preprocess *p = &f->identity.preprocess;
    char shown[SHOWN];
    cli_print("network      %s\n", f->identity.name);
    cli_print("known from   %s\n", printable(f->identity.origin, shown));
    print_options(f);
    if (p->in_chans == 0)
        return;
    cli_print("images       %d x %d x %d, mean", p->height, p->width, p->in_chans);
    for (int i = 0; i < p->in_chans && i < 3; i++)
        cli_print(" %g", p->mean[i]);
    cli_print(", std");
    for (int i = 0; i < p->in_chans && i < 3; i++)
        cli_print(" %g", p->std[i]);
    cli_print(", crop %g %s, %s\n", p->crop_pct, p->crop_mode, p->interpolation);
}

static const char train_prefix[] = "attscope.train.";

/* Whether only a resume needs the metadata. Its values are mostly bit patterns; print_training() shows the important
 * ones in readable form. */
static bool is_internal(const char *what)
{
    static const char *const internal[] = {"epoch",       "batch",      "update",  "loss_sum", "loss_count", "metric",
                                           "best_metric", "best_epoch", "evicted", "history",  "classes"};
    for (size_t i = 0; i < sizeof internal / sizeof *internal; i++)
        if (strcmp(what, internal[i]) == 0)
            return true;
    return false;
}

static void print_training(const facts *f)
{
    const att_checkpoint_info *t = &f->training;
    cli_print("training     %d epoch%s and %lld batch%s, %lld update%s, seed %llu%s\n", t->epoch, cli_plural(t->epoch),
              (long long)t->batch, t->batch == 1 ? "" : "es", (long long)t->update, cli_plural(t->update),
              (unsigned long long)t->seed, t->ema ? ", with averaged weights" : "");
    if (isfinite(t->metric))
        cli_print("metric       %g, best %g %s %lld\n", t->metric, t->best_metric,
                  t->best_update >= 0 ? "after update" : "in epoch",
                  (long long)(t->best_update >= 0 ? t->best_update : t->best_epoch + 1));
    for (int i = 0; i < att_tensors_metadata_count(f->file); i++) {
        const char *key = att_tensors_metadata_key(f->file, i);
        char name[SHOWN], value[SHOWN];
        if (cli_has_prefix(key, train_prefix) && !is_internal(key + strlen(train_prefix)))
            cli_print("  %-22s %.200s\n", printable(key + strlen(train_prefix), name),
                      printable(att_tensors_metadata(f->file, key), value));
    }
}

static void print_tensors(const facts *f)
{
    cli_print("\n%-48s %-5s shape\n", "tensor", "type");
    for (int i = 0; i < att_tensors_count(f->file); i++) {
        att_tensors_info t = att_tensors_at(f->file, i);
        char name[SHOWN], shape[96];
        cli_print("%-48s %-5s %s\n", printable(t.name, name), att_safetensors_dtype_name(t.dtype),
                  att_shape_format(t.shape, shape, sizeof shape));
    }
}

/* --- JSON --------------------------------------------------------------------------------------------------------- */

static void write_network(att_json_writer *w, const facts *f)
{
    att_family_info family = cli_family_of(&f->identity);
    att_json_put_string(w, "model", f->identity.name);
    att_json_put_string(w, "family", family.name);
    att_json_put_string(w, "origin", f->identity.origin);
    for (int i = 0; i < family.option_count; i++)
        cli_json_option(w, &family.options[i], &f->identity.options);
    cli_json_preprocess(w, &f->identity.preprocess);
}

static void write_training(att_json_writer *w, const facts *f)
{
    const att_checkpoint_info *t = &f->training;
    att_json_put_object(w, "training");
    att_json_put_integer(w, "epoch", t->epoch);
    att_json_put_integer(w, "batch", t->batch);
    att_json_put_integer(w, "update", t->update);
    att_json_put_number(w, "metric", t->metric);
    att_json_put_number(w, "best_metric", t->best_metric);
    att_json_put_integer(w, "best_epoch", t->best_epoch);
    att_json_put_integer(w, "best_update", t->best_update);
    for (int i = 0; i < att_tensors_metadata_count(f->file); i++) {
        const char *key = att_tensors_metadata_key(f->file, i);
        if (cli_has_prefix(key, train_prefix) && !is_internal(key + strlen(train_prefix)))
            att_json_put_string(w, key, att_tensors_metadata(f->file, key));
    }
    att_json_end_object(w);
}

static void write_tensors(att_json_writer *w, const facts *f)
{
    att_json_put_array(w, "tensors");
    for (int i = 0; i < att_tensors_count(f->file); i++) {
        att_tensors_info t = att_tensors_at(f->file, i);
        att_json_begin_object(w);
        att_json_put_string(w, "name", t.name);
        att_json_put_string(w, "dtype", att_safetensors_dtype_name(t.dtype));
        att_json_put_array(w, "shape");
        for (int d = 0; d < t.shape.rank; d++)
            att_json_integer(w, t.shape.dims[d]);
        att_json_end_array(w);
        att_json_end_object(w);
    }
    att_json_end_array(w);
}

static void write_facts(att_json_writer *w, const void *from)
{
    const facts *f = from;
    att_json_put_string(w, "file", att_tensors_path(f->file));
    if (*att_tensors_origin(f->file))
        att_json_put_string(w, "taken", att_tensors_origin(f->file));
    if (f->identified)
        write_network(w, f);
    if (*f->refusal)
        att_json_put_string(w, "refusal", f->refusal);
    att_json_put_integer(w, "param_count", f->parameters);
    if (f->has_forms)
        cli_degenerate_write(&f->degenerate, w);
    if (f->training.training)
        write_training(w, f);
    write_tensors(w, f);
}

static int show(cli_app *cli, const settings *s, const facts *f)
{
    if (cli_prints(s->output.json)) {
        char shown[SHOWN];
        cli_print("file         %s\n", att_tensors_path(f->file));
        if (*att_tensors_origin(f->file))
            cli_print("tensors      %s\n", printable(att_tensors_origin(f->file), shown));
        if (f->identified)
            print_network(f);
        cli_print("parameters   %lld\n", (long long)f->parameters);
        if (f->has_forms)
            cli_degenerate_print("degenerate", &f->degenerate);
        if (f->training.training)
            print_training(f);
        print_tensors(f);
    }
    return cli_json_save(cli, s->output.json, write_facts, f);
}

static int inspect_checkpoint(cli_app *cli, const settings *s, const char *operand)
{
    char path[CLI_PATH] = "";
    att_tensors *file = NULL;
    int code = cli_checkpoint_locate(cli, operand, path);
    if (code == CLI_OK)
        code = cli_tensors_open(cli, path, s->network.model, &file);
    facts f = {.file = file};
    if (code == CLI_OK)
        code = collect(cli, s, path, &f);
    if (code == CLI_OK)
        code = show(cli, s, &f);
    if (code == CLI_OK)
        code = f.code;
    free(f.degenerate.heads);
    att_tensors_close(&file);
    return code;
}

static int run(cli_app *cli, void *user, const char *const *operands, int count)
{
    (void)count;
    const settings *s = user;
    int code = cli_open(cli, 1);
    if (code != CLI_OK)
        return code;
    return cli_is_data(cli, operands[0]) ? cli_inspect_data(cli, operands[0], s->output.json)
                                         : inspect_checkpoint(cli, s, operands[0]);
}

const cli_command cli_command_inspect = {
    .name = "inspect",
    .summary = "shows what a checkpoint or a data set holds",
    .operands = "CHECKPOINT|DATA",
    .least_operands = 1,
    .most_operands = 1,
    .about = CLI_CHECKPOINT_HELP "\n\n" CLI_DATA_HELP
                                 "\n\n"
                                 "If the weights of a checkpoint do not fit its network, the command says what\n"
                                 "predict would say, and its exit status is 1. It is 0 if the network is not named\n"
                                 "or not supported: the tensors are shown.\n\n"
                                 "Of a data set, images, boxes, classes and sizes of images are shown; the flags\n"
                                 "of the network are for checkpoints.",
    .example =
        "  attscope inspect run/last.safetensors\n"
        "  attscope inspect coco",
    .uses = uses,
    .use_count = sizeof uses / sizeof *uses,
    .settings_size = sizeof(settings),
    .run = run,
};
