/* The EVA family: initial values, options, and identification of files. test_training.c compares losses and gradients
 * with PyTorch's, tools/versus_timm compares the logits of the named networks with timm's. */
#include "base/core/random.h"
#include "engine/graph/graph.h"
#include "networks/models/checkpoints.h"
#include "networks/models/family.h"
#include "sanitized.h"

static const char TINY[] = "eva02_tiny_patch14_224", MIXED[] = "vit_small_patch16_rope_mixed_ape_224",
                  DINOV3[] = "vit_small_patch16_dinov3_qkvb", SPATIAL[] = "vit_pe_spatial_tiny_patch16_512";

static bool has_parameter(const att_model *model, const char *name)
{
    const att_graph *graph = att_model_graph(model);
    for (int i = 0; i < att_graph_parameter_count(graph); i++)
        if (strcmp(att_graph_parameter_at(graph, i).name, name) == 0)
            return true;
    return false;
}

/* --- initial values ----------------------------------------------------------------------------------------------- */

static void starts_as(const att_model *model, const char *name, double value)
{
    const att_graph *graph = att_model_graph(model);
    for (int i = 0; i < att_graph_parameter_count(graph); i++)
        if (strcmp(att_graph_parameter_at(graph, i).name, name) == 0) {
            assert_int_equal(att_graph_parameter_at(graph, i).init.rule, ATT_INIT_TRUNC_NORMAL);
            assert_true(att_graph_parameter_at(graph, i).init.value == value);
            return;
        }
    fail_msg("there is no %s", name);
}

/* As timm's Eva: gates start as other layers, layers that end a branch smaller with depth. */
PLACE_TEST(layers_start_as_timms)
{
    att_option_values options = small();
    att_model *model = make(p, "eva02_base_patch14_448", &options);
    starts_as(model, "cls_token", 0.02);
    starts_as(model, "blocks.1.attn.q_proj.weight", 0.02);
    starts_as(model, "blocks.1.attn.proj.weight", 0.02 / 2);
    starts_as(model, "blocks.0.mlp.fc1_g.weight", 0.02);
    starts_as(model, "blocks.1.mlp.fc2.weight", 0.02 / 2);
    starts_as(model, "head.weight", 0.02 / 1000);
    assert_true(has_parameter(model, "blocks.0.attn.v_proj.bias"));
    assert_false(has_parameter(model, "blocks.0.attn.k_proj.bias"));
    att_model_destroy(&model);
}

enum { BLOCKS = 2, HEADS = 2, PAIRS = 8, BANDS = PAIRS / 2 };

/* Frequencies [2, blocks, heads, pairs] of heads of 16 channels: each head has an angle of its own, and its second
 * half is a quarter turn further than the first; temperature 10. */
PLACE_TEST(frequencies_start_as_timms)
{
    att_option_values options = small();
    att_model *model = make(p, MIXED, &options);
    att_weights *weights;
    float f[2][BLOCKS * HEADS][PAIRS];
    double angles[BLOCKS * HEADS];
    CHECK(p->context, att_weights_create(att_model_graph(model), "cpu", &weights));
    CHECK(p->context, att_weights_initialise(weights, 7));
    int index = 0;
    while (strcmp(att_weights_at(weights, index).name, "rope.freqs") != 0)
        index++;
    assert_false(att_weights_at(weights, index).decay);
    CHECK(p->context, att_weights_get(weights, -1, index, f, 2 * BLOCKS * HEADS * PAIRS));
    for (int h = 0; h < BLOCKS * HEADS; h++) {
        angles[h] = atan2(f[1][h][0], f[0][h][0]);
        for (int i = 0; i < BANDS; i++) {
            double size = pow(10, -i / (double)BANDS);
            assert_true(fabs(f[0][h][i] - size * cos(angles[h])) < 1e-6);
            assert_true(fabs(f[1][h][i] - size * sin(angles[h])) < 1e-6);
            assert_true(fabs(f[0][h][BANDS + i] + f[1][h][i]) < 1e-6);
            assert_true(fabs(f[1][h][BANDS + i] - f[0][h][i]) < 1e-6);
        }
        for (int other = 0; other < h; other++)
            assert_true(fabs(angles[h] - angles[other]) > 1e-3);
    }
    att_weights_destroy(&weights);
    att_model_destroy(&model);
}

