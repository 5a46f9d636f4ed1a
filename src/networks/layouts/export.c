/* Writes networks in the layouts of other programs, and reads back what was written. */
#include <attscope/convert.h>

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core/context.h"
#include "base/core/error.h"
#include "base/core/text.h"
#include "base/io/file.h"
#include "base/io/system.h"
#include "networks/layouts/layout.h"
#include "networks/models/checkpoint.h"
#include "networks/models/family.h"
#include "networks/models/identify.h"

enum { PATH = 4096, REASON = 1024 };

static const char transformers[] = "transformers", torchvision[] = "torchvision";
static const char config_name[] = "config.json", weights_name[] = "model.safetensors";

/* One export. Files are written into the folder `made`, which then takes the place of `path`, or gives its file to it.
 * Its name belongs to this process: nothing that is there is touched. */
typedef struct exporting {
    att_layout_target target;
    const char *program, *path;
    const att_family *family;
    char made[PATH], config[PATH], processor[PATH], weights[PATH]; /* paths */
    char reason[REASON]; /* why the network cannot be written as the nearest class; "": there is none */
    int distance;        /* of that class */
} exporting;

/* --- the written files -------------------------------------------------------------------------------------------- */

/* Makes the folder `made` beside `path`. */
static att_status make_folder(exporting *e)
{
    enum { TRIES = 100, SUFFIX = 32 };
    char path[PATH - SUFFIX];
    ATT_TRY(att_path_copy(e->target.context, e->path, path, sizeof path));
    for (size_t end = strlen(path); end > 1 && path[end - 1] == '/'; end--)
        path[end - 1] = '\0';
    for (int i = 0; i < TRIES; i++) {
        snprintf(e->made, sizeof e->made, "%s.tmp-%ld-%d", path, (long)getpid(), i);
        if (mkdir(e->made, 0777) == 0)
            return ATT_OK;
        if (errno != EEXIST)
            break;
    }
    return att_system_fail(e->target.context, errno, e->made, "created");
}

static att_status name_files(exporting *e)
{
    att_context *context = e->target.context;
    ATT_TRY(att_path_join(context, e->made, config_name, e->config, sizeof e->config));
    ATT_TRY(att_path_join(context, e->made, att_from_processor, e->processor, sizeof e->processor));
    return att_path_join(context, e->made, weights_name, e->weights, sizeof e->weights);
}

static void remove_files(const exporting *e)
{
    unlink(e->config);
    unlink(e->processor);
    unlink(e->weights);
    rmdir(e->made);
}

/* Returns whether something is at the path that may not be replaced: for a folder, all but an empty folder. */
static bool is_taken(const char *path)
{
    struct stat info;
    int names = 0;
    if (lstat(path, &info) != 0)
        return false;
    DIR *folder = S_ISDIR(info.st_mode) ? opendir(path) : NULL;
    while (folder && readdir(folder))
        names++;
    if (folder)
        closedir(folder);
    return !folder || names > 2; /* "." and ".." */
}

static att_status begin_files(exporting *e)
{
    att_context *context = e->target.context;
    if (e->program == transformers && is_taken(e->path))
        return att_fail(context, ATT_ERR_IO, "%s exists and is no empty folder; give the new folder another name",
                        e->path);
    ATT_TRY(att_context_check_write(context, e->path));
    ATT_TRY(make_folder(e));
    return name_files(e);
}

static att_status write_weights(exporting *e, const att_layout_tensors *tensors)
{
    static const att_safetensors_pair format = {"format", "pt"};
    att_layout_filling filling = {&e->target, tensors};
    const att_safetensors_content content = {.tensors = tensors->tensors,
                                             .tensor_count = tensors->count,
                                             .metadata = &format,
                                             .metadata_count = 1,
                                             .fill = att_layout_fill,
                                             .fill_user = &filling};
    return att_safetensors_write(e->target.context, e->weights, &content);
}

