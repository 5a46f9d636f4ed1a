/* Opens files of weights in the layouts of other programs. */
#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/io/file.h"
#include "networks/layouts/layout.h"
#include "networks/models/family.h"
#include "networks/models/identify.h"
#include "networks/models/torchvision.h"

/* --- side files --------------------------------------------------------------------------------------------------- */

static att_status read_json(att_context *context, const char *path, json_t **root)
{
    char *bytes;
    size_t size;
    ATT_TRY(att_file_read(context, path, ATT_JSON_SETTINGS_BYTES, &bytes, &size));
    att_status status = att_json_parse(context, path, bytes, size, root);
    att_free(context, bytes);
    return status;
}

/* Reads the JSON file `name` in the folder of the weights. *root: NULL if there is none; else the caller frees it. The
 * caller frees path->data. */
static att_status read_side_file(const att_tensors *file, const char *name, att_text *path, json_t **root)
{
    const char *slash = strrchr(file->path, '/');
    *path = (att_text){.context = file->context};
    *root = NULL;
    att_text_append_bytes(path, file->path, slash ? (size_t)(slash - file->path) + 1 : 0);
    att_text_append(path, "%s", name);
    if (path->failed)
        return att_fail_memory(file->context, strlen(file->path), "a path");
    return att_file_exists(path->data) ? read_json(file->context, path->data, root) : ATT_OK;
}

/* --- the layout of a file ----------------------------------------------------------------------------------------- */

static void list_types(att_text *text)
{
    const att_layout *layout;
    for (int i = 0; (layout = att_layout_at(i)); i++)
        if (layout->types)
            att_text_append(text, "%s%s", text->length ? " " : "", layout->types);
}

static att_status refuse_type(att_context *context, const char *path, const char *type)
{
    att_text types = {.context = context};
    list_types(&types);
    att_status status =
        types.failed ? att_fail_memory(context, 256, "a message")
                     : att_fail(context, ATT_ERR_UNSUPPORTED,
                                "%s: describes a network of the transformers library whose model_type is \"%.64s\"; "
                                "attscope opens these: %s",
                                path, type, types.data);
    att_text_free(&types);
    return status;
}

static att_status refuse_tensors(const att_tensors *file, const att_layout *layout, const char *path)
{
    if (file->part)
        return att_fail(
            file->context, ATT_ERR_UNSUPPORTED,
            "%s: describes %s, but the part \"%s\" of %s has no tensor \"%s\"; name the file without #%s, or "
            "with the part that holds that network",
            path, layout->name, file->part, file->path, layout->signature, file->part);
    return att_fail(file->context, ATT_ERR_UNSUPPORTED,
                    "%s: describes %s, but %s has no tensor \"%s\"; if it belongs to another file, move that file to a "
                    "folder of its own",
                    path, layout->name, file->path, layout->signature);
}

/* Returns the object that describes the network of images, or the backbone of a segmenter. Older files of CLIP have a
 * "vision_config_dict", which replaces all of "vision_config"; open_clip has "vision_cfg" in "model_cfg". */
static const json_t *described(const json_t *root)
{
    static const char *const keys[] = {"vision_config_dict", "vision_config", "backbone_config", "vision_cfg"};
    const json_t *network = json_object_get(root, "model_cfg");
    if (network)
        return described(network);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (json_is_object(json_object_get(root, keys[i])))
            return json_object_get(root, keys[i]);
    return root;
}

/* --- metadata ----------------------------------------------------------------------------------------------------- */

/* Adds the identity of the network as attscope's checkpoints have it. */
static att_status describe(att_tensors *file, const att_config *config)
{
    char text[ATT_IDENTITY_TEXT];
    att_identity identity = {0};
    att_variant variant;
    att_option_values own;
    ATT_TRY(att_variant_find(file->context, config->name, &variant));
    att_variant_defaults(&variant, NULL, &own, &identity.preprocess);
    snprintf(identity.name, sizeof identity.name, "%.63s", config->name);
    identity.options = config->options;
    att_options_size(&config->options, &identity.preprocess);
    att_config_apply(config, &identity.preprocess);
    ATT_TRY(att_model_identity_text(file->context, &identity, text, sizeof text));
    return att_tensors_add_metadata(file, ATT_IDENTITY_KEY, text);
}

/* Whether timm has networks of the family of a named network; NULL: it has. */
static bool is_of_timm(const att_tensors *file, const char *name)
{
    att_variant variant;
    return !name || att_variant_find(file->context, name, &variant) != ATT_OK || variant.family->timm;
}

/* what: what was the layout's, "names". network: the network's name; NULL: one of timm's. given: whether the caller
 * names the network. */
static att_status note_origin(att_tensors *file, const char *what, const att_layout *layout, const char *network,
                              bool given)
{
    att_text text = {.context = file->context};
    att_text_append(&text, "%s%s%s of %s, changed to %s", file->origin, *file->origin ? "; " : "", what, layout->name,
                    is_of_timm(file, network) ? "timm's" : "attscope's");
    if (file->projects)
        att_text_append(&text, "; its outputs are features of a projection, not scores of classes");
    if (layout->alike && !given)
        att_text_append(&text, "; assumed: not one of %s, whose files have the same tensors; --model names one",
                        layout->alike);
    const char *origin = text.failed ? NULL : att_arena_string(&file->arena, text.data);
    att_text_free(&text);
    if (!origin)
        return att_fail_memory(file->context, 256, "the description of a file");
    file->origin = origin;
    return ATT_OK;
}

