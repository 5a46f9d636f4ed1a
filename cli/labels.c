#include "labels.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

void cli_labels_free(cli_labels *l)
{
    free(l->text);
    free(l->names);
    *l = (cli_labels){0};
}

/* The whole file with a NUL behind it, NULL with a message where that cannot be. */
static char *read_text(const char *path)
{
    enum { MOST = 64 << 20 };
    FILE *in = fopen(path, "rb");
    if (!in) {
        cli_say("%s: %s", path, strerror(errno));
        return NULL;
    }
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

int cli_labels_read(const char *path, int classes, cli_labels *l)
{
    l->text = read_text(path);
    if (!l->text)
        return CLI_FAILURE;
    l->names = calloc((size_t)classes, sizeof *l->names);
    if (!l->names)
        return cli_failure("out of memory for the names of %d classes", classes);
    int lines = cut_lines(classes, l);
    if (lines != classes)
        return cli_failure("%s names %d classes, but the network has %d", path, lines, classes);
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
    for (char *at = l->text; *at; at++)
        if (*at != '\n' && iscntrl((unsigned char)*at))
            *at = '?';
    int lines = cut_lines(classes, l);
    l->count = lines <= classes ? lines : 0;
    return CLI_OK;
}

const char *cli_label_of(const cli_labels *l, int class_number)
{
    return class_number < l->count ? l->names[class_number] : NULL;
}