static att_status write_files(exporting *e, const att_layout_tensors *tensors)
{
    if (e->target.form->type) {
        ATT_TRY(att_layout_write_config(&e->target, e->config));
        ATT_TRY(att_layout_write_processor(&e->target, e->processor));
    }
    return write_weights(e, tensors);
}

/* Moves what was written to its place. */
static att_status place_files(const exporting *e)
{
    const bool whole = e->program == transformers;
    if (rename(whole ? e->made : e->weights, e->path) != 0)
        return att_system_fail(e->target.context, errno, e->path, "moved into place");
    return ATT_OK;
}

/* --- reading back ------------------------------------------------------------------------------------------------- */

/* Whether other values of an option change nothing: the tensors decide the width of MLPs, positions are written as the
 * images need them, starting values and dropout are those of trainings. */
static bool is_free(const att_option *option, const att_option_values *own, const att_option_values *found)
{
    return att_checkpoint_lists("mlp_ratio pos_embed_resize attn_drop_rate", option->key) ||
           (option->compare_presence && att_options_number(own, option->key, 0) > 0 &&
            att_options_number(found, option->key, 0) > 0);
}

/* Refuses other options than those of the network. */
static att_status compare_options(const exporting *e, const att_option_values *found)
{
    const att_option_table *table = e->family->options;
    const att_option_values *own = &e->target.identity->options;
    att_option_values same = *found;
    att_text text = {.context = e->target.context};
    for (int i = 0; i < table->count; i++)
        if (is_free(&table->options[i], own, found))
            att_option_copy(table->options[i].key, own, &same);
    att_status status = ATT_OK;
    if (att_options_differences(&text, table, own, &same))
        status = att_fail(e->target.context, ATT_ERR_UNSUPPORTED, "%s cannot express its %s", e->target.layout->name,
                          text.failed ? "" : text.data);
    if (text.failed)
        status = att_fail_memory(e->target.context, REASON, "a message");
    att_text_free(&text);
    return status;
}

static int resized(int side, double crop_pct)
{
    return (int)floor(side / crop_pct);
}

/* timm and the library round the beginning of a crop in different ways. */
static bool is_same_crop(const att_preprocess *a, const att_preprocess *b)
{
    const bool rounded = strcmp(a->crop_mode, "center") == 0 && strcmp(b->crop_mode, "floor") == 0;
    return (rounded || strcmp(a->crop_mode, b->crop_mode) == 0) && a->height == b->height && a->width == b->width &&
           resized(a->height, a->crop_pct) == resized(b->height, b->crop_pct) &&
           resized(a->width, a->crop_pct) == resized(b->width, b->crop_pct);
}

/* why: what reading the written settings says; "": they say something else than the network. */
static att_status refuse_preprocess(const exporting *e, const char *why)
{
    const att_preprocess *p = &e->target.identity->preprocess;
    return att_fail(e->target.context, ATT_ERR_UNSUPPORTED,
                    "%s cannot express how its images are prepared (%d x %d, crop_pct %g, crop_mode %s, %s)%s%.200s; "
                    "--crop-mode, --crop-pct and --interpolation of attscope convert change that",
                    e->target.layout->name, p->height, p->width, p->crop_pct, p->crop_mode, p->interpolation,
                    *why ? ": " : "", why);
}

static att_status compare_preprocess(const exporting *e, const att_preprocess *found)
{
    const att_preprocess *own = &e->target.identity->preprocess;
    if (is_same_crop(own, found) && strcmp(own->interpolation, found->interpolation) == 0 &&
        memcmp(own->mean, found->mean, sizeof own->mean) == 0 && memcmp(own->std, found->std, sizeof own->std) == 0)
        return ATT_OK;
    return refuse_preprocess(e, "");
}

