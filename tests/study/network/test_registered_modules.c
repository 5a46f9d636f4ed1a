/* Modules registered by a program: wrong ones are refused, and the others work like built-in ones in
 * their context and in no other. */
#include "study/network/registered.h"

#include "engine/graph/graph.h"
#include "networks/nn/module.h"

enum { FACTOR, MODE };
static const char *const modes[] = {"once", "twice", NULL};

static att_value stretch(const att_scope *scope, const double *values, const att_module_site *site)
{
    att_shape shape = att_value_shape(scope->graph, site->branch);
    att_init init = {.rule = ATT_INIT_CONSTANT, .value = values[FACTOR]};
    int64_t width = shape.rank > 0 ? shape.dims[shape.rank - 1] : 0;
    att_value gamma = att_scope_parameter(scope, "gamma", att_shape_of(width), init, false);
    att_scope_enter(scope);
    att_value stretched = site->branch;
    for (int i = 0; i <= (int)values[MODE]; i++)
        stretched = att_scale(scope->graph, stretched, gamma);
    return stretched;
}

static int two(const double *values)
{
    (void)values;
    return 2;
}

static att_value drop_tokens(const att_scope *scope, const double *values, const att_module_site *site)
{
    (void)values;
    return att_slice_tokens(scope->graph, site->branch, 0, 1);
}

static att_value give_up(const att_scope *scope, const double *values, const att_module_site *site)
{
    (void)values, (void)site;
    return att_graph_fail(scope->graph,
                          att_fail(att_graph_context(scope->graph), ATT_ERR_UNSUPPORTED, "not in %s", scope->path));
}

static att_value stray(const att_scope *scope, const double *values, const att_module_site *site)
{
    (void)values;
    att_scope root = att_scope_root(scope->graph);
    att_value gamma = att_scope_parameter(&root, "gamma", att_shape_of(16), (att_init){0}, false);
    return att_scale(scope->graph, site->branch, gamma);
}

#define STRETCH                                                                                                   \
    .meaning = "x <- x (.) gamma", .scope = "stretch", .parameter = "gamma", .option_count = 2, .apply = stretch, \
    .options = {                                                                                                  \
        [FACTOR] = {.name = "factor", .meaning = "start of gamma", .start = 1, .high = 10},                       \
        [MODE] = {.name = "mode", .meaning = "how often", .high = 1, .choices = modes},                           \
    }
static const att_module
    of_tokens = {.name = "stretch", .places = ATT_ON_TOKENS, STRETCH},
    of_maps = {.name = "stretch2d", .places = ATT_ON_MAPS, .other_scope = "STRETCH", STRETCH},
    shortening = {.name = "shorten",
                  .meaning = "x <- x[0]",
                  .scope = "shorten",
                  .places = ATT_ON_TOKENS,
                  .apply = drop_tokens},
    giving_up = {.name = "giving_up", .meaning = "none", .scope = "none", .places = ATT_ON_TOKENS, .apply = give_up},
    straying = {.name = "stray", .meaning = "none", .scope = "stray", .places = ATT_ON_TOKENS, .apply = stray},
    nameless = {.name = "nameless", .meaning = "none", .scope = "nameless", .places = ATT_ON_TOKENS, .apply = stretch},
    misnamed = {.name = "misnamed",
                .meaning = "none",
                .scope = "misnamed",
                .places = ATT_ON_TOKENS,
                .parameter = "beta",
                .apply = stretch};

