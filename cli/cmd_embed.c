/* attscope embed: features of images and vectors of texts, and classification by nearest neighbours. */
#include <stdlib.h>
#include <string.h>

#include "image_features.h"
#include "progress.h"
#include "texts.h"

enum { MOST_KS = 8 };
static const char OPERANDS[] = "CHECKPOINT DATA";

typedef struct settings {
    cli_evaluation on;
    cli_output output;
    cli_text_options texts;
    bool normalize;
    const char *of, *file, *train_data;
    int ks[MOST_KS], k_count;
} settings;

static const att_flag feature_options[] = {
    {"output", .letter = 'o', .kind = ATT_FLAG_TEXT, .value = "FILE",
     .help = "write the features, labels and names of the images to FILE, .npz or .safetensors; to FILE.npy the "
             "features alone, with "
             "the names in FILE.names.txt",
     ATT_FLAG_AT(settings, file)},
    {"normalize", .kind = ATT_FLAG_SWITCH, .help = "texts: divide each vector by its Euclidean norm",
     ATT_FLAG_AT(settings, normalize)},
    {"knn", .kind = ATT_FLAG_INTS, .value = "K...", .most = MOST_KS,
     .help = "classify the images by their K nearest neighbours among the training images, as DINO's evaluation does: "
             "10,20",
     ATT_FLAG_AT(settings, ks), .count_offset = offsetof(settings, k_count), .low = 1, .high = 1e6},
    {"train-data", .kind = ATT_FLAG_TEXT, .value = "DATA",
     .help = "of --knn: the data set whose split train has the training images (default: DATA)",
     ATT_FLAG_AT(settings, train_data)},
};
static const att_flag_group feature_group = {"Features", .rows = feature_options,
                                             .row_count = sizeof feature_options / sizeof *feature_options};

static const att_flag_use uses[] = {
    {&cli_group_features_with_texts, offsetof(settings, of)},
    {&feature_group, 0},
    {&cli_group_texts, offsetof(settings, texts)},
    {&cli_group_operand_data, offsetof(settings, on.data)},
    {&att_recipe_network_group, offsetof(settings, on.network)},
    {&att_recipe_preprocess_group, offsetof(settings, on.preprocess)},
    {&att_recipe_engine_group, offsetof(settings, on.engine)},
    {&cli_group_output, offsetof(settings, output)},
};

typedef struct job {
    cli_app *cli;
    settings *settings;
    cli_features features;
    att_embedding_result neighbours[MOST_KS];
    int64_t shortened; /* texts */
} job;

/* --- result ------------------------------------------------------------------------------------------------------- */

static void write_result(att_json_writer *writer, const void *from)
{
    const job *j = from;
    const settings *s = j->settings;
    att_json_put_string(writer, "model", j->features.loaded.identity->name);
    att_json_put_string(writer, "checkpoint", s->on.data.checkpoint);
    att_json_put_string(writer, "data", s->on.data.data_dir);
    if (j->features.dataset)
        att_json_put_string(writer, "split", att_dataset_split(j->features.dataset));
    att_json_put_string(writer, "of", s->of);
    att_json_put_string(writer, "output", s->file);
    att_json_put_integer(writer, "count", j->features.found.count);
    att_json_put_array(writer, "shape");
    for (int i = 0; i < j->features.found.shape.rank; i++)
        att_json_integer(writer, j->features.found.shape.dims[i]);
    att_json_end_array(writer);
    att_json_put_number(writer, j->features.dataset ? "images_per_second" : "texts_per_second",
                        j->features.found.images_per_second);
    if (j->features.dataset)
        att_json_put_number(writer, "wait_share", j->features.found.wait_share);
    else
        att_json_put_integer(writer, "shortened", j->shortened);
    if (s->k_count == 0)
        return;
    att_json_put_integer(writer, "train_count", j->features.train.count);
    att_json_put_array(writer, "knn");
    for (int k = 0; k < s->k_count; k++) {
        att_json_begin_object(writer);
        att_json_put_integer(writer, "k", s->ks[k]);
        att_json_put_number(writer, "accuracy", j->neighbours[k].top1);
        if (cli_features_first5(att_dataset_class_count(j->features.train_dataset)))
            att_json_put_number(writer, "accuracy_first5", j->neighbours[k].top5);
        att_json_end_object(writer);
    }
    att_json_end_array(writer);
}

