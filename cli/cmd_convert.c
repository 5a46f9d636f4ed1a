/* attscope convert: writes a checkpoint's weights as safetensors, also those of a network made from it. */
#include <stdlib.h>
#include <string.h>

#include <attscope/convert.h>

#include "cli.h"
#include "convert_heads.h"
#include "convert_layers.h"
#include "flags.h"
#include "network.h"
#include "paths.h"

static const char ema_prefix[] = "ema.", suffix[] = ".safetensors";
static const char own_metadata[] = "attscope", classes_key[] = "attscope.train.classes",
                  colours_key[] = "attscope.train.class_colours", task_keys[] = "attscope.train.task.",
                  origin_key[] = "attscope.origin";

typedef struct choice {
    bool use_ema;
    const char *program; /* whose form OUT gets; NULL: attscope's */
} choice;

typedef struct settings {
    choice choice;
    cli_attention_flags attention;
    cli_heads_flags heads;
    att_recipe_network network;
    att_recipe_preprocess preprocess;
    cli_output output;
} settings;

static const char preprocess_flags[] = "--mean, --std, --crop-pct, --crop-mode and --interpolation";
static const char transformers[] = "transformers";
static const char *const programs[] = {transformers, "torchvision", NULL};

static const att_flag choice_options[] = {
    {"use-ema", .kind = ATT_FLAG_SWITCH, .help = "use the averaged weights", ATT_FLAG_AT(choice, use_ema)},
    {"to", .kind = ATT_FLAG_TEXT, .value = "PROGRAM", .help = "write the network for this program", .choices = programs,
     ATT_FLAG_AT(choice, program)},
};
static const att_flag_group choice_group = {"Weights", .rows = choice_options,
                                            .row_count = sizeof choice_options / sizeof *choice_options};

static const att_flag_use uses[] = {
    {&choice_group, offsetof(settings, choice)},
    {&cli_attention_group, offsetof(settings, attention)},
    {&cli_heads_group, offsetof(settings, heads)},
    {&att_recipe_network_group, offsetof(settings, network)},
    {&att_recipe_preprocess_group, offsetof(settings, preprocess)},
    {&cli_group_output, offsetof(settings, output)},
};

/* One conversion. */
typedef struct job {
    cli_app *cli;
    const settings *settings;
    const char *checkpoint, *out;             /* out may be NULL with --to-convolution */
    char path[CLI_PATH];                      /* path of the input file; `checkpoint` may be its folder */
    bool is_folder;                           /* `out` is a folder that timm is to open */
    char weights[CLI_PATH], config[CLI_PATH]; /* of a folder: its files; `config` is "" if it is not written */
    att_tensors *file;
    char origin[2048];    /* where the weights come from */
    att_network *network; /* the identified network; NULL: not identified */
    att_identity identity;
    /* The network that is written in its place, if there are flags for one. */
    cli_conversion layers;
    cli_pruned pruned;
    att_safetensors_tensor *tensors;
    int *indices; /* index of each tensor in `file` */
    att_safetensors_pair *metadata;
    int count, metadata_count;
    int dropped; /* number of tensors that are not written */
    int64_t elements, bytes;
} job;

/* --- tensors ------------------------------------------------------------------------------------------------------ */

/* Returns the tensor's name in the output; NULL if the tensor is not written. */
static const char *output_name(const job *j, const char *name)
{
    bool beside = att_checkpoint_owns(j->file, name);
    if (j->settings->choice.use_ema)
        return beside && cli_has_prefix(name, ema_prefix) ? name + strlen(ema_prefix) : NULL;
    return beside ? NULL : name;
}

