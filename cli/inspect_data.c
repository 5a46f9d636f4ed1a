#include "inspect_data.h"

#include <stdlib.h>
#include <string.h>

#include "paths.h"
#include "stop.h"

enum { SPLITS = 3, LOOKED_AT = 1000, REASON = CLI_PATH + 512 };

static const char *const split_names[SPLITS] = {"train", "validation", "test"};

/* Sides in pixels of the images that were looked at. */
typedef struct sizes {
    int64_t looked_at;
    int smallest[2], largest[2]; /* width, height; by area */
} sizes;

typedef struct split {
    att_dataset *dataset;
    const char *name; /* "all": the data set has no splits */
    sizes sizes;
    int64_t *counts; /* [classes]: boxes, or images, of each class; NULL: those are not known */
} split;

typedef struct facts {
    const char *path;
    unsigned annotations;
    bool unlabelled;
    int count, classes;
    split splits[SPLITS];
} facts;

/* --- opening ------------------------------------------------------------------------------------------------------ */

static att_dataset_options options_of(const facts *f, const char *name)
{
    att_dataset_options options = att_dataset_options_defaults();
    options.split = name;
    options.annotations = f->annotations;
    options.unlabelled = f->unlabelled;
    return options;
}

static att_status try_kind(att_context *context, facts *f, unsigned annotations, bool unlabelled)
{
    att_dataset *dataset = NULL;
    f->annotations = annotations;
    f->unlabelled = unlabelled;
    const att_dataset_options options = options_of(f, NULL);
    att_status status = att_dataset_open(context, f->path, &options, &dataset);
    att_dataset_close(&dataset);
    return status;
}

/* Finds out what the images have: boxes, masks, classes or nothing. quiet: a context without a log. Files that look
 * like one of the first two, but are wrong, are an error. */
static att_status find_kind(att_context *quiet, facts *f)
{
    static const unsigned kinds[] = {ATT_ANNOTATION_BOXES, ATT_ANNOTATION_MASK, ATT_ANNOTATION_CLASS};
    att_status status = ATT_ERR_MISMATCH;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds && status == ATT_ERR_MISMATCH; k++)
        status = try_kind(quiet, f, kinds[k], false);
    return status == ATT_ERR_FORMAT && f->annotations == ATT_ANNOTATION_CLASS ? try_kind(quiet, f, 0, true) : status;
}

/* Whether a split was opened by its own name, not in place of another one. */
static bool is_own(const char *name, const char *opened)
{
    return strncmp(name, opened, strlen("val")) == 0;
}

/* Lists the names of the splits that exist. A split can stand for another one. */
static void list_splits(att_context *quiet, facts *f, const char *names[SPLITS])
{
    char opened[SPLITS][64];
    for (int s = 0; s < SPLITS && !f->unlabelled; s++) {
        att_dataset *dataset = NULL;
        const att_dataset_options options = options_of(f, split_names[s]);
        if (att_dataset_open(quiet, f->path, &options, &dataset) != ATT_OK)
            continue;
        snprintf(opened[f->count], sizeof *opened, "%s", att_dataset_split(dataset));
        att_dataset_close(&dataset);
        int same = 0;
        while (same < f->count && strcmp(opened[same], opened[f->count]) != 0)
            same++;
        if (same == f->count || is_own(split_names[s], opened[same]))
            names[same] = split_names[s];
        f->count += same == f->count;
    }
    if (f->count == 0)
        names[f->count++] = NULL;
}

static int open_splits(cli_app *cli, facts *f, const char *const names[SPLITS])
{
    int code = CLI_OK;
    for (int s = 0; s < f->count && code == CLI_OK; s++) {
        split *it = &f->splits[s];
        const att_dataset_options options = options_of(f, names[s]);
        code = cli_check(cli, att_dataset_open(cli->context, f->path, &options, &it->dataset));
        if (code != CLI_OK)
            break;
        it->name = *att_dataset_split(it->dataset) ? att_dataset_split(it->dataset) : "all";
        const int classes = att_dataset_class_count(it->dataset);
        f->classes = classes > f->classes ? classes : f->classes;
    }
    return code;
}

static bool stop_wanted(void *user)
{
    (void)user;
    return cli_stop_asked();
}

/* Whether weights can be found there; if not, the context has the reason. */
static att_status try_checkpoint(att_context *context, const char *path)
{
    char found[CLI_PATH];
    att_tensors *file = NULL;
    if (cli_is_folder(path))
        return att_network_find_file(context, path, found, sizeof found);
    att_status status = att_tensors_open(context, path, &file);
    att_tensors_close(&file);
    return status;
}

