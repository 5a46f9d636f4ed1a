/* cli.h - what every command shares: its descriptor, messages and exit codes. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <stdio.h>

#include <attscope/attscope.h>
#include <attscope/lab.h>

/* Exit codes. */
enum { CLI_PATH = 4096 };
enum { CLI_OK = 0, CLI_FAILURE = 1, CLI_USAGE = 2, CLI_STOPPED = 130 };

typedef struct cli_app cli_app;

/* Of help: what the operand DATA may be. */
#define CLI_DATA_HELP                                                                  \
    "DATA is a folder of class folders or of split folders of such, a .tar, .tar.gz\n" \
    "or .zip of one, a folder with an archive a split (train.tar.gz, test.tar.gz),\n"  \
    "IDX files, or CIFAR-10, CIFAR-100 or STL-10 (their binary archives or folders\n"  \
    "of them)."

/* The same of the operand CHECKPOINT. */
#define CLI_CHECKPOINT_HELP                                                          \
    "CHECKPOINT is a file of weights or a folder with one: of a training its best\n" \
    "checkpoint is taken, otherwise model.safetensors or pytorch_model.bin."

/* One command: one file that ends in one of these, and its line in commands.h. */
typedef struct cli_command {
    const char *name;
    const char *summary;  /* one line */
    const char *operands; /* as usage shows them: "DATA" */
    int least_operands, most_operands;
    const char *excess;         /* what to do with an operand too many; NULL: help says it */
    const char *about;          /* what help says below the summary; NULL: nothing */
    void (*explain)(FILE *out); /* what it says below that and the example; NULL: nothing */
    const char *example;        /* of help */
    const att_flag_use *uses;
    int use_count;
    size_t settings_size;
    bool (*explain_unknown)(att_context *context, const char *name, char *text, size_t size); /* of its table */
    /* The config file that the settings name, "" where none; writes at most `size` bytes. CLI_OK or a code. NULL: none
     * ever. */
    int (*config)(cli_app *cli, const void *settings, char *path, size_t size);
    /* Returns the exit code. */
    int (*run)(cli_app *cli, void *settings, const char *const *operands, int count);
} cli_command;

struct cli_app {
    att_context *context; /* made by cli_open() */
    att_flags *flags;     /* of the command */
    bool drawn;           /* a progress bar stands on the terminal's last line */
    bool warns_once;      /* this process and those that it starts give each warning once between them */
};

/* Makes cli->context with `threads` threads (0: all); warnings of the library go to stderr. CLI_OK or a code. */
int cli_open(cli_app *cli, int threads);

/* Hands on what was printed, so that it stands before what is said on stderr. Returns the errno of the first time that
 * this failed, 0 where it never did. */
int cli_flush(void);

/* What is printed here and below passes through att_text_printable(): it may name what came from outside. */

/* Like printf(); newlines stay. */
void cli_print(const char *format, ...) ATT_PRINTF(1, 2);
/* One sentence on stderr, after "attscope: ". */
void cli_say(const char *format, ...) ATT_PRINTF(1, 2);
/* One indented line below such a sentence that ends in a colon. */
void cli_say_item(const char *format, ...) ATT_PRINTF(1, 2);
int cli_usage(const char *format, ...) ATT_PRINTF(1, 2);   /* says it, returns CLI_USAGE */
int cli_failure(const char *format, ...) ATT_PRINTF(1, 2); /* says it, returns CLI_FAILURE */
/* CLI_OK for ATT_OK; otherwise says the context's message and returns CLI_USAGE where the caller asked for what cannot
 * be, CLI_STOPPED where a signal asked to stop, else CLI_FAILURE. */
int cli_check(cli_app *cli, att_status status);
/* A remark on stderr, without a prefix; takes a progress bar away first. */
void cli_note(cli_app *cli, const char *format, ...) ATT_PRINTF(2, 3);

/* The same for a warning: "warning: " stands before it. One that was given already is not repeated where warns_once is
 * set, in this process or in the one that started it. */
void cli_warn(cli_app *cli, const char *format, ...) ATT_PRINTF(2, 3);

/* Says of a file that cannot be read which flag ("--class-map") names it; path NULL: it is not given. CLI_OK or a code.
 */
int cli_file_check(const char *flag, const char *path);
/* Makes the file that the user names hold the text ("-": stdout). A regular file is replaced in one step: after a
 * failure, which is said, it is what it was. Pipes, devices and what a symbolic link leads to are written to as they
 * are, as the shell does for "> FILE". CLI_OK or a code. */
int cli_file_write(cli_app *cli, const char *path, const char *text, size_t length);
/* The file that a path named by the user leads to, for a writer that follows no symbolic link: `path` itself where it
 * is none, else what `target` then holds. */
const char *cli_file_target(const char *path, char target[CLI_PATH]);

/* A member of the object that is open. */
void cli_json_text(att_json_writer *writer, const char *key, const char *text);
void cli_json_number(att_json_writer *writer, const char *key, double value);
void cli_json_integer(att_json_writer *writer, const char *key, int64_t value);
/* cli_file_write() to what --json names, with a newline; the writer is freed. CLI_OK or a code. */
int cli_json_write(cli_app *cli, att_json_writer *writer, const char *path);
/* Whether what --json or another flag names (NULL: nothing) lies in a folder that can be written to, before work
 * begins. CLI_OK or a code. */
int cli_output_check(const char *path);
/* Where figures for people go: nowhere while JSON takes stdout. */
bool cli_prints(const char *json_path);

#endif