static int choose_tensors(job *j)
{
    int count = att_tensors_count(j->file);
    j->tensors = calloc((size_t)count + 1, sizeof *j->tensors);
    j->indices = calloc((size_t)count + 1, sizeof *j->indices);
    if (!j->tensors || !j->indices)
        return cli_failure("no memory for the list of tensors");
    for (int i = 0; i < count; i++) {
        att_tensors_info info = att_tensors_at(j->file, i);
        const char *name = output_name(j, info.name);
        if (!name) {
            j->dropped++;
            continue;
        }
        j->tensors[j->count] = (att_safetensors_tensor){.name = name, .dtype = info.dtype, .shape = info.shape};
        j->indices[j->count++] = i;
        j->elements += info.count;
        j->bytes += info.count * (int64_t)att_safetensors_dtype_size(info.dtype);
    }
    if (j->settings->choice.use_ema && j->count == 0)
        return cli_failure("%s holds no averaged weights beside its weights", j->path);
    return CLI_OK;
}

static att_status fill(void *user, int index, void *out, size_t bytes)
{
    const job *j = user;
    const att_safetensors_tensor *tensor = &j->tensors[index];
    int64_t count = (int64_t)(bytes / att_safetensors_dtype_size(tensor->dtype));
    return att_tensors_read(j->file, j->indices[index], tensor->dtype, out, count);
}

/* --- metadata ----------------------------------------------------------------------------------------------------- */

static void add_metadata(job *j, const char *key, const char *value)
{
    j->metadata[j->metadata_count++] = (att_safetensors_pair){key, value};
}

/* Adds the class names that the file itself lacks: those of the config.json beside it, which does not belong to the
 * output, or the name of the data set whose names are built in. */
static void add_class_names(job *j)
{
    const char *names = att_network_trained_names(j->network), *known = att_network_known_classes(j->network);
    if (names && !att_checkpoint_classes(j->file))
        add_metadata(j, classes_key, names);
    else if (known)
        add_metadata(j, ATT_CLASSES_KEY, known);
}

/* Keeps the metadata of other programs. Of attscope's own metadata, keeps the entries that describe the weights, not
 * those that describe the training. */
static int choose_metadata(job *j, const char *identity)
{
    enum { OWN = 4 };
    int count = att_tensors_metadata_count(j->file);
    j->metadata = calloc((size_t)count + OWN, sizeof *j->metadata);
    if (!j->metadata)
        return cli_failure("no memory for the metadata");
    for (int i = 0; i < count; i++) {
        const char *key = att_tensors_metadata_key(j->file, i);
        if (!cli_has_prefix(key, own_metadata) || strcmp(key, classes_key) == 0 || strcmp(key, colours_key) == 0 ||
            strcmp(key, ATT_PROJECTION_KEY) == 0 || cli_has_prefix(key, task_keys))
            add_metadata(j, key, att_tensors_metadata(j->file, key));
    }
    if (!att_tensors_metadata(j->file, "format"))
        add_metadata(j, "format", "pt");
    add_metadata(j, origin_key, j->origin);
    if (j->network) {
        add_metadata(j, ATT_IDENTITY_KEY, identity);
        add_class_names(j);
    }
    return CLI_OK;
}

static bool gives_preprocess(const settings *s)
{
    const att_recipe_preprocess *given = &s->preprocess;
    return given->mean.count > 0 || given->std.count > 0 || given->crop_pct > 0 || given->crop_mode ||
           given->interpolation;
}

/* Options, preprocessing and config.json describe the network, so they need one, too. */
static bool needs_network(const job *j)
{
    const settings *s = j->settings;
    return j->is_folder || gives_preprocess(s) || s->attention.layers || s->heads.prune || s->heads.to_convolution ||
           s->choice.program || s->network.model || s->network.options.count > 0;
}

/* Identifies the network and loads its weights, which checks that they fit. It may remain unknown, unless --model or
 * options are given or another network is made from it. */