/* Fails with both reasons. */
static int refuse(att_context *quiet, const facts *f)
{
    char as_data[REASON];
    snprintf(as_data, sizeof as_data, "%s", att_context_message(quiet));
    try_checkpoint(quiet, f->path);
    return cli_failure("%s holds neither a checkpoint nor a data set; as a checkpoint: %s; as a data set: %s", f->path,
                       att_context_message(quiet), as_data);
}

static int open_data(cli_app *cli, facts *f)
{
    const char *names[SPLITS] = {NULL};
    att_context *quiet = NULL;
    att_settings settings = att_settings_defaults();
    settings.threads = 1;
    settings.stop = stop_wanted;
    if (att_context_create(&settings, &quiet) != ATT_OK)
        return cli_failure("out of memory for a data set");
    att_status status = find_kind(quiet, f);
    if (status == ATT_OK)
        list_splits(quiet, f, names);
    int code = status == ATT_ERR_STOPPED ? CLI_STOPPED : status == ATT_OK ? CLI_OK : refuse(quiet, f);
    att_context_destroy(&quiet);
    return code == CLI_OK ? open_splits(cli, f, names) : code;
}

/* --- counting ----------------------------------------------------------------------------------------------------- */

static int64_t area_of(const int sides[2])
{
    return (int64_t)sides[0] * sides[1];
}

/* Looks at images that are spread over the data set. Those that cannot be read do not count. */
static int find_sizes(cli_app *cli, split *it)
{
    const int64_t images = att_dataset_count(it->dataset), looked_at = images < LOOKED_AT ? images : LOOKED_AT;
    sizes *found = &it->sizes;
    for (int64_t i = 0; i < looked_at; i++) {
        int sides[2];
        if (cli_stop_asked())
            return CLI_STOPPED;
        if (att_dataset_image_size(it->dataset, cli->context, i * images / looked_at, &sides[0], &sides[1]) != ATT_OK)
            continue;
        if (found->looked_at == 0 || area_of(sides) < area_of(found->smallest))
            memcpy(found->smallest, sides, sizeof sides);
        if (found->looked_at++ == 0 || area_of(sides) > area_of(found->largest))
            memcpy(found->largest, sides, sizeof sides);
    }
    return CLI_OK;
}

static void count_image(const split *it, unsigned annotations, int64_t image)
{
    int boxes;
    const att_true_box *of = att_dataset_boxes(it->dataset, image, &boxes);
    const int32_t label = att_dataset_label(it->dataset, image);
    for (int b = 0; b < boxes; b++)
        it->counts[of[b].label]++;
    if (annotations == ATT_ANNOTATION_CLASS && label >= 0)
        it->counts[label]++;
}

static int count(cli_app *cli, facts *f)
{
    int code = CLI_OK;
    for (int s = 0; s < f->count && code == CLI_OK; s++) {
        split *it = &f->splits[s];
        code = find_sizes(cli, it);
        if (f->annotations == ATT_ANNOTATION_MASK || f->classes == 0)
            continue;
        it->counts = calloc((size_t)f->classes, sizeof *it->counts);
        if (!it->counts)
            return cli_failure("out of memory for the %d classes of a data set", f->classes);
        for (int64_t i = 0; i < att_dataset_count(it->dataset); i++)
            count_image(it, f->annotations, i);
    }
    return code;
}

/* --- text --------------------------------------------------------------------------------------------------------- */

/* Splits can have different numbers of classes. */
static const char *class_name(const facts *f, int number)
{
    for (int s = 0; s < f->count; s++)
        if (number < att_dataset_class_count(f->splits[s].dataset))
            return att_dataset_class_name(f->splits[s].dataset, number);
    return "";
}

static void print_split(const split *it)
{
    char text[CLI_PATH + 256];
    const sizes *found = &it->sizes;
    cli_print("%s\n", att_dataset_describe(it->dataset, text, sizeof text));
    if (found->looked_at == 0)
        return;
    cli_print("  sizes %d x %d", found->smallest[0], found->smallest[1]);
    if (memcmp(found->smallest, found->largest, sizeof found->smallest) != 0)
        cli_print(" to %d x %d", found->largest[0], found->largest[1]);
    if (found->looked_at < att_dataset_count(it->dataset))
        cli_print(" pixels (of %lld images)\n", (long long)found->looked_at);
    else
        cli_print(" pixels\n");
}