static att_status compare_parameter(const exporting *e, int index, const att_weights *found, float *own, float *other)
{
    const att_parameter_info info = att_weights_at(e->target.weights, index);
    const int64_t count = att_shape_count(info.shape);
    const int at = att_weights_find(found, info.name);
    if (at >= 0 && att_shape_equal(att_weights_at(found, at).shape, info.shape)) {
        ATT_TRY(att_weights_get(e->target.weights, -1, index, own, count));
        ATT_TRY(att_weights_get(found, -1, at, other, count));
        if (memcmp(own, other, (size_t)count * sizeof *own) == 0)
            return ATT_OK;
    }
    return att_fail(e->target.context, ATT_ERR_UNSUPPORTED, "%s cannot express the values of its tensor \"%s\"",
                    e->target.layout->name, info.name);
}

static att_status compare_weights(const exporting *e, const att_weights *found)
{
    float *values;
    int64_t most = 1;
    att_status status = ATT_OK;
    for (int i = 0; i < att_weights_count(e->target.weights); i++)
        if (att_shape_count(att_weights_at(e->target.weights, i).shape) > most)
            most = att_shape_count(att_weights_at(e->target.weights, i).shape);
    ATT_TRY(att_new(e->target.context, &values, att_size_product(2, (size_t)most), "tensors that are read back"));
    for (int i = 0; i < att_weights_count(e->target.weights) && status == ATT_OK; i++)
        status = compare_parameter(e, i, found, values, values + most);
    att_free(e->target.context, values);
    return status;
}

static att_status load(const exporting *e, const att_tensors *file, const att_identity *identity)
{
    att_model *model = NULL;
    att_weights *weights = NULL;
    att_status status = att_model_create(e->target.context, identity->name, &identity->options, ATT_F32, &model);
    if (status == ATT_OK)
        status = att_weights_create(att_model_graph(model), "cpu", &weights);
    if (status == ATT_OK)
        status = att_model_load(model, file, weights);
    if (status == ATT_OK)
        status = compare_weights(e, weights);
    att_weights_destroy(&weights);
    att_model_destroy(&model);
    return status;
}

/* Reads the file as the network `name`; NULL: the file says which it is. A file without config.json does not tell the
 * size of images. */
static att_status read_as(const exporting *e, const att_tensors *file, const char *name)
{
    att_identity identity;
    att_option_values images = att_options_none();
    const bool described = e->target.form->type;
    att_option_copy("img_size", &e->target.identity->options, &images);
    ATT_TRY(att_model_identify(e->target.context, file, NULL, name, described ? NULL : &images, &identity));
    ATT_TRY(compare_options(e, &identity.options));
    if (described)
        ATT_TRY(compare_preprocess(e, &identity.preprocess));
    return load(e, file, &identity);
}

/* Copies the name at *at, and moves *at to the next one. Returns false past the last. */
static bool next_name(const char **at, char *name, size_t size)
{
    const size_t length = strcspn(*at, " ");
    snprintf(name, size, "%.*s", (int)length, *at);
    *at += length + strspn(*at + length, " ");
    return length > 0;
}

/* Whether the failure says that the network cannot be written so. Others end the export. */
static bool is_refusal(att_status status)
{
    return status != ATT_OK && status != ATT_ERR_MEMORY && status != ATT_ERR_IO && status != ATT_ERR_STOPPED;
}

static att_status read_file(const exporting *e, const att_tensors *file)
{
    const char *at = e->target.layout->variants;
    char name[128];
    if (e->target.layout->signature)
        return read_as(e, file, NULL);
    att_status status = ATT_ERR_UNSUPPORTED;
    while (is_refusal(status) && next_name(&at, name, sizeof name))
        status = read_as(e, file, name);
    return status;
}

/* Opens what was written. The reader of a processor's settings refuses those that attscope cannot follow. */
static att_status open_written(const exporting *e, att_tensors **file)
{
    const att_status status = att_model_open_file(e->target.context, e->weights, file);
    const char *why = att_context_message(e->target.context);
    const size_t length = strlen(e->processor);
    char copy[REASON];
    if (status != ATT_ERR_UNSUPPORTED || strncmp(why, e->processor, length) != 0)
        return status;
    snprintf(copy, sizeof copy, "%s", why + length + strspn(why + length, ": "));
    return refuse_preprocess(e, copy);
}