static int identify(job *j)
{
    const att_recipe_network *flags = &j->settings->network;
    att_network_options options = att_network_options_defaults();
    options.model = flags->model;
    options.options = &flags->options;
    options.averaged = j->settings->choice.use_ema;
    att_status status = att_network_open(j->cli->context, j->path, &options, &j->network);
    if (status == ATT_OK || status == ATT_ERR_STOPPED || needs_network(j))
        return cli_identity_check(j->cli, flags->model, status);
    cli_note(j->cli, "%s will not contain the name of its network: %s", j->out, att_context_message(j->cli->context));
    return CLI_OK;
}

static int take_preprocess(job *j)
{
    int code = CLI_OK;
    if (gives_preprocess(j->settings))
        code = cli_preprocess_apply(j->cli, &j->settings->preprocess, j->network);
    if (code == CLI_OK && j->network)
        j->identity = *att_network_identity(j->network);
    return code;
}

/* --- another network ---------------------------------------------------------------------------------------------- */

/* A network that is written in place of the file's own; NULL members: there is none. */
typedef struct made {
    const att_model *model;
    const att_weights *weights;
} made;

/* Whether the loaded weights are written, not the file's tensors: for timm, which knows only its own names; if the
 * network may have another number of channels than the file, because loading then makes another first layer. */
static bool writes_loaded(const job *j)
{
    return j->network && (j->is_folder || att_options_find(&j->settings->network.options, "in_chans"));
}

static made made_network(const job *j)
{
    if (j->layers.made.model)
        return (made){j->layers.made.model, j->layers.made.weights};
    if (!j->pruned.model && writes_loaded(j))
        return (made){att_network_model(j->network), att_network_weights(j->network)};
    return (made){j->pruned.model, j->pruned.weights};
}

static att_status fill_from_weights(void *user, int index, void *out, size_t bytes)
{
    const job *j = user;
    return att_weights_get(made_network(j).weights, -1, j->indices[index], out, (int64_t)(bytes / sizeof(float)));
}

/* Replaces the list of tensors by the parameters of the converted network. */
static int list_parameters(job *j)
{
    const att_weights *weights = made_network(j).weights;
    int count = att_weights_count(weights);
    free(j->tensors);
    free(j->indices);
    j->tensors = calloc((size_t)count + 1, sizeof *j->tensors);
    j->indices = calloc((size_t)count + 1, sizeof *j->indices);
    if (!j->tensors || !j->indices)
        return cli_failure("no memory for the list of tensors");
    j->elements = 0;
    for (int i = 0; i < count; i++) {
        att_parameter_info info = att_weights_at(weights, i);
        j->tensors[i] = (att_safetensors_tensor){.name = info.name, .dtype = ATT_SAFETENSORS_F32, .shape = info.shape};
        j->indices[i] = i;
        j->elements += att_shape_count(info.shape);
    }
    j->count = count;
    j->bytes = j->elements * (int64_t)sizeof(float);
    return CLI_OK;
}

static int convert_network(job *j)
{
    const settings *s = j->settings;
    if (!j->network || !(s->attention.layers || s->heads.to_convolution || s->heads.prune || writes_loaded(j)))
        return CLI_OK;
    const att_model *model = att_network_model(j->network);
    att_weights *weights = att_network_weights(j->network);
    int code = CLI_OK;
    if (s->attention.layers)
        code = cli_to_attention(j->cli, &s->attention, model, weights, &j->layers);
    else if (s->heads.to_convolution)
        code = cli_to_convolution(j->cli, s->heads.to_convolution, model, weights, &j->layers);
    else if (s->heads.prune)
        code = cli_heads_prune(j->cli, model, weights, &j->pruned);
    if (code == CLI_OK) {
        const att_preprocess images = j->identity.preprocess;
        j->identity = att_model_identity(made_network(j).model);
        j->identity.preprocess = images;
    }
    return code == CLI_OK ? list_parameters(j) : code;
}

/* --- output ------------------------------------------------------------------------------------------------------- */

