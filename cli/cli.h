/* cli.h - shared by all commands: the descriptor of a command, messages, exit codes, files. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <stdio.h>

#include <attscope/attscope.h>
#include <attscope/lab.h>

/* Exit codes. */
enum { CLI_PATH = 4096 };
enum { CLI_OK = 0, CLI_FAILURE = 1, CLI_USAGE = 2, CLI_STOPPED = 130 };

typedef struct cli_app cli_app;

/* Help text for the operand DATA. */
#define CLI_DATA_HELP                                                                   \
    "DATA is a folder of class folders, or of split folders with class folders; a\n"    \
    ".tar, .tar.gz or .zip of such a folder; a folder with one archive per split\n"     \
    "(train.tar.gz, test.tar.gz); a folder with ImageNet's own tars, with a .tar for\n" \
    "each class, or with WebDataset shards, also by a pattern such as\n"                \
    "'train-{000..146}.tar'; IDX files; or CIFAR-10, CIFAR-100 or STL-10 (their\n"      \
    "binary archives, or folders with these).\n\n"                                      \
    "For networks that give each pixel a class, DATA is a folder with photographs\n"    \
    "and PNG masks: images/train and masks/train, train and train_masks, or the\n"      \
    "folders of ADE20K, Cityscapes, Pascal VOC or CamVid. For detectors, it is a\n"     \
    "folder with photographs and boxes: COCO's JSON, Pascal VOC's XML or YOLO's text\n" \
    "files. Give the folder that contains all splits, not one split."

/* Help text for the operand CHECKPOINT. */
#define CLI_CHECKPOINT_HELP                                                              \
    "CHECKPOINT is a file of weights or a folder: a run's folder stands for its\n"       \
    "best checkpoint, any other for its model.safetensors or pytorch_model.bin. Or a\n"  \
    "name of pretrained weights, which are looked up in the caches of huggingface_hub\n" \
    "and torch, and downloaded if necessary: timm/NETWORK.TAG, hf-hub:ORG/NAME,\n"       \
    "hf-hub:ORG/NAME@REVISION, torchvision/NETWORK.WEIGHTS."

/* A command. The source file of a command ends in a constant of this type; commands.h lists it. */
typedef struct cli_command {
    const char *name;
    const char *summary;  /* one line */
    const char *operands; /* as usage shows them: "DATA" */
    int least_operands, most_operands;
    bool flags_replace;         /* --checkpoint and --data-dir can take the place of operands */
    const char *excess;         /* advice for an excess operand; NULL: refer to --help */
    const char *about;          /* help text below the summary; NULL: none */
    void (*explain)(FILE *out); /* prints help after the example; NULL: nothing */
    const char *more;           /* --help-MORE prints more help; NULL: there is none */
    void (*explain_more)(FILE *out);
    const char *example; /* example in the help text */
    const att_flag_use *uses;
    int use_count;
    size_t settings_size;
    bool processes; /* works as several processes, see processes.h */
    bool (*explain_unknown)(att_context *context, const char *name, char *text, size_t size); /* att_flags_options */
    /* Writes the path of the config file that the settings name, "" for none, at most `size` bytes. Returns CLI_OK or
     * an exit code. NULL: the command has no config file. */
    int (*config)(cli_app *cli, const void *settings, char *path, size_t size);
    /* Returns the exit code. */
    int (*run)(cli_app *cli, void *settings, const char *const *operands, int count);
} cli_command;

struct cli_app {
    att_context *context; /* created by cli_open() */
    att_comm *comm;       /* NULL, or set by cli_processes_open() */
    att_flags *flags;     /* flags of the command */
    bool drawn;           /* the terminal's last line shows a progress bar */
    bool warns_once;      /* this process and its children together give each warning once */
};

/* Whether this process prints and writes files. A silent one keeps its last sentence (cli_say()), its standard output
 * goes nowhere, and cli_file_write() does nothing. */
void cli_silence(bool on);
bool cli_is_silent(void);
/* Ends the silence and prints the sentence that was kept, after "rank R on HOST: ". host: NULL if it is unknown. */
void cli_speak_as(int rank, const char *host);

/* Creates cli->context with `threads` threads (0: all). The library's log goes to stderr. Returns CLI_OK or an exit
 * code. */
int cli_open(cli_app *cli, int threads);

