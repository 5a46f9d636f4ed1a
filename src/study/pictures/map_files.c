#include <attscope/map_files.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <attscope/file.h>

#include "base/core/clock.h"
#include "base/core/error.h"
#include "study/network/network.h"
#include "study/pictures/maps.h"

att_map_options att_map_options_defaults(void)
{
    const att_map_style style = att_map_style_defaults();
    return (att_map_options){.show = "attention",
                             .target = -1,
                             .means = "none",
                             .form = "overlay",
                             .colours = style.colours,
                             .scale = "map",
                             .opacity = style.opacity,
                             .zoom = 2};
}

att_status att_map_options_check(att_context *context, const att_map_options *o)
{
    if (strcmp(o->means, "none") != 0 && strcmp(o->means, "all") != 0 && strcmp(o->means, "class") != 0)
        return att_fail(context, ATT_ERR_ARGUMENT, "mean maps \"%s\": expected none, all or class", o->means);
    ATT_TRY(att_map_choice_check(context, o));
    return att_map_pictures_check(context, o);
}

/* --- opening ------------------------------------------------------------------------------------------------------ */

static att_status check_texts(const att_map_files *files)
{
    const att_map_options *o = &files->options;
    if (strcmp(o->format, "svg") != 0)
        return att_fail(files->context, ATT_ERR_UNSUPPORTED,
                        "format \"%s\": pictures of texts are svg, whose viewers have the letters of all scripts",
                        o->format);
    if (strcmp(o->means, "none") != 0)
        return att_fail(files->context, ATT_ERR_UNSUPPORTED,
                        "mean maps are of images: the tokens of two texts do not correspond");
    if (strcmp(o->form, "map") == 0 || o->smooth)
        return att_fail(files->context, ATT_ERR_UNSUPPORTED,
                        "%s is for images; pictures of texts have the form overlay or grid",
                        o->smooth ? "smooth" : "the form map");
    return ATT_OK;
}

static att_status check_network(const att_map_files *files)
{
    const att_model *model = att_network_model(files->network);
    if (!att_model_input_at(model, 0).image || att_model_input_at(model, 1).field.name)
        return att_fail(files->context, ATT_ERR_UNSUPPORTED,
                        "maps are drawn only of networks whose single input is an image, or that read texts");
    if (att_network_varies(files->network))
        return att_fail(files->context, ATT_ERR_UNSUPPORTED,
                        "maps are drawn only of networks for images of one size; this one takes photographs of any "
                        "size");
    return ATT_OK;
}

/* Prepares the network for images of its size. */
static att_status prepare_images(att_map_files *files)
{
    ATT_TRY(check_network(files));
    files->transform = att_network_transform(files->network);
    files->pixels =
        (size_t)files->transform.height * (size_t)files->transform.width * (size_t)files->transform.channels;
    return att_explorer_create(files->network, &files->explorer);
}

static att_status prepare(att_map_files *files)
{
    att_map_options *o = &files->options;
    const bool grid = strcmp(o->form, "grid") == 0, texts = att_network_most_tokens(files->network) > 0;
    o->layers = o->layers ? o->layers : grid ? "all" : "last";
    o->heads = o->heads ? o->heads : grid ? "all" : "mean";
    o->format = o->format ? o->format : texts ? "svg" : "png";
    ATT_TRY(texts ? check_texts(files) : prepare_images(files));
    ATT_TRY(att_picture_names_create(files->context, &files->names));
    return files->folder ? att_file_make_folders(files->context, files->folder) : ATT_OK;
}

att_status att_map_files_open(att_network *network, const att_map_options *options, const char *folder,
                              att_map_files **out)
{
    att_context *context = network->context;
    const att_map_options given = options ? *options : att_map_options_defaults();
    att_map_files *files;
    ATT_TRY(att_map_options_check(context, &given));
    ATT_TRY(att_new(context, &files, 1, "the maps of images"));
    files->context = files->list.context = context;
    files->network = network;
    files->options = given;
    files->folder = folder;
    const att_status status = prepare(files);
    if (status == ATT_OK)
        *out = files;
    else
        att_map_files_close(&files);
    return status;
}

void att_map_files_close(att_map_files **out)
{
    if (!out || !*out)
        return;
    att_map_files *files = *out;
    att_map_means_free(files);
    att_map_list_free(&files->list);
    att_relevance_destroy(&files->relevance);
    att_explorer_destroy(&files->explorer);
    att_picture_names_destroy(&files->names);
    att_free(files->context, files);
    *out = NULL;
}

/* --- images ------------------------------------------------------------------------------------------------------- */

