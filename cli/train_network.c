#include "train_network.h"

#include <string.h>

#include "figures.h"
#include "network.h"

static void copy_number(const att_option_values *from, const char *key, att_option_values *to)
{
    const att_option_value *value = att_options_find(from, key);
    if (value)
        att_options_set(to, key, value->numbers[0]);
    else
        att_options_unset(to, key);
}

/* Options that training alone reads: flags say them, not the checkpoint. */
static void copy_training_options(const att_option_values *flags, const char *network, att_option_values *to)
{
    const att_family_info family = att_model_family_of(network);
    for (int i = 0; i < family.option_count; i++)
        if (family.options[i].training)
            copy_number(flags, family.options[i].key, to);
}

/* --- finding ------------------------------------------------------------------------------------------------------ */

/* Of a folder, takes the file in it that evaluation would take. */
static int find_initial(cli_app *cli, cli_train_network *n)
{
    int code = cli_file_check("--initial-checkpoint", n->checkpoint);
    if (code == CLI_OK)
        code = cli_checkpoint_locate(cli, n->checkpoint, n->path);
    n->checkpoint = n->path;
    return code;
}

static int read_checkpoint(cli_app *cli, train_settings *s, cli_train_network *n)
{
    cli_network *network = &s->network;
    att_tensors *file = NULL;
    int code = n->resumes ? CLI_OK : find_initial(cli, n);
    if (code == CLI_OK)
        code = cli_tensors_open(cli, n->checkpoint, &file);
    if (code != CLI_OK)
        return code;
    code = cli_identify(cli, file, n->checkpoint, network, &n->identity);
    if (code == CLI_OK)
        code = cli_check(cli, att_checkpoint_describe(cli->context, file, &n->stood));
    att_tensors_close(&file);
    if (code != CLI_OK)
        return code;
    att_preprocess taken = n->identity.preprocess;
    code = cli_preprocess_flags(&s->preprocess, &taken);
    if (code != CLI_OK)
        return code;
    cli_identity_say(cli, &n->identity, &taken);
    if (!n->resumes && n->stood.ema)
        cli_note(cli,
                 "%s has averaged weights too, which are not taken: attscope convert --use-ema makes a file of them",
                 n->checkpoint);
    const att_option_values flags = network->options;
    network->options = n->identity.options;
    if (!n->resumes)
        copy_number(&flags, "num_classes", &network->options);
    copy_training_options(&flags, n->identity.name, &network->options);
    n->name = n->identity.name;
    return CLI_OK;
}

static att_status build(cli_app *cli, const train_settings *s, const cli_train_network *n, att_model **model)
{
    att_option_values options = s->network.options;
    if (!att_options_find(&options, "num_classes"))
        att_options_set(&options, "num_classes", 1);
    return att_model_create(cli->context, n->name, &options, ATT_F32, model);
}

bool cli_train_network_sees(cli_app *cli, const train_settings *s, const cli_train_network *n, const char *with)
{
    att_model *model = NULL;
    att_measure *measure = NULL;
    att_status status = build(cli, s, n, &model);
    if (status == ATT_OK)
        status = att_measure_create(att_model_graph(model), with, "*", &measure);
    att_measure_destroy(&measure);
    att_model_destroy(&model);
    return status != ATT_ERR_NOT_FOUND;
}

int cli_train_network_try(cli_app *cli, const train_settings *s, cli_train_network *n, const char *with,
                          const char *nodes)
{
    att_model *model = NULL;
    att_measure *measure = NULL;
    int code = cli_check(cli, build(cli, s, n, &model));
    if (code == CLI_OK) {
        const att_task_info task = att_model_task(model);
        code = cli_train_task_check(s, &task);
    }
    if (code == CLI_OK) {
        att_preprocess preprocess = att_model_preprocess(model);
        n->height = preprocess.height;
        n->width = preprocess.width;
        code = cli_preprocess_flags(&s->preprocess, &preprocess);
    }
    if (code == CLI_OK && with)
        code = cli_instruments_result(cli, att_measure_create(att_model_graph(model), with, nodes, &measure));
    att_measure_destroy(&measure);
    att_model_destroy(&model);
    return code;
}

int cli_train_network_find(cli_app *cli, train_settings *s, const char *resume, cli_train_network *n)
{
    const train_measure *m = &s->measure;
    int code = m->with ? cli_instruments_check(cli, m->with) : CLI_OK;
    if (code != CLI_OK)
        return code;
    n->resumes = *resume != '\0';
    n->checkpoint = n->resumes ? resume : s->files.initial_checkpoint;
    n->name = s->network.model;
    code = n->checkpoint ? read_checkpoint(cli, s, n) : CLI_OK;
    if (code == CLI_OK && !n->name)
        return cli_usage("train needs --model NAME; attscope models lists them");
    if (code == CLI_OK && !n->checkpoint)
        code = cli_model_check(cli, n->name);
    return code == CLI_OK ? cli_train_network_try(cli, s, n, m->with, m->nodes) : code;
}

/* --- making ------------------------------------------------------------------------------------------------------- */

