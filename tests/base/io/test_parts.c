/* Parts of files of several networks, and names of wrappers. */
#include "base/io/safetensors_file.h"
#include "base/io/tensors.h"
#include "base/io/torch_file.h"

/* Appends key: {names[i]: <tensor>, ...}. A name is written into the dictionary `inner`, unless that is NULL. */
static void put_network(bytes *object, const char *key, const char *inner, const char *const *names)
{
    text(object, key);
    ops(object, "}");
    if (inner) {
        text(object, inner);
        ops(object, "}");
    }
    for (; *names; names++) {
        text(object, *names);
        tensor(object, &plain);
        ops(object, "s");
    }
    ops(object, inner ? "ss" : "s");
}

/* {"state_dict" or another key of the first network, the second one, an optimiser} */
static void write_networks(scratch *self, const char *first, const char *second)
{
    static const char *const one[] = {"module.a", "module.b", NULL}, *const two[] = {"module.a", NULL},
                             *const state[] = {"0", NULL};
    bytes *object = calloc(1, sizeof *object);
    ops(object, "}");
    put_network(object, first, NULL, one);
    put_network(object, second, NULL, two);
    text(object, "opt");
    ops(object, "}");
    put_network(object, "state", NULL, state);
    text(object, "param_groups");
    ops(object, "]ss");
    write_old(self, object, &plain_storage, 1);
    free(object);
}

static att_status open_part(const scratch *self, const char *part, att_tensors **file)
{
    char path[512];
    snprintf(path, sizeof path, "%s#%s", self->path, part);
    return att_tensors_open(self->context, path, file);
}

static void opens(const scratch *self, const char *part, int count, const char *origin)
{
    att_tensors *file = NULL;
    CHECK(self->context, open_part(self, part, &file));
    assert_int_equal(att_tensors_count(file), count);
    assert_true(att_tensors_find(file, "a") >= 0);
    assert_string_equal(att_tensors_path(file), self->path);
    assert_string_equal(att_tensors_origin(file), origin);
    att_tensors_close(&file);
}

SCRATCH_TEST(several_networks_are_listed_and_a_part_chooses)
{
    write_networks(self, "encoder", "target_encoder");
    refused(self, ATT_ERR_FORMAT, "of several networks, or of parts of one: encoder, target_encoder; choose");
    opens(self, "encoder", 2, "PyTorch's encoder without the prefix module.");
    opens(self, "encoder.module", 2, "PyTorch's encoder.module");
    opens(self, "target_encoder", 1, "PyTorch's target_encoder without the prefix module.");
}

SCRATCH_TEST(a_network_that_is_not_read_is_named)
{
    write_networks(self, "student", "teacher");
    att_tensors *file = open_path(self, self->path);
    assert_int_equal(att_tensors_count(file), 1); /* the teacher */
    assert_non_null(strstr(att_tensors_skipped(file), "the network student, which \""));
    att_tensors_close(&file);
    opens(self, "student", 2, "PyTorch's student without the prefix module.");
}

SCRATCH_TEST(averaged_weights_are_known_by_their_key)
{
    static const char *const keys[] = {"state_dict_ema", "model_ema", "ema_model",
                                       "ema_state_dict", "ema",       "params_ema"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        write_networks(self, "model", keys[i]);
        att_tensors *file = open_path(self, self->path);
        assert_true(att_tensors_has_average(file));
        assert_int_equal(att_tensors_count(file), 3);
        assert_true(att_tensors_find(file, "ema.a") >= 0);
        att_tensors_close(&file);
    }
}

SCRATCH_TEST(unknown_parts_are_refused)
{
    static const char *const parts[] = {"", "enc", "encoder.modul", "encoder.module.a", "encoder.", "encoder.c"};
    write_networks(self, "encoder", "target_encoder");
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        att_tensors *file = NULL;
        assert_fails(self->context, open_part(self, parts[i], &file), ATT_ERR_NOT_FOUND,
                     "no tensor's name begins with");
        assert_null(file);
    }
}

SCRATCH_TEST(the_refusal_of_a_part_lists_those_beside_it)
{
    att_tensors *file = NULL;
    write_networks(self, "encoder", "target_encoder");
    assert_fails(self->context, open_part(self, "enc", &file), ATT_ERR_NOT_FOUND,
                 "begins with \"enc.\"; expected one of these parts: encoder, target_encoder, opt");
    assert_fails(self->context, open_part(self, "encoder.modul", &file), ATT_ERR_NOT_FOUND,
                 "expected one of these parts: encoder.module");
    assert_fails(self->context, open_part(self, "encoder.module.c", &file), ATT_ERR_NOT_FOUND, "the file has no parts");
}