static att_status read_back(const exporting *e)
{
    att_tensors *file;
    ATT_TRY(open_written(e, &file));
    att_status status = read_file(e, file);
    att_tensors_close(&file);
    return status;
}

/* --- classes ------------------------------------------------------------------------------------------------------ */

/* Remembers the message if the class is the nearest one. */
static void note_refusal(exporting *e, int distance)
{
    const char *message = att_context_message(e->target.context);
    const size_t length = strlen(e->made);
    const char *colon = strncmp(message, e->made, length) == 0 ? strstr(message + length, ": ") : NULL;
    if (e->reason[0] && e->distance <= distance)
        return;
    e->distance = distance;
    snprintf(e->reason, sizeof e->reason, "%s", colon ? colon + 2 : message); /* without the name of a written file */
}

static bool has_squares(const att_option_values *options)
{
    static const char *const keys[] = {"img_size", "patch_size"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const att_option_value *sides = att_options_find(options, keys[i]);
        if (sides && sides->numbers[0] != sides->numbers[1])
            return false;
    }
    return true;
}

/* Whether the network has what a word of att_layout_form.needs says. */
static bool meets(const exporting *e, const char *word)
{
    const char *number = strchr(word, '=');
    char key[ATT_OPTION_KEY] = "";
    double value;
    if (strcmp(word, ATT_LAYOUT_SQUARE) == 0)
        return has_squares(&e->target.identity->options);
    if (!number)
        return (att_weights_find(e->target.weights, word + (*word == '!')) < 0) == (*word == '!');
    snprintf(key, sizeof key, "%.*s", (int)(number - word), word);
    return att_text_to_f64(number + 1, &value) && att_options_number(&e->target.identity->options, key, 0) == value;
}

/* Says what a word of att_layout_form.needs means for a network that lacks it. */
static void refuse_unmet(const exporting *e, const char *word)
{
    const bool absent = *word == '!', is_option = strchr(word, '=') != NULL;
    const char *squares = strcmp(word, ATT_LAYOUT_SQUARE) == 0 ? "images and patches that are squares" : NULL;
    (void)att_fail(e->target.context, ATT_ERR_UNSUPPORTED, "%s (%s) %s %s", e->target.layout->name,
                   e->target.form->class,
                   squares || is_option ? "needs"
                   : absent             ? "has no tensor"
                                        : "needs the tensor",
                   squares ? squares : word + absent);
}

/* Returns how much of what the class requires the network does not meet. The message names the first. */
static int count_unmet(const exporting *e)
{
    const char *at = e->target.form->needs;
    char word[128];
    int count = 0;
    while (next_name(&at, word, sizeof word))
        if (!meets(e, word) && count++ == 0)
            refuse_unmet(e, word);
    return count;
}

static att_status write_named(exporting *e, const att_layout_tensors *tensors)
{
    if (tensors->unplaced > 0)
        return att_fail(e->target.context, ATT_ERR_UNSUPPORTED, "its tensor \"%s\" has no place in %s (%s)",
                        tensors->first_unplaced, e->target.layout->name, e->target.form->class);
    ATT_TRY(write_files(e, tensors));
    return read_back(e);
}

/* Writes the network as one of the class, and remembers why that is refused. */
static att_status try_class(exporting *e)
{
    enum { FAR = 1 << 20 }; /* more than there are tensors */
    att_layout_tensors tensors;
    const int unmet = count_unmet(e);
    if (unmet > 0) {
        note_refusal(e, unmet * FAR);
        return ATT_ERR_UNSUPPORTED;
    }
    att_status status = att_layout_name_tensors(&e->target, &tensors);
    if (status == ATT_OK)
        status = write_named(e, &tensors);
    if (is_refusal(status))
        note_refusal(e, tensors.unplaced);
    att_layout_tensors_free(&tensors);
    return status;
}