static void print_classes(const facts *f)
{
    enum { NAME = 24 };
    const int width = f->splits[0].counts ? NAME : 0;
    if (f->classes == 0)
        return;
    cli_print("\n%6s  %-*s", "class", width, "name");
    for (int s = 0; s < f->count && f->splits[s].counts; s++)
        cli_print("  %10s", f->splits[s].name);
    if (f->splits[0].counts)
        cli_print("  (%s)", f->annotations == ATT_ANNOTATION_BOXES ? "boxes" : "images");
    cli_print("\n");
    for (int c = 0; c < f->classes; c++) {
        cli_print("%6d  %-*s", c, width, class_name(f, c));
        for (int s = 0; s < f->count && f->splits[s].counts; s++)
            cli_print("  %10lld", (long long)f->splits[s].counts[c]);
        cli_print("\n");
    }
}

/* --- JSON --------------------------------------------------------------------------------------------------------- */

static void write_sides(att_json_writer *w, const char *key, const int sides[2])
{
    att_json_put_array(w, key);
    att_json_integer(w, sides[0]);
    att_json_integer(w, sides[1]);
    att_json_end_array(w);
}

static void write_split(att_json_writer *w, const facts *f, const split *it)
{
    att_json_begin_object(w);
    att_json_put_string(w, "split", att_dataset_split(it->dataset));
    att_json_put_integer(w, "images", att_dataset_count(it->dataset));
    att_json_put_integer(w, "classes", att_dataset_class_count(it->dataset));
    if (f->annotations == ATT_ANNOTATION_BOXES) {
        const att_box_counts counts = att_dataset_count_boxes(it->dataset);
        att_json_put_integer(w, "boxes", counts.boxes);
        att_json_put_integer(w, "crowds", counts.crowds);
        att_json_put_integer(w, "images_without_boxes", counts.images_without);
        att_json_put_integer(w, "boxes_at_most", counts.most);
    }
    att_json_put_integer(w, "sizes_of", it->sizes.looked_at);
    write_sides(w, "smallest", it->sizes.smallest);
    write_sides(w, "largest", it->sizes.largest);
    att_json_end_object(w);
}

static void write_class(att_json_writer *w, const facts *f, int number)
{
    const int64_t id = att_dataset_class_id(f->splits[0].dataset, number);
    att_json_begin_object(w);
    att_json_put_integer(w, "class", number);
    att_json_put_string(w, "name", class_name(f, number));
    if (f->annotations == ATT_ANNOTATION_BOXES && id >= 0)
        att_json_put_integer(w, "category_id", id);
    if (f->splits[0].counts) {
        att_json_put_array(w, f->annotations == ATT_ANNOTATION_BOXES ? "boxes" : "images");
        for (int s = 0; s < f->count; s++)
            att_json_integer(w, f->splits[s].counts[number]);
        att_json_end_array(w);
    }
    att_json_end_object(w);
}

static void write_facts(att_json_writer *w, const void *from)
{
    const facts *f = from;
    att_json_put_string(w, "data", f->path);
    att_json_put_string(w, "annotations",
                        f->annotations == ATT_ANNOTATION_BOXES   ? "boxes"
                        : f->annotations == ATT_ANNOTATION_MASK  ? "masks"
                        : f->annotations == ATT_ANNOTATION_CLASS ? "classes"
                                                                 : NULL);
    att_json_put_array(w, "splits");
    for (int s = 0; s < f->count; s++)
        write_split(w, f, &f->splits[s]);
    att_json_end_array(w);
    att_json_put_array(w, "classes");
    for (int c = 0; c < f->classes; c++)
        write_class(w, f, c);
    att_json_end_array(w);
}

/* --- inspecting --------------------------------------------------------------------------------------------------- */

bool cli_is_data(const cli_app *cli, const char *path)
{
    if (!cli_is_collection(path))
        return false;
    const att_status status = try_checkpoint(cli->context, path);
    return status == ATT_ERR_NOT_FOUND || (status == ATT_ERR_FORMAT && !cli_is_folder(path));
}

int cli_inspect_data(cli_app *cli, const char *path, const char *json)
{
    facts f = {.path = path};
    int code = open_data(cli, &f);
    if (code == CLI_OK)
        code = count(cli, &f);
    if (code == CLI_OK && cli_prints(json)) {
        for (int s = 0; s < f.count; s++)
            print_split(&f.splits[s]);
        print_classes(&f);
    }
    if (code == CLI_OK)
        code = cli_json_save(cli, json, write_facts, &f);
    for (int s = 0; s < f.count; s++) {
        free(f.splits[s].counts);
        att_dataset_close(&f.splits[s].dataset);
    }
    return code;
}