PLACE_TEST(frequencies_of_other_shapes_are_refused)
{
    const att_shape wrong[] = {att_shape_of(2, 3, 4), att_shape_of(1, 3, 4, 8), att_shape_of(2, 3, 4, 7)};
    for (int i = 0; i < 4; i++) {
        att_graph *graph;
        const att_init init = {.rule = ATT_INIT_ROTARY, .value = i < 3 ? 10 : 0};
        CHECK(p->context, att_graph_create(p->context, ATT_F32, &graph));
        assert_int_equal(att_graph_parameter(graph, "f", i < 3 ? wrong[i] : att_shape_of(2, 3, 4, 8), init, false),
                         ATT_NONE);
        assert_int_equal(att_graph_status(graph), ATT_ERR_ARGUMENT);
        says(att_context_message(p->context), "\"f\": frequencies must have the shape [2, depth, heads, d / 2]");
        att_graph_destroy(&graph);
    }
}

/* --- options ------------------------------------------------------------------------------------------------------ */

static void cannot_be(const place *p, const char *name, const att_option_values *options, const char *words)
{
    att_model *model = NULL;
    if (att_model_create(p->context, name, options, ATT_F32, &model) == ATT_OK)
        fail_msg("%s was built, without \"%s\"", name, words);
    says(att_context_message(p->context), words);
}

PLACE_TEST(options_that_cannot_be_built_are_refused)
{
    att_option_values options = small();
    att_options_set(&options, "num_heads", 16);
    cannot_be(p, TINY, &options, "a multiple of 4; embed_dim 32 and num_heads 16 make 2");
    att_options_set(&options, "num_heads", 5);
    cannot_be(p, TINY, &options, "embed_dim 32 is not a multiple of num_heads 5");
    options = small(), att_options_set(&options, "rope_rotate_half", 1);
    cannot_be(p, MIXED, &options, "has no rope_rotate_half");
    options = small(), att_options_set_text(&options, "modules", "uniform_head:how=replace@heads:1");
    cannot_be(p, MIXED, &options, "in block 1 they replace a head");
    options = small(), att_options_set_sides(&options, "ref_feat_shape", 4, 0);
    cannot_be(p, TINY, &options, "ref_feat_shape 4 0 must have two sides, or none");
    options = small(), att_options_set(&options, "class_token", 0);
    cannot_be(p, MIXED, &options, "needs the class token");
    options = small(), att_options_set_text(&options, "block_fn", "ResPostBlock");
    cannot_be(p, DINOV3, &options, "has no LayerScale: init_values must be 0");
    options = small(), att_options_set(&options, "attn_pool_num_heads", 3);
    cannot_be(p, "vit_pe_core_tiny_patch16_384", &options, "not a multiple of attn_pool_num_heads 3");
}

/* --- files -------------------------------------------------------------------------------------------------------- */

/* Tensors of width 32 show the hidden channels that a ratio makes, not the ratio. */
static bool same_number(const char *key, double a, double b)
{
    return a == b || (strstr(key, "mlp_ratio") && (int)(32 * a) == (int)(32 * b));
}

static void is_same(const att_option_values *found, const att_option_values *expected)
{
    for (int i = 0; i < expected->count; i++) {
        const att_option_value *e = &expected->items[i], *f = att_options_find(found, e->key);
        if (!f || !same_number(e->key, f->numbers[0], e->numbers[0]) || strcmp(f->text, e->text) != 0)
            fail_msg("%s: found %g \"%s\", not %g \"%s\"", e->key, f ? f->numbers[0] : NAN, f ? f->text : "",
                     e->numbers[0], e->text);
    }
}

/* Files as timm writes them, of small networks: tensors and the name together give every option. */
PLACE_TEST(files_are_identified)
{
    static const char *const names[] = {
        "eva_giant_patch14_224",           "eva02_tiny_patch14_224",           "eva02_base_patch14_448",
        "eva02_base_patch16_clip_224",     "eva02_enormous_patch14_clip_224",  "vit_mediumd_patch16_rope_reg1_gap_256",
        "vit_pe_core_base_patch16_224",    "vit_pe_core_gigantic_patch14_448", "vit_pe_lang_large_patch14_448",
        "vit_pe_spatial_tiny_patch16_512", "vit_small_patch16_rope_224",       "vit_small_patch16_rope_mixed_ape_224",
        "vit_small_plus_patch16_dinov3",   "vit_small_patch16_dinov3_qkvb",    "vit_giant_patch16_lingbot"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        att_option_values options = small(), flags = att_options_none();
        att_identity found;
        att_options_set(&flags, "num_heads", 2), att_options_set(&flags, "img_size", 32);
        write_model(p, names[i], &options, false);
        CHECK(p->context, identify(p, names[i], &flags, &found));
        att_model *model = make(p, names[i], &options);
        const att_identity own = att_model_identity(model);
        is_same(&found.options, &own.options);
        load_and_destroy(p, model);
    }
}

