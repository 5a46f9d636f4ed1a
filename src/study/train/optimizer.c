#include "study/train/optimizer.h"

#include <math.h>
#include <string.h>

static const att_optimizer optimizers[] = {
    {"sgd", "stochastic gradient descent with Nesterov's --momentum", "sgd", true, false},
    {"momentum", "stochastic gradient descent with plain --momentum", "sgd", false, false},
    {"adamw", "Adam with decoupled weight decay (Loshchilov, Hutter 2019); --opt-betas, --opt-eps", "adamw", false,
     true},
    {"adam", "Adam with weight decay as part of the gradient (Kingma, Ba 2015); --opt-betas, --opt-eps", "adam", false,
     true},
};
enum { OPTIMIZER_COUNT = sizeof optimizers / sizeof *optimizers };

/* timm's lr_base_size: the batch size for which lr_base is meant. */
static const double base_batch = 256;

const att_optimizer *att_optimizer_at(int index)
{
    return index >= 0 && index < OPTIMIZER_COUNT ? &optimizers[index] : NULL;
}

const att_optimizer *att_optimizer_find(const char *name)
{
    int i = 0;
    while (strcmp(optimizers[i].name, name) != 0)
        i++;
    return &optimizers[i];
}

double att_optimizer_lr(const att_optimizer *optimizer, const att_train_options *options)
{
    if (options->lr > 0)
        return options->lr;
    double ratio = (double)options->batch_size * options->grad_accum_steps / base_batch;
    return options->lr_base * (optimizer->adaptive ? sqrt(ratio) : ratio);
}

/* timm's ModelEmaV3.get_decay(): the first update copies the weights. */
static double ema_decay(const att_train_options *options, int64_t update)
{
    if (update == 0)
        return 0;
    if (!options->model_ema_warmup)
        return options->model_ema_decay;
    return fmin(options->model_ema_decay, 1 - pow(1 + (double)update, -2.0 / 3));
}

att_hyper att_optimizer_hyper(const att_optimizer *optimizer, const att_train_options *options, double lr,
                              int64_t update)
{
    return (att_hyper){.lr = lr,
                       .weight_decay = options->weight_decay,
                       .momentum = options->momentum,
                       .nesterov = optimizer->nesterov,
                       .beta1 = options->beta1,
                       .beta2 = options->beta2,
                       .eps = options->eps,
                       .ema_decay = ema_decay(options, update),
                       .clip_norm = options->clip_grad,
                       .update = update + 1};
}
