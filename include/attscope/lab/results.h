/* attscope/lab/results.h - the published results of four papers, and whether runs of attscope agree with them.
 *
 *   Huang et al., ICCV 2023                 attention as a step size
 *   Cordonnier et al., ICLR 2020            attention that expresses convolution
 *   Dong et al., ICML 2021                  rank collapse
 *   Hyeon-Woo et al., ICCV 2023             uniform attention
 *
 * A *run* is a list of commands of attscope, such as a sweep and evaluations of its networks. A *result* is a finding
 * of a paper with criteria on the figures of one run. Several results share a run. `attscope reproduce` executes the
 * commands; the library then takes the figures from their files into the run's *record*, a small file on which the
 * results are judged, and which can be kept where the files of the run cannot.
 *
 * A criterion compares figures over the seeds of a sweep with the expectation that follows from the finding:
 *
 *   agrees        the 95 % interval of the mean (Student's t) lies entirely on the expected side of the bound
 *   disagrees     it lies entirely on the other side
 *   cannot tell   it contains the bound
 *
 * A figure that no chance decides, such as a number of parameters, has no interval; then the value itself is compared.
 * A single seed cannot tell. A result agrees if all its criteria do, and disagrees if one of them does.
 */
#ifndef ATTSCOPE_LAB_RESULTS_H
#define ATTSCOPE_LAB_RESULTS_H

#include <attscope/lab/sweep.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- runs --------------------------------------------------------------------------------------------------------- */

enum { ATT_RESULT_STEPS = 8, ATT_RESULT_ARGUMENTS = 32, ATT_RESULT_SEEDS = 10 };

/* One command of attscope. In its arguments, {root} stands for the folder of all runs, {run} for that of this run,
 * {data} for the run's data set, {weights} for its pretrained weights, {recipe} for a file with the run's recipe, and
 * {each} for the folder of a run of the sweep that an earlier step made; a command with {each} is executed for each of
 * them. {seed} is 1, 2, .. `seeds`; the command is executed for each. */
typedef struct att_result_step {
    const char *arguments[ATT_RESULT_ARGUMENTS]; /* NULL after the last */
    const char *writes; /* the file that it writes, "{run}/stack.json"; the step is skipped where this file exists.
                           NULL: the command itself skips what is finished, as a sweep does */
    int seeds;          /* 0..ATT_RESULT_SEEDS; 0: the command has no {seed} */
} att_result_step;

typedef struct att_result_run {
    const char *name;    /* "modules", the name of its folder */
    const char *about;   /* one line */
    const char *data;    /* "cifar10", "fashion-mnist", "camvid", "long-texts", "short-texts"; NULL: needs no data */
    const char *weights; /* "deit-tiny", or "minilm" with its tokenizer; NULL: needs no pretrained weights */
    const char *recipe;  /* the text of its recipe; NULL: none */
    double hours;        /* on two cores, measured or estimated from measured rates */
    att_result_step steps[ATT_RESULT_STEPS]; /* in order; without arguments after the last */
} att_result_run;

ATT_API int att_result_run_count(void);
/* Run 0..count-1; NULL for other numbers. */
ATT_API const att_result_run *att_result_run_at(int index);

/* Calls visit() with the folder of each measured run of the sweep in the folder `path`, in the order of sweep.json;
 * never if there is none. Stops with its first failure. Errors: those of visit(); ERR_FORMAT, ERR_IO, ERR_MEMORY. */
ATT_API ATT_MUST_CHECK att_status att_result_visit_folders(att_context *context, const char *path,
                                                           att_status (*visit)(void *user, const char *folder),
                                                           void *user);

/* --- records ------------------------------------------------------------------------------------------------------
 *
 * The record of a run is the file RUN.json in a folder of records, an object with
 *
 *   run, version, date, machine, seconds   of which run, and the members of att_result_source
 *   commands, recipe                       what was executed: arrays of texts, the recipe's lines without comments
 *   figures                                an object with the figures that criteria read. A figure is an object with a
 *                                          number for each seed; seed 0 if no chance decides it
 */

