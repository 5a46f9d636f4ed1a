/* results/result.h - the descriptors of results. A file for each paper ends in a table of them; list.h lists the
 * tables. */
#ifndef ATT_RESULTS_RESULT_H
#define ATT_RESULTS_RESULT_H

#include <attscope/lab/results.h>

/* How the figures of several nodes, such as the blocks of a stage, become one number of a run. */
typedef enum att_fold {
    ATT_FOLD_MEAN,
    ATT_FOLD_MAX,
    ATT_FOLD_PEAK,  /* maximum / mean */
    ATT_FOLD_SHARE, /* of nodes whose figure is at most att_reading.limit */
    ATT_FOLD_SLOPE, /* of the least-squares line over 0, 1, .. of the nodes in order */
    ATT_FOLD_RHO    /* Spearman's rho with the numbers of att_reading.less, which are not subtracted */
} att_fold;

/* A number for each seed. */
typedef struct att_reading {
    const char *setting;   /* of the run's sweep, "modules=se", also as in stiffest.h; of several settings the mean for
                              each seed; NULL: the file lies in the run's own folder */
    const char *minus;     /* another setting, whose number with the same seed is subtracted; NULL: none */
    const char *file;      /* a JSON file in the folder, "stack-{seed}.json"; NULL: measure.jsonl */
    const char *figure;    /* with a statistic the instrument; else a path of members and elements: "layers.*.rank" */
    const char *less;      /* another such path, whose numbers are subtracted from these one by one; NULL: none.
                            Not with a statistic */
    const char *nodes;     /* with a statistic: patterns, separated by commas; NULL: "" */
    const char *statistic; /* of measure.jsonl, or of the JSON of attscope measure; NULL: of no measurement */
    att_fold fold;
    double limit;
} att_reading;

typedef enum att_expected {
    ATT_EXPECT_ABOVE, /* value - against > bound */
    ATT_EXPECT_BELOW, /* value - against < bound */
    ATT_EXPECT_WITHIN /* |value - against| < bound of the mean of `against` */
} att_expected;

typedef struct att_criterion {
    const char *says, *expects; /* as in att_judged */
    att_reading value, against; /* against.figure NULL: 0 */
    att_expected expected;
    double bound;
} att_criterion;

typedef struct att_result {
    att_result_info info;
    const att_criterion *criteria; /* [count]; NULL: none, so that there is no verdict */
    int count;
} att_result;

/* Members of att_result for an array of criteria. */
#define ATT_CRITERIA(list) .criteria = (list), .count = sizeof(list) / sizeof *(list)

/* Readings: of the whole network, and of nodes. */
#define ATT_READ(of, instrument, figures)                               \
    {                                                                   \
        .setting = (of), .figure = (instrument), .statistic = (figures) \
    }
#define ATT_READ_NODES(of, instrument, figures, at, how)                                              \
    {                                                                                                 \
        .setting = (of), .figure = (instrument), .statistic = (figures), .nodes = (at), .fold = (how) \
    }

typedef struct att_results_table {
    const att_result *results;
    int count;
} att_results_table;

#endif
