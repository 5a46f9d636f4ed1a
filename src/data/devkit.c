#include "data/devkit.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/text.h"
#include "io/archive.h"
#include "io/file.h"
#include "io/mat.h"

#define KIT "ILSVRC2012_devkit_t12"
#define META "data/meta.mat"
#define TRUTH "data/ILSVRC2012_validation_ground_truth.txt"

enum { CLASSES = 1000, WNID = 9, MAX_IMAGES = 1 << 20, MAX_FILE = 16 << 20 };
static const char image_begin[] = "ILSVRC2012_val_";

typedef struct devkit {
    att_context *context;
    char path[ATT_DATA_MAX_NAME];
    char *files[2]; /* META and TRUTH */
    size_t sizes[2];
    char wnids[CLASSES + 1][WNID + 1]; /* by ILSVRC2012_ID; "" if there is none */
    int32_t *classes;                  /* [images]: ILSVRC2012_ID of image n + 1 */
    int64_t images;
} devkit;

static const char *const file_names[] = {META, TRUTH};

/* --- images ------------------------------------------------------------------------------------------------------- */

static bool is_wnid(const char *text, size_t length)
{
    if (length != WNID || *text != 'n')
        return false;
    for (int i = 1; i < WNID; i++)
        if (!isdigit((unsigned char)text[i]))
            return false;
    return true;
}

int64_t att_devkit_image_number(const char *path)
{
    enum { DIGITS = 8 };
    const char *last = att_path_last(path), *digits = last + strlen(image_begin);
    if (strncmp(last, image_begin, strlen(image_begin)) != 0 || strspn(digits, "0123456789") != DIGITS)
        return 0;
    return digits[DIGITS] == '.' || digits[DIGITS] == '\0' ? strtoll(digits, NULL, 10) : 0;
}

/* Returns the number of a validation image that lies in no class folder; 0 for other files. */
static int64_t unclassed_number(const char *path)
{
    const char *last = att_path_last(path), *folder = last > path ? last - 1 : last;
    while (folder > path && folder[-1] != '/')
        folder--;
    bool has_class = is_wnid(folder, last > folder ? (size_t)(last - folder - 1) : 0);
    return has_class ? 0 : att_devkit_image_number(path);
}

static bool same_folder(const char *a, const char *b)
{
    size_t length = (size_t)(att_path_last(a) - a);
    return length == (size_t)(att_path_last(b) - b) && memcmp(a, b, length) == 0;
}

/* The number of validation images that lie in one folder; 0 if they lie in several, which are then their classes. */
static int64_t count_images(const att_class_tree *tree)
{
    const char *first = NULL;
    int64_t count = 0;
    for (int64_t i = 0; i < tree->images.count; i++) {
        const char *inner = tree->images.files[i].inner;
        if (unclassed_number(inner) == 0)
            continue;
        first = first ? first : inner;
        if (!same_folder(first, inner))
            return 0;
        count++;
    }
    return count;
}

/* --- the files of the kit ----------------------------------------------------------------------------------------- */

/* Returns the number of the kit's file; -1 if it is another file. */
static int file_number(const char *name)
{
    for (int i = 0; i < 2; i++) {
        size_t length = strlen(name), wanted = strlen(file_names[i]);
        if (length >= wanted && strcmp(name + length - wanted, file_names[i]) == 0)
            return i;
    }
    return -1;
}

static att_status choose(void *user, const char *name, size_t size, att_archive_use *use)
{
    (void)user;
    if (file_number(name) < 0 || size > MAX_FILE)
        *use = ATT_ARCHIVE_IGNORE;
    return ATT_OK;
}

static att_status read_member(devkit *kit, const att_archive *archive, int64_t member)
{
    int number = file_number(att_archive_name(archive, member));
    size_t size = att_archive_size(archive, member);
    if (kit->files[number])
        return ATT_OK;
    kit->files[number] = att_allocate(kit->context, size + 1);
    kit->sizes[number] = size;
    if (!kit->files[number])
        return att_fail_memory(kit->context, size + 1, kit->path);
    return att_archive_read(archive, kit->context, member, kit->files[number]);
}

static att_status read_archive(devkit *kit)
{
    att_archive *archive;
    ATT_TRY(att_archive_open_some(kit->context, kit->path, 2 * MAX_FILE, choose, NULL, &archive));
    att_status status = ATT_OK;
    for (int64_t i = 0; status == ATT_OK && i < att_archive_count(archive); i++)
        status = read_member(kit, archive, i);
    att_archive_close(&archive);
    return status;
}

static att_status read_folder(devkit *kit)
{
    for (int i = 0; i < 2; i++) {
        char path[ATT_DATA_MAX_NAME];
        ATT_TRY(att_path_join(kit->context, kit->path, file_names[i], path, sizeof path));
        ATT_TRY(att_file_read(kit->context, path, MAX_FILE, &kit->files[i], &kit->sizes[i]));
    }
    return ATT_OK;
}

static att_status read_files(devkit *kit)
{
    bool packed = strstr(att_path_last(kit->path), ".tar") != NULL;
    ATT_TRY(packed ? read_archive(kit) : read_folder(kit));
    for (int i = 0; i < 2; i++)
        if (!kit->files[i])
            return att_fail(kit->context, ATT_ERR_FORMAT, "%s has no file %s of at most %d bytes", kit->path,
                            file_names[i], MAX_FILE);
    return ATT_OK;
}

