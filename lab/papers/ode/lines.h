/* ode/lines.h - the lines of a text file, without comments. */
#ifndef ATT_ODE_LINES_H
#define ATT_ODE_LINES_H

#include "lab/papers/ode/system.h"

typedef struct att_ode_lines {
    const char *path;
    const char *text; /* the whole file */
    char *rest;       /* the lines that are left; NULL: none */
    char *line;       /* the present line, without its comment and the spaces at its end */
    int number;       /* of the present line, 1 for the first */
} att_ode_lines;

/* Reads a file of at most `cap` bytes into the system's arena. Errors: those of att_file_read(); ERR_FORMAT (a NUL). */
att_status att_ode_lines_open(att_ode *ode, const char *path, size_t cap, att_ode_lines *lines);
/* Starts again in front of the first line. */
att_status att_ode_lines_rewind(att_ode *ode, att_ode_lines *lines);
/* Moves to the next line that is not empty. Returns false after the last one. */
bool att_ode_lines_next(att_ode_lines *lines);

#endif
