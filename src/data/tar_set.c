#include "data/tar_set.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "base/io/archive_source.h"
#include "base/io/file.h"
#include "base/io/json.h"
#include "data/class_tree.h"
#include "data/tar_index.h"

static const char info_name[] = "_info.json", kit_name[] = "ILSVRC2012_devkit";

static att_status add(att_tar_set *set, const char *name)
{
    att_context *context = set->arena.context;
    if (set->count >= ATT_TAR_MOST)
        return att_fail(context, ATT_ERR_UNSUPPORTED, "%s: more than %d tars", set->folder, ATT_TAR_MOST);
    const char *kept = att_arena_string(&set->arena, name);
    if (!kept || !att_list_grow(context, (void *)&set->names, set->count, &set->capacity, sizeof *set->names))
        return att_fail_memory(context, strlen(name) + 1, "a list of tars");
    set->names[set->count++] = kept;
    return ATT_OK;
}

static att_status set_folder(att_tar_set *set, const char *folder)
{
    set->folder = att_arena_string(&set->arena, folder);
    return set->folder ? ATT_OK : att_fail_memory(set->arena.context, strlen(folder) + 1, "a list of tars");
}

void att_tar_set_free(att_tar_set *set)
{
    if (set->arena.context)
        att_free(set->arena.context, set->names);
    att_arena_free(&set->arena);
    *set = (att_tar_set){.count = 0};
}

/* --- patterns ----------------------------------------------------------------------------------------------------- */

bool att_tar_set_is_pattern(const char *path)
{
    const char *open = strchr(path, '{');
    return open && strchr(open, '}') && !att_file_exists(path);
}

/* A path while it is expanded. */
typedef struct expansion {
    att_tar_set *set;
    const char *pattern;
    size_t folder; /* length of the pattern's folder, with its slash */
    size_t length;
    char path[ATT_DATA_MAX_NAME];
} expansion;

static att_status fail_pattern(const expansion *it, const char *reason)
{
    return att_fail(it->set->arena.context, ATT_ERR_ARGUMENT,
                    "%s: %s; expected braces such as {000000..000146} or {train,extra}", it->pattern, reason);
}

static att_status append(expansion *it, const char *text, size_t length)
{
    if (length >= sizeof it->path - it->length)
        return fail_pattern(it, "too long");
    memcpy(it->path + it->length, text, length);
    it->length += length;
    it->path[it->length] = '\0';
    return ATT_OK;
}

static att_status expand(expansion *it, const char *rest);

/* Parses "FROM..TO". Returns false if the braces contain something else. */
static bool parse_range(const char *text, const char *end, long *from, long *to, int *width)
{
    enum { MAX_DIGITS = 9 };
    size_t first = strspn(text, "0123456789");
    if (first == 0 || first > MAX_DIGITS || strncmp(text + first, "..", 2) != 0)
        return false;
    const char *second = text + first + 2;
    size_t digits = strspn(second, "0123456789");
    if (digits == 0 || digits > MAX_DIGITS || second + digits != end)
        return false;
    *from = strtol(text, NULL, 10);
    *to = strtol(second, NULL, 10);
    *width = *text == '0' || *second == '0' ? (int)first : 1;
    return true;
}

static att_status expand_range(expansion *it, long from, long to, int width, const char *rest)
{
    size_t length = it->length;
    if (from > to)
        return fail_pattern(it, "a range must not descend");
    if (to - from >= ATT_TAR_MOST)
        return fail_pattern(it, "a range has too many numbers");
    for (long number = from; number <= to; number++, it->length = length) {
        char digits[24];
        int size = snprintf(digits, sizeof digits, "%0*ld", width, number);
        ATT_TRY(append(it, digits, (size_t)size));
        ATT_TRY(expand(it, rest));
    }
    return ATT_OK;
}

static att_status expand_list(expansion *it, const char *text, const char *end)
{
    size_t length = it->length;
    for (const char *part = text;; part++) {
        size_t size = strcspn(part, ",}");
        ATT_TRY(append(it, part, size));
        ATT_TRY(expand(it, end + 1));
        it->length = length;
        part += size;
        if (part == end)
            return ATT_OK;
    }
}