static att_status try_layout(exporting *e, const att_layout *layout)
{
    const char *at = layout->variants;
    char name[128];
    att_variant variant;
    att_status status = ATT_ERR_UNSUPPORTED;
    next_name(&at, name, sizeof name);
    ATT_TRY(att_variant_find(e->target.context, name, &variant));
    if (variant.family != e->family || (layout->types != NULL) != (e->program == transformers))
        return status;
    e->target.layout = layout;
    for (const att_layout_form *c = layout->forms; c && c->class && is_refusal(status); c++) {
        e->target.form = c;
        status = try_class(e);
    }
    return status;
}

static att_status refuse(const exporting *e)
{
    if (!e->reason[0])
        return att_fail(e->target.context, ATT_ERR_UNSUPPORTED,
                        "%s cannot be written for %s: attscope writes no networks of the family %s there",
                        e->target.identity->name, e->program, e->family->name);
    return att_fail(e->target.context, ATT_ERR_UNSUPPORTED, "%s cannot be written for %s: %s", e->target.identity->name,
                    e->program, e->reason);
}

/* timm's crop begins at half of the rest rounded to even, that of the library at half rounded down. The rests of the
 * shorter side are the same for all images. */
static void report_crop(const exporting *e)
{
    const att_preprocess *p = &e->target.identity->preprocess;
    const bool all = (resized(p->height, p->crop_pct) - p->height) % 4 == 3;
    att_log(e->target.context, all ? ATT_LOG_WARNING : ATT_LOG_INFO,
            "transformers crops %s one pixel beside timm's crop (crop_mode center); its answers to photographs differ "
            "accordingly; networks trained with --crop-mode floor have the same crop",
            all ? "all images" : "about one image in four");
}

static void report(const exporting *e)
{
    const att_preprocess *p = &e->target.identity->preprocess;
    att_log(e->target.context, ATT_LOG_INFO, "written as %s (%s)", e->target.layout->name, e->target.form->class);
    if (e->program == torchvision)
        att_log(e->target.context, ATT_LOG_INFO,
                "torchvision's files do not say how images are prepared; for this network: %d x %d, crop_pct %g, "
                "crop_mode %s, %s, mean %g %g %g, std %g %g %g",
                p->height, p->width, p->crop_pct, p->crop_mode, p->interpolation, p->mean[0], p->mean[1], p->mean[2],
                p->std[0], p->std[1], p->std[2]);
    else if (strcmp(p->crop_mode, "center") == 0)
        report_crop(e);
}

static att_status export_network(exporting *e)
{
    const att_layout *layout;
    att_status status = ATT_ERR_UNSUPPORTED;
    for (int i = 0; (layout = att_layout_at(i)) && is_refusal(status); i++)
        status = try_layout(e, layout);
    if (is_refusal(status))
        return refuse(e);
    if (status == ATT_OK)
        status = place_files(e);
    if (status == ATT_OK)
        report(e);
    return status;
}

att_status att_model_export(att_context *context, const att_identity *identity, const att_weights *weights,
                            const char *const *class_names, const char *program, const char *path)
{
    exporting e = {.target = {.context = context, .identity = identity, .weights = weights, .class_names = class_names},
                   .program = strcmp(program, transformers) == 0 ? transformers : torchvision,
                   .path = path};
    att_variant variant;
    if (strcmp(program, e.program) != 0)
        return att_fail(context, ATT_ERR_ARGUMENT, "expected transformers or torchvision, got \"%.64s\"", program);
    ATT_TRY(att_variant_find(context, identity->name, &variant));
    e.family = variant.family;
    ATT_TRY(begin_files(&e));
    att_status status = export_network(&e);
    remove_files(&e);
    return status;
}