static void print_result(const job *j)
{
    char text[CLI_FEATURES_TEXT];
    const settings *s = j->settings;
    cli_print("%s", s->of);
    for (int i = 0; i < j->features.found.shape.rank; i++)
        cli_print("%s%lld", i == 0 ? " [" : ", ", (long long)j->features.found.shape.dims[i]);
    if (j->features.dataset)
        cli_print("]   %lld image%s", (long long)j->features.found.count, cli_plural(j->features.found.count));
    else
        cli_print("]   %lld text%s", (long long)j->features.found.count, cli_plural(j->features.found.count));
    cli_print("%s%s\n", s->file ? "   " : "", s->file ? s->file : "");
    for (int k = 0; k < s->k_count; k++)
        cli_print("k = %-4d %s\n", s->ks[k],
                  cli_features_text(&j->neighbours[k], att_dataset_class_count(j->features.train_dataset), text));
}

/* --- command ------------------------------------------------------------------------------------------------------ */

static int embed_texts(job *j)
{
    const settings *s = j->settings, *usual = att_flags_defaults(j->cli->flags);
    cli_progress progress = cli_progress_to(j->cli, 1, 1);
    att_texts_options options = att_texts_options_defaults();
    att_token_texts texts = {0};
    if (s->k_count > 0)
        return cli_usage("--knn classifies images; %s is a network for texts", j->features.loaded.identity->name);
    options.output = s->of;
    options.unit = s->normalize;
    options.progress = cli_progress_show;
    options.progress_user = &progress;
    int code = cli_texts_take(&j->features.loaded, &s->on.data, &usual->on.data, &options);
    if (code == CLI_OK)
        code = cli_texts_read(j->cli, &j->features.loaded, s->on.data.data_dir, &s->texts, 0, &texts);
    if (code == CLI_OK)
        code = cli_check(j->cli, att_network_embed_texts(j->features.loaded.network, texts.texts, texts.count, &options,
                                                         &j->features.found));
    cli_bar_clear(j->cli);
    if (code == CLI_OK)
        cli_note(j->cli, "%.1f texts/s", j->features.found.images_per_second);
    j->shortened = texts.shortened;
    att_token_texts_free(j->cli->context, &texts);
    return code;
}

static int embed_images(job *j)
{
    const settings *s = j->settings;
    int code = cli_texts_refuse(&j->features.loaded, &s->texts);
    if (code == CLI_OK && s->normalize)
        code = cli_usage("--normalize is for texts; %s is a network for images", j->features.loaded.identity->name);
    if (code == CLI_OK)
        code = cli_evaluation_open(j->cli, &s->on, &j->features.loaded, &j->features.dataset);
    if (code == CLI_OK && s->k_count > 0)
        code = cli_features_open_train(j->cli, &s->on, &j->features.loaded,
                                       s->train_data ? s->train_data : s->on.data.data_dir, j->features.dataset,
                                       &j->features.train_dataset);
    return code == CLI_OK
               ? cli_features_find(j->cli, &s->on, &j->features.loaded, s->of, j->features.dataset, &j->features.found)
               : code;
}