FIXTURE_TEST(descriptors_of_modules_are_checked)
{
    att_context *context = f->context;
    static const char *const blank[] = {"a b", NULL}, *const equals[] = {"a", "b=c", NULL}, *const none[] = {NULL};
#define MINE .meaning = "m", .scope = "s", .places = ATT_ON_TOKENS, .apply = stretch
    const struct {
        att_module module;
        const char *message;
    } wrong[] = {
        {{MINE}, "this module has no name"},
        {{.name = "", MINE}, "a name must be"},
        {{.name = "two words", MINE}, "module \"two words\": a name must be"},
        {{.name = "a:b", MINE}, "a name must be"},
        {{.name = "a@b", MINE}, "a name must be"},
        {{.name = "a+b", MINE}, "a name must be"},
        {{.name = "3d", MINE}, "a name must be"},
        {{.name = "twenty_four_letters_long", MINE}, "a name must be 1 to 23"},
        {{.name = "none", MINE}, "this name is reserved"},
        {{.name = "se", MINE}, "module \"se\": this name is in use"},
        {{.name = "mine", .scope = "s", .places = ATT_ON_TOKENS, .apply = stretch}, "it has no `meaning`"},
        {{.name = "mine", .meaning = "m", .places = ATT_ON_TOKENS, .apply = stretch}, "its `scope` must be"},
        {{.name = "mine", .meaning = "m", .scope = "a.b", .places = ATT_ON_TOKENS, .apply = stretch},
         "its `scope` must be"},
        {{.name = "mine", .meaning = "m", .places = ATT_ON_TOKENS, .scope = "s"},
         "module \"mine\": it has no function `apply`"},
        {{.name = "mine", .meaning = "m", .scope = "s", .places = 8, .apply = stretch}, "`places`"},
        {{.name = "mine", .meaning = "m", .scope = "s", .apply = stretch}, "`places`"},
        {{.name = "mine", .meaning = "m", .scope = "s", .places = ATT_ON_MAPS, .replaced_heads = two}, "ATT_ON_HEADS"},
        {{.name = "mine", MINE, .parameter = ""}, "`parameter` is empty"},
        {{.name = "mine", MINE, .other_names = {{"a", NULL}}}, "pairs"},
        {{.name = "mine", MINE, .constant = "c"}, "belong together"},
        {{.name = "mine", MINE, .option_count = ATT_MODULE_OPTIONS + 1}, "0..5"},
        {{.name = "mine", MINE, .option_count = -1}, "0..5"},
        {{.name = "mine", MINE, .option_count = 1}, "each option needs a name"},
        {{.name = "mine", MINE, .option_count = 1, .options = {{.name = "o"}}}, "option \"o\": it has no `meaning`"},
        {{.name = "mine",
          MINE,
          .option_count = 2,
          .options = {{.name = "o", .meaning = "m"}, {.name = "o", .meaning = "m"}}},
         "two of this name"},
        {{.name = "mine", MINE, .option_count = 1, .options = {{.name = "o", .meaning = "m", .start = 2, .high = 1}}},
         "low <= start <= high"},
        {{.name = "mine", MINE, .option_count = 1, .options = {{.name = "o", .meaning = "m", .start = NAN}}},
         "low <= start <= high"},
        {{.name = "mine", MINE, .option_count = 1, .options = {{.name = "o", .meaning = "m", .choices = blank}}},
         "its choices must be"},
        {{.name = "mine",
          MINE,
          .option_count = 1,
          .options = {{.name = "o", .meaning = "m", .high = 1, .choices = equals}}},
         "its choices must be"},
        {{.name = "mine", MINE, .option_count = 1, .options = {{.name = "o", .meaning = "m", .choices = none}}},
         "its choices must be"},
        {{.name = "mine",
          MINE,
          .option_count = 1,
          .options = {{.name = "o", .meaning = "m", .high = 2, .choices = modes}}},
         "indices of choices"},
    };
#undef MINE
    const int count = att_module_count(context);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_fails(context, att_module_register(context, &wrong[i].module), ATT_ERR_ARGUMENT, wrong[i].message);
    assert_fails(context, att_module_register(context, NULL), ATT_ERR_ARGUMENT, "NULL");
    assert_int_equal(att_module_count(context), count);
    add_module(f, &of_tokens);
    assert_fails(context, att_module_register(context, &of_tokens), ATT_ERR_ARGUMENT,
                 "module \"stretch\": this name is in use");
    assert_int_equal(att_module_count(context), count + 1);
    for (int i = 0; i < att_module_count(NULL); i++)
        CHECK(context, att_module_check(context, att_module_at(NULL, i)));
}