static void print_result(const job *j)
{
    cli_print("from         %s\n", j->origin);
    const char *skipped = j->settings->choice.use_ema ? ": all but the averaged weights"
                                                      : ": the state of the training, such as the optimiser's";
    cli_print("tensors      %d, %d skipped%s\n", j->count, j->dropped, j->dropped > 0 ? skipped : "");
    cli_print("elements     %lld\n", (long long)j->elements);
    cli_print("bytes        %lld\n", (long long)j->bytes);
    cli_print("network      %s\n", j->network ? j->identity.name : "unknown");
    if (j->layers.made.model)
        cli_conversion_print(&j->layers);
    if (j->pruned.model)
        cli_pruned_print(&j->pruned);
    if (j->is_folder)
        cli_print("written      %s: model.safetensors%s\n", j->out, *j->config ? ", config.json" : "");
    else if (j->out)
        cli_print("written      %s\n", j->out);
}

static void write_result(att_json_writer *w, const void *from)
{
    const job *j = from;
    if (j->out)
        att_json_put_string(w, "file", j->is_folder ? j->weights : j->out);
    if (*j->config)
        att_json_put_string(w, "config", j->config);
    att_json_put_string(w, "origin", j->origin);
    att_json_put_integer(w, "tensors", j->count);
    att_json_put_integer(w, "tensors_left_out", j->dropped);
    att_json_put_integer(w, "elements", j->elements);
    att_json_put_integer(w, "bytes", j->bytes);
    if (j->network)
        att_json_put_string(w, "model", j->identity.name);
    if (j->layers.made.model)
        cli_conversion_write(&j->layers, w);
    if (j->pruned.model)
        cli_pruned_write(&j->pruned, w);
}

/* Describes the network for timm in config.json. Without it if timm cannot build the network: a note says why. */
static int describe_folder(job *j, att_json_writer *writer, att_safetensors_beside *beside)
{
    att_context *context = j->cli->context;
    const char *text;
    cli_join(j->out, "model.safetensors", j->weights, sizeof j->weights);
    cli_join(j->out, "config.json", j->config, sizeof j->config);
    *beside = (att_safetensors_beside){.path = j->config};
    att_status status = att_network_write_config(j->network, made_network(j).model, writer);
    if (status == ATT_OK)
        status = att_json_writer_finish(writer, &text, &beside->size);
    if (status == ATT_OK)
        beside->bytes = text;
    else if (status == ATT_ERR_UNSUPPORTED)
        cli_note(j->cli, "%s is not written: %s", j->config, att_context_message(context));
    return status == ATT_OK || status == ATT_ERR_UNSUPPORTED ? cli_check(j->cli, att_file_make_folders(context, j->out))
                                                             : cli_check(j->cli, status);
}

static int write_folder(job *j, att_safetensors_content *content)
{
    att_json_writer *writer;
    att_safetensors_beside beside;
    int code = cli_check(j->cli, att_json_writer_create(j->cli->context, true, &writer));
    if (code != CLI_OK)
        return code;
    content->beside = &beside;
    code = describe_folder(j, writer, &beside);
    if (code == CLI_OK)
        code = cli_check(j->cli, att_safetensors_write(j->cli->context, j->weights, content));
    if (code == CLI_OK && !beside.bytes)
        *j->config = '\0';
    att_json_writer_destroy(&writer);
    return code;
}

static void describe_origin(job *j)
{
    const char *slash = strrchr(j->path, '/'), *source = att_tensors_origin(j->file);
    snprintf(j->origin, sizeof j->origin, "%.255s%s%.1500s%s", slash ? slash + 1 : j->path, *source ? ": " : "", source,
             j->settings->choice.use_ema ? "; the averaged weights" : "");
}

