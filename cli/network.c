#include "network.h"

#include <string.h>

/* --- preprocessing ------------------------------------------------------------------------------------------------ */

static int channel_flags(const char *flag, const cli_reals *reals, int channels, double values[3])
{
    if (reals->count == 0)
        return CLI_OK;
    if (reals->count != 1 && reals->count != channels)
        return cli_usage("--%s: %d numbers for %d channels; give one, or one a channel", flag, reals->count, channels);
    for (int i = 0; i < 3; i++)
        values[i] = reals->values[i < reals->count ? i : 0];
    return CLI_OK;
}

int cli_preprocess_flags(const cli_preprocess *flags, att_preprocess *preprocess)
{
    int code = channel_flags("mean", &flags->mean, preprocess->in_chans, preprocess->mean);
    if (code == CLI_OK)
        code = channel_flags("std", &flags->std, preprocess->in_chans, preprocess->std);
    if (code != CLI_OK)
        return code;
    if (flags->crop_pct > 0)
        preprocess->crop_pct = flags->crop_pct;
    if (flags->interpolation)
        snprintf(preprocess->interpolation, sizeof preprocess->interpolation, "%s", flags->interpolation);
    return CLI_OK;
}

/* --- checkpoints -------------------------------------------------------------------------------------------------- */

static int find_network(cli_app *cli, const char *path, const cli_network *network, const cli_preprocess *flags,
                        cli_loaded *loaded)
{
    int code = cli_check(cli, att_tensors_open(cli->context, path, &loaded->file));
    if (code == CLI_OK)
        code = cli_check(cli, att_model_identify(cli->context, loaded->file, path, network->model, &network->options,
                                                 &loaded->identity));
    if (code == CLI_OK)
        cli_note(cli, "%s: %s", loaded->identity.name, loaded->identity.origin);
    return code == CLI_OK ? cli_preprocess_flags(flags, &loaded->identity.preprocess) : code;
}

int cli_load(cli_app *cli, const char *path, const cli_network *network, const cli_preprocess *flags, bool ema,
             cli_loaded *loaded)
{
    int code = find_network(cli, path, network, flags, loaded);
    if (code != CLI_OK)
        return code;
    loaded->transform = att_evaluate_transform(&loaded->identity.preprocess);
    att_status status =
        att_model_create(cli->context, loaded->identity.name, &loaded->identity.options, ATT_F32, &loaded->model);
    if (status == ATT_OK)
        status = att_weights_create(att_model_graph(loaded->model), &loaded->weights);
    if (status == ATT_OK)
        status = ema ? att_checkpoint_load_ema(loaded->model, loaded->file, loaded->weights)
                     : att_model_load(loaded->model, loaded->file, loaded->weights);
    return cli_check(cli, status);
}

void cli_unload(cli_loaded *loaded)
{
    att_weights_destroy(&loaded->weights);
    att_model_destroy(&loaded->model);
    att_tensors_close(&loaded->file);
}

/* --- data --------------------------------------------------------------------------------------------------------- */

int cli_dataset_open(cli_app *cli, const char *path, const char *split, const char *class_map, int64_t cache_bytes,
                     att_dataset **dataset)
{
    att_dataset_options options = att_dataset_options_defaults();
    options.split = split;
    options.class_map = class_map;
    if (cache_bytes > 0)
        options.cache_bytes = (size_t)cache_bytes;
    int code = cli_check(cli, att_dataset_open(cli->context, path, &options, dataset));
    if (code != CLI_OK)
        return code;
    const char *found = att_dataset_split(*dataset);
    cli_note(cli, "%s%s%s: %lld images, %d classes, numbered by %s", path, *found ? ", " : "", found,
             (long long)att_dataset_count(*dataset), att_dataset_class_count(*dataset),
             class_map                                   ? class_map
             : att_dataset_class_numbers_given(*dataset) ? "the labels"
                                                         : "the sorted folder names");
    return CLI_OK;
}
