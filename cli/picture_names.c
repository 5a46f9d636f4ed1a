#include "picture_names.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Names that differ in their case only would be one file on some file systems. */
static int compare(const void *a, const void *b)
{
    return strcasecmp(a, b);
}

/* Copies the last part of the name, without the ending of an image. */
static void copy_stem(const char *name, char stem[CLI_PATH])
{
    static const char *const endings[] = {".jpg", ".jpeg", ".png", ".webp"};
    const char *slash = strrchr(name, '/');
    snprintf(stem, CLI_PATH, "%s", slash ? slash + 1 : name);
    const size_t length = strlen(stem);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        const size_t end = strlen(endings[i]);
        if (length > end && strcasecmp(stem + length - end, endings[i]) == 0)
            stem[length - end] = '\0';
    }
}

int cli_picture_names_take(cli_picture_names *names, const char *photograph, char name[CLI_PATH])
{
    char stem[CLI_PATH];
    copy_stem(photograph, stem);
    snprintf(name, CLI_PATH, "%s", stem);
    for (int i = 2; tfind(name, &names->taken, compare); i++)
        if (snprintf(name, CLI_PATH, "%s-%d", stem, i) >= CLI_PATH)
            return cli_failure("%s: the name is too long for a picture", photograph);
    char *kept = strdup(name);
    if (kept && tsearch(kept, &names->taken, compare))
        return CLI_OK;
    free(kept);
    return cli_failure("out of memory for the names of pictures");
}

void cli_picture_names_free(cli_picture_names *names)
{
    while (names->taken) {
        char *name = *(char **)names->taken;
        tdelete(name, &names->taken, compare);
        free(name);
    }
}
