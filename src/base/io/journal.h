/* io/journal.h - a journal: a folder of numbered entries, to which processes on several machines append.
 *
 * An entry is appended by making the file of the next number, which exactly one process can do: the file is written
 * under another name, and link() gives it its number. On a network file system, too, link() fails if the name exists.
 * So a process appends only if it has read all earlier entries, and all processes see the same entries in the same
 * order. Entries are never changed. The folder is created with its first entry, and removed as a whole.
 *
 * The folder also contains marks: empty files whose modification time shows that a process is alive.
 *
 * Two processes use different names: a name is part of the names of a process's own files. Errors, unless stated
 * otherwise: ERR_IO, ERR_MEMORY.
 */
#ifndef ATT_IO_JOURNAL_H
#define ATT_IO_JOURNAL_H

#include <attscope/context.h>

#include "base/core/export.h"

typedef struct att_journal att_journal;

/* Creates the folder `path` with a first entry and the process's mark, all in one step. *journal: NULL if the folder
 * exists. Its parent folder must exist. */
ATT_FOR_LAB att_status att_journal_create(att_context *context, const char *path, const char *name, const char *first,
                                          att_journal **journal);
/* Opens an existing journal. *journal: NULL if there is none. */
ATT_FOR_LAB att_status att_journal_open(att_context *context, const char *path, const char *name,
                                        att_journal **journal);
/* Closes the folder and frees the journal. NULL and pointers to NULL are allowed. */
ATT_FOR_LAB void att_journal_close(att_journal **journal);

/* Reads the next entry. *entry: NULL if there is no further one; otherwise the caller frees it with att_free(). Other
 * error: ERR_FORMAT if the entry has more than 4 MiB or is no regular file. */
ATT_FOR_LAB att_status att_journal_read(att_journal *journal, char **entry);
/* Appends an entry, which must differ from all others. *appended: false if another process has appended an entry that
 * has not been read yet, or if the journal was removed. An appended entry must still be read. */
ATT_FOR_LAB att_status att_journal_append(att_journal *journal, const char *entry, bool *appended);
/* Whether the first entry exists. It is missing once att_journal_remove() has begun. */
ATT_FOR_LAB bool att_journal_exists(const att_journal *journal);
/* Removes the folder with all files. Several processes may do so at the same time. If another journal has meanwhile
 * been created at this path, that one is not changed. */
ATT_FOR_LAB void att_journal_remove(att_journal *journal);

/* --- marks -------------------------------------------------------------------------------------------------------- */

ATT_FOR_LAB att_status att_journal_mark(att_journal *journal);
/* Writes the path of the mark of the process `name`. */
ATT_FOR_LAB att_status att_journal_mark_path(const att_journal *journal, const char *name, char *path, size_t size);
ATT_FOR_LAB void att_journal_unmark(att_journal *journal, const char *name);

typedef enum att_mark {
    ATT_MARK_RENEWED,
    ATT_MARK_GONE,   /* the mark was removed */
    ATT_MARK_UNKNOWN /* the file system failed; errno says how */
} att_mark;
/* Sets the modification time of a mark to the present, by the file system's clock. Thread-safe. */
ATT_FOR_LAB att_mark att_mark_renew(const char *path);

/* Reads the file system's clock, and makes later calls see what other machines did before this one. */
ATT_FOR_LAB att_status att_journal_look(att_journal *journal);
/* How many seconds before the last att_journal_look() the mark of the process `name` was renewed, by the file system's
 * clock: negative if later; infinite if the mark does not exist. */
ATT_FOR_LAB double att_journal_mark_age(const att_journal *journal, const char *name);

#endif
