#include "choose.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_SIZE = 8192, MOST_IMAGES = 65536 };

void cli_choice_free(cli_choice *choice)
{
    free(choice->images);
    *choice = (cli_choice){0};
}

static int add(cli_choice *choice, int64_t image)
{
    for (int i = 0; i < choice->count; i++)
        if (choice->images[i] == image)
            return CLI_OK;
    if (choice->count == MOST_IMAGES)
        return cli_usage("--map-images names more than %d images", (int)MOST_IMAGES);
    int64_t *images = realloc(choice->images, ((size_t)choice->count + 1) * sizeof *images);
    if (!images)
        return cli_failure("out of memory for a list of %d images", choice->count + 1);
    choice->images = images;
    choice->images[choice->count++] = image;
    return CLI_OK;
}

static bool is_escaped_comma(const char *text)
{
    return text[0] == '\\' && text[1] == ',';
}

/* Up to the comma that ends the item, or to the end of the list. */
static size_t item_length(const char *item)
{
    size_t length = 0;
    while (item[length] && item[length] != ',')
        length += is_escaped_comma(item + length) ? 2 : 1;
    return length;
}

/* fnmatch()'s pattern with nothing special but '*' and '?'; "\," becomes a comma. */
static bool escape(const char *item, size_t length, char pattern[NAME_SIZE])
{
    size_t made = 0;
    for (size_t i = 0; i < length && made + 2 < NAME_SIZE; i++) {
        if (is_escaped_comma(item + i))
            i++;
        else if (item[i] == '[' || item[i] == '\\')
            pattern[made++] = '\\';
        pattern[made++] = item[i];
    }
    pattern[made] = '\0';
    return made + 2 < NAME_SIZE;
}

/* The whole name, or what stands behind one of its slashes. */
static bool is_called(const char *name, const char *pattern)
{
    while (name) {
        if (fnmatch(pattern, name, 0) == 0)
            return true;
        name = strchr(name, '/');
        name = name ? name + 1 : NULL;
    }
    return false;
}

static int add_named(const att_dataset *dataset, const char *item, size_t length, cli_choice *choice)
{
    char pattern[NAME_SIZE], name[NAME_SIZE];
    bool found = false;
    for (int64_t i = 0; escape(item, length, pattern) && i < att_dataset_count(dataset); i++) {
        if (!is_called(att_dataset_short_name(dataset, i, name, sizeof name), pattern))
            continue;
        found = true;
        int code = add(choice, i);
        if (code != CLI_OK)
            return code;
    }
    if (found)
        return CLI_OK;
    return cli_usage("--map-images: no image is called \"%.*s\"; the first is called \"%s\"", (int)length, item,
                     att_dataset_short_name(dataset, 0, name, sizeof name));
}

static int add_numbered(const att_dataset *dataset, const char *item, size_t length, cli_choice *choice)
{
    int64_t count = att_dataset_count(dataset);
    intmax_t number = strtoimax(item, NULL, 10);
    if (number < count)
        return add(choice, number);
    return cli_usage("--map-images: there is no image %.*s; the data set has %lld, numbered from 0", (int)length, item,
                     (long long)count);
}

int cli_choose_images(const att_dataset *dataset, const char *list, cli_choice *choice)
{
    for (const char *item = list;; item++) {
        size_t length = item_length(item);
        if (length == 0)
            return cli_usage("--map-images \"%s\" has an empty item", list);
        bool number = strspn(item, "0123456789") == length;
        int code = number ? add_numbered(dataset, item, length, choice) : add_named(dataset, item, length, choice);
        if (code != CLI_OK)
            return code;
        item += length;
        if (!*item)
            return CLI_OK;
    }
}
