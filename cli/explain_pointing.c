#include "explain_pointing.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* --- classes of categories ---------------------------------------------------------------------------------------- */

static int add_class(cli_pointed *of, int class_number)
{
    int *classes = realloc(of->classes, ((size_t)of->count + 1) * sizeof *classes);
    if (!classes)
        return cli_failure("out of memory for the classes of categories");
    of->classes = classes;
    of->classes[of->count++] = class_number;
    return CLI_OK;
}

/* The name of a class without its synset. */
static const char *plain_name(const char *name)
{
    return name[0] == 'n' && strspn(name + 1, "0123456789") == 8 && name[9] == ' ' ? name + 10 : name;
}

static int find_by_names(const att_network *network, cli_pointing *p)
{
    int classes, code = CLI_OK;
    const char *const *names = att_network_class_names(network, &classes);
    for (int c = 0; c < p->count && code == CLI_OK; c++)
        for (int k = 0; k < classes && code == CLI_OK; k++)
            if (strcasecmp(plain_name(names[k]), att_dataset_class_name(p->dataset, c)) == 0)
                code = add_class(&p->categories[c], k);
    return code;
}

static const char *category_name(const void *user, int index)
{
    return att_dataset_class_name(user, index);
}

static int find_category(const cli_pointing *p, const char *name)
{
    for (int c = 0; c < p->count; c++)
        if (strcasecmp(att_dataset_class_name(p->dataset, c), name) == 0)
            return c;
    return -1;
}

/* Adds "3,7-9" of classes below `classes`. */
static int add_numbers(const char *text, int classes, cli_pointed *of, const char *file, int line)
{
    int code = CLI_OK;
    for (const char *at = text; code == CLI_OK;) {
        char *end;
        const long first = strtol(at, &end, 10);
        const bool none = end == at;
        const long last = *end == '-' ? strtol(end + 1, &end, 10) : first;
        end += strspn(end, " \t\r\n");
        if (none || first < 0 || last < first || last >= classes || (*end && *end != ','))
            return cli_usage(
                "%s, line %d: \"%.*s\": expected numbers and ranges of classes from 0 to %d, such as 3,7-9", file, line,
                (int)strcspn(text, "\r\n"), text, classes - 1);
        for (long k = first; k <= last && code == CLI_OK; k++)
            code = add_class(of, (int)k);
        if (!*end)
            break;
        at = end + 1;
    }
    return code;
}

static int read_line(const att_network *network, cli_pointing *p, char *text, const char *file, int line)
{
    char *colon = strchr(text, ':');
    if (*text == '#' || text[strspn(text, " \t\r\n")] == '\0')
        return CLI_OK;
    if (!colon)
        return cli_usage("%s, line %d: expected NAME: NUMBERS, such as \"dog: 151-268\"", file, line);
    *colon = '\0';
    const int category = find_category(p, text);
    if (category < 0) {
        const char *nearest = att_text_nearest(text, category_name, p->dataset, p->count);
        return cli_usage("%s, line %d: the data set has no category \"%s\"%s%s%s", file, line, text,
                         nearest ? "; did you mean \"" : "", nearest ? nearest : "", nearest ? "\"?" : "");
    }
    const int classes = att_model_classes(att_network_model(network));
    return add_numbers(colon + 1 + strspn(colon + 1, " \t"), classes, &p->categories[category], file, line);
}

static int read_file(const att_network *network, cli_pointing *p, const char *path)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = fopen(path, "r");
    int code = file ? CLI_OK : cli_failure("--categories %s: the file cannot be read", path);
    for (int line = 1; code == CLI_OK && getline(&text, &size, file) >= 0; line++)
        code = read_line(network, p, text, path, line);
    free(text);
    if (file)
        fclose(file);
    return code;
}

/* --- opening ------------------------------------------------------------------------------------------------------ */

static void note_categories(const cli_pointing *p, int found)
{
    enum { SHOWN = 12 };
    char names[1024] = "";
    int shown = 0;
    for (int c = 0; c < p->count && shown < SHOWN; c++)
        if (p->categories[c].count > 0)
            snprintf(names + strlen(names), sizeof names - strlen(names), "%s%.60s", shown++ ? ", " : "",
                     att_dataset_class_name(p->dataset, c));
    cli_note(p->cli, "pointing game: %d of %d categories are classes of the network: %s%s", found, p->count, names,
             found > shown ? ", ..." : "");
}

int cli_pointing_open(cli_app *cli, const att_network *network, const att_dataset *dataset, const char *file,
                      cli_pointing *p)
{
    *p = (cli_pointing){.cli = cli, .dataset = dataset, .count = att_dataset_class_count(dataset)};
    p->categories = calloc((size_t)p->count + 1, sizeof *p->categories);
    p->asked = calloc((size_t)cli_pointing_most(p) + 1, sizeof *p->asked);
    if (!p->categories || !p->asked)
        return cli_failure("out of memory for the categories of boxes");
    int found = 0;
    const int code = file ? read_file(network, p, file) : find_by_names(network, p);
    for (int c = 0; c < p->count; c++)
        found += p->categories[c].count > 0;
    if (code == CLI_OK && found == 0)
        return cli_usage(
            "--pointing: no category of the boxes has the name of a class of the network; give their "
            "classes with --categories FILE");
    if (code == CLI_OK)
        note_categories(p, found);
    return code;
}

void cli_pointing_close(cli_pointing *p)
{
    for (int c = 0; c < p->count && p->categories; c++)
        free(p->categories[c].classes);
    free(p->categories);
    free(p->asked);
}

int64_t cli_pointing_most(const cli_pointing *p)
{
    return att_dataset_count_boxes(p->dataset).boxes;
}

/* --- questions ---------------------------------------------------------------------------------------------------- */

int cli_pointing_next(const cli_pointing *p, int64_t index, int label)
{
    int count, next = -1;
    const att_true_box *boxes = att_dataset_boxes(p->dataset, index, &count);
    for (int b = 0; b < count; b++)
        if (boxes[b].label > label && (next < 0 || boxes[b].label < next) && p->categories[boxes[b].label].count > 0)
            next = boxes[b].label;
    return next;
}

void cli_pointing_ask(cli_pointing *p, int label)
{
    p->asked[p->questions++] = label;
    p->categories[label].questions++;
}