/* Sets file->assumed: the options that the layout assumes and that nothing has set. */
static att_status note_assumed(att_tensors *file, const att_layout *layout, const att_option_values *known)
{
    att_text text = {.context = file->context};
    for (const char *at = layout->assumed ? layout->assumed : ""; *at; at += strspn(at, " ")) {
        char key[ATT_OPTION_KEY];
        const size_t length = strcspn(at, " ");
        snprintf(key, sizeof key, "%.*s", (int)length, at);
        if (!att_options_find(known, key))
            att_text_append(&text, "%s%s", text.length ? " " : "", key);
        at += length;
    }
    file->assumed = text.length ? att_arena_string(&file->arena, text.data) : NULL;
    const bool failed = text.failed || (text.length && !file->assumed);
    att_text_free(&text);
    return failed ? att_fail_memory(file->context, ATT_OPTION_KEY, "the description of a file") : ATT_OK;
}

/* Gives the file the layout's names, and metadata of the settings in *config and those that it leaves open. */
static att_status take_layout(att_tensors *file, const att_layout *layout, const att_layout_source *source,
                              const char *network, att_config *config)
{
    if (layout->prepare)
        ATT_TRY(layout->prepare(source, config));
    ATT_TRY(note_assumed(file, layout, &config->options));
    file->projects = layout->projection && att_layout_find(layout, file, layout->projection) >= 0;
    ATT_TRY(att_layout_apply(layout, file));
    ATT_TRY(att_layout_configure(layout, source, config));
    ATT_TRY(describe(file, config));
    if (file->projects)
        ATT_TRY(att_tensors_add_metadata(file, ATT_PROJECTION_KEY, "true"));
    if (layout->name_classes)
        ATT_TRY(layout->name_classes(file));
    return note_origin(file, "names and settings", layout, config->name, network);
}

/* Reads how images are prepared from a side file, or from its member `key`. *taken: whether the file has it. */
static att_status take_processor(att_tensors *file, const char *name, const char *key, att_config *config, bool *taken)
{
    json_t *root;
    att_text path;
    att_status status = read_side_file(file, name, &path, &root);
    const json_t *settings = key ? json_object_get(root, key) : root;
    *taken = status == ATT_OK && settings && !json_is_null(settings);
    if (*taken) {
        status = att_layout_preprocess(file->context, path.data, settings, config);
        file->preprocess_from = name;
    }
    json_decref(root);
    att_text_free(&path);
    return status;
}

/* As in transformers 5, what a processor of images and texts says about images takes precedence. */
static att_status read_processor(att_tensors *file, att_config *config)
{
    bool taken;
    file->preprocess_from = att_from_type;
    ATT_TRY(take_processor(file, "processor_config.json", "image_processor", config, &taken));
    return taken ? ATT_OK : take_processor(file, att_from_processor, NULL, config, &taken);
}

/* The same for a network of the transformers library. */
static att_status take_transformers(att_tensors *file, const att_layout *layout, const att_layout_source *source)
{
    att_config config = att_config_none();
    ATT_TRY(read_processor(file, &config));
    file->identity_from = att_from_config;
    return take_layout(file, layout, source, NULL, &config);
}

/* The same for a network whose layout the tensors show. settings: of the layout's side file; NULL: there is none. path:
 * of these, or of the tensors. */
static att_status take_shown(att_tensors *file, const att_layout *layout, const char *path, const json_t *settings,
                             const char *network)
{
    const att_torchvision *known = att_torchvision_of_file(file->path);
    const att_layout_source source = {file->context, file, path, described(settings), settings};
    att_config config = att_config_none();
    if (known) {
        config.crop_pct = known->crop_pct;
        snprintf(config.interpolation, sizeof config.interpolation, "%s", known->interpolation);
    }
    file->identity_from = settings ? layout->side_file : att_from_tensor_names;
    file->preprocess_from = known ? att_from_file_name : file->identity_from;
    return take_layout(file, layout, &source, network, &config);
}

/* Whether the caller names a network of another family than the layout's, and that family has the tensors under the
 * names that they have. */
static bool is_named_otherwise(const att_tensors *file, const att_layout *layout, const char *network)
{
    char first[64];
    att_variant named, own;
    att_option_values found = att_options_none();
    snprintf(first, sizeof first, "%.*s", (int)strcspn(layout->variants, " "), layout->variants);
    return network && att_variant_find(file->context, network, &named) == ATT_OK &&
           att_variant_find(file->context, first, &own) == ATT_OK && named.family != own.family &&
           att_family_recognise(file->context, named.family, file, &found) == ATT_OK;
}

/* The same for a network of torchvision, mmsegmentation or its authors, whose files hardly have settings. Other
 * networks keep their names. */