PLACE_TEST(names_that_fit_are_listed)
{
    att_option_values options = att_options_none();
    write_model(p, DINOV3, &options, false);
    refused(p, NULL, ATT_ERR_NOT_FOUND, "its tensors fit vit_small_patch16_dinov3_qkvb, vit_small_patch16_lingbot");
    refused(p, "vit_small_patch16_224", ATT_ERR_MISMATCH, "they fit vit_small_patch16_dinov3_qkvb");
    write_model(p, SPATIAL, &options, false);
    refused(p, NULL, ATT_ERR_NOT_FOUND, "its tensors fit vit_pe_spatial_tiny_patch16_512");
    refused(p, "vit_tiny_patch16_224", ATT_ERR_MISMATCH, "they fit vit_pe_spatial_tiny_patch16_512");
    if (is_sanitized()) /* the networks below are large */
        return;
    write_model(p, "vit_tiny_patch16_224", &options, false);
    refused(p, SPATIAL, ATT_ERR_MISMATCH, "they fit vit_tiny_patch16_224");
    write_model(p, "beit_base_patch16_224", &options, false);
    refused(p, NULL, ATT_ERR_NOT_FOUND, "beit_base_patch16_224");
}

PLACE_TEST(what_tensors_do_not_show_is_asked_for)
{
    att_option_values options = small(), flags = att_options_none();
    att_identity found;
    att_options_set(&flags, "num_heads", 2), att_options_set(&flags, "img_size", 32);
    att_options_set_text(&options, "global_pool", "token");
    write_model(p, TINY, &options, false);
    assert_int_equal(identify(p, TINY, &flags, &found), ATT_ERR_UNSUPPORTED);
    says(att_context_message(p->context), "its last norm is \"norm\", that of eva02_tiny_patch14_224 is \"fc_norm\"");
    att_options_set_text(&flags, "global_pool", "token");
    CHECK(p->context, identify(p, TINY, &flags, &found));
    assert_int_equal(att_options_number(&found.options, "fc_norm", 1), 0);
    att_options_set_text(&flags, "rope_type", "mixed");
    assert_int_equal(identify(p, TINY, &flags, &found), ATT_ERR_MISMATCH);
    says(att_context_message(p->context), "there is no tensor \"rope.freqs\"");
    options = small();
    write_model(p, MIXED, &options, false);
    att_options_set_text(&flags, "rope_type", "cat");
    assert_int_equal(identify(p, MIXED, &flags, &found), ATT_ERR_MISMATCH);
    says(att_context_message(p->context), "rope_type is given as cat");
    att_options_unset(&flags, "rope_type"), att_options_unset(&flags, "num_heads");
    CHECK(p->context, identify(p, MIXED, &flags, &found)); /* frequencies show the heads */
    assert_int_equal(att_options_number(&found.options, "num_heads", 0), 2);
}

PLACE_TEST(relatives_are_refused)
{
    static const char *const strangers[][2] = {
        {"storage_tokens", "DINOv3 under its authors' names"},
        {"blocks.0.attn.inner_attn_ln.weight", "EVA under its authors' names"},
        {"blocks.0.attn.wq.weight", "Sapiens2"},
        {"blocks.0.ls1.gamma", "belongs to no network of the EVA family here"},
        {"blocks.0.attn.q_norm.weight", "normalised queries and keys"},
        {"norm.weight", "a norm before and after the pooling"},
    };
    att_option_values options = small();
    att_model *model = make(p, TINY, &options);
    for (size_t i = 0; i < sizeof strangers / sizeof *strangers; i++) {
        tensors t = tensors_of(model);
        add_tensor(&t, strangers[i][0], att_shape_of(32));
        write_tensors(p, &t, NULL);
        refused(p, TINY, ATT_ERR_UNSUPPORTED, strangers[i][1]);
    }
    att_model_destroy(&model);
}

/* Older timm wrote the tables of rotary positions; pretrained networks have a token for masked patches. */
PLACE_TEST(buffers_are_ignored)
{
    att_option_values options = small();
    att_model *model = make(p, TINY, &options);
    tensors t = tensors_of(model);
    add_tensor(&t, "rope.freqs_cos", att_shape_of(16, 16));
    add_tensor(&t, "blocks.0.attn.rope.freqs_sin", att_shape_of(16, 16));
    write_tensors(p, &t, NULL);
    load_and_destroy(p, model);
    options = att_options_none();
    att_options_set(&options, "num_heads", 2);
    CHECK(p->context, identify(p, TINY, &options, &(att_identity){0}));
}