/* A tensor or two beside the only network are no part of it, as the prototypes of MSN. */
SCRATCH_TEST(the_only_network_needs_no_name)
{
    static const char *const one[] = {"module.a", "module.b", NULL};
    bytes *object = calloc(1, sizeof *object);
    ops(object, "}");
    put_network(object, "target_encoder", NULL, one);
    text(object, "prototypes");
    tensor(object, &plain);
    ops(object, "s");
    text(object, "step");
    tensor(object, &plain);
    ops(object, "s");
    write_old(self, object, &plain_storage, 1);
    att_tensors *file = open_path(self, self->path);
    assert_int_equal(att_tensors_count(file), 2);
    assert_true(att_tensors_find(file, "b") >= 0);
    assert_string_equal(att_tensors_origin(file),
                        "PyTorch's target_encoder without the prefix module.; left out: prototypes, step");
    att_tensors_close(&file);
    text(object, "third"); /* with more tensors beside it, the dictionary is a part of the network */
    tensor(object, &plain);
    ops(object, "s");
    write_old(self, object, &plain_storage, 1);
    file = open_path(self, self->path);
    assert_int_equal(att_tensors_count(file), 5);
    assert_true(att_tensors_find(file, "target_encoder.a") >= 0);
    att_tensors_close(&file);
    free(object);
}

/* Names in the file and what becomes of them; NULL: skipped. */
SCRATCH_TEST(parts_that_only_a_pretraining_has_are_skipped)
{
    static const struct {
        const char *in_file[4], *names[4];
    } all[] = {
        {{"module.encoder.conv1.w", "module.encoder.fc.0.weight", "module.predictor.0.weight"},
         {"conv1.w"}},                                                                                    /* SimSiam */
        {{"module.conv1.w", "module.projection_head.0.weight", "module.prototypes.weight"}, {"conv1.w"}}, /* SwAV */
        {{"module.backbone.conv1.w", "module.projector.0.weight", "module.bn.running_mean"},
         {"conv1.w"}}, /* Barlow T. */
        {{"module.norm.w", "module.fc.fc1.weight", "module.fc.bn1.bias", "module.fc.fc3.bias"}, {"norm.w"}}, /* MSN */
        {{"norm.w", "fc.fc1.weight", "fc.fc2.bias"}, {"norm.w", "fc.fc1.weight", "fc.fc2.bias"}},
        {{"visual.trunk.norm.w", "text.a", "logit_scale", "visual.head.proj.weight"}, {"norm.w"}}, /* open_clip */
        {{"blocks.0.w", "mask_token", "decoder_blocks.0.w", "lm_head.weight"}, {"blocks.0.w"}},    /* MAE, BEiT */
        {{"module.net.a", "module.net.b", "module.net.c", "module.bn.weight"}, {"a", "b", "c", "bn.weight"}},
        {{"encoder.a", "encoder.b", "encoder.c", "predictor.0.w"},
         {"encoder.a", "encoder.b", "encoder.c", "predictor.0.w"}},
        {{"encoder.layer.0.w", "encoder.fc.weight"}, {"encoder.layer.0.w", "encoder.fc.weight"}},
        {{"conv1.w", "projector.0.weight", "text.a"}, {"conv1.w", "projector.0.weight", "text.a"}},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char header[1024] = "{";
        int count = 0, kept = 0;
        for (; count < 4 && all[i].in_file[count]; count++)
            snprintf(header + strlen(header), sizeof header - strlen(header),
                     "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[%d,%d]}", count ? "," : "",
                     all[i].in_file[count], 4 * count, 4 * count + 4);
        strcat(header, "}");
        write_file(self, header, (size_t)(4 * count));
        att_tensors *file = open_path(self, self->path);
        for (; kept < 4 && all[i].names[kept]; kept++)
            if (att_tensors_find(file, all[i].names[kept]) < 0)
                fail_msg("%s: there is no %s", all[i].in_file[0], all[i].names[kept]);
        assert_int_equal(att_tensors_count(file), kept);
        att_tensors_close(&file);
    }
}

static const char shared[] =
    "{\"student.a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
    "\"teacher.module.a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}";

enum { EACH = 4 }; /* tensors of a network */

/* Writes a file in which the names of each network begin with its key; `beside` is a tensor of none, or NULL. */
static void write_flat(scratch *self, const char *const *keys, const char *beside)
{
    char header[2048] = "{";
    int count = 0;
    for (; *keys; keys++)
        for (int i = 0; i < EACH; i++, count++)
            snprintf(header + strlen(header), sizeof header - strlen(header),
                     "%s\"%s.%c\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[%d,%d]}", count ? "," : "", *keys,
                     'a' + i, 4 * count, 4 * count + 4);
    if (beside)
        snprintf(header + strlen(header), sizeof header - strlen(header),
                 ",\"%s\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[%d,%d]}", beside, 4 * count,
                 4 * count + 4);
    count += beside != NULL;
    strcat(header, "}");
    write_file(self, header, (size_t)(4 * count));
}

