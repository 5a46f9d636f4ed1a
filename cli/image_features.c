#include "image_features.h"

#include "progress.h"

#define OF(of_images, mean_of)                                                                                         \
    {                                                                                                                  \
        "of", .kind = ATT_FLAG_TEXT, .value = "NAME",                                                                  \
              .help =                                                                                                  \
                  "the features: features, the input of the classifier (the default" of_images                         \
                  "); tokens, all tokens of the last block; of networks with tokens mean, over the patches" mean_of    \
                  ", class, the class token, and both; blocks.3, blocks.3.mean, blocks.3.class and blocks.3.both, of " \
                  "block 3; stage1 to stage4, maps",                                                                   \
              .size = sizeof(const char *)                                                                             \
    }

static const att_flag rows[] = {OF("", "")},
                      rows_with_texts[] = {OF(" for images", " or the tokens of a text (the default for texts)")};
const att_flag_group cli_group_features = {"Features", .rows = rows, .row_count = 1};
const att_flag_group cli_group_features_with_texts = {"Features", .rows = rows_with_texts, .row_count = 1};

void cli_features_close(cli_app *cli, cli_features *features)
{
    if (cli->context) {
        att_embedding_free(cli->context, &features->found);
        att_embedding_free(cli->context, &features->train);
    }
    att_dataset_close(&features->dataset);
    att_dataset_close(&features->train_dataset);
    cli_unload(&features->loaded);
}

int cli_features_check(const char *command, const char *operands, const cli_evaluation_data *data)
{
    return data->checkpoint || data->data_dir
               ? cli_usage("%s takes the checkpoint and the data as operands: attscope %s %s", command, command,
                           operands)
               : CLI_OK;
}

bool cli_features_first5(int classes)
{
    return classes > 5;
}

char *cli_features_text(const att_embedding_result *result, int classes, char text[CLI_FEATURES_TEXT])
{
    const int length = snprintf(text, CLI_FEATURES_TEXT, "top-1 %6.2f %%", result->top1);
    if (cli_features_first5(classes))
        snprintf(text + length, CLI_FEATURES_TEXT - (size_t)length, "   top-5 %6.2f %%", result->top5);
    return text;
}

int cli_features_open_train(cli_app *cli, const cli_evaluation *options, const cli_loaded *loaded, const char *path,
                            const att_dataset *tested, att_dataset **train)
{
    cli_evaluation on = *options;
    on.data.data_dir = path;
    on.data.split = "train";
    on.unlabelled = false;
    const int code = cli_evaluation_open(cli, &on, loaded, train);
    return code == CLI_OK ? cli_check(cli, att_embedding_check_sets(cli->context, *train, tested)) : code;
}

int cli_features_find(cli_app *cli, const cli_evaluation *options, const cli_loaded *loaded, const char *of,
                      const att_dataset *dataset, att_embedding *found)
{
    const cli_evaluation_data *d = &options->data;
    cli_progress progress = cli_progress_to(cli, 1, 1);
    const att_embed_options embed = {.output = of,
                                     .batch_size = d->batch_size,
                                     .workers = d->workers,
                                     .skip_corrupt = d->skip_corrupt,
                                     .progress = cli_progress_show,
                                     .progress_user = &progress};
    const int code = cli_check(cli, att_network_embed(loaded->network, dataset, &embed, found));
    cli_bar_clear(cli);
    if (code == CLI_OK)
        cli_note(cli, "%.1f images/s, %.0f %% of the time waiting for data", found->images_per_second,
                 100 * found->wait_share);
    return code;
}
