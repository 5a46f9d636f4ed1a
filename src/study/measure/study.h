/* measure/study.h - studies: instruments that run plans of their own on parts of the measured network, for figures that
 * no probe of a single run can give, such as the eigenvalues of a branch.
 *
 * request() declares rows with att_requests_study_row(), which the study computes for each sample. They come to
 * observe() or to the state like rows of probes, in the order of the requests. A study runs in one process. */
#ifndef ATT_MEASURE_STUDY_H
#define ATT_MEASURE_STUDY_H

#include <attscope/progress.h>

#include "engine/session/session.h"
#include "study/measure/instrument.h"

typedef struct att_study_job {
    att_context *context;
    const att_graph *graph; /* the measured network with its probes; plans are compiled from copies of it */
    const char *nodes;      /* the user's pattern */
    const double *options;
    const att_instrument *instrument;
    att_session *session;  /* its last run is observed; inputs are still bound */
    int count;             /* samples of that run */
    int64_t seen;          /* samples of earlier runs since the figures were cleared */
    bool preview;          /* the run belongs to a preview, see att_study.previews */
    int64_t previewed;     /* samples of earlier runs of the preview; 0: there was none */
    const int32_t *labels; /* NULL: none */
    float *const *rows;    /* rows[r]: `count` samples of the instrument's row r. Those of the study are 0; those of
                              probes are complete */
    const int64_t *lengths;
    int row_count;
    void **own;     /* what the study keeps between runs; NULL at first */
    double started; /* att_seconds_now() when this run of the study began */
    att_progress_fn progress;
    void *progress_user;
} att_study_job;

typedef struct att_study {
    att_status (*run)(att_study_job *job);
    /* Returns how many images, spread over the data set, the study wants to run before the measurement begins, with the
     * values of the instrument's options. NULL: none. The study sees them in previews; the figures do not. */
    int64_t (*previews)(const double *values);
    /* Frees what the study keeps. */
    void (*close)(att_context *context, void *own);
} att_study;

/* Declares a row of `elements` numbers that the study computes. */
void att_requests_study_row(att_requests *requests, int64_t elements, double constant);

/* Who is told about the progress of studies, which may take much longer than the run that is observed. progress: NULL
 * for nobody. If it returns false, att_measure_observe() returns ERR_STOPPED. */
void att_measure_tell(att_measure *measure, att_progress_fn progress, void *user);
/* The largest number of images that a study wants in a preview. 0: none does, or samples have been observed. */
int64_t att_measure_previews(const att_measure *measure);
/* Shows the samples of the session's last run to the studies that want previews. Comes after att_measure_clear() and
 * before the first att_measure_observe(); studies that want fewer images see all. Errors: as att_measure_observe(). */
att_status att_measure_preview(att_measure *measure, att_session *session, int count, const int32_t *labels);
/* Reports that `done` of the `all` parts of this run are done. ERR_STOPPED if a stop is requested. */
att_status att_study_tell(const att_study_job *job, int64_t done, int64_t all);

/* Binds the inputs that the session's plan and the network have in common to their rows of a sample of the last run;
 * rows of later samples follow. */
att_status att_study_bind(const att_study_job *job, att_session *session, int sample);
/* Rounds `count` numbers in F64 to F32, in place. */
void att_study_narrow(float *values, int64_t count);
/* Options for a plan of the study: the backend of the observed session. */
att_plan_options att_study_plan_options(const att_study_job *job);
/* Whether the user's pattern selects the residual step. */
bool att_study_selects(const att_study_job *job, const att_residual_step *step);

#endif
