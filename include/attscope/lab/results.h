/* attscope/lab/results.h - the published results of four papers, and whether runs of attscope agree with them.
 *
 *   Huang et al., ICCV 2023                 attention as a step size
 *   Cordonnier et al., ICLR 2020            attention that expresses convolution
 *   Dong et al., ICML 2021                  rank collapse
 *   Hyeon-Woo et al., ICCV 2023             uniform attention
 *
 * A *run* is a list of commands of attscope, such as a sweep and evaluations of its networks, and the folder with the
 * files that they leave. A *result* is a finding of a paper with criteria on the figures of one run. Several results
 * share a run. The library judges results from the files; `attscope reproduce` executes the commands.
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
 * {data} for the run's data set, {recipe} for a file with the run's recipe, and {each} for the folder of a run of the
 * sweep that an earlier step made; a command with {each} is executed for each of them. {seed} is 1, 2, .. `seeds`; the
 * command is executed for each. */
typedef struct att_result_step {
    const char *arguments[ATT_RESULT_ARGUMENTS]; /* NULL after the last */
    const char *writes; /* the file that it writes, "{run}/stack.json"; the step is skipped where this file exists.
                           NULL: the command itself skips what is finished, as a sweep does */
    int seeds;          /* 0..ATT_RESULT_SEEDS; 0: the command has no {seed} */
} att_result_step;

typedef struct att_result_run {
    const char *name;                        /* "modules", the name of its folder */
    const char *about;                       /* one line */
    const char *data;                        /* "cifar10", "fashion-mnist"; NULL: needs no data set */
    const char *recipe;                      /* the text of its recipe; NULL: none */
    double hours;                            /* on two cores, measured or estimated from measured rates */
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
    ATT_VERDICT_NOT_RUN, /* files are missing, or the result is not run */
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
    int count;
    att_judged criteria[ATT_RESULT_CRITERIA]; /* [count]; their texts are static */
} att_judgement;

/* Judges result `index` by the files in the folder `root`/RUN. Errors: ERR_ARGUMENT (there is no such result),
 * ERR_FORMAT (a damaged file; the message names it), ERR_IO, ERR_MEMORY. */
ATT_API ATT_MUST_CHECK att_status att_result_judge(att_context *context, const char *root, int index,
                                                   att_judgement *judgement);

/* Writes the members of the JSON object that is open: name, paper, place, claim, scale, run, verdict, criteria. */
ATT_API void att_result_write_json(int index, const att_judgement *judgement, att_json_writer *writer);

#ifdef __cplusplus
}
#endif
#endif