PLACE_TEST(timms_arguments_are_read)
{
    att_option_values options = small();
    att_identity found;
    att_options_set(&options, "embed_class", 0), att_options_set(&options, "reg_tokens", 2);
    att_options_set_text(&options, "rope_type", "none"), att_options_set(&options, "fc_norm", 0);
    write_model(p, TINY, &options, false);
    write_beside(
        p, "config.json",
        "{\"architecture\": \"eva02_tiny_patch14_224\", \"num_classes\": 7, \"model_args\": {\"img_size\": 32, "
        "\"num_heads\": 2, \"no_embed_class\": true, \"num_reg_tokens\": 2, \"use_rot_pos_emb\": false, "
        "\"use_fc_norm\": false, \"global_pool\": \"avg\", \"swiglu_mlp\": true, \"rope_jitter_coords\": 2}}");
    CHECK(p->context, identify(p, NULL, NULL, &found));
    att_model *model = make(p, TINY, &options);
    const att_identity own = att_model_identity(model);
    is_same(&found.options, &own.options);
    att_model_destroy(&model);
    write_beside(p, "config.json",
                 "{\"architecture\": \"eva02_tiny_patch14_224\", \"model_args\": {\"num_kv_heads\": 1}}");
    refused(p, NULL, ATT_ERR_UNSUPPORTED, "made with num_kv_heads 1");
    write_beside(p, "config.json",
                 "{\"architecture\": \"eva02_tiny_patch14_224\", \"model_args\": {\"use_abs_pos_emb\": false}}");
    refused(p, NULL, ATT_ERR_MISMATCH, "pos_embed is given as none, but the tensors show learn");
}

/* The table of rotary positions, which is a constant of the graph. */
static uint64_t hash_of(const place *p, const char *name, const att_option_values *options)
{
    att_model *model = make(p, name, options);
    const att_graph *graph = att_model_graph(model);
    uint64_t hash = att_random_hash("");
    for (int i = 0; i < graph->constants.count; i++) {
        const att_desc *desc = &graph->values.items[graph->constants.items[i].value].desc;
        hash = att_random_hash_more(hash, graph->constants.items[i].data,
                                    (size_t)att_shape_count(desc->shape) * att_dtype_size(desc->dtype));
    }
    att_model_destroy(&model);
    return hash;
}

PLACE_TEST(rotary_positions_follow_their_options)
{
    att_option_values plain = small(), moved = small(), square = small(), oblong = small(), turned = small();
    att_options_set(&moved, "rope_grid_offset", 0.5);
    att_options_set_sides(&square, "ref_feat_shape", 4, 4);
    att_options_set_sides(&oblong, "ref_feat_shape", 4, 8);
    att_options_set_sides(&turned, "ref_feat_shape", 8, 4);
    assert_true(hash_of(p, TINY, &plain) != hash_of(p, TINY, &moved));
    assert_true(hash_of(p, MIXED, &plain) == hash_of(p, MIXED, &moved)); /* timm's has no offset */
    assert_true(hash_of(p, TINY, &square) != hash_of(p, TINY, &oblong));
    assert_true(hash_of(p, TINY, &turned) != hash_of(p, TINY, &oblong));
}

PLACE_TEST(a_single_block_drops_no_path)
{
    att_option_values options = small();
    att_options_set(&options, "depth", 1), att_options_set(&options, "drop_path_rate", 0.2);
    att_model *model = make(p, TINY, &options);
    for (int i = 0; i < att_model_graph(model)->nodes.count; i++)
        assert_string_not_equal(att_model_graph(model)->nodes.items[i].op->name, "drop_path");
    att_model_destroy(&model);
}

/* Rotary positions are computed for any grid; a position embedding is resampled. */
PLACE_TEST(files_fit_other_images)
{
    static const char *const names[] = {"eva02_tiny_patch14_224", "vit_small_patch16_rope_mixed_ape_224",
                                        "vit_small_patch16_dinov3_qkvb", "vit_pe_core_base_patch16_224"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        att_option_values options = small();
        write_model(p, names[i], &options, false);
        att_options_set_sides(&options, "img_size", 48, 24);
        load_and_destroy(p, make(p, names[i], &options));
    }
}

/* From attscope's metadata, and from tensors alone. */
PLACE_TEST(modules_are_found_again)
{
    static const char *const all[] = {"cb_s",
                                      "cb_s@after_attn:1",
                                      "cb_s@attn:0",
                                      "cb_s@mid_mlp:1",
                                      "uniform_head:how=replace@heads:0",
                                      "uniform_head:how=compensate@heads:1"};
    static const char *const names[] = {"eva02_tiny_patch14_224", "eva02_base_patch16_clip_224"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (int way = 0; way < 4; way++) {
            att_option_values options = small(), flags = att_options_none();
            att_identity found;
            att_options_set(&flags, "num_heads", 2);
            att_options_set_text(&options, "modules", all[i]);
            write_model(p, names[way / 2], &options, way % 2);
            CHECK(p->context, identify(p, names[way / 2], &flags, &found));
            assert_string_equal(att_options_text(&found.options, "modules"), all[i]);
        }
}