/* As if each network had a dictionary of its own, in any order. */
SCRATCH_TEST(names_may_begin_with_the_keys_of_several_networks)
{
    static const struct {
        const char *keys[4], *beside, *origin, *skipped;
        int count;
        bool averaged;
    } all[] = {
        {{"student", "teacher"},
         NULL,
         "without the prefix teacher.",
         "the network student, which \"%s#student\" reads",
         EACH,
         false},
        {{"teacher.module", "student.module"},
         NULL,
         "without the prefix teacher. and the prefix module.",
         "the network student, which \"%s#student\" reads",
         EACH,
         false},
        {{"ema", "model"},
         NULL,
         "without the prefix model.; averaged weights without the prefix ema.",
         "",
         2 * EACH,
         true},
        {{"model.module", "model_ema.module"},
         "criterion.w",
         "without the prefix model. and the prefix module.; averaged weights without the prefix model_ema. and the "
         "prefix "
         "module.",
         "criterion*",
         2 * EACH,
         true},
        {{"model", "ema_model", "teacher"},
         NULL,
         "without the prefix model.; averaged weights without the prefix ema_model.",
         "the network teacher, which \"%s#teacher\" reads",
         2 * EACH,
         true},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char skipped[512];
        write_flat(self, all[i].keys, all[i].beside);
        att_tensors *file = open_path(self, self->path);
        assert_int_equal(att_tensors_count(file), all[i].count);
        assert_true(att_tensors_find(file, "a") >= 0);
        assert_true(att_tensors_has_average(file) == all[i].averaged);
        assert_true((att_tensors_find(file, "ema.d") >= 0) == all[i].averaged);
        assert_string_equal(att_tensors_origin(file), all[i].origin);
        snprintf(skipped, sizeof skipped, all[i].skipped, self->path);
        assert_string_equal(att_tensors_skipped(file), skipped);
        att_tensors_close(&file);
    }
}

/* CompVis' averages have names without dots. They are no average of these tensors. */
SCRATCH_TEST(tensors_of_other_names_are_no_average)
{
    static const char header[] =
        "{\"model.a.a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
        "\"model.a.b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]},"
        "\"model.a.c\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[8,12]},"
        "\"model.a.d\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[12,16]},"
        "\"ema.aa\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[16,20]},"
        "\"ema.ab\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[20,24]},"
        "\"ema.ac\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[24,28]},"
        "\"ema.ad\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[28,32]}}";
    write_file(self, header, 32);
    att_tensors *file = open_path(self, self->path);
    assert_int_equal(att_tensors_count(file), 4);
    assert_false(att_tensors_has_average(file));
    assert_string_equal(att_tensors_skipped(file), "ema.* (4)");
    att_tensors_close(&file);
}

/* Writes a file of matrices of one element with these names. */
static void write_matrices(scratch *self, const char *const *names)
{
    char header[1024] = "{";
    int count = 0;
    for (; names[count]; count++)
        snprintf(header + strlen(header), sizeof header - strlen(header),
                 "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[1,1],\"data_offsets\":[%d,%d]}", count ? "," : "",
                 names[count], 4 * count, 4 * count + 4);
    strcat(header, "}");
    write_file(self, header, (size_t)(4 * count));
}

/* A classifier of one linear layer has timm's name, whatever the program calls it; other classifiers keep theirs. */
SCRATCH_TEST(the_only_layer_of_a_classifier_has_timms_name)
{
    static const struct {
        const char *names[5], *expected;
    } all[] = {
        {{"layer1.0.conv1.weight", "fc.1.weight", "fc.1.bias"}, "fc.weight"},
        {{"layer1.0.conv1.weight", "classifier.weight"}, "fc.weight"},
        {{"patch_embed.proj.weight", "head.0.weight"}, "head.weight"},
        {{"backbone.patch_embed.proj.weight", "backbone.a", "backbone.b", "classifier.weight"}, "head.weight"},
        {{"patch_embed.proj.weight", "head.0.weight", "head.2.weight"}, "head.0.weight"},
        {{"patch_embed.proj.weight", "fc.weight", "head.weight"}, "fc.weight"},
        {{"patch_embed.proj.weight", "layers.0.a", "head.weight"}, "head.weight"},
        {{"a", "fc.1.weight"}, "fc.1.weight"},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        write_matrices(self, all[i].names);
        att_tensors *file = open_path(self, self->path);
        if (att_tensors_find(file, all[i].expected) < 0)
            fail_msg("%s: there is no %s", all[i].names[1], all[i].expected);
        att_tensors_close(&file);
    }
}