/* As many classes as the data has, which a class map may say; a training that is continued keeps its own. */
static void settle_classes(cli_app *cli, train_settings *s, const att_dataset *data)
{
    int in_data = att_dataset_class_count(data);
    bool mapped = att_dataset_numbering(data) == ATT_NUMBERED_BY_MAP;
    if (att_options_find(&s->network.options, "num_classes"))
        return;
    att_options_set(&s->network.options, "num_classes", in_data);
    cli_note(cli, "--num-classes %d, as many as %s", in_data, mapped ? "the class map names" : "the data has");
}

static int check_classes(const att_model *model, const att_dataset *data)
{
    int in_data = att_dataset_class_count(data), classes = att_model_classes(model);
    if (att_model_task(model).head_scope || classes >= in_data)
        return CLI_OK;
    return cli_usage("--num-classes %d, but the data has %d classes, each of which needs an output", classes, in_data);
}

/* What a new network and the images leave unused of each other. */
static void compare_images(cli_app *cli, const att_dataset *data, const att_preprocess *network)
{
    att_image image;
    if (network->in_chans == 3 && att_dataset_colours(data, cli->context) == ATT_COLOURS_GREY)
        cli_note(cli, "the images are grey: --in-chans 1 gives a network that takes them as they are");
    cli_colours_say(cli, data, network->in_chans);
    if (att_dataset_read(data, cli->context, 0, network->in_chans, &image) != ATT_OK)
        return;
    if (2 * image.width <= network->width && 2 * image.height <= network->height)
        cli_note(cli,
                 "images of %d x %d pixels are enlarged to %d x %d; --img-size and --patch-size give a smaller network",
                 image.width, image.height, network->width, network->height);
    att_image_free(cli->context, &image);
}

static const char *describe_modules(const att_option_values *options)
{
    const char *modules = att_options_text(options, "modules");
    return strcmp(modules, "none") == 0 ? "no modules" : modules;
}

static void say_network(cli_app *cli, const cli_train_network *n)
{
    char head[CLI_HEAD_TEXT];
    cli_note(cli, "trains %s, %d x %d x %d, %s, %lld parameters, %s", n->name, n->preprocess.height,
             n->preprocess.width, n->preprocess.in_chans, cli_head_text(att_model_options(n->model), head),
             (long long)att_graph_parameter_elements(att_model_graph(n->model)),
             describe_modules(att_model_options(n->model)));
}

/* Of instruments that compare answers with classes nothing is recorded while images are mixed. */
static void say_unmeasured(cli_app *cli, const att_measure *measure)
{
    for (int i = 0; i < att_measure_instrument_count(measure); i++)
        if (att_measure_instrument_at(measure, i).needs_labels)
            cli_note(cli, "%s is not measured while training: mixed images have no single class",
                     att_measure_instrument_at(measure, i).name);
}

int cli_train_network_make(cli_app *cli, train_settings *s, const att_dataset *data, cli_train_network *n)
{
    const train_measure *m = &s->measure;
    settle_classes(cli, s, data);
    int code = cli_check(cli, att_model_create(cli->context, n->name, &s->network.options, ATT_F32, &n->model));
    if (code == CLI_OK)
        code = check_classes(n->model, data);
    if (code != CLI_OK)
        return code;
    n->preprocess = n->checkpoint ? n->identity.preprocess : att_model_preprocess(n->model);
    code = cli_preprocess_flags(&s->preprocess, &n->preprocess);
    att_model_set_preprocess(n->model, &n->preprocess);
    if (code == CLI_OK)
        say_network(cli, n);
    if (code == CLI_OK && !n->checkpoint)
        compare_images(cli, data, &n->preprocess);
    s->recipe.measure_every = m->every;
    if (code == CLI_OK && m->with)
        code =
            cli_instruments_result(cli, att_measure_create(att_model_graph(n->model), m->with, m->nodes, &n->measure));
    if (n->measure && att_train_mixes(&s->recipe))
        say_unmeasured(cli, n->measure);
    return code == CLI_OK ? cli_check(cli, att_weights_create(att_model_graph(n->model), "cpu", &n->weights)) : code;
}

/* --- filling ------------------------------------------------------------------------------------------------------ */

static int load(cli_app *cli, const cli_train_network *n)
{
    att_tensors *file;
    att_new_head head;
    int code = cli_check(cli, att_tensors_open(cli->context, n->checkpoint, &file));
    if (code != CLI_OK)
        return code;
    code = cli_check(cli, att_model_load_pretrained(n->model, file, n->weights, &head));
    att_tensors_close(&file);
    if (code == CLI_OK && *head.names && head.classes == 0)
        cli_note(cli, "%s: initialised, because %s has none", head.names, n->checkpoint);
    else if (code == CLI_OK && *head.names)
        cli_note(cli, "%s: re-initialised, because the file has %lld classes and the network %d", head.names,
                 (long long)head.classes, att_model_classes(n->model));
    return code;
}

int cli_train_network_fill(cli_app *cli, const train_settings *s, cli_train_network *n)
{
    if (n->resumes)
        return CLI_OK;
    int code = cli_check(cli, att_weights_initialise(n->weights, s->recipe.seed));
    return code == CLI_OK && n->checkpoint ? load(cli, n) : code;
}

void cli_train_network_free(cli_train_network *n)
{
    att_measure_destroy(&n->measure);
    att_weights_destroy(&n->weights);
    att_model_destroy(&n->model);
}