/* By what, when and where a run was executed. */
typedef struct att_result_source {
    char version[16];  /* of attscope */
    char date[16];     /* "2026-11-30" */
    char machine[128]; /* "AMD EPYC 7763, 2 processors" */
    double seconds;    /* that its commands took together */
} att_result_source;

typedef enum att_record_state {
    ATT_RECORD_MISSING,
    ATT_RECORD_OUTDATED,   /* of other commands, or of another recipe, than the run has in this version */
    ATT_RECORD_INCOMPLETE, /* lacks figures that criteria of this version read */
    ATT_RECORD_CURRENT
} att_record_state;

typedef struct att_result_record {
    att_record_state state;
    att_result_source source; /* all zero if the record is missing */
} att_result_record;

/* Writes the record of run `run` (0..count-1) from the files in the folder `root`/RUN, and makes the folder `records`
 * if it is missing. Errors: ERR_NOT_FOUND (a figure that a criterion reads is missing; the message names it),
 * ERR_ARGUMENT (there is no such run), ERR_FORMAT (a damaged file), ERR_IO, ERR_MEMORY. After a failure the old record
 * is unchanged.
 */
ATT_API ATT_MUST_CHECK att_status att_result_record_write(att_context *context, const char *root, int run,
                                                          const att_result_source *source, const char *records);

/* Describes the record of a run in the folder `records`. Errors: ERR_ARGUMENT, ERR_FORMAT, ERR_IO, ERR_MEMORY. */
ATT_API ATT_MUST_CHECK att_status att_result_record_read(att_context *context, const char *records, int run,
                                                         att_result_record *record);

/* --- results ------------------------------------------------------------------------------------------------------ */

typedef struct att_result_info {
    const char *name;  /* "huang-table1" */
    const char *paper; /* "Huang et al., ICCV 2023" */
    const char *place; /* "Table 1" */
    const char *claim; /* what the paper found, one sentence */
    const char *scale; /* the paper's scale, and that of the run */
    const char *run;   /* name of the run; NULL: the result is not run */
    const char *note;  /* what the full result would take, why it is not run, or how to see it; NULL: nothing */
} att_result_info;

ATT_API int att_result_count(void);
/* Result 0..count-1; NULL for other numbers. The results of a paper follow each other, in the order of the paper. */
ATT_API const att_result_info *att_result_at(int index);

typedef enum att_verdict {
    ATT_VERDICT_NOT_RUN, /* the record lacks a figure, or is missing, or the result is not run */
    ATT_VERDICT_AGREES,
    ATT_VERDICT_DISAGREES,
    ATT_VERDICT_CANNOT_TELL,
    ATT_VERDICT_NONE /* a picture or figures without a criterion */
} att_verdict;
/* "agrees", "disagrees", "cannot tell", "not run", "no verdict". */
ATT_API const char *att_verdict_name(att_verdict verdict);

/* One criterion, judged. */
typedef struct att_judged {
    const char *says;    /* what is compared: "top-1 of SE minus that of no module [%]" */
    const char *expects; /* "above 0" */
    att_paired value;    /* count: number of seeds; low and high are NaN for a single value */
    att_verdict verdict;
} att_judged;

enum { ATT_RESULT_CRITERIA = 24 };

typedef struct att_judgement {
    att_verdict verdict;
    bool outdated; /* the record is ATT_RECORD_OUTDATED */
    int count;
    att_judged criteria[ATT_RESULT_CRITERIA]; /* [count]; their texts are static */
} att_judgement;

/* Judges result `index` by the record of its run in the folder `records`, also if that is outdated. Errors:
 * ERR_ARGUMENT (there is no such result), ERR_FORMAT (a damaged record), ERR_IO, ERR_MEMORY. */
ATT_API ATT_MUST_CHECK att_status att_result_judge(att_context *context, const char *records, int index,
                                                   att_judgement *judgement);

/* Writes the members of the JSON object that is open: name, paper, place, claim, scale, run, note, verdict, outdated,
 * criteria. */
ATT_API void att_result_write_json(int index, const att_judgement *judgement, att_json_writer *writer);

#ifdef __cplusplus
}
#endif
#endif