/* Looks for the kit in the folder. */
static bool find_in(devkit *kit, const char *folder)
{
    static const char *const endings[] = {".tar.gz", ".tar", ""};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        int length = snprintf(kit->path, sizeof kit->path, "%s/" KIT "%s", folder, endings[i]);
        if (length >= 0 && (size_t)length < sizeof kit->path && att_file_exists(kit->path))
            return true;
    }
    return false;
}

static bool find_kit(devkit *kit, const att_dataset *dataset)
{
    char folder[ATT_DATA_MAX_NAME];
    return find_in(kit, dataset->path) ||
           (att_path_folder(kit->context, dataset->path, folder, sizeof folder) == ATT_OK && find_in(kit, folder));
}

/* --- their contents ----------------------------------------------------------------------------------------------- */

static att_status read_synset(devkit *kit, const att_mat_struct *synsets, int64_t i)
{
    double id;
    char wnid[WNID + 1];
    ATT_TRY(att_mat_struct_number(synsets, i, "ILSVRC2012_ID", &id));
    ATT_TRY(att_mat_struct_text(synsets, i, "WNID", wnid, sizeof wnid));
    if (!is_wnid(wnid, strlen(wnid)))
        return att_fail(kit->context, ATT_ERR_FORMAT, "%s: " META ": \"%s\" is not a WNID such as n01440764", kit->path,
                        wnid);
    if (id >= 1 && id <= CLASSES)
        memcpy(kit->wnids[(int)id], wnid, sizeof wnid);
    return ATT_OK;
}

static att_status read_synsets(devkit *kit)
{
    att_mat_struct *synsets;
    ATT_TRY(att_mat_struct_read(kit->context, kit->path, (const uint8_t *)kit->files[0], kit->sizes[0], "synsets",
                                &synsets));
    att_status status = ATT_OK;
    for (int64_t i = 0; status == ATT_OK && i < att_mat_struct_count(synsets); i++)
        status = read_synset(kit, synsets, i);
    att_mat_struct_free(&synsets);
    return status;
}

static att_status read_truth(devkit *kit, att_class_tree *tree)
{
    kit->classes = att_allocate_array(kit->context, MAX_IMAGES, sizeof *kit->classes);
    if (!kit->classes)
        return att_fail_memory(kit->context, MAX_IMAGES * sizeof *kit->classes, kit->path);
    const char **lines;
    int count;
    ATT_TRY(att_text_lines(&tree->moved, TRUTH, kit->files[1], kit->sizes[1], &lines, &count));
    for (; kit->images < count && kit->images < MAX_IMAGES; kit->images++) {
        int64_t id;
        if (!att_text_to_i64(lines[kit->images], &id) || id < 1 || id > CLASSES || !*kit->wnids[id])
            return att_fail(kit->context, ATT_ERR_FORMAT,
                            "%s: line %lld of " TRUTH " is not an ILSVRC2012_ID of " META ", 1 to %d", kit->path,
                            (long long)kit->images + 1, CLASSES);
        kit->classes[kit->images] = (int32_t)id;
    }
    return ATT_OK;
}

/* --- the tree ----------------------------------------------------------------------------------------------------- */

/* Changes "val/ILSVRC2012_val_00000293.JPEG" to "val/n01440764/ILSVRC2012_val_00000293.JPEG". */
static att_status move_image(const devkit *kit, att_class_tree *tree, int64_t number, att_tree_file *file)
{
    if (number > kit->images)
        return att_fail(kit->context, ATT_ERR_MISMATCH, "%s has %lld images, but there is %s", kit->path,
                        (long long)kit->images, file->path);
    const char *last = att_path_last(file->inner);
    size_t size = strlen(file->inner) + WNID + 2, folder = (size_t)(last - file->inner);
    char *moved = att_arena_allocate(&tree->moved, size);
    if (!moved)
        return att_fail_memory(kit->context, size, "the list of images");
    snprintf(moved, size, "%.*s%s/%s", (int)folder, file->inner, kit->wnids[kit->classes[number - 1]], last);
    file->inner = moved;
    return ATT_OK;
}

static att_status move_images(devkit *kit, att_class_tree *tree)
{
    ATT_TRY(read_files(kit));
    ATT_TRY(read_synsets(kit));
    ATT_TRY(read_truth(kit, tree));
    for (int64_t i = 0; i < tree->images.count; i++) {
        att_tree_file *file = &tree->images.files[i];
        int64_t number = unclassed_number(file->inner);
        if (number > 0)
            ATT_TRY(move_image(kit, tree, number, file));
    }
    return ATT_OK;
}

att_status att_devkit_apply(att_class_tree *tree, const att_dataset *dataset)
{
    att_context *context = tree->context;
    int64_t images = count_images(tree);
    if (images == 0)
        return ATT_OK;
    devkit *kit = att_allocate(context, sizeof *kit);
    if (!kit)
        return att_fail_memory(context, sizeof *kit, KIT);
    kit->context = context;
    tree->moved.context = context;
    att_status status = ATT_OK;
    if (find_kit(kit, dataset))
        status = move_images(kit, tree);
    else if (images == tree->images.count)
        status = att_fail(context, ATT_ERR_NOT_FOUND,
                          "%s holds validation images of ImageNet, whose classes are in " KIT
                          ".tar.gz; put this file beside them",
                          dataset->path);
    for (int i = 0; i < 2; i++)
        att_free(context, kit->files[i]);
    att_free(context, kit->classes);
    att_free(context, kit);
    return status;
}
