/* Layer-wise learning rates: the factor of every parameter against timm's (tests/goldens/layers.txt), and a training
 * run.
 */
#include "study/train/layer_decay.h"

#include "base/core/context.h"
#include "networks/models/family.h"
#include "networks/models/fixture.h"
#include "study/train/fixture.h"

#include "golden_path.h"

/* A network of the golden, with the rates of its parameters. */
typedef struct network {
    att_model *model;
    att_weights *weights;
    att_parameter_rates *rates;
    att_layer_decay applied;
} network;

static void open_network(att_context *context, const char *name, const att_option_values *options,
                         const att_train_options *train, network *net)
{
    assert_int_equal(att_model_create(context, name, options, ATT_F32, &net->model), ATT_OK);
    assert_int_equal(att_weights_create(att_model_graph(net->model), "cpu", &net->weights), ATT_OK);
    net->rates = calloc((size_t)att_weights_count(net->weights), sizeof *net->rates);
    assert_non_null(net->rates);
    assert_int_equal(att_layer_decay_apply(context, net->model, train, net->weights, net->rates, &net->applied),
                     ATT_OK);
}

static void close_network(network *net)
{
    free(net->rates);
    att_weights_destroy(&net->weights);
    att_model_destroy(&net->model);
}

/* Returns the factor of a parameter, 0 if it is frozen. */
static double factor_of(const network *net, const char *name)
{
    for (int i = 0; i < att_weights_count(net->weights); i++)
        if (strcmp(att_weights_at(net->weights, i).name, name) == 0)
            return net->rates[i].frozen ? 0 : net->rates[i].lr;
    fail_msg("no parameter %s", name);
    return NAN;
}

/* Opens the network of a line "network NAME OPTIONS... DECAY MIN NO_OPT". */
static void open_line(att_context *context, char *line, network *net)
{
    char *words[16], *word = strtok(line, " \n");
    int count = 0;
    for (; word && count < 16; word = strtok(NULL, " \n"))
        words[count++] = word;
    assert_true(count >= 5);
    att_option_values options = att_options_none();
    for (int i = 2; i < count - 3; i++)
        take_option(words[i], &options);
    att_train_options train = att_train_options_defaults();
    train.layer_decay = strtod(words[count - 3], NULL);
    train.layer_decay_min_scale = strtod(words[count - 2], NULL);
    train.layer_decay_no_opt_scale = strtod(words[count - 1], NULL);
    open_network(context, words[1], &options, &train, net);
}

static int count_parameters(const network *net)
{
    int count = 0;
    for (int i = 0; i < att_weights_count(net->weights); i++)
        count += !att_weights_at(net->weights, i).buffer;
    return count;
}

FIXTURE_TEST(every_factor_is_timms)
{
    char path[4096], line[256], name[128];
    network net = {.model = NULL};
    int checked = 0, networks = 0;
    double expected;
    golden_path("layers.txt", path, sizeof path);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        if (strncmp(line, "network ", 8) == 0) {
            if (networks++)
                assert_int_equal(checked, count_parameters(&net));
            close_network(&net);
            open_line(f->context, line, &net);
            checked = 0;
            continue;
        }
        assert_int_equal(sscanf(line, "%127s %lf", name, &expected), 2);
        if (!(fabs(factor_of(&net, name) - expected) <= 1e-12 * expected))
            fail_msg("%s: %.17g, expected %.17g", name, factor_of(&net, name), expected);
        checked++;
    }
    assert_int_equal(checked, count_parameters(&net));
    close_network(&net);
    fclose(file);
    assert_int_equal(networks, 17);
}

