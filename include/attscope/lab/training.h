/* attscope/lab/training.h - a training as its recipe describes it, in a run's folder with its records.
 *
 *     att_recipe recipe;
 *     att_training *training;
 *     att_train_result result;
 *     att_recipe_default(context, &recipe);
 *     recipe.network.model = "vit_tiny_patch16_224";
 *     recipe.data.data_dir = "images";
 *     if (att_training_open(context, &recipe, &training) == ATT_OK)
 *         status = att_training_run(training, NULL, &result);
 *     att_training_close(&training);
 *
 * It does what attscope train does: opens the data sets, finds and builds the network, draws or loads its weights,
 * trains (att_train()), and keeps records (attscope/store.h), args.yaml and classes.txt in the run's folder. What it
 * takes and chooses is said in the log.
 */
#ifndef ATTSCOPE_LAB_TRAINING_H
#define ATTSCOPE_LAB_TRAINING_H

#include <attscope/lab/recipe.h>
#include <attscope/lab/runs.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct att_training att_training;

/* Prepares a training and refuses what can be refused before the first update; writes nothing.
 *
 * A training that continues (recipe->files.resume) needs the settings that it was begun with: those of the args.yaml in
 * its folder (att_recipe_read()). The recipe is copied, its texts are not: they must outlive the training. On success
 * *training is the caller's, freed by att_training_close() before the context. Errors: ERR_ARGUMENT for settings that
 * do not go together, and for networks and instruments that do not exist; what opening data, networks and checkpoints
 * say. */
ATT_API ATT_MUST_CHECK att_status att_training_open(att_context *context, const att_recipe *recipe,
                                                    att_training **training);
ATT_API void att_training_close(att_training **training);

/* The recipe with everything that it left open filled in; what args.yaml will hold. */
ATT_API const att_recipe *att_training_recipe(const att_training *training);
/* Where the run is. The folder of a run without a name may change until att_training_run() makes it. */
ATT_API const att_run_folder *att_training_folder(const att_training *training);
ATT_API const att_model *att_training_model(const att_training *training);
/* Those that are trained; before att_training_run() those it begins with, unless it continues another. */
ATT_API att_weights *att_training_weights(const att_training *training);

typedef struct att_training_observer {
    const att_sink *sink;     /* receives every event after the records did; NULL: none */
    att_progress_fn progress; /* NULL: none */
    void *progress_user;
} att_training_observer;

/* Trains. May be called once for each att_training: a second call is refused with ERR_ARGUMENT and changes nothing. To
 * continue a training, open another one with recipe->files.resume.
 *
 * The run's files are created when the training begins (ATT_EVENT_RUN_BEGIN); a training that is refused before that
 * leaves existing files unchanged. observer and result may be NULL. observer->sink->close() is not called: the sink
 * remains the caller's. Errors and *result: see att_train(). */
ATT_API att_status att_training_run(att_training *training, const att_training_observer *observer,
                                    att_train_result *result);

#ifdef __cplusplus
}
#endif
#endif