static int write_file(job *j)
{
    char identity[ATT_IDENTITY_TEXT];
    int code = CLI_OK;
    describe_origin(j);
    if (j->network)
        code = cli_check(j->cli, att_model_identity_text(j->cli->context, &j->identity, identity, sizeof identity));
    if (code == CLI_OK)
        code = choose_metadata(j, identity);
    att_safetensors_content content = {.tensors = j->tensors,
                                       .tensor_count = j->count,
                                       .metadata = j->metadata,
                                       .metadata_count = j->metadata_count,
                                       .fill = made_network(j).weights ? fill_from_weights : fill,
                                       .fill_user = j};
    char target[CLI_PATH];
    if (code == CLI_OK && j->is_folder)
        code = write_folder(j, &content);
    else if (code == CLI_OK && j->out)
        code = cli_check(j->cli, att_safetensors_write(j->cli->context, cli_file_target(j->out, target), &content));
    if (code == CLI_OK && cli_prints(j->settings->output.json))
        print_result(j);
    return code == CLI_OK ? cli_json_save(j->cli, j->settings->output.json, write_result, j) : code;
}

static bool is_for_transformers(const settings *s)
{
    return s->choice.program && strcmp(s->choice.program, transformers) == 0;
}

static void write_exported(att_json_writer *w, const void *from)
{
    const job *j = from;
    att_json_put_string(w, is_for_transformers(j->settings) ? "folder" : "file", j->out);
    att_json_put_string(w, "origin", j->origin);
    att_json_put_string(w, "model", j->identity.name);
}

/* Writes the network for another program. */
static int export_network(job *j)
{
    char target[CLI_PATH];
    const char *json = j->settings->output.json;
    const char *path = is_for_transformers(j->settings) ? j->out : cli_file_target(j->out, target);
    describe_origin(j);
    int code = cli_check(j->cli, att_model_export(j->cli->context, &j->identity, att_network_weights(j->network),
                                                  att_network_class_names(j->network, NULL),
                                                  j->settings->choice.program, path));
    if (code == CLI_OK && cli_prints(json))
        cli_print("from         %s\nnetwork      %s\nwritten      %s\n", j->origin, j->identity.name, j->out);
    return code == CLI_OK ? cli_json_save(j->cli, json, write_exported, j) : code;
}

/* Whether --to-convolution reads heads by position. In other networks it makes attention convolutions again. */
static bool reads_heads(const job *j)
{
    return j->settings->heads.to_convolution &&
           att_model_attention_convolutions(att_network_model(j->network), att_network_weights(j->network)) == 0;
}

/* Convolutions of heads have neither config.json nor preprocessing. */
static int check_heads(const job *j)
{
    if (!reads_heads(j))
        return CLI_OK;
    if (j->is_folder)
        return cli_usage("--to-convolution writes convolutions of %s, which are no network: \"%s\" should end in %s",
                         j->path, j->out, suffix);
    if (gives_preprocess(j->settings))
        return cli_usage("--to-convolution writes convolutions of %s, which are no network: leave out %s", j->path,
                         preprocess_flags);
    return CLI_OK;
}

static bool is_training(const char *folder)
{
    char best[CLI_PATH], last[CLI_PATH];
    return cli_exists(cli_join(folder, "model_best.safetensors", best, sizeof best)) ||
           cli_exists(cli_join(folder, "last.safetensors", last, sizeof last));
}

/* Refuses an output that would replace the input, and a config.json that would be read with other weights. */
static int check_input(const job *j)
{
    char folder[CLI_PATH], weights[CLI_PATH];
    if (j->is_folder && cli_is_same_file(j->out, cli_folder_of(j->path, folder, sizeof folder)))
        return cli_usage("convert would write beside its input: %s is the folder of %s; give another folder", j->out,
                         j->path);
    const char *file = j->is_folder ? cli_join(j->out, "model.safetensors", weights, sizeof weights) : j->out;
    if (file && cli_is_same_file(file, j->path))
        return cli_usage("convert would overwrite its input: %s is the file %s; give OUT another name", file, j->path);
    if (j->is_folder && is_training(j->out))
        return cli_usage(
            "convert would write beside checkpoints: %s is the folder of a training run; give another folder", j->out);
    return CLI_OK;
}

