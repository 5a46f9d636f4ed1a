/* bench.h - the parts of attscope bench: the benchmarks, and the child processes that measure. */
#ifndef CLI_BENCH_H
#define CLI_BENCH_H

#include <attscope/lab/bench.h>

#include "cli.h"
#include "flags.h"
#include "processes.h"

typedef struct bench_measure {
    const char *filter;
    int batch_size; /* 0: the default of each case */
    int repeats, warmup;
    const char *points;
    bool profile;
    bool sync_bn; /* of processes */
    const char *freeze;
    int report_to;    /* in a child: file descriptor of the pipe to the parent */
    const char *only; /* in a child: its job; NULL in the parent */
} bench_measure;

typedef struct bench_settings {
    bench_measure measure;
    att_recipe_network network;
    att_recipe_engine engine;
    cli_processes processes;
    cli_output output;
} bench_settings;

/* One call of the command, in the parent and in its children. */
typedef struct bench_call {
    cli_app *cli;
    const bench_settings *settings;
    const char *const *operands; /* the operands after the benchmark's name */
    bool prints;                 /* whether to print tables to stdout */
    att_json_writer *writer;     /* a JSON array is open; NULL: no JSON */
} bench_call;

/* A benchmark. The source file of a benchmark ends in a constant of this type; the list below names it. */
typedef struct bench_what {
    const char *name;     /* the first operand; without operands, the first benchmark of the list runs */
    const char *operands; /* the operands that follow, as usage shows them; "" */
    int least_operands, most_operands;
    bool processes;                                      /* works with the processes that mpirun started */
    int (*run)(const bench_call *call);                  /* parent: runs the jobs, shows the results */
    int (*job)(const bench_call *call, const char *job); /* child: measures, sends records */
} bench_what;

#define BENCH_WHAT_LIST(X) \
    X(cases)               \
    X(tokens)              \
    X(batch)               \
    X(threads)             \
    X(instruments)         \
    X(modules)             \
    X(patterns)            \
    X(start)               \
    X(kernels)             \
    X(processes)           \
    X(data)

#define BENCH_WHAT_DECLARE(name) extern const bench_what bench_what_##name;
BENCH_WHAT_LIST(BENCH_WHAT_DECLARE)
#undef BENCH_WHAT_DECLARE

/* --- cases: bench_cases.c ----------------------------------------------------------------------------------------- */

typedef struct bench_case {
    char name[96];
    const char *model;
    att_option_values network; /* the flags' options, completed by those of the case */
    bool training;
    int batch_size; /* --batch-size, or 128 for images below 64 pixels, 32 for others */
} bench_case;

/* Whether the name matches --filter. Without --filter and --model it must match `standard` (NULL: all match). */
bool bench_wants(const bench_settings *settings, const char *standard, const char *name);
/* Pattern of networks with attention between tokens. */
#define BENCH_TRANSFORMERS "vit_*"
/* Finds selected case `index`, of --model, or else of the standard cases. Returns false past the last. */
bool bench_case_at(const bench_settings *settings, const char *standard, int index, bench_case *found);
/* Makes a case of `model`, without setting its name. modules: used unless the flags give modules. */
void bench_case_of(const bench_settings *settings, const char *model, const char *modules, bool training,
                   bench_case *made);
/* Fills *options from the flags and the case. *options points to c->network. */
void bench_options_of(const bench_call *call, const bench_case *c, att_bench_options *options);
/* In a child: as bench_options_of(), and makes the context with `threads` threads. Returns CLI_OK or an exit code. */
int bench_open(const bench_call *call, const bench_case *c, int threads, att_bench_options *options);
/* As bench_open(), for the case `name`, which is stored in *c. */
int bench_case_open(const bench_call *call, const char *name, int threads, bench_case *c, att_bench_options *options);
/* Reports that nothing matches --filter. first: an example of a name that would match. */
int bench_nothing(const bench_settings *settings, const char *first);
/* The name of the precision in which the networks run. */
const char *bench_precision(const bench_call *call);
/* Writes the members that identify the case. */
void bench_write_case(const bench_call *call, const bench_case *c);

/* --- jobs: bench_job.c -------------------------------------------------------------------------------------------- */

enum { BENCH_POINTS = 64, BENCH_REPEATS = 1000 };

typedef struct bench_row {
    char op[48], kernel[48];
    att_profile_row figures; /* figures.op and figures.kernel are NULL */
} bench_row;

/* Times during a start, in seconds of a clock that parent and child share. */
typedef struct bench_instants {
    double begun, context, loaded, image, first, second;
} bench_instants;

/* Cost of a module in a network, relative to the same network without modules. */
typedef struct bench_price {
    /* seconds, ratio: medians. ratio: seconds relative to the run without modules in the same turn; least, most: the
     * range of this ratio. */
    double seconds, ratio, least, most;
    att_bench_size size;
    int64_t none_parameters;
} bench_price;

/* What a child sends to its parent, which is the same program. */
typedef struct bench_record {
    bool is_row;
    union {
        bench_row row;
        att_bench_result result;
        att_bench_attention_result attention;
        bench_instants instants;
        bench_price price;
        double seconds;
    } of;
} bench_record;

enum { BENCH_RECORDS = 160 };
typedef struct bench_records {
    bench_record items[BENCH_RECORDS];
    int count;
} bench_records;

/* Runs `job` in a child process of this program with the same flags. quiet: discard its stderr. *records receives the
 * records that the child sent. Returns CLI_OK or an exit code. */
int bench_run_job(const char *job, bool quiet, bench_records *records);
/* In a child: sends a record to the parent. */
void bench_send(const bench_call *call, const bench_record *record);
/* Runs the job of each selected case (bench_case_at()) and calls show() with its records. head(): called before the
 * first job, if tables are printed; NULL: none. first: as in bench_nothing(). Returns CLI_OK or an exit code. */
int bench_run_cases(const bench_call *call, const char *standard, const char *first, void (*head)(const bench_call *),
                    int (*show)(const bench_call *, const bench_case *, const bench_records *));

/* A network that runs in turns with others, so that all of them see the same machine state. */
typedef struct bench_point {
    att_bench *bench; /* NULL: does not run, and takes 0 seconds */
    cli_app *app;
    int batch, runs;               /* images of a run; runs that are averaged */
    double seconds[BENCH_REPEATS]; /* of a run, in each turn */
} bench_point;
/* In a child: runs the points in turns. Returns CLI_OK or an exit code. */
int bench_take_turns(const bench_call *call, bench_point *points, int count);

/* --- figures ------------------------------------------------------------------------------------------------------ */

/* Returns the median. Sorts the values. */
double bench_median(double *values, int count);
/* Reads the numbers of --points, each in 1..most; without the flag, `standard`, which ends with 0. Returns their count,
 * or -1 after a message. */
int bench_points(const bench_settings *settings, const int *standard, int most, int points[BENCH_POINTS]);
/* rates[i] divided by the value interpolated between its neighbours, linearly on logarithmic scales, at points[i].
 * Returns 0 for the first and the last point. */
double bench_relative(const int *points, const double *rates, int count, int i);
/* Prints " 1.02 ", " 0.71 <" if below 0.8, or blanks for 0. */
void bench_print_relative(double relative);

#endif