FIXTURE_TEST(a_registered_module_is_listed_in_its_context_alone)
{
    att_context *context = f->context, *other = open_other();
    const int count = att_module_count(NULL);
    add_module(f, &of_tokens);
    assert_int_equal(att_module_count(context), count + 1);
    assert_ptr_equal(att_module_at(context, count), &of_tokens);
    assert_null(att_module_at(context, count + 1));
    assert_null(att_module_at(context, -1));
    assert_int_equal(att_module_count(other), count);
    assert_null(att_module_at(other, count));
    att_module_choice choice;
    CHECK(context, att_module_parse(context, "stretch:factor=2,mode=twice", &choice));
    assert_true(choice.module == &of_tokens && choice.values[FACTOR] == 2 && choice.values[MODE] == 1);
    assert_fails(context, att_module_parse(context, "stretch:mode=thrice", &choice), ATT_ERR_ARGUMENT, "stretch");
    assert_fails(context, att_module_parse(context, "stretsh", &choice), ATT_ERR_NOT_FOUND, "did you mean \"stretch\"");
    assert_fails(other, att_module_parse(other, "stretch", &choice), ATT_ERR_NOT_FOUND, "no module \"stretch\"");
    /* A name may exist in another kind. */
    static const att_module entropy = {
        .name = "entropy", .meaning = "m", .scope = "s", .places = ATT_ON_TOKENS, .apply = stretch};
    CHECK(other, att_module_register(other, &entropy));
    att_context_destroy(&other);
}

static void model_with(fixture *f, const char *modules, att_model **model, att_weights **weights)
{
    att_option_values options = tiny_options();
    att_options_set_text(&options, "modules", modules);
    CHECK(f->context, att_model_create(f->context, "vit_tiny_patch16_224", &options, ATT_F32, model));
    CHECK(f->context, att_weights_create(att_model_graph(*model), "cpu", weights));
    CHECK(f->context, att_weights_initialise(*weights, 1));
}

static void answer_of(fixture *f, att_network *network, float logits[CLASSES])
{
    float pixels[SIDE * SIDE];
    att_batch answers;
    for (int i = 0; i < SIDE * SIDE; i++)
        pixels[i] = (float)(i * 7 % 13) / 13;
    CHECK(f->context, run_pixels(network, pixels, 1, SIDE, SIDE, &answers));
    memcpy(logits, att_batch_field(&answers, "logits"), CLASSES * sizeof *logits);
}

FIXTURE_TEST(a_checkpoint_records_a_registered_module)
{
    char path[160];
    att_model *model = NULL;
    att_weights *weights = NULL;
    att_network *before = NULL, *after = NULL;
    float factor[16], logits[CLASSES], again[CLASSES];
    att_context *other = open_other();
    add_module(f, &of_tokens);
    model_with(f, "stretch:factor=2,mode=twice@after_attn:1+cb", &model, &weights);
    int index = att_weights_find(weights, "blocks.1.attn.stretch.gamma");
    assert_true(index >= 0 && att_weights_find(weights, "blocks.0.attn.stretch.gamma") < 0);
    CHECK(f->context, att_weights_get(weights, -1, index, factor, 16));
    assert_true(factor[0] == 2 && factor[15] == 2);
    CHECK(f->context, att_network_wrap(model, weights, NULL, &before));
    answer_of(f, before, logits);
    CHECK(f->context, att_checkpoint_export(model, weights, path_in(f, "stretched.safetensors", path)));
    CHECK(f->context, att_network_open(f->context, path, NULL, &after));
    assert_string_equal(att_options_text(att_model_options(att_network_model(after)), "modules"),
                        "stretch:factor=2,mode=twice@after_attn:1+cb");
    answer_of(f, after, again);
    assert_memory_equal(logits, again, sizeof logits);
    att_network_close(&after);
    assert_fails(other, att_network_open(other, path, NULL, &after), ATT_ERR_UNSUPPORTED,
                 "its network has the module \"stretch\", which is neither built in nor registered");
    CHECK(other, att_module_register(other, &of_tokens));
    CHECK(other, att_network_open(other, path, NULL, &after));
    att_network_close(&after);
    att_network_close(&before);
    att_weights_destroy(&weights);
    att_model_destroy(&model);
    att_context_destroy(&other);
}

