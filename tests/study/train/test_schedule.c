/* Learning rates and the numbers of an update against timm 1.0.31's create_scheduler_v2 and ModelEmaV3. */

#include "study/train/optimizer.h"
#include "study/train/schedule.h"
#include "test.h"

enum { EPOCHS = 6, UPDATES = 2 };

typedef struct timm_case {
    const char *schedule;
    bool on_updates;
    int warmup_epochs;
    double rates[EPOCHS * UPDATES];
} timm_case;

/* lr 0.1, warmup_lr 1e-5, min_lr 1e-3, decay_epochs 1.5, decay_rate 0.5, decay_milestones 2 4, six epochs of two
 * updates */
static const timm_case cases[] = {
    {"cosine",
     false,
     2,
     {1.0000000000000001e-05, 1.0000000000000001e-05, 0.050005000000000008, 0.050005000000000008, 0.075250000000000011,
      0.075250000000000011, 0.050500000000000003, 0.050500000000000003, 0.025750000000000012, 0.025750000000000012,
      0.0076317425126702842, 0.0076317425126702842}},
    {"cosine",
     true,
     2,
     {1.0000000000000001e-05, 0.025007500000000002, 0.050005000000000008, 0.0750025, 0.075250000000000011,
      0.063311542732574777, 0.050500000000000003, 0.037688457267425229, 0.025750000000000012, 0.0154982143312659,
      0.0076317425126702842, 0.0026866715986911243}},
    {"step", false, 1, {1e-05, 1e-05, .1, .1, .05, .05, .025, .025, .025, .025, .0125, .0125}},
    {"step", true, 1, {1e-05, 0.050005000000000008, .1, .05, .05, .05, .025, .025, .025, .0125, .0125, .0125}},
    {"multistep", false, 1, {1e-05, 1e-05, .05, .05, .05, .05, .025, .025, .025, .025, .025, .025}},
    {"multistep", true, 1, {1e-05, 0.050005000000000008, .1, .05, .05, .05, .05, .025, .025, .025, .025, .025}},
    {"multistep", false, 0, {.1, .1, .05, .05, .05, .05, .025, .025, .025, .025, .025, .025}},
    {"constant",
     false,
     3,
     {1e-05, 1e-05, 0.033340000000000009, 0.033340000000000009, 0.066670000000000007, 0.066670000000000007, .1, .1, .1,
      .1, .1, .1}},
    {"none", false, 3, {.1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1}},
};

TEST(rates_are_timms)
{
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        const att_schedule *schedule = att_schedule_find(cases[c].schedule);
        att_train_options options = att_train_options_defaults();
        options.epochs = EPOCHS;
        options.sched_on_updates = cases[c].on_updates;
        options.warmup_epochs = cases[c].warmup_epochs;
        options.min_lr = 1e-3;
        options.decay_epochs = 1.5;
        options.decay_rate = 0.5;
        options.decay_milestones[0] = 2;
        options.decay_milestones[1] = 4;
        options.decay_milestone_count = 2;
        for (int update = 0; update < EPOCHS * UPDATES; update++) {
            double rate = att_schedule_lr(schedule, &options, 0.1, UPDATES, update / UPDATES, update);
            /* the same formulas in doubles; measured: 0 */
            assert_float_equal(rate, cases[c].rates[update], 1e-15);
        }
    }
}

TEST(the_rate_follows_the_batch)
{
    att_train_options options = att_train_options_defaults();
    options.batch_size = 128;
    options.grad_accum_steps = 8;
    assert_float_equal(att_optimizer_lr(att_optimizer_find("sgd"), &options), 0.4, 1e-15);
    assert_float_equal(att_optimizer_lr(att_optimizer_find("adamw"), &options), 0.2, 1e-15);
    options.lr = 0.3;
    assert_float_equal(att_optimizer_lr(att_optimizer_find("adamw"), &options), 0.3, 0);
}

TEST(the_optimizers_name_chooses_its_op)
{
    assert_string_equal(att_optimizer_find("sgd")->op, "sgd");
    assert_true(att_optimizer_find("sgd")->nesterov);
    assert_string_equal(att_optimizer_find("momentum")->op, "sgd");
    assert_false(att_optimizer_find("momentum")->nesterov);
    assert_string_equal(att_optimizer_find("adamw")->op, "adamw");
    for (int i = 0; att_optimizer_at(i); i++)
        assert_true(att_optimizer_at(i)->name && att_optimizer_at(i)->summary);
    for (int i = 0; att_schedule_at(i); i++)
        assert_true(att_schedule_at(i)->name && att_schedule_at(i)->summary);
    assert_null(att_optimizer_at(-1));
}

/* ModelEmaV3.get_decay(step), where step counts finished updates, including this one */
TEST(the_average_copies_first)
{
    att_train_options options = att_train_options_defaults();
    options.model_ema_decay = 0.9;
    assert_float_equal(att_optimizer_hyper(att_optimizer_find("sgd"), &options, 0.1, 0).ema_decay, 0, 0);
    assert_float_equal(att_optimizer_hyper(att_optimizer_find("sgd"), &options, 0.1, 1).ema_decay, 0.9, 0);
    options.model_ema_warmup = true;
    assert_float_equal(att_optimizer_hyper(att_optimizer_find("sgd"), &options, 0.1, 0).ema_decay, 0, 0);
    /* 1 - 2^(-2/3), 1 - 8^(-2/3) */
    assert_float_equal(att_optimizer_hyper(att_optimizer_find("sgd"), &options, 0.1, 1).ema_decay, 0.37003947505256342,
                       1e-15);
    assert_float_equal(att_optimizer_hyper(att_optimizer_find("sgd"), &options, 0.1, 7).ema_decay, 0.75, 1e-15);
    assert_float_equal(att_optimizer_hyper(att_optimizer_find("sgd"), &options, 0.1, 1000).ema_decay, 0.9, 0);
}
