/* Learning rates and the numbers of an update against timm 1.0.31's create_scheduler_v2 and ModelEmaV3; poly against
 * PyTorch's PolynomialLR. */

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

/* PolynomialLR of PyTorch 2.15 after a linear warm-up of four updates; lr 0.1, warmup_lr 1e-5, min_lr 1e-3. */
TEST(poly_falls_from_the_end_of_the_warm_up)
{
    const double in_updates[] = {
        1e-05,
        0.025007500000000002,
        0.05000500000000001,
        0.0750025,
        0.1,
        0.08878947307146352,
        0.07741706116563346,
        0.06585257284839176,
        0.05405278639554651,
        0.04195088912116935,
        0.029430284286176618,
        0.01623541211514334,
    };
    const double in_epochs[] = {1e-05, 0.05000500000000001, 0.1, 0.07525000000000001, 0.0505, 0.025750000000000002};
    const att_schedule *poly = att_schedule_find("poly");
    att_train_options options = att_train_options_defaults();
    options.min_lr = 1e-3;
    options.warmup_epochs = 2;
    options.epochs = EPOCHS;
    for (int epoch = 0; epoch < EPOCHS; epoch++) /* power 1 is the default; measured: 1.4e-17 */
        assert_float_equal(att_schedule_lr(poly, &options, 0.1, 5, epoch, 5 * epoch), in_epochs[epoch], 1e-15);
    options.poly_power = 0.9;
    options.sched_on_updates = true;
    for (int update = 0; update < EPOCHS * UPDATES; update++) /* measured: 6e-17 */
        assert_float_equal(att_schedule_lr(poly, &options, 0.1, UPDATES, update / UPDATES, update), in_updates[update],
                           1e-15);
    options.sched_on_updates = false;
    options.warmup_epochs = 300;
    options.warmup_updates = 4;
    options.epochs = 300;
    options.updates = EPOCHS * UPDATES;
    for (int update = 0; update < EPOCHS * UPDATES; update++)
        assert_float_equal(att_schedule_lr(poly, &options, 0.1, 1000, 0, update), in_updates[update], 1e-15);
    assert_float_equal(att_schedule_lr(poly, &options, 0.1, 1000, 0, EPOCHS * UPDATES), 1e-3, 0);
}

/* Each of the two alone makes the rate change at every update. */
TEST(lengths_in_updates_replace_those_in_epochs)
{
    const att_schedule *cosine = att_schedule_find("cosine");
    att_train_options options = att_train_options_defaults();
    options.warmup_epochs = 1;
    options.updates = 10;
    assert_float_equal(att_schedule_lr(cosine, &options, 0.1, 4, 0, 2), 1e-5 + 0.5 * (0.1 - 1e-5), 1e-15);
    assert_float_equal(att_schedule_lr(cosine, &options, 0.1, 4, 1, 5), 0.05, 1e-15);
    options.updates = 0;
    options.epochs = 5;
    options.warmup_updates = 8;
    assert_float_equal(att_schedule_lr(cosine, &options, 0.1, 4, 1, 6), 1e-5 + 0.75 * (0.1 - 1e-5), 1e-15);
    assert_float_equal(att_schedule_lr(cosine, &options, 0.1, 4, 2, 10), 0.05, 1e-15);
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