/* A registered module is recognised by its parameter in the tensors. */
FIXTURE_TEST(tensors_tell_a_registered_module)
{
    att_model *model = NULL;
    att_weights *weights = NULL;
    att_tensors *file = NULL;
    att_identity identity;
    char path[160], plain[160];
    att_context *other = open_other();
    add_module(f, &of_tokens);
    model_with(f, "stretch@after_mlp:0", &model, &weights);
    CHECK(f->context, att_checkpoint_export(model, weights, path_in(f, "stretched.safetensors", path)));
    write_with(f, "stretched.safetensors", "attscope", "somebody", "plain.safetensors"); /* the key of the metadata */
    path_in(f, "plain.safetensors", plain);
    CHECK(f->context, att_tensors_open(f->context, plain, &file));
    att_option_values flags = tiny_options();
    CHECK(f->context, att_model_identify(f->context, file, plain, "vit_tiny_patch16_224", &flags, &identity));
    assert_string_equal(att_options_text(&identity.options, "modules"), "stretch@after_mlp:0");
    att_tensors_close(&file);
    CHECK(other, att_tensors_open(other, plain, &file));
    assert_fails(other, att_model_identify(other, file, plain, "vit_tiny_patch16_224", &flags, &identity),
                 ATT_ERR_UNSUPPORTED, "blocks.0.mlp.stretch.gamma");
    att_tensors_close(&file);
    att_weights_destroy(&weights);
    att_model_destroy(&model);
    att_context_destroy(&other);
}

FIXTURE_TEST(feature_maps_take_a_registered_module)
{
    att_option_values options = att_options_none();
    att_model *model = NULL;
    att_weights *weights = NULL;
    att_network *network = NULL;
    char path[160];
    add_module(f, &of_maps);
    att_options_set(&options, "img_size", SIDE);
    att_options_set_text(&options, "modules", "stretch2d:factor=0.5@after_branch:layer3:all");
    CHECK(f->context, att_model_create(f->context, "resnet20", &options, ATT_F32, &model));
    CHECK(f->context, att_weights_create(att_model_graph(model), "cpu", &weights));
    CHECK(f->context, att_weights_initialise(weights, 1));
    assert_true(att_weights_find(weights, "layer3.2.stretch.gamma") >= 0);
    CHECK(f->context, att_checkpoint_export(model, weights, path_in(f, "own.safetensors", path)));
    write_with(f, "own.safetensors", ".stretch.", ".STRETCH.", "maps.safetensors"); /* the other scope */
    path_in(f, "maps.safetensors", path);
    CHECK(f->context, att_network_open(f->context, path, NULL, &network));
    assert_string_equal(att_options_text(att_model_options(att_network_model(network)), "modules"),
                        "stretch2d:factor=0.5@after_branch:layer3:all");
    att_network_close(&network);
    att_weights_destroy(&weights);
    att_model_destroy(&model);
    att_options_set_text(&options, "modules", "stretch2d@after_attn");
    att_options_unset(&options, "img_size");
    assert_fails(f->context, att_model_create(f->context, "vit_tiny_patch16_224", &options, ATT_F32, &model),
                 ATT_ERR_ARGUMENT, "module \"stretch2d\" works on feature maps");
}

FIXTURE_TEST(a_registered_module_is_put_onto_plain_weights)
{
    att_model *model = NULL;
    att_weights *weights = NULL;
    att_tensors *file = NULL;
    att_new_head head;
    char path[160];
    add_module(f, &of_tokens);
    CHECK(f->context, att_checkpoint_export(f->model, f->weights, path_in(f, "plain.safetensors", path)));
    model_with(f, "stretch", &model, &weights);
    CHECK(f->context, att_tensors_open(f->context, path, &file));
    CHECK(f->context, att_model_load_pretrained(model, file, weights, &head));
    att_tensors_close(&file);
    att_weights_destroy(&weights);
    att_model_destroy(&model);
}