/* A module belongs to its block; the norm after the blocks of a network with pre-activation belongs to the last. */
FIXTURE_TEST(modules_belong_to_their_block)
{
    att_train_options train = att_train_options_defaults();
    att_option_values options = tiny_options();
    network net;
    train.layer_decay = 0.5;
    att_options_set_text(&options, "modules", "cb_s");
    open_network(f->context, "vit_tiny_patch16_224", &options, &train, &net);
    assert_int_equal(net.applied.layers, 4);
    assert_float_equal(net.applied.smallest, 0.125, 0);
    int modules = 0;
    for (int i = 0; i < att_weights_count(net.weights); i++) {
        const char *name = att_weights_at(net.weights, i).name;
        if (!strncmp(name, "blocks.0.", 9) || !strncmp(name, "blocks.1.", 9))
            assert_float_equal(net.rates[i].lr, name[7] == '0' ? 0.25 : 0.5, 0);
        modules += strstr(name, "scale") || strstr(name, "cb") != NULL;
    }
    assert_true(modules > 0);
    close_network(&net);
    options = att_options_none();
    att_options_set_text(&options, "modules", "se");
    open_network(f->context, "preresnet164", &options, &train, &net);
    assert_float_equal(factor_of(&net, "layer3.17.se.fc1.weight"), 0.5, 0);
    assert_float_equal(factor_of(&net, "layer3.16.se.fc1.weight"), 0.25, 0);
    assert_float_equal(factor_of(&net, "bn.weight"), 0.5, 0);
    close_network(&net);
}

/* The head of a segmenter is the last layer, whose rate does not fall; the layers below it are those of a classifier.
 */
FIXTURE_TEST(the_head_of_a_segmenter_is_the_last_layer)
{
    static const struct {
        const char *network, *last_block, *stem;
        int layers;
    } cases[] = {
        {"vit_tiny_patch16_224", "blocks.11.mlp.fc2.weight", "pos_embed", 14},
        {"beit_base_patch16_224", "blocks.11.attn.relative_position_bias_table", "cls_token", 14},
        {"eva02_tiny_patch14_224", "blocks.11.norm1.weight", "patch_embed.proj.weight", 14},
        {"mixer_s32_224", "blocks.7.mlp_tokens.fc1.weight", "stem.proj.weight", 10},
        {"swin_tiny_patch4_window7_224", "layers.3.blocks.1.mlp.fc1.weight", "patch_embed.proj.weight", 14},
        {"resnet18", "layer4.1.conv2.weight", "conv1.weight", 10},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        att_train_options train = att_train_options_defaults();
        att_option_values options = att_options_none();
        network net;
        int head = 0;
        train.layer_decay = 0.5;
        att_options_set_text(&options, "task", "segment");
        att_options_set(&options, "num_classes", CLASSES);
        open_network(f->context, cases[i].network, &options, &train, &net);
        for (int k = 0; k < att_weights_count(net.weights); k++)
            if (att_model_is_head(net.model, att_weights_at(net.weights, k).name)) {
                assert_float_equal(net.rates[k].lr, 1, 0);
                head++;
            }
        assert_true(head >= 4); /* batch norm and linear layer */
        assert_int_equal(net.applied.layers, cases[i].layers);
        assert_float_equal(factor_of(&net, cases[i].last_block), 0.5, 0);
        assert_float_equal(factor_of(&net, cases[i].stem), pow(0.5, cases[i].layers - 1), 0);
        close_network(&net);
    }
}

FIXTURE_TEST(layers_with_a_small_factor_are_frozen)
{
    att_train_options train = att_train_options_defaults();
    const att_option_values options = att_options_none();
    network net;
    int frozen = 0;
    train.layer_decay = 0.5;
    train.layer_decay_no_opt_scale = 0.75;
    open_network(f->context, "resnet20", &options, &train, &net);
    for (int i = 0; i < att_weights_count(net.weights); i++)
        frozen += net.rates[i].frozen && !att_weights_at(net.weights, i).buffer;
    assert_int_equal(frozen, count_parameters(&net) - 2); /* all but weight and bias of the head */
    close_network(&net);
}

FIXTURE_TEST(without_a_decay_nothing_changes)
{
    const att_train_options train = att_train_options_defaults();
    att_option_values options = tiny_options();
    network net;
    open_network(f->context, "vit_tiny_patch16_224", &options, &train, &net);
    assert_int_equal(net.applied.layers, 0);
    assert_float_equal(net.rates[0].lr, 0, 0);
    close_network(&net);
}

/* --- a training run --------------------------------------------------------------------------------------------------
 */