static int convert(job *j)
{
    const cli_named_output outputs[] = {{"OUT", j->out, j->is_folder}, {"--json", j->settings->output.json, false}};
    int code = cli_outputs_check(outputs, sizeof outputs / sizeof *outputs);
    if (code == CLI_OK)
        code = cli_checkpoint_locate(j->cli, j->checkpoint, j->path);
    if (code == CLI_OK)
        code = check_input(j);
    if (code == CLI_OK)
        code = cli_tensors_open(j->cli, j->path, j->settings->network.model, &j->file);
    if (code == CLI_OK)
        code = choose_tensors(j);
    if (code == CLI_OK)
        code = identify(j);
    if (code == CLI_OK)
        code = check_heads(j);
    if (code == CLI_OK)
        code = take_preprocess(j);
    if (code == CLI_OK && j->settings->choice.program)
        return export_network(j);
    if (code == CLI_OK && reads_heads(j))
        return cli_heads_to_convolution(j->cli, &j->settings->heads, att_network_model(j->network),
                                        att_network_weights(j->network), j->out, j->settings->output.json);
    if (code == CLI_OK && j->settings->heads.kernel)
        return cli_usage(
            "--kernel-size: the convolutions of %s have the kernels that they had before they became "
            "attention",
            j->path);
    if (code == CLI_OK)
        code = convert_network(j);
    return code == CLI_OK ? write_file(j) : code;
}

static void free_job(job *j)
{
    cli_pruned_free(&j->pruned);
    att_conversion_free(&j->layers.made);
    att_network_close(&j->network);
    att_tensors_close(&j->file);
    free(j->tensors);
    free(j->indices);
    free(j->metadata);
}

static bool ends_in(const char *text, const char *end)
{
    size_t length = strlen(text), of_end = strlen(end);
    return length > of_end && strcmp(text + length - of_end, end) == 0;
}

static bool names_folder(const char *out)
{
    return !ends_in(out, suffix) || cli_is_folder(out);
}

/* Whether OUT is the name of a file of PyTorch. */
static bool is_pickle(const char *out)
{
    static const char *const endings[] = {".pth", ".pt", ".th", ".bin", ".ckpt", ".tar"};
    bool is = false;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        is = is || ends_in(out, endings[i]);
    return is && !cli_is_folder(out);
}

static int check_settings(const settings *s, const char *out)
{
    if (!out && !s->heads.to_convolution)
        return cli_usage("convert writes a file or a folder: name it after the checkpoint, as OUT.safetensors or OUT/");
    if (!out && gives_preprocess(s))
        return cli_usage("%s describe a network that is written: name OUT.safetensors after the checkpoint",
                         preprocess_flags);
    const bool is_folder = out && names_folder(out);
    if (out && (is_pickle(out) || (is_folder && s->choice.program && !is_for_transformers(s))))
        return cli_usage("convert writes safetensors: \"%s\" should end in %s", out, suffix);
    if (out && !is_folder && is_for_transformers(s))
        return cli_usage("--to transformers writes a folder: name it after the checkpoint, as OUT");
    if (s->attention.alpha != 0 && !s->attention.layers)
        return cli_usage("--alpha belongs to --to-attention");
    if (s->attention.layers && !*s->attention.layers)
        return cli_usage("--to-attention: no layers are named; expected names of convolutions, or all");
    if (s->heads.to_convolution && !*s->heads.to_convolution)
        return cli_usage("--to-convolution: no layers are named; expected names of layers, or all");
    if (s->heads.kernel && !s->heads.to_convolution)
        return cli_usage("--kernel-size belongs to --to-convolution");
    if (s->heads.kernel && s->heads.kernel % 2 == 0)
        return cli_usage("--kernel-size: expected an odd number, got %d", s->heads.kernel);
    if ((s->attention.layers != NULL) + s->heads.prune + (s->heads.to_convolution != NULL) +
            (s->choice.program != NULL) >
        1)
        return cli_usage("--to, --to-attention, --to-convolution and --prune-heads: give only one of them");
    return CLI_OK;
}