static int check(const settings *s, char path[CLI_PATH])
{
    const int code = cli_features_check("embed", OPERANDS, &s->on.data);
    if (code != CLI_OK)
        return code;
    if (!s->file && s->k_count == 0)
        return cli_usage("embed needs --output FILE, --knn K or both; see attscope embed --help");
    if (s->train_data && s->k_count == 0)
        return cli_usage("--train-data has no effect without --knn");
    const char *ending = s->file ? strrchr(s->file, '.') : ".npz";
    if (!ending || (strcmp(ending, ".npz") != 0 && strcmp(ending, ".npy") != 0 && strcmp(ending, ".safetensors") != 0))
        return cli_usage("--output %s: expected a name that ends in .npz, .npy or .safetensors", s->file);
    const cli_named_output outputs[] = {{"--json", s->output.json, false},
                                        {"--output", s->file ? cli_file_target(s->file, path) : NULL, false}};
    return cli_outputs_check(outputs, sizeof outputs / sizeof *outputs);
}

/* Leaves out numbers of neighbours that were given before. */
static void drop_repeated(settings *s)
{
    int kept = 0;
    for (int i = 0; i < s->k_count; i++) {
        int before = 0;
        while (before < kept && s->ks[before] != s->ks[i])
            before++;
        if (before == kept)
            s->ks[kept++] = s->ks[i];
    }
    s->k_count = kept;
}

/* Classifies the images by nearest neighbours. */
static int classify(job *j)
{
    const settings *s = j->settings;
    const int code =
        cli_features_find(j->cli, &s->on, &j->features.loaded, s->of, j->features.train_dataset, &j->features.train);
    if (code != CLI_OK)
        return code;
    return cli_check(j->cli, att_embedding_neighbours(j->cli->context, &j->features.train, &j->features.found, s->ks,
                                                      s->k_count, j->neighbours));
}

static int run_all(job *j)
{
    settings *s = j->settings;
    int code = cli_evaluation_load(j->cli, &s->on, &j->features.loaded);
    const bool texts = code == CLI_OK && cli_takes_texts(&j->features.loaded);
    if (!s->of)
        s->of = texts ? "mean" : "features";
    if (code == CLI_OK)
        code = texts ? embed_texts(j) : embed_images(j);
    if (code == CLI_OK && s->file)
        code =
            cli_check(j->cli, att_embedding_write(j->cli->context, &j->features.found, j->features.dataset, s->file));
    if (code == CLI_OK && s->k_count > 0)
        code = classify(j);
    if (code == CLI_OK && cli_prints(s->output.json))
        print_result(j);
    return code == CLI_OK ? cli_json_save(j->cli, s->output.json, write_result, j) : code;
}

static int run(cli_app *cli, void *user, const char *const *operands, int count)
{
    settings *s = user;
    job j = {.cli = cli, .settings = s};
    char path[CLI_PATH];
    (void)count;
    int code = check(s, path);
    s->on.data.checkpoint = operands[0];
    s->on.data.data_dir = operands[1];
    s->on.unlabelled = s->k_count == 0;
    drop_repeated(s);
    if (code == CLI_OK)
        code = cli_engine_open(cli, &s->on.engine);
    if (code == CLI_OK)
        code = run_all(&j);
    cli_features_close(cli, &j.features);
    return code;
}

const cli_command cli_command_embed = {
    .name = "embed",
    .summary = "writes features of images or texts, and classifies by nearest neighbours",
    .operands = OPERANDS,
    .least_operands = 2,
    .most_operands = 2,
    .about = CLI_CHECKPOINT_HELP "\n\n" CLI_DATA_HELP
                                 "\n\n"
                                 "For a network for texts DATA is a file of texts in UTF-8, one a line.",
    .example =
        "  attscope embed deit_tiny_patch16_224.safetensors photographs -o features.npz\n"
        "  attscope embed deit_tiny_patch16_224.safetensors cifar10 --knn 10,20\n"
        "  attscope embed all-MiniLM-L6-v2 sentences.txt --normalize -o vectors.npz",
    .uses = uses,
    .use_count = sizeof uses / sizeof *uses,
    .settings_size = sizeof(settings),
    .run = run,
};
