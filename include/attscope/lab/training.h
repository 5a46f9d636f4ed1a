/* attscope/lab/training.h - trains a network as a recipe describes, and records the run in a folder.
 *
 *     att_recipe recipe;
 *     att_training *training = NULL;
 *     att_train_result result;
 *     att_recipe_default(context, &recipe);
 *     recipe.network.model = "vit_tiny_patch16_224";
 *     recipe.data.data_dir = "images";
 *     if (att_training_open(context, &recipe, &training) == ATT_OK)
 *         status = att_training_run(training, NULL, &result);
 *     att_training_close(&training);
 *
 * This is what attscope train does: open the data sets, build the network, initialise or load its weights, train
 * (att_train()), and write records (attscope/store.h), args.yaml and classes.txt to the run's folder. The log names the
 * files that are used and the settings that are chosen.
 */
#ifndef ATTSCOPE_LAB_TRAINING_H
#define ATTSCOPE_LAB_TRAINING_H

#include <attscope/lab/recipe.h>
#include <attscope/lab/runs.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct att_training att_training;

/* Prepares a training run and checks the recipe, the network, its task and the data sets. Writes nothing and decodes no
 * images for a new training run: att_training_run() reports images that cannot be decoded and folders that cannot be
 * written.
 *
 * Checks every member of the recipe by the rules of its flag. Then fills in missing values, in a copy that
 * att_training_recipe() returns and that args.yaml will hold:
 * - texts that are NULL: their defaults (recipe.h);
 * - network.input_size, adaptor and adaptor_input: moved into network.options;
 * - network.model and network.options: completed from the checkpoint, the data (num_classes) and the model;
 * - preprocess: completed from the checkpoint or the model;
 * - task: options of other tasks are removed; train.eval_metric: the task's first choice.
 * The recipe's texts are not copied: they must outlive the training.
 *
 * To continue a training run, set recipe->files.resume and use the settings with which the training began: read
 * args.yaml in its folder by att_recipe_read(). Other settings or other images are refused (ERR_MISMATCH), and a name
 * or initial weights that are not those of the run (ERR_ARGUMENT). files.experiment and files.initial_checkpoint may be
 * NULL.
 *
 * On success the caller owns *training and frees it by att_training_close() before the context. On failure
 * *training is unchanged. Errors: ERR_ARGUMENT
 * for wrong or contradictory settings and for unknown networks, instruments and optimisers; errors of opening data,
 * networks and checkpoints. */
ATT_API ATT_MUST_CHECK att_status att_training_open(att_context *context, const att_recipe *recipe,
                                                    att_training **training);
/* Does nothing for NULL and for a training run that is NULL. */
ATT_API void att_training_close(att_training **training);

/* The recipe with missing values filled in (att_training_open()). */
ATT_API const att_recipe *att_training_recipe(const att_training *training);
/* The run's folder. The name of a run without files.experiment is final only after att_training_run() has begun. */
ATT_API const att_run_folder *att_training_folder(const att_training *training);
ATT_API const att_model *att_training_model(const att_training *training);
/* The weights that are trained. Before att_training_run(): the initial weights; if the training continues another one,
 * their contents are undefined until then. */
ATT_API att_weights *att_training_weights(const att_training *training);

typedef struct att_training_observer {
    const att_sink *sink;     /* receives every event after it was recorded; NULL: none */
    att_progress_fn progress; /* NULL: none */
    void *progress_user;
} att_training_observer;

/* Trains. May be called once for each att_training: a second call is refused with ERR_ARGUMENT and changes nothing. To
 * continue a training run, open another one with recipe->files.resume.
 *
 * The run's files are created when the training begins (ATT_EVENT_RUN_BEGIN); a training run that is refused before
 * that leaves existing files unchanged. Of several processes (recipe.train.comm), only rank 0 writes files and calls
 * the observer's sink. observer and result may be NULL. observer->sink->close() is not called: the sink remains the
 * caller's. Errors: ERR_MISMATCH if another training run has written checkpoints to the folder of a new run since
 * att_training_open(); ERR_ARGUMENT, without a message, if training is NULL; those of att_train(). *result: see
 * att_train(). */
ATT_API att_status att_training_run(att_training *training, const att_training_observer *observer,
                                    att_train_result *result);

#ifdef __cplusplus
}
#endif
#endif