static int run(cli_app *cli, void *user, const char *const *operands, int count)
{
    job j = {.cli = cli, .settings = user, .checkpoint = operands[0], .out = count > 1 ? operands[1] : NULL};
    int code = check_settings(user, j.out);
    j.is_folder = j.out && names_folder(j.out);
    if (code == CLI_OK)
        code = cli_open(cli, 1);
    if (code == CLI_OK)
        code = convert(&j);
    free_job(&j);
    return code;
}

const cli_command cli_command_convert = {
    .name = "convert",
    .summary = "writes a checkpoint's weights as safetensors, also for timm and transformers",
    .operands = "CHECKPOINT [OUT]",
    .least_operands = 1,
    .most_operands = 2,
    .about = CLI_CHECKPOINT_HELP
    "\n\n"
    "Reads files of torch.save() (.pth, .pt, .pth.tar, .th, .bin) without running any\n"
    "code, or safetensors. Of a run, only the weights are written, without the\n"
    "optimiser's state; --use-ema writes the averaged weights instead. Prefixes that\n"
    "all names share, such as module., are removed.\n\n"
    "OUT is a file, as OUT.safetensors, or a folder. A folder gets model.safetensors and\n"
    "config.json, which timm.create_model('local-dir:OUT') and transformers' AutoModel\n"
    "open without arguments. Where timm lacks the network, a note says why, and there is\n"
    "no config.json.\n\n"
    "--to transformers writes a folder with the library's own classes in place of timm's,\n"
    "for AutoModel and AutoImageProcessor; --to torchvision writes\n"
    "a file for load_state_dict(). What is written is read back: a network that the program\n"
    "cannot express, such as one with modules, is refused.\n\n"
    "--to-attention LAYERS makes another network first: attention heads take the place of\n"
    "convolutions, with the same outputs. A K x K kernel becomes K K heads; each selects\n"
    "one pixel by the score -alpha |shift - center|^2 and projects it with the kernel's\n"
    "matrix (Cordonnier et al., ICLR 2020). Both networks are run on random images; the\n"
    "file is written if their outputs differ by at most 1e-5 of the largest output.\n\n"
    "--to-convolution LAYERS is the way back: layers of attention that took the place of\n"
    "convolutions become convolutions again. OUT, which may be left out, gets the network.\n"
    "If heads were trained and moved, these are the nearest convolutions, and the printed\n"
    "error is larger. In networks of attention by position (attention_cnn_*) it reads heads\n"
    "as a convolution: the shift and spread of each head, and the nearest convolutions of\n"
    "1 x 1 to 7 x 7 with their errors. OUT then gets the weights of the convolutions.\n"
    "--prune-heads leaves out degenerate heads of attention_cnn_isotropic and _quadratic.",
    .example =
        "  attscope convert deit_tiny_patch16_224-a1311bcf.pth deit_tiny.safetensors \\\n"
        "      --model deit_tiny_patch16_224\n"
        "  attscope convert run vit_flowers/\n"
        "  attscope convert resnet20-12fca82f.th resnet20_attention.safetensors \\\n"
        "      --model resnet20 --to-attention all\n"
        "  attscope convert resnet20_attention.safetensors resnet20.safetensors --to-convolution all\n"
        "  attscope convert run/best.safetensors --to-convolution all\n"
        "  attscope convert run/best.safetensors pruned.safetensors --prune-heads\n"
        "  attscope convert run my-vit --to transformers",
    .uses = uses,
    .use_count = sizeof uses / sizeof *uses,
    .settings_size = sizeof(settings),
    .run = run,
};
