/* run_folder.h - where a training writes: OUTPUT/EXPERIMENT, and which checkpoint it continues from. */
#ifndef CLI_RUN_FOLDER_H
#define CLI_RUN_FOLDER_H

#include "cli.h"

typedef struct cli_run_folder {
    char folder[CLI_PATH];
    char resume[CLI_PATH]; /* "": a new training */
    char database[CLI_PATH];
    bool unnamed; /* the folder's name is made of the time */
} cli_run_folder;

/* Refuses an --experiment (NULL: none) that is a path, or longer than the name of a folder may be. CLI_OK or a code. */
int cli_experiment_check(const char *experiment);
/* The same where the name counts, and --resume auto without one. CLI_OK or a code. */
int cli_resume_check(const char *resume, const char *experiment);

/* The checkpoint that --resume names: the file itself; of a folder its last.safetensors; "auto": last.safetensors in
 * OUTPUT/EXPERIMENT where there is one; "" otherwise. */
void cli_resume_path(const char *resume, const char *output, const char *experiment, char *path, size_t size);

/* The database of all runs that lie where `folder` does: OUTPUT/runs.sqlite. Returns `path`. */
char *cli_database_of(const char *folder, char *path, size_t size);

/* Settles all three. A resumed training goes on in its checkpoint's folder. A new one without a name is called
 * date-time-model-size, as timm's. Refuses a folder that holds a training already. CLI_OK or a code. */
int cli_run_folder_settle(const char *resume, const char *output, const char *experiment, const char *model,
                          const char *size, cli_run_folder *run);

/* Makes the folder of a training without a name, before it writes there, and numbers its name where another training of
 * the same second has it: no two get one. CLI_OK or a code. */
int cli_run_folder_claim(cli_run_folder *run);
/* Makes a folder and those on the way to it; one that is there is fine. CLI_OK or a code. */
int cli_make_folders(const char *path);

/* "FOLDER/NAME"; "", which no file is called, where that does not fit. Returns `path`. */
char *cli_join(const char *folder, const char *name, char *path, size_t size);
/* Whether a training has been in the folder. */
bool cli_is_run_folder(const char *folder);
/* Whether `checkpoint` lies in the folder, or is a copy of one that does. */
bool cli_is_of_run(const char *folder, const char *checkpoint);
/* The folder that a file lies in; "." where its path has none. Returns `folder`. */
char *cli_folder_of(const char *path, char *folder, size_t size);
bool cli_exists(const char *path);

#endif
