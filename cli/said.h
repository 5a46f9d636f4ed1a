/* said.h - lets the child processes of a command print a note that all of them have only once.
 *
 * The command shares a list of the hashes of notes with its children: a temporary file without a name, which they
 * inherit. */
#ifndef CLI_SAID_H
#define CLI_SAID_H

#include <stdbool.h>

/* The list, for children: file descriptor, device and inode of the file. */
#define CLI_SAID_VARIABLE "ATTSCOPE_SAID"

/* Makes the list. Writes the value of the variable to `value`; "" if there can be no list. */
void cli_said_share(char *value, int size);

/* Whether an earlier child of the command has printed the note. Adds it to the list. False without a list. */
bool cli_said(const char *note);

#endif