SCRATCH_TEST(parts_of_safetensors_are_read)
{
    write_file(self, shared, 8);
    opens(self, "student", 1, "");
    opens(self, "teacher", 1, "without the prefix module.");
    opens(self, "teacher.module", 1, "");
    att_tensors *file = NULL;
    assert_fails(self->context, open_part(self, "stud", &file), ATT_ERR_NOT_FOUND, "no tensor's name begins with");
}

SCRATCH_TEST(a_file_of_the_whole_name_has_precedence)
{
    char name[512];
    write_file(self, shared, 8);
    snprintf(name, sizeof name, "%s#student", self->path);
    assert_int_equal(att_tensors_path_length(name), strlen(self->path));
    assert_true(att_tensors_exist(name));
    assert_int_equal(rename(self->path, name), 0);
    assert_int_equal(att_tensors_path_length(name), strlen(name));
    assert_true(att_tensors_exist(name));
    att_tensors *file = open_path(self, name);
    assert_int_equal(att_tensors_count(file), 2);
    att_tensors_close(&file);
    snprintf(name, sizeof name, "%s#other", self->path);
    assert_false(att_tensors_exist(name));
    assert_int_equal(att_tensors_path_length("a#b/c"), 5); /* a part has no slash */
}

/* Each name is that of the only tensor of a file. */
/* A program's own name for the network in it; nearly all names begin with it. */
SCRATCH_TEST(a_programs_own_prefix_is_removed)
{
    static const struct {
        const char *prefix, *origin;
    } all[] = {{"vit.", "PyTorch's tensors without the prefix vit."},
               {"model.my_net.", "PyTorch's tensors without the prefix model.my_net."},
               {"0.", "PyTorch's tensors without the prefix 0."},
               {"visual.", "PyTorch's tensors"}, /* CLIP's */
               {"", "PyTorch's tensors"}};
    static const char *const names[] = {"patch_embed.proj.weight", "a", "b", "c"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        bytes *object = calloc(1, sizeof *object);
        assert_non_null(object);
        ops(object, "}");
        for (int n = 0; n < 4; n++) {
            char name[64];
            snprintf(name, sizeof name, "%s%s", all[i].prefix, names[n]);
            text(object, name);
            tensor(object, &plain);
            ops(object, "s");
        }
        text(object, "beside"); /* one of five may lack it */
        tensor(object, &plain);
        ops(object, "s");
        write_old(self, object, &plain_storage, 1);
        free(object);
        att_tensors *file = open_path(self, self->path);
        const bool kept = strstr(all[i].origin, "prefix") == NULL;
        const char *first = att_tensors_at(file, 0).name;
        assert_true(strcmp(first + (kept ? strlen(all[i].prefix) : 0), names[0]) == 0);
        assert_memory_equal(att_tensors_origin(file), all[i].origin, strlen(all[i].origin));
        assert_true(att_tensors_find(file, "beside") >= 0);
        att_tensors_close(&file);
    }
}

SCRATCH_TEST(a_file_of_an_optimiser_alone_is_refused)
{
    static const char *const state[] = {"0", NULL};
    for (int nested = 0; nested < 2; nested++) {
        bytes *object = calloc(1, sizeof *object);
        assert_non_null(object);
        ops(object, "}");
        if (nested) {
            text(object, "epoch");
            integer(object, 3);
            ops(object, "s");
            text(object, "optimizer");
            ops(object, "}");
        }
        put_network(object, "state", NULL, state);
        text(object, "param_groups");
        ops(object, nested ? "]ss" : "]s");
        write_old(self, object, &plain_storage, 1);
        free(object);
        refused(self, ATT_ERR_FORMAT, "the state of an optimiser, without the weights of a network");
    }
}

SCRATCH_TEST(names_of_wrappers_are_removed)
{
    static const struct {
        const char *in_file, *name, *origin;
    } all[] = {
        {"_fsdp_wrapped_module.w", "w", "without the names of wrappers"},
        {"blocks.0._fsdp_wrapped_module._checkpoint_wrapped_module.attn.w", "blocks.0.attn.w",
         "without the names of wrappers"},
        {"module._orig_mod.layer1._orig_mod.w", "layer1.w",
         "without the names of wrappers and the prefix module._orig_mod."},
        {"model.module.w", "w", "without the names of wrappers and the prefix model."},
        {"stages.0.cpe.module.w", "stages.0.cpe.module.w", ""}, /* a part of a network (iFormer) */
        {"layer1.attention_module.w", "layer1.attention_module.w", ""},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char header[256];
        snprintf(header, sizeof header, "{\"%s\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
                 all[i].in_file);
        write_file(self, header, 4);
        att_tensors *file = open_path(self, self->path);
        assert_string_equal(att_tensors_at(file, 0).name, all[i].name);
        assert_string_equal(att_tensors_origin(file), all[i].origin);
        att_tensors_close(&file);
    }
}