static att_status add_expanded(expansion *it)
{
    if (!att_file_exists(it->path))
        return att_fail(it->set->arena.context, ATT_ERR_NOT_FOUND, "%s does not exist, but is one of %s", it->path,
                        it->pattern);
    return add(it->set, it->path + it->folder);
}

/* Appends the rest of the pattern to the path in all possible ways. */
static att_status expand(expansion *it, const char *rest)
{
    size_t length = it->length, plain = strcspn(rest, "{");
    long from, to;
    int width;
    ATT_TRY(append(it, rest, plain));
    if (!rest[plain]) {
        ATT_TRY(add_expanded(it));
        it->length = length;
        return ATT_OK;
    }
    const char *text = rest + plain + 1, *end = text + strcspn(text, "{}");
    if (*end != '}')
        return fail_pattern(it, *end ? "braces inside braces" : "a brace without its counterpart");
    att_status status = parse_range(text, end, &from, &to, &width) ? expand_range(it, from, to, width, end + 1)
                                                                   : expand_list(it, text, end);
    it->length = length;
    return status;
}

static att_status find_pattern(att_tar_set *set, const char *path)
{
    expansion it = {.set = set, .pattern = path};
    char folder[ATT_DATA_MAX_NAME];
    it.folder = strcspn(path, "{");
    while (it.folder > 0 && path[it.folder - 1] != '/')
        it.folder--;
    snprintf(folder, sizeof folder, "%.*s", (int)(it.folder > 1 ? it.folder - 1 : it.folder), path);
    ATT_TRY(set_folder(set, *folder ? folder : "."));
    set->class_tars = true;
    return expand(&it, path);
}

/* --- folders ------------------------------------------------------------------------------------------------------ */

bool att_tar_named(const char *path)
{
    size_t length = strlen(path), ending = strlen(".tar");
    return length > ending && strcasecmp(path + length - ending, ".tar") == 0;
}

static bool is_listed(const char *name)
{
    return *name != '.' && att_tar_named(name);
}

/* Joins two parts of a path. Returns false if they do not fit. */
static bool join(char *path, const char *folder, const char *name)
{
    int length = snprintf(path, ATT_DATA_MAX_NAME, "%s%s%s", folder, *folder ? "/" : "", name);
    return length >= 0 && length < ATT_DATA_MAX_NAME;
}

/* What a folder holds. */
typedef struct folder_view {
    bool tars, folders;
    bool others; /* images, or folders that belong neither to a split nor to ImageNet's kit */
} folder_view;

/* A folder that does not exist holds nothing. */
static folder_view view_folder(const char *folder)
{
    folder_view view = {.tars = false};
    DIR *entries = opendir(folder);
    for (struct dirent *entry; entries && (entry = readdir(entries));) {
        char path[ATT_DATA_MAX_NAME];
        const char *name = entry->d_name;
        if (*name == '.' || !join(path, folder, name))
            continue;
        bool is_inside = entry->d_type == DT_DIR || (entry->d_type != DT_REG && att_is_folder(path));
        bool is_known = att_split_is_name(name) || strncmp(name, kit_name, strlen(kit_name)) == 0;
        view.tars |= !is_inside && is_listed(name);
        view.folders |= is_inside;
        view.others |= is_inside ? !is_known : att_class_tree_is_image(name);
    }
    if (entries)
        closedir(entries);
    return view;
}

/* Returns the name of the folder of a split; NULL if there is none. */
static const char *split_folder(const att_splits *folders, const char *split)
{
    const att_split *found = att_splits_find(folders, (const char *const[]){split, NULL});
    return found ? found->name : NULL;
}

static bool holds_only_tars(const char *folder, const char *name)
{
    char path[ATT_DATA_MAX_NAME];
    if (!join(path, folder, name))
        return false;
    folder_view view = view_folder(path);
    return view.tars && !view.folders && !view.others;
}

