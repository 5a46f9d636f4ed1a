/* What training keeps of a sample, and what it makes again: whoever changes the rules (passes/segment.c) sees here what
 * that does to networks. */
#include <attscope/plan.h>

#include "models/fixture.h"

/* In units of 1 KiB; steps: of a training's body. */
static const struct {
    const char *name, *attn;
    int img_size, width, kept, steps;
} networks[] = {{"resnet50", "none", 224, 0, 22834, 852},    {"resnet50", "se", 224, 0, 24469, 1167},
                {"resnet50", "none", 256, 0, 26624, 894}, /* more than 24 MiB is needed */
                {"resnet18", "none", 224, 0, 13532, 287},    {"resnet164", "none", 32, 0, 11744, 2435},
                {"resnet164", "step", 32, 0, 11911, 3961},   {"preresnet29", "cbam", 32, 0, 1489, 1091},
                {"preresnet29", "none", 96, 64, 25344, 1045}};

static void networks_keep_as_much_memory_as_before(void **state)
{
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++) {
        att_model_options model_options = att_model_options_defaults();
        model_options.loss = true, model_options.img_size = networks[i].img_size,
        model_options.width = networks[i].width;
        snprintf(model_options.attn, sizeof model_options.attn, "%s", networks[i].attn);
        att_plan_options options = att_plan_options_defaults();
        options.purpose = ATT_TRAIN, options.backend = "ref";
        att_model *model;
        att_plan *plan;
        CHECK(*state, att_model_create(*state, networks[i].name, &model_options, ATT_F32, &model));
        CHECK(*state, att_plan_compile(att_model_graph(model), &options, &plan));
        att_plan_facts facts = att_plan_describe(plan);
        print_message("%s, %s, %d: %zu KiB, %d steps\n", networks[i].name, networks[i].attn, networks[i].img_size,
                      facts.kept_bytes >> 10, facts.steps);
        assert_int_equal(facts.kept_bytes >> 10, networks[i].kept);
        assert_int_equal(facts.steps, networks[i].steps);
        att_plan_destroy(&plan);
        att_model_destroy(&model);
    }
}

static int setup(void **state)
{
    return att_context_create(NULL, (att_context **)state) != ATT_OK;
}

static int teardown(void **state)
{
    att_context_destroy((att_context **)state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(networks_keep_as_much_memory_as_before)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
