/* processes.h - commands that work as several processes, which mpirun or srun started.
 *
 * Every process runs the whole command. Only rank 0 prints and writes files; the others are silent, and say why they
 * fail only if they fail alone.
 */
#ifndef CLI_PROCESSES_H
#define CLI_PROCESSES_H

#include "cli.h"

typedef struct cli_processes {
    const char *mpi;
} cli_processes;
/* --mpi, for cli_command.uses. */
extern const att_flag_group cli_group_processes;

/* Whether a launcher started this process as one of several, and as none of rank 0. */
bool cli_processes_follows(void);
/* Threads of this process's engine if the user gives no number: its share of the machine's processors. */
int cli_processes_threads(void);

/* Connects the processes: sets cli->comm. Returns CLI_OK or an exit code. */
int cli_processes_open(cli_app *cli, const cli_processes *options);
/* The end of a command whose command line or config file was refused. Connects the processes, which normally refuse the
 * same. Returns the exit code. */
int cli_processes_refuse(cli_app *cli, int code);
/* The end of a command that returned `code`: ends all processes if this one failed alone. Returns the exit code. */
int cli_processes_close(cli_app *cli, int code);

#endif
