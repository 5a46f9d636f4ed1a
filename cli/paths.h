/* paths.h - paths of files in folders. */
#ifndef CLI_PATHS_H
#define CLI_PATHS_H

#include "cli.h"

/* Writes "FOLDER/NAME", or "" if that does not fit. Returns `path`. */
char *cli_join(const char *folder, const char *name, char *path, size_t size);
/* Writes the folder of a file; "." if its path has none. Returns `folder`. */
char *cli_folder_of(const char *path, char *folder, size_t size);
bool cli_exists(const char *path);
bool cli_is_folder(const char *path);
/* Whether it is a folder, or an archive of files by the ending of its name. */
bool cli_is_collection(const char *path);
/* Whether the path is a file of weights by its ending. Images may be in a .bin, too, but not in one that is a zip. */
bool cli_is_checkpoint(const char *path);
/* Whether both paths lead to the same file, also by a link. False if one of them does not exist. */
bool cli_is_same_file(const char *a, const char *b);
/* Whether `path`, which need not exist, is the folder or lies in it, at any depth. */
bool cli_is_within(const char *folder, const char *path);

#endif
