#include "labels.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void cli_labels_free(cli_labels *l)
{
    free(l->text);
    free(l->names);
    *l = (cli_labels){0};
}

/* NULL with a message where it cannot be opened. A pipe is refused, not waited for. */
static FILE *open_regular(const char *path)
{
    struct stat info;
    int descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    bool opened = descriptor >= 0 && fstat(descriptor, &info) == 0, regular = opened && S_ISREG(info.st_mode);
    FILE *in = regular ? fdopen(descriptor, "rb") : NULL;
    if (in)
        return in;
    if (opened && !regular)
        cli_say("%s is not a regular file; expected a list of class names, one a line", path);
    else
        cli_say("%s: %s", path, strerror(errno));
    if (descriptor >= 0)
        close(descriptor);
    return NULL;
}

/* The whole file with a NUL behind it, NULL with a message where that cannot be. */
static char *read_text(const char *path)
{
    enum { MOST = 64 << 20 };
    FILE *in = open_regular(path);
    if (!in)
        return NULL;
    size_t length = 0, room = 1 << 16;
    char *text = malloc(room);
    while (text && length < MOST) {
        length += fread(text + length, 1, room - length - 1, in);
        if (length < room - 1)
            break;
        char *larger = realloc(text, room *= 2);
        if (!larger)
            free(text);
        text = larger;
    }
    bool fine = text && !ferror(in) && length < MOST && !memchr(text, 0, length);
    fclose(in);
    if (!fine) {
        cli_say("%s cannot be read as a list of class names", path);
        free(text);
        return NULL;
    }
    while (length > 1 && strchr("\r\n", text[length - 1]) && strchr("\r\n", text[length - 2]))
        length--; /* empty lines at the end, as in CIFAR-10's own file */
    text[length] = '\0';
    return text;
}

/* Cuts l->text: a line is a class; a carriage return before its end is no part of it. How many lines there are. */
static int cut_lines(int classes, cli_labels *l)
{
    int lines = 0;
    for (char *line = l->text; *line;) {
        size_t length = strcspn(line, "\n");
        char *next = line + length + (line[length] != '\0');
        line[length] = '\0';
        if (length > 0 && line[length - 1] == '\r')
            line[length - 1] = '\0';
        if (lines < classes)
            l->names[lines] = line;
        lines++;
        line = next;
    }
    return lines;
}

static int refuse_name(const char *name)
{
    char known[256] = "";
    for (int i = 0, length = 0; i < att_known_classes_count() && length + 64 < (int)sizeof known; i++)
        length += snprintf(known + length, sizeof known - (size_t)length, "%s%s", i ? ", " : "",
                           att_known_classes_at(i)->name);
    return cli_usage("--labels: \"%s\" is neither a file nor a data set whose classes are built in (%s)", name, known);
}

/* A line is a class; a carriage return before its end is no part of it. */
static int read_labels(const char *path, int classes, cli_labels *l)
{
    if (access(path, F_OK) != 0 && !strpbrk(path, "./"))
        return refuse_name(path);
    l->text = read_text(path);
    if (!l->text)
        return CLI_FAILURE;
    l->names = calloc((size_t)classes, sizeof *l->names);
    if (!l->names)
        return cli_failure("out of memory for the names of %d classes", classes);
    int lines = cut_lines(classes, l);
    if (lines != classes)
        return cli_failure("%s names %d class%s, but the network has %d", path, lines, lines == 1 ? "" : "es", classes);
    l->count = lines;
    return CLI_OK;
}

int cli_labels_take(const char *names, int classes, cli_labels *l)
{
    if (!names)
        return CLI_OK;
    l->text = strdup(names);
    l->names = calloc((size_t)classes, sizeof *l->names);
    if (!l->text || !l->names)
        return cli_failure("out of memory for the names of %d classes", classes);
    int lines = cut_lines(classes, l);
    l->count = lines <= classes ? lines : 0;
    return CLI_OK;
}

static int take_known(const att_known_classes *known, int classes, cli_labels *l)
{
    if (known->count != classes)
        return cli_failure("--labels %s names %d classes, but the network has %d", known->name, known->count, classes);
    size_t size = 1;
    for (int c = 0; c < classes; c++)
        size += strlen(known->labels[c]) + 1;
    char *lines = malloc(size), *end = lines;
    if (!lines)
        return cli_failure("out of memory for the names of %d classes", classes);
    for (int c = 0; c < classes; c++)
        end += sprintf(end, "%s\n", known->labels[c]);
    int code = cli_labels_take(lines, classes, l);
    free(lines);
    return code;
}

/* Puts the label behind every synset: "n01440764 tench". */
static int explain_synsets(cli_labels *l)
{
    size_t size = 1;
    for (int c = 0; c < l->count; c++) {
        const char *label = att_synset_label(l->names[c]);
        size += strlen(l->names[c]) + (label ? strlen(label) + 1 : 0) + 1;
    }
    char *text = malloc(size), *end = text;
    if (!text)
        return cli_failure("out of memory for the names of %d classes", l->count);
    for (int c = 0; c < l->count; c++) {
        const char *label = att_synset_label(l->names[c]);
        int length = sprintf(end, "%s%s%s", l->names[c], label ? " " : "", label ? label : "");
        l->names[c] = end;
        end += length + 1;
    }
    free(l->text);
    l->text = text;
    return CLI_OK;
}

int cli_labels_choose(cli_app *cli, const char *said, const att_tensors *file, int classes, cli_labels *l)
{
    const att_known_classes *known = said ? att_known_classes_find(said) : att_checkpoint_known_classes(file, classes);
    int code = known  ? take_known(known, classes, l)
               : said ? read_labels(said, classes, l)
                      : cli_labels_take(att_checkpoint_classes(file), classes, l);
    if (code == CLI_OK && known && !said)
        cli_note(cli, "the class names are those of %s; --labels NAME gives others", known->name);
    return code == CLI_OK && l->count > 0 ? explain_synsets(l) : code;
}

const char *cli_label_of(const cli_labels *l, int class_number)
{
    return class_number < l->count ? l->names[class_number] : NULL;
}
