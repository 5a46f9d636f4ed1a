/* If the n-th allocation fails, training, checkpoints and evaluation return ERR_MEMORY, leave no memory allocated, and
 * the same objects work afterwards. */
#include "study/train/checkpoint.h"
#include "study/train/fixture.h"
#include "study/train/trainer.h"

typedef att_status (*task_fn)(fixture *f);

static att_status train_and_resume(fixture *f)
{
    char output[160], last[160];
    att_train_options options = small_training();
    options.epochs = 1;
    options.batch_size = 20;
    options.workers = 0;
    options.output = path_in(f, "run", output);
    options.resume = exists(f, "run/last.safetensors") ? path_in(f, "run/last.safetensors", last) : NULL;
    return att_train(f->model, f->weights, &f->data, &options, NULL);
}

static att_status train_anew(fixture *f)
{
    char command[160];
    snprintf(command, sizeof command, "%s/run/last.safetensors", f->folder);
    unlink(command);
    return train_and_resume(f);
}

static att_status rehearse(fixture *f)
{
    att_train_options options = small_training();
    return att_train_check(f->model, f->weights, &f->data, &options);
}

static att_status evaluate_average(fixture *f)
{
    char path[160];
    att_tensors *file = NULL;
    att_evaluation found;
    att_status status = att_tensors_open(f->context, path_in(f, "run/last.safetensors", path), &file);
    if (status == ATT_OK)
        status = att_checkpoint_load_ema(f->model, file, f->weights);
    att_tensors_close(&file);
    if (status == ATT_OK)
        status = att_evaluate(f->model, f->weights, f->eval, &f->eval_transform, NULL, &found);
    return status;
}

static att_status export(fixture *f)
{
    char path[160];
    return att_checkpoint_export(f->model, f->weights, path_in(f, "weights.safetensors", path));
}

static att_status train_taught(fixture *f)
{
    att_train_options options = small_training();
    const att_option_values teacher_options = tiny_options();
    att_teacher teacher = {0};
    att_model *model = NULL;
    options.epochs = 1;
    options.batch_size = 20;
    options.workers = 0;
    att_status status = att_model_create(f->context, "vit_tiny_patch16_224", &teacher_options, ATT_F32, &model);
    if (status == ATT_OK)
        status = att_weights_create(att_model_graph(model), "cpu", &teacher.weights);
    if (status == ATT_OK)
        status = att_weights_initialise(teacher.weights, 2);
    teacher.model = model;
    options.teacher = &teacher;
    if (status == ATT_OK)
        status = att_train(f->model, f->weights, &f->data, &options, NULL);
    att_weights_destroy(&teacher.weights);
    att_model_destroy(&model);
    return status;
}

/* Runs the task with its 1st, 2nd, ... allocation failing until it succeeds. `step` skips some of them. */
static void assert_survives(fixture *f, const char *name, task_fn task, long step)
{
    lack of = lack_of_memory(f->context, &f->memory);
    of.step = step;
    while (lack_again(&of))
        of.status = task(f);
    printf("%s: %ld allocations\n", name, of.allowed);
}

FIXTURE_TEST(lack_of_memory_is_survived)
{
    assert_int_equal(train_anew(f), ATT_OK); /* the optimiser's slots stay with the weights */
    assert_survives(f, "rehearse", rehearse, 1);
    assert_survives(f, "train", train_anew, 3);
    assert_survives(f, "resume", train_and_resume, 3);
    f->train_transform.std[0] = 0.4; /* the teacher's images are prepared */
    assert_survives(f, "train with a teacher", train_taught, 3);
    assert_survives(f, "evaluate", evaluate_average, 3);
    assert_survives(f, "export", export, 1);
}