static att_status take_named(att_tensors *file, const char *network)
{
    const att_layout *layout = att_layout_of_tensors(file);
    json_t *settings = NULL;
    att_text path = {.context = file->context};
    if (!layout || is_named_otherwise(file, layout, network))
        return ATT_OK;
    att_status status = layout->side_file ? read_side_file(file, layout->side_file, &path, &settings) : ATT_OK;
    if (status == ATT_OK)
        status = take_shown(file, layout, settings ? path.data : file->path, settings, network);
    json_decref(settings);
    att_text_free(&path);
    return status;
}

/* The same for a file with attscope's metadata: one that it wrote for torchvision. Networks of timm's own names can
 * have the tensors of other layouts, such as DeiT III's gamma_1. */
static att_status take_names(att_tensors *file)
{
    const att_layout *layout = att_layout_of_tensors(file);
    if (!layout || !layout->forms)
        return ATT_OK;
    ATT_TRY(att_layout_apply(layout, file));
    return note_origin(file, "names", layout, NULL, true);
}

/* --- opening ------------------------------------------------------------------------------------------------------ */

/* Returns the model type of a network of the transformers library; NULL for other configurations. Its wrapper of timm's
 * networks writes timm's. */
static const char *type_of(const json_t *root)
{
    return json_object_get(root, "architecture") ? NULL : json_string_value(json_object_get(root, "model_type"));
}

static att_status find_layout(att_context *context, const char *path, const char *type, const att_layout **layout)
{
    *layout = att_layout_of_type(type);
    return *layout ? ATT_OK : refuse_type(context, path, type);
}

/* Applies the layout that config.json names. */
static att_status take_described(att_tensors *file, const char *path, const json_t *root, const char *network)
{
    const char *type = type_of(root);
    const att_layout *layout;
    if (!type)
        return ATT_OK;
    ATT_TRY(find_layout(file->context, path, type, &layout));
    const att_layout *own = att_layout_fits(layout, file) ? layout : att_layout_of_tensors(file);
    if (own && own->side_file) /* a folder of the hub may have files for several programs */
        return take_named(file, network);
    if (own != layout)
        return refuse_tensors(file, layout, path);
    const att_layout_source source = {file->context, file, path, described(root), root};
    return take_transformers(file, layout, &source);
}

att_status att_layout_take(att_tensors *file, const char *network)
{
    json_t *root = NULL;
    att_text path;
    if (att_tensors_metadata(file, ATT_IDENTITY_KEY)) {
        file->projects = att_tensors_metadata(file, ATT_PROJECTION_KEY) != NULL;
        return take_names(file);
    }
    att_status status = read_side_file(file, "config.json", &path, &root);
    if (status == ATT_OK)
        status = root ? take_described(file, path.data, root, network) : take_named(file, network);
    json_decref(root);
    att_text_free(&path);
    return status;
}

att_status att_model_open_file_as(att_context *context, const char *path, const char *network, att_tensors **file)
{
    att_tensors *opened;
    ATT_TRY(att_tensors_open(context, path, &opened));
    att_status status = att_layout_take(opened, network);
    if (status == ATT_OK)
        *file = opened;
    else
        att_tensors_close(&opened);
    return status;
}

att_status att_model_open_file(att_context *context, const char *path, att_tensors **file)
{
    return att_model_open_file_as(context, path, NULL, file);
}

/* --- before there are weights ------------------------------------------------------------------------------------- */

/* Refuses a network that timm has and attscope lacks. Other names are left to att_model_identify(). */
static att_status check_name(att_context *context, const char *path, const char *text)
{
    att_network_name name;
    char why[1024];
    att_status status = text ? att_config_resolve(context, text, &name) : ATT_OK;
    if (status == ATT_OK || status == ATT_ERR_NOT_FOUND)
        return ATT_OK;
    snprintf(why, sizeof why, "%s", att_context_message(context));
    return att_fail(context, status, "%s: %s", path, why);
}

/* Whether the first network of the layout, and so all of them, read tokens. */
static bool reads_texts(att_context *context, const att_layout *layout)
{
    char name[64];
    att_variant variant;
    if (!layout->variants)
        return false;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(layout->variants, " "), layout->variants);
    return att_variant_find(context, name, &variant) == ATT_OK && variant.family->inputs[0].name &&
           strcmp(variant.family->inputs[0].name, ATT_TOKENS) == 0;
}

static att_status check_root(att_context *context, const char *path, const json_t *root, att_layout_reads *reads)
{
    const char *type = type_of(root);
    const att_layout *layout;
    *reads = ATT_READS_NONE;
    if (!type)
        return check_name(context, path, json_string_value(json_object_get(root, "architecture")));
    ATT_TRY(find_layout(context, path, type, &layout));
    *reads = reads_texts(context, layout) ? ATT_READS_TEXTS : ATT_READS_IMAGES;
    return ATT_OK;
}

att_status att_layout_check_config(att_context *context, const char *path, att_layout_reads *reads)
{
    json_t *root = NULL;
    ATT_TRY(read_json(context, path, &root));
    att_status status = check_root(context, path, root, reads);
    json_decref(root);
    return status;
}
