/* Writes networks in the layouts of other programs: as the first class that can express them. */
#include <attscope/convert.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/core/context.h"
#include "base/core/error.h"
#include "base/core/text.h"
#include "networks/layouts/export.h"
#include "networks/models/family.h"

static const char transformers[] = "transformers", torchvision[] = "torchvision";

/* One export. */
typedef struct exporting {
    att_layout_target target;
    att_export_files files;
    const char *program;
    char reason[1024]; /* why the network cannot be written as the nearest class; "": there is none */
    int distance;      /* of that class */
} exporting;

bool att_export_next_word(const char **at, char *word, size_t size)
{
    const size_t length = strcspn(*at, " ");
    snprintf(word, size, "%.*s", (int)length, *at);
    *at += length + strspn(*at + length, " ");
    return length > 0;
}

bool att_export_is_refusal(att_status status)
{
    return status != ATT_OK && status != ATT_ERR_MEMORY && status != ATT_ERR_IO && status != ATT_ERR_STOPPED;
}

/* --- what a class needs ------------------------------------------------------------------------------------------- */

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
    const char *given = strchr(word, '=');
    char key[ATT_OPTION_KEY] = "";
    double value;
    if (strcmp(word, ATT_LAYOUT_SQUARE) == 0)
        return has_squares(&e->target.identity->options);
    if (!given)
        return (att_weights_find(e->target.weights, word + (*word == '!')) < 0) == (*word == '!');
    snprintf(key, sizeof key, "%.*s", (int)(given - word), word);
    const char *text = att_options_text(&e->target.identity->options, key);
    return *text ? strcmp(text, given + 1) == 0
                 : att_text_to_f64(given + 1, &value) &&
                       att_options_number(&e->target.identity->options, key, 0) == value;
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
    while (att_export_next_word(&at, word, sizeof word))
        if (!meets(e, word) && count++ == 0)
            refuse_unmet(e, word);
    return count;
}

/* --- choice of a class -------------------------------------------------------------------------------------------- */

/* Remembers the message if the class is the nearest one. */
static void note_refusal(exporting *e, int distance)
{
    const char *message = att_context_message(e->target.context);
    const size_t length = strlen(e->files.made);
    const char *colon = strncmp(message, e->files.made, length) == 0 ? strstr(message + length, ": ") : NULL;
    if (e->reason[0] && e->distance <= distance)
        return;
    e->distance = distance;
    snprintf(e->reason, sizeof e->reason, "%s", colon ? colon + 2 : message); /* without the name of a written file */
}

static att_status write_named(exporting *e, const att_layout_tensors *tensors)
{
    if (tensors->unplaced > 0)
        return att_fail(e->target.context, ATT_ERR_UNSUPPORTED, "its tensor \"%s\" has no place in %s (%s)",
                        tensors->first_unplaced, e->target.layout->name, e->target.form->class);
    ATT_TRY(att_export_write_files(&e->target, tensors, &e->files));
    return att_export_read_back(&e->target, &e->files);
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
    if (att_export_is_refusal(status))
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
    att_export_next_word(&at, name, sizeof name);
    ATT_TRY(att_variant_find(e->target.context, name, &variant));
    if (variant.family != e->target.family || (layout->types != NULL) != (e->program == transformers))
        return status;
    e->target.layout = layout;
    for (const att_layout_form *c = layout->forms; c && c->class && att_export_is_refusal(status); c++) {
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
                        e->target.identity->name, e->program, e->target.family->name);
    return att_fail(e->target.context, ATT_ERR_UNSUPPORTED, "%s cannot be written for %s: %s", e->target.identity->name,
                    e->program, e->reason);
}

/* --- reports ------------------------------------------------------------------------------------------------------ */

/* timm's crop begins at half of the rest rounded to even, that of the library at half rounded down. The rests of the
 * shorter side are the same for all images. */
static void report_crop(const exporting *e)
{
    const att_preprocess *p = &e->target.identity->preprocess;
    const bool all = ((int)floor(p->height / p->crop_pct) - p->height) % 4 == 3;
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
                "crop_mode %s, %s, mean %g %g %g, std %g %g %g; attscope reads this from the file's metadata",
                p->height, p->width, p->crop_pct, p->crop_mode, p->interpolation, p->mean[0], p->mean[1], p->mean[2],
                p->std[0], p->std[1], p->std[2]);
    else if (strcmp(p->crop_mode, "center") == 0)
        report_crop(e);
}

/* ------------------------------------------------------------------------------------------------------------------ */

static att_status export_network(exporting *e)
{
    const att_layout *layout;
    att_status status = ATT_ERR_UNSUPPORTED;
    for (int i = 0; (layout = att_layout_at(i)) && att_export_is_refusal(status); i++)
        status = try_layout(e, layout);
    if (att_export_is_refusal(status))
        return refuse(e);
    if (status == ATT_OK)
        status = att_export_place_files(e->target.context, &e->files);
    if (status == ATT_OK)
        report(e);
    return status;
}

att_status att_model_export(att_context *context, const att_identity *identity, const att_weights *weights,
                            const char *const *class_names, const char *program, const char *path)
{
    exporting e = {.target = {.context = context, .identity = identity, .weights = weights, .class_names = class_names},
                   .program = strcmp(program, transformers) == 0 ? transformers : torchvision};
    att_variant variant;
    if (strcmp(program, e.program) != 0)
        return att_fail(context, ATT_ERR_ARGUMENT, "expected transformers or torchvision, got \"%.64s\"", program);
    ATT_TRY(att_variant_find(context, identity->name, &variant));
    e.target.family = variant.family;
    ATT_TRY(att_export_begin_files(context, path, e.program == transformers, &e.files));
    att_status status = export_network(&e);
    att_export_remove_files(&e.files);
    return status;
}