FIXTURE_TEST(a_module_that_fails_fails_the_network)
{
    static const struct {
        const att_module *module;
        att_status status;
        const char *message;
    } cases[] = {
        {&giving_up, ATT_ERR_UNSUPPORTED, "not in blocks.1.attn.none"},
        {&shortening, ATT_ERR_MISMATCH, "module \"shorten\" made [1, 16] of a branch [5, 16], and must keep the shape"},
        {&straying, ATT_ERR_MISMATCH,
         "module \"stray\" declared the parameter \"gamma\", and must declare all of them in"},
        {&nameless, ATT_ERR_MISMATCH, "module \"nameless\" has parameters, and its `parameter` must name one"},
        {&misnamed, ATT_ERR_MISMATCH, "module \"misnamed\" has parameters, and its `parameter` must name one"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        att_model *model = NULL;
        att_option_values options = tiny_options();
        char modules[64];
        snprintf(modules, sizeof modules, "%s@after_attn:1", cases[i].module->name);
        add_module(f, cases[i].module);
        att_options_set_text(&options, "modules", modules);
        assert_fails(f->context, att_model_create(f->context, "vit_tiny_patch16_224", &options, ATT_F32, &model),
                     cases[i].status, cases[i].message);
    }
}

/* Before other registrations, while the list has no room. */
FIXTURE_TEST(a_registration_without_memory_leaves_nothing)
{
    const int count = att_module_count(f->context);
    f->memory.left = 0;
    att_status status = att_module_register(f->context, &of_tokens);
    f->memory.left = -1;
    assert_int_equal(status, ATT_ERR_MEMORY);
    assert_int_equal(att_module_count(f->context), count);
    add_module(f, &of_tokens);
    assert_int_equal(att_module_count(f->context), count + 1);
}

/* --- what a module is told about its site ------------------------------------------------------------------------- */

/* The site of the last call of a module that changes nothing, and whether the branch is the sum of its identity and
 * another value. */
static att_module_site told;
static bool is_sum;

static att_value look(const att_scope *scope, const double *values, const att_module_site *site)
{
    (void)values;
    told = *site;
    is_sum = false;
    for (int i = 0; i < scope->graph->nodes.count; i++) {
        const att_node *node = &scope->graph->nodes.items[i];
        is_sum |= strcmp(node->op->name, "add") == 0 && node->out[0] == site->branch && node->in[0] == site->identity;
    }
    return site->branch;
}

static const att_module looking = {
    .name = "looking", .meaning = "x <- x", .scope = "looking", .places = ATT_ON_TOKENS | ATT_ON_HEADS, .apply = look};

static void look_from(fixture *f, const char *modules, bool class_token)
{
    att_option_values options = tiny_options();
    att_model *model = NULL;
    att_options_set_sides(&options, "img_size", SIDE, 2 * SIDE);
    att_options_set(&options, "class_token", class_token);
    att_options_set(&options, "qkv_bias", class_token);
    att_options_set_text(&options, "global_pool", "avg");
    att_options_set_text(&options, "modules", modules);
    CHECK(f->context, att_model_create(f->context, "vit_tiny_patch16_224", &options, ATT_F32, &model));
    att_model_destroy(&model);
}

FIXTURE_TEST(a_module_is_told_about_its_site)
{
    static const char *const inside[] = {"before_attn", "after_attn", "attn", "before_mlp", "mid_mlp", "after_mlp"},
                             *const on_stream[] = {"stream_after_attn", "stream_after_mlp"};
    char modules[64];
    add_module(f, &looking);
    for (size_t i = 0; i < 8; i++) {
        const bool stream = i >= 6;
        snprintf(modules, sizeof modules, "looking@%s:1", stream ? on_stream[i - 6] : inside[i]);
        look_from(f, modules, i % 2);
        assert_int_equal(told.prefix, i % 2);
        assert_int_equal(told.grid_h, 2);
        assert_int_equal(told.grid_w, 4);
        assert_int_equal(is_sum, stream);
        assert_true(told.identity != ATT_NONE && told.identity != told.branch && told.input == ATT_NONE);
    }
    for (int biased = 0; biased < 2; biased++) {
        look_from(f, "looking@heads:1", biased);
        assert_int_equal(told.heads, 2);
        assert_int_equal(told.qkv_bias, biased);
        assert_true(told.input != ATT_NONE && told.input != told.branch);
    }
}