/* Flushes stdout, so that its text appears before later messages on stderr. Returns the errno of the first failure so
 * far, or 0. */
int cli_flush(void);

/* The text of the following functions passes through att_text_printable(), since it may contain names from files. */

/* Like printf(). Prints to stdout and keeps newlines. */
void cli_print(const char *format, ...) ATT_PRINTF(1, 2);

/* The ending of a noun after a count: "" for 1, else "s". */
static inline const char *cli_plural(long long count)
{
    return count == 1 ? "" : "s";
}
/* Prints a sentence on stderr, after "attscope: ". */
void cli_say(const char *format, ...) ATT_PRINTF(1, 2);
/* Prints an indented line on stderr, below a sentence that ends in a colon. */
void cli_say_item(const char *format, ...) ATT_PRINTF(1, 2);
int cli_usage(const char *format, ...) ATT_PRINTF(1, 2);   /* as cli_say(); returns CLI_USAGE */
int cli_failure(const char *format, ...) ATT_PRINTF(1, 2); /* as cli_say(); returns CLI_FAILURE */
/* Returns CLI_OK for ATT_OK. Otherwise prints the context's message and returns CLI_USAGE for ATT_ERR_ARGUMENT,
 * CLI_STOPPED for ATT_ERR_STOPPED, else CLI_FAILURE. */
int cli_check(cli_app *cli, att_status status);
/* Prints a note on stderr, without a prefix. Removes the progress bar first. */
void cli_note(cli_app *cli, const char *format, ...) ATT_PRINTF(2, 3);

/* As cli_note(), after "warning: ". If warns_once is set, a warning that this process or its parent has given is not
 * repeated. */
void cli_warn(cli_app *cli, const char *format, ...) ATT_PRINTF(2, 3);

/* Checks that a file can be read; the message names the flag, such as "--class-map"; NULL: the path is an operand.
 * path: NULL if the flag is not given. Returns CLI_OK or an exit code. */
int cli_file_check(const char *flag, const char *path);
/* Writes the text to the file that the user named ("-": stdout). A regular file is replaced atomically; after a failure
 * it is unchanged. Pipes, devices and targets of symbolic links are written directly, like "> FILE" in a shell. Returns
 * CLI_OK or an exit code. */
int cli_file_write(cli_app *cli, const char *path, const char *text, size_t length);
/* Resolves a path that the user named, for a writer that does not follow symbolic links. Returns `path` if it is not a
 * link, else `target`, which holds the resolved path. */
const char *cli_file_target(const char *path, char target[CLI_PATH]);

/* Writes an array of numbers as a member. */
void cli_json_numbers(att_json_writer *writer, const char *key, const double *values, int count);
/* Writes the finished JSON and a newline with cli_file_write(). Destroys the writer. Returns CLI_OK or an exit code. */
int cli_json_write(cli_app *cli, att_json_writer *writer, const char *path);
/* Writes a file with the object whose members fill() writes. path: NULL: no file. Returns CLI_OK or an exit code. */
int cli_json_save(cli_app *cli, const char *path, void (*fill)(att_json_writer *writer, const void *from),
                  const void *from);
/* Begins the JSON of a file that is an array. path: NULL: no file, and *writer stays NULL. */
int cli_json_begin_list(cli_app *cli, const char *path, att_json_writer **writer);
/* Ends the array and writes the file as cli_json_write(), unless `code` is a failure or there is no writer. Destroys
 * the writer. Both return CLI_OK or an exit code. */
int cli_json_end_list(cli_app *cli, att_json_writer *writer, const char *path, int code);
/* Checks before the work that an output file is no folder, and that its folder is writable. path: NULL if the flag is
 * not given. Returns CLI_OK or an exit code. */
int cli_output_check(const char *path);
/* An output file that the user named. */
typedef struct cli_named_output {
    const char *flag;   /* "--csv" */
    const char *path;   /* NULL: not given; "-": stdout */
    bool may_be_folder; /* its writer checks the path itself */
} cli_named_output;
/* As cli_output_check() for each, and refuses two of them that are the same file or both stdout, with CLI_USAGE. */
int cli_outputs_check(const cli_named_output *outputs, int count);
/* Whether to print tables: not if the output at `path` (NULL: none), such as the JSON, goes to stdout. */
bool cli_prints(const char *path);

#endif