/* As split_folder(), if the split is a folder of tars. */
static const char *tars_folder(const att_splits *folders, const char *folder, const char *split)
{
    const char *name = split_folder(folders, split);
    return name && holds_only_tars(folder, name) ? name : NULL;
}

static int compare_names(const void *a, const void *b)
{
    return att_natural_compare(*(const char *const *)a, *(const char *const *)b);
}

/* Adds the tars of "<folder>/<inside>", sorted, as "<inside>/<name>". A folder that does not exist has none. */
static att_status add_folder(att_tar_set *set, const char *inside)
{
    char path[ATT_DATA_MAX_NAME], name[ATT_DATA_MAX_NAME];
    int before = set->count;
    DIR *entries = join(path, set->folder, inside) ? opendir(path) : NULL;
    att_status status = ATT_OK;
    for (struct dirent *entry; status == ATT_OK && entries && (entry = readdir(entries));)
        if (is_listed(entry->d_name) && join(name, inside, entry->d_name))
            status = add(set, name);
    if (entries)
        closedir(entries);
    if (set->count > before)
        qsort(set->names + before, (size_t)(set->count - before), sizeof *set->names, compare_names);
    return status;
}

const char *att_tar_set_split(const char *name)
{
    for (const char *const *split = att_split_names(NULL); *split; split++)
        if (att_split_is_word(name, *split))
            return *split;
    return NULL;
}

/* Whether a tar of ILSVRC2012 holds no labelled images of classification. */
static bool is_other_ilsvrc(const char *name)
{
    return strncmp(name, "ILSVRC", strlen("ILSVRC")) == 0 && strcmp(name, "ILSVRC2012_img_train.tar") != 0 &&
           strcmp(name, "ILSVRC2012_img_val.tar") != 0;
}

/* Keeps the tars whose names belong to the split. */
static void keep_split(att_tar_set *set, const char *split)
{
    int kept = 0;
    for (int i = 0; i < set->count; i++)
        if (att_split_is_word(set->names[i], split) && !is_other_ilsvrc(set->names[i]))
            set->names[kept++] = set->names[i];
    set->count = kept;
}

/* Adds what `_info.json` lists for the split. */
static att_status add_listed(att_tar_set *set, const json_t *root, const char *split)
{
    json_t *names = json_object_get(json_object_get(json_object_get(root, "splits"), split), "filenames");
    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *name = json_string_value(json_array_get(names, i));
        char path[ATT_DATA_MAX_NAME];
        if (!name || !is_listed(name) || strchr(name, '/'))
            return att_fail(set->arena.context, ATT_ERR_FORMAT,
                            "%s/%s: entry %zu of the split \"%s\" is not the name of a .tar in this folder",
                            set->folder, info_name, i + 1, split);
        if (!join(path, set->folder, name) || !att_file_exists(path))
            return att_fail(set->arena.context, ATT_ERR_NOT_FOUND, "%s/%s lists %s, which does not exist", set->folder,
                            info_name, name);
        ATT_TRY(add(set, name));
    }
    return ATT_OK;
}

/* *root: NULL if there is no such file. */
static att_status read_info(const att_tar_set *set, json_t **root)
{
    enum { MAX_INFO = 16 << 20 };
    att_context *context = set->arena.context;
    char path[ATT_DATA_MAX_NAME], *bytes;
    size_t size;
    *root = NULL;
    if (!join(path, set->folder, info_name) || !att_file_exists(path))
        return ATT_OK;
    ATT_TRY(att_file_read(context, path, MAX_INFO, &bytes, &size));
    att_status status = att_json_parse(context, path, bytes, size, root);
    att_free(context, bytes);
    return status;
}

/* A search for tars in a folder. */
typedef struct search {
    att_tar_set *set;
    json_t *info; /* NULL: none */
    bool direct;  /* the folder's own tars count */
    att_splits folders;
} search;