att_status att_map_files_add(att_map_files *files, const char *name, int32_t label, const float *pixels)
{
    const char *taken;
    const att_transform_options *t = &files->transform;
    const att_field field = {att_model_input_at(att_network_model(files->network), 0).field.name, ATT_F32,
                             att_shape_of(t->height, t->width, t->channels)};
    const void *const data[] = {pixels};
    const att_batch input = {.count = 1, .field_count = 1, .fields = &field, .data = data};
    ATT_TRY(att_model_need_image(att_network_model(files->network)));
    ATT_TRY(att_map_list_find(files, &input));
    if (strcmp(files->options.means, "none") != 0)
        return att_map_means_add(files, label, pixels);
    ATT_TRY(att_picture_names_take(files->names, name, &taken));
    return att_map_pictures_write(files, pixels, 1, taken);
}

/* Files are named by the short name, with '_' for '/'. */
static att_status add_image(att_map_files *files, const att_dataset *dataset, int64_t index, float *pixels)
{
    char name[ATT_MAP_PATH];
    att_image image = {0};
    ATT_TRY(att_dataset_read(dataset, files->context, index, files->transform.channels, &image));
    const att_status status = att_transform_image(files->context, &files->transform, &image, 0, 0, 0, pixels);
    att_image_free(files->context, &image);
    ATT_TRY(status);
    att_dataset_short_name(dataset, index, name, sizeof name);
    for (char *at = name; *at; at++)
        *at = *at == '/' ? '_' : *at;
    return att_map_files_add(files, name, att_dataset_label(dataset, index), pixels);
}

static att_status report(const att_map_files *files, int64_t done, int64_t all, double started, const char *unit)
{
    const double seconds = att_seconds_now() - started;
    const att_progress progress = {.stage = "maps",
                                   .batch = done,
                                   .batches = all,
                                   .images_per_second = (double)done / seconds,
                                   .seconds_left = seconds / (double)done * (double)(all - done),
                                   .loss = NAN,
                                   .lr = NAN,
                                   .slowest_rank = -1,
                                   .done = done,
                                   .total = all,
                                   .unit = unit};
    const att_map_options *o = &files->options;
    if (!att_stop_asked(files->context) && (!o->progress || o->progress(o->progress_user, &progress)))
        return ATT_OK;
    return att_fail(files->context, ATT_ERR_STOPPED, "stopped on request after the maps of %lld of %lld %s",
                    (long long)done, (long long)all, unit ? unit : "images");
}

att_status att_map_files_add_dataset(att_map_files *files, const att_dataset *dataset)
{
    const int64_t count = att_dataset_count(dataset);
    const double started = att_seconds_now();
    float *pixels;
    ATT_TRY(att_new(files->context, &pixels, files->pixels, "an image"));
    att_status status = ATT_OK;
    for (int64_t i = 0; i < count && status == ATT_OK; i++) {
        status = add_image(files, dataset, i, pixels);
        if (status == ATT_OK)
            status = report(files, i + 1, count, started, NULL);
    }
    att_free(files->context, pixels);
    return status;
}

/* --- texts -------------------------------------------------------------------------------------------------------- */

/* Gives the files an explorer for a text of so many tokens, unless they have one. */
static att_status prepare_text(att_map_files *files, const att_batch *input, bool fits)
{
    if (files->explorer && fits)
        return ATT_OK;
    att_relevance_destroy(&files->relevance);
    att_explorer_destroy(&files->explorer);
    return att_explorer_create_for(files->network, input, NULL, &files->explorer);
}

static att_status add_text(att_map_files *files, const att_token_ids *text, int64_t number)
{
    char name[32];
    att_text_inputs room;
    const att_batch input = att_network_text_inputs(files->network, text, &room);
    const bool fits = files->text && files->text->count == text->count;
    files->text = text;
    ATT_TRY(prepare_text(files, &input, fits));
    ATT_TRY(att_map_list_find(files, &input));
    snprintf(name, sizeof name, "text%lld", (long long)number);
    return att_map_pictures_write(files, NULL, 1, name);
}

att_status att_map_files_add_texts(att_map_files *files, const att_token_texts *texts)
{
    const double started = att_seconds_now();
    att_status status = ATT_OK;
    if (att_network_most_tokens(files->network) == 0)
        return att_fail(files->context, ATT_ERR_UNSUPPORTED, "%s reads images, and these are texts",
                        att_model_name(att_network_model(files->network)));
    files->tokenizer = texts->tokenizer;
    for (int64_t i = 0; i < texts->count && status == ATT_OK; i++) {
        status = add_text(files, &texts->texts[i], i + 1);
        if (status == ATT_OK)
            status = report(files, i + 1, texts->count, started, "texts");
    }
    files->text = NULL;
    return status;
}

/* --- means -------------------------------------------------------------------------------------------------------- */

att_status att_map_files_finish(att_map_files *files)
{
    for (int i = 0; i < files->mean_count; i++) {
        const att_map_mean *mean = &files->means[i];
        char name[32] = "mean";
        if (mean->label >= 0)
            snprintf(name, sizeof name, "mean.class%d", mean->label);
        att_map_means_take(mean, &files->list);
        ATT_TRY(att_map_pictures_write(files, mean->pixels, mean->images, name));
    }
    return ATT_OK;
}

int64_t att_map_files_count(const att_map_files *files)
{
    return files->written;
}
