/* bench.h - the parts of attscope bench: what there is to measure, and the processes that measure. */
#ifndef CLI_BENCH_H
#define CLI_BENCH_H

#include <attscope/lab/bench.h>

#include "cli.h"
#include "flags.h"

typedef struct bench_measure {
    const char *filter;
    int batch_size; /* 0: of each case its own */
    int repeats, warmup;
    const char *points;
    bool profile;
    int report_to;    /* a child's end of the pipe */
    const char *only; /* a child's job; NULL: this is the parent */
} bench_measure;

typedef struct bench_settings {
    bench_measure measure;
    att_recipe_network network;
    att_recipe_engine engine;
    cli_output output;
} bench_settings;

/* One call of the command, in the parent and in its children. */
typedef struct bench_call {
    cli_app *cli;
    const bench_settings *settings;
    const char *const *operands; /* behind the name of what is measured */
    bool prints;                 /* figures for people go to stdout */
    att_json_writer *writer;     /* an array is open; NULL: no JSON */
} bench_call;

/* Something to measure: a file that ends in one of these, and its line below. */
typedef struct bench_what {
    const char *name;     /* the first operand; without one it is the first of the list */
    const char *operands; /* that follow; "" */
    int least_operands, most_operands;
    int (*run)(const bench_call *call);                  /* shows and writes what the jobs' processes find */
    int (*job)(const bench_call *call, const char *job); /* in a process of its own: sends records */
} bench_what;

#define BENCH_WHAT_LIST(X) \
    X(cases)               \
    X(tokens)              \
    X(batch)               \
    X(threads)             \
    X(instruments)         \
    X(modules)             \
    X(start)               \
    X(kernels)             \
    X(data)

#define BENCH_WHAT_DECLARE(name) extern const bench_what bench_what_##name;
BENCH_WHAT_LIST(BENCH_WHAT_DECLARE)
#undef BENCH_WHAT_DECLARE

/* --- cases: bench_cases.c ----------------------------------------------------------------------------------------- */

typedef struct bench_case {
    char name[96];
    const char *model;
    att_option_values network; /* as the flags say, and the case where they do not */
    bool training;
    int batch_size; /* the flag's, or 128 for images below 64 pixels, 32 for others */
} bench_case;

/* Whether --filter lets the name through; `standard` in its place where neither it nor --model is given (NULL: all). */
bool bench_wants(const bench_settings *settings, const char *standard, const char *name);
/* Those of networks with attention of tokens, which some sweeps visit. */
#define BENCH_TRANSFORMERS "vit_*"
/* Wanted case `index`, of --model or else of the standard ones; false past the last. */
bool bench_case_at(const bench_settings *settings, const char *standard, int index, bench_case *found);
/* One of `model`, without a name; `attn`: where the flags say nothing of it. */
void bench_case_of(const bench_settings *settings, const char *model, const char *modules, bool training,
                   bench_case *made);
/* Makes the context with `threads` threads and says in *options, whose network stays in *c, what the flags say of the
 * case. CLI_OK or a code. */
int bench_open(const bench_call *call, const bench_case *c, int threads, att_bench_options *options);
/* The same for the case called `name`, which *c becomes. */
int bench_case_open(const bench_call *call, const char *name, int threads, bench_case *c, att_bench_options *options);
/* Where nothing fits --filter; `first` is a name that would. */
int bench_nothing(const bench_settings *settings, const char *first);
/* Writes the members that say which case it is. */
void bench_write_case(const bench_call *call, const bench_case *c);

/* --- jobs: bench_job.c -------------------------------------------------------------------------------------------- */

enum { BENCH_POINTS = 64, BENCH_REPEATS = 1000 };

typedef struct bench_row {
    char op[48], kernel[48];
    att_profile_row figures; /* op and kernel are NULL */
} bench_row;

/* Instants of a start, seconds from a fixed one, the same in parent and child. */
typedef struct bench_instants {
    double begun, context, loaded, image, first, second;
} bench_instants;

/* Of a module on a network beside the same without it, and what it took alone. */
typedef struct bench_price {
    double seconds, over, least, most; /* over: those of none in the same turn; medians, and over's range */
    att_bench_size size;
    int64_t none_parameters;
} bench_price;

/* What a child sends. Both ends are the same program. */
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

/* Runs `job` in a new process of this program, with the same flags. quiet: its remarks go nowhere. *records holds what
 * it sent. CLI_OK or a code. */
int bench_run_job(const char *job, bool quiet, bench_records *records);
/* In the child. */
void bench_send(const bench_call *call, const bench_record *record);

/* --- figures ------------------------------------------------------------------------------------------------------ */

/* Sorts the values. */
double bench_median(double *values, int count);
/* Numbers of --points, or `standard` (0 behind the last) where it is not given, each 1..most. The count, or -1 after a
 * message. */
int bench_points(const bench_settings *settings, const int *standard, int most, int points[BENCH_POINTS]);
/* rates[i] over what its neighbours suggest: the line through them on logarithmic scales, at points[i]. 0 for the first
 * and the last. */
double bench_beside(const int *points, const double *rates, int count, int i);
/* " 1.02 ", " 0.71 <" below 0.8, blank where it is 0. */
void bench_print_beside(double beside);

#endif