/* Adds the tars of one split in the order of preference of the header. */
static att_status add_split(const search *it, const char *split)
{
    att_tar_set *set = it->set;
    set->split = split;
    const char *folder = tars_folder(&it->folders, set->folder, split);
    set->class_tars = folder != NULL;
    if (folder)
        return add_folder(set, folder);
    if (!it->direct)
        return ATT_OK;
    ATT_TRY(add_listed(set, it->info, split));
    if (set->count > 0)
        return ATT_OK;
    ATT_TRY(add_folder(set, ""));
    keep_split(set, split);
    return ATT_OK;
}

/* Adds the tars of the first split that exists. *found: whether there is one. If it is class folders, the set stays
 * empty. */
static att_status add_first_split(const search *it, const char *const *splits, bool *found)
{
    for (*found = false; *splits && !*found; splits++) {
        char path[ATT_DATA_MAX_NAME];
        const char *folder = split_folder(&it->folders, *splits);
        *found = folder && join(path, it->set->folder, folder) && att_holds_folder(path);
        if (!*found)
            ATT_TRY(add_split(it, *splits));
        *found = *found || it->set->count > 0;
    }
    return ATT_OK;
}

static void clear(att_tar_set *set)
{
    set->count = 0;
    set->split = "";
    set->class_tars = false;
}

static att_status find_labelled(const search *it, const char *wanted)
{
    att_tar_set *set = it->set;
    bool found, other;
    ATT_TRY(add_first_split(it, att_split_names(wanted), &found));
    if (found)
        return ATT_OK;
    ATT_TRY(add_first_split(it, att_split_names(NULL), &other));
    clear(set);
    if (other || !it->direct)
        return ATT_OK;
    set->class_tars = true;
    return add_folder(set, "");
}

/* Adds the tars of the folder and of its folders of splits. */
static att_status find_all(const search *it)
{
    if (it->direct)
        ATT_TRY(add_folder(it->set, ""));
    for (const char *const *split = att_split_names(NULL); *split; split++) {
        const att_split *found = att_splits_find(&it->folders, (const char *const[]){*split, NULL});
        if (found && holds_only_tars(it->set->folder, found->name))
            ATT_TRY(add_folder(it->set, found->name));
        if (found && *found->other && holds_only_tars(it->set->folder, found->other))
            ATT_TRY(add_folder(it->set, found->other));
    }
    return ATT_OK;
}

static att_status find_in_folder(att_tar_set *set, const char *path, const char *wanted, bool unlabelled)
{
    search it = {.set = set, .direct = !view_folder(path).others};
    const att_split *found;
    ATT_TRY(set_folder(set, path));
    att_splits_scan(&it.folders, path, att_is_folder);
    if (unlabelled)
        return find_all(&it);
    ATT_TRY(att_splits_choose(&it.folders, set->arena.context, path, wanted, &found));
    ATT_TRY(read_info(set, &it.info));
    att_status status = find_labelled(&it, wanted);
    json_decref(it.info);
    return status;
}

/* --- all ---------------------------------------------------------------------------------------------------------- */

static att_status find_single(att_tar_set *set, const char *path)
{
    char folder[ATT_DATA_MAX_NAME];
    ATT_TRY(att_path_folder(set->arena.context, path, folder, sizeof folder));
    ATT_TRY(set_folder(set, folder));
    return add(set, att_path_last(path));
}

att_status att_tar_set_find(att_tar_set *set, const char *path, const char *wanted, bool unlabelled)
{
    clear(set);
    if (att_is_folder(path))
        return find_in_folder(set, path, wanted, unlabelled);
    return att_tar_set_is_pattern(path) ? find_pattern(set, path) : find_single(set, path);
}

bool att_tar_set_accepts(const char *path)
{
    if (!att_is_folder(path))
        return att_tar_set_is_pattern(path) || att_tar_is_plain(path);
    att_splits folders = {.flat = {""}};
    att_splits_scan(&folders, path, att_is_folder);
    for (const char *const *split = att_split_names(NULL); *split; split++)
        if (tars_folder(&folders, path, *split))
            return true;
    folder_view view = view_folder(path);
    return view.tars && !view.others;
}