static void read_weight(const fixture *f, const char *name, float *values, int64_t count)
{
    int i = 0;
    while (strcmp(att_weights_at(f->weights, i).name, name) != 0)
        i++;
    assert_int_equal(att_weights_get(f->weights, -1, i, values, count), ATT_OK);
}

enum { BIASES = 16 };

/* The change of three biases in one update of plain SGD: of the stem, of the last block, and of the head. */
static void train_once(fixture *f, const att_train_options *options, float change[3][BIASES])
{
    static const char *const names[] = {"patch_embed.proj.bias", "blocks.1.mlp.fc2.bias", "head.bias"};
    static const int counts[] = {BIASES, BIASES, CLASSES};
    float before[3][BIASES] = {{0}}, after[3][BIASES] = {{0}};
    fixture_model(f, 0);
    for (int i = 0; i < 3; i++)
        read_weight(f, names[i], before[i], counts[i]);
    assert_trains(f, options);
    for (int i = 0; i < 3; i++) {
        read_weight(f, names[i], after[i], counts[i]);
        for (int k = 0; k < BIASES; k++)
            change[i][k] = after[i][k] - before[i][k];
    }
}

static void check_changes(const float *own, const float *whole, double factor)
{
    for (int k = 0; k < BIASES; k++)
        assert_float_equal(own[k], factor * (double)whole[k], 1e-6); /* one rounding of a bias; measured 6e-8 */
}

FIXTURE_TEST(an_update_uses_the_factors)
{
    float whole[3][BIASES], scaled[3][BIASES];
    att_train_options options = small_training();
    options.epochs = 1;
    options.warmup_epochs = 0;
    options.optimizer = "momentum";
    options.momentum = 0;
    options.weight_decay = 0;
    options.model_ema = false;
    options.lr = 1;
    options.clip_grad = 0;
    options.grad_accum_steps = 5; /* the epoch is one update */
    train_once(f, &options, whole);
    options.layer_decay = 0.5;
    train_once(f, &options, scaled);
    check_changes(scaled[0], whole[0], 0.125);
    check_changes(scaled[1], whole[1], 0.5);
    check_changes(scaled[2], whole[2], 1);
    options.layer_decay_no_opt_scale = 0.125; /* a layer with this factor is not frozen */
    train_once(f, &options, scaled);
    check_changes(scaled[0], whole[0], 0.125);
    options.layer_decay_no_opt_scale = 0.2;
    train_once(f, &options, scaled);
    check_changes(scaled[0], whole[0], 0);
    check_changes(scaled[1], whole[1], 0.5);
    options.layer_decay_no_opt_scale = 0;
    options.head_lr_mult = 10;
    train_once(f, &options, scaled);
    check_changes(scaled[1], whole[1], 0.5);
    check_changes(scaled[2], whole[2], 10);
}

typedef struct begun {
    double layers, smallest, frozen;
    bool has_option;
} begun;

static att_status keep_begin(void *user, const att_event *event)
{
    begun *b = user;
    for (int i = 0; event->kind == ATT_EVENT_RUN_BEGIN && i < event->field_count; i++) {
        const att_event_field *field = &event->fields[i];
        if (strcmp(field->name, "lr_layers") == 0)
            b->layers = field->number;
        else if (strcmp(field->name, "lr_scale_min") == 0)
            b->smallest = field->number;
        else if (strcmp(field->name, "frozen_parameters") == 0)
            b->frozen = field->number;
        else if (strcmp(field->name, "layer_decay") == 0)
            b->has_option = strcmp(field->text, "0.5") == 0;
    }
    return ATT_OK;
}

FIXTURE_TEST(records_tell_the_factors)
{
    begun b = {0};
    att_sink sink = {.emit = keep_begin, .user = &b};
    att_train_options options = small_training();
    options.epochs = 0;
    options.warmup_epochs = 0;
    options.layer_decay = 0.5;
    options.layer_decay_no_opt_scale = 0.2;
    options.sinks = &sink;
    options.sink_count = 1;
    assert_trains(f, &options);
    assert_true(b.has_option);
    assert_float_equal(b.layers, 4, 0);
    assert_float_equal(b.smallest, 0.25, 0);
    assert_float_equal(b.frozen, 4, 0); /* class token, position embedding, weight and bias of the patch embedding */
}
