/* att_network against the same results from the other headers' functions. */
#include "study/network/fixture.h"
#include "study/network/network.h"
#include "study/train/inference.h"

static void count_line(void *user, const char *text)
{
    assert_true(strlen(text) > 0);
    ++*(int *)user;
}

FIXTURE_TEST(a_file_a_folder_and_a_name_are_opened)
{
    char path[160], folder[160];
    att_network *network = open_network(f, export(f, path));
    assert_string_equal(att_network_path(network), path);
    assert_string_equal(att_network_identity(network)->name, "vit_tiny_patch16_224");
    assert_non_null(att_network_file(network));
    assert_false(att_network_is_averaged(network));
    att_network_close(&network);
    assert_null(network);

    path_to(f, "best", folder);
    assert_int_equal(mkdir(folder, 0777), 0);
    is_refused(f, folder, "is a folder without weights; expected model_best.safetensors, last.safetensors");
    char pickle[200];
    snprintf(pickle, sizeof pickle, "%s/data.pkl", folder);
    assert_int_equal(link(path, pickle), 0);
    is_refused(f, folder, "is the content of a PyTorch checkpoint that was unpacked; pack it again");
    assert_int_equal(unlink(pickle), 0);
    char last[200], best[200], exported[200];
    snprintf(last, sizeof last, "%s/last.safetensors", folder);
    snprintf(best, sizeof best, "%s/model_best.safetensors", folder);
    snprintf(exported, sizeof exported, "%s/model.safetensors", folder);
    assert_int_equal(mkdir(best, 0777), 0);
    is_refused(f, folder, "is a folder without weights");
    assert_int_equal(symlink("blobs/missing", exported), 0);
    is_refused(f, folder, "model.safetensors is a symbolic link to a file that does not exist; restore that file");
    is_refused(f, exported, "model.safetensors is a symbolic link to a file that does not exist; restore that file");
    assert_int_equal(unlink(exported), 0);
    assert_int_equal(att_network_find_file(f->context, folder, last, sizeof last), ATT_ERR_NOT_FOUND);
    assert_string_equal(last, "");
    snprintf(last, sizeof last, "%s/last.safetensors", folder);
    assert_int_equal(link(path, exported), 0);
    network = open_network(f, folder); /* a folder is not a weights file, whatever its name */
    assert_string_equal(att_network_path(network), exported);
    att_network_close(&network);
    assert_fails(f->context, att_network_find_file(f->context, folder, exported, strlen(folder) + 4), ATT_ERR_ARGUMENT,
                 "is too small for a path of");
    assert_string_equal(exported, "");
    assert_fails(f->context, att_network_find_file(f->context, path, exported, 3), ATT_ERR_ARGUMENT,
                 "the buffer of 3 bytes is too small for a path of");
    assert_string_equal(exported, "");
    assert_int_equal(att_network_find_file(f->context, path, exported, 0), ATT_ERR_ARGUMENT);
    assert_int_equal(att_network_find_file(f->context, path, NULL, 0), ATT_ERR_ARGUMENT);
    assert_int_equal(rmdir(best), 0);
    assert_int_equal(link(path, last), 0);
    network = open_network(f, folder);
    assert_string_equal(att_network_path(network), last);
    att_network_close(&network);
    assert_int_equal(link(path, best), 0);
    network = open_network(f, folder);
    assert_string_equal(att_network_path(network), best);
    att_network_close(&network);

    network = open_network(f, "resnet18");
    assert_null(att_network_path(network));
    assert_null(att_network_file(network));
    assert_null(att_network_class_name(network, 0));
    att_network_close(&network);
    att_network_options averaged = att_network_options_defaults();
    averaged.averaged = true;
    assert_fails(f->context, att_network_open(f->context, "resnet18", &averaged, &network), ATT_ERR_NOT_FOUND,
                 "resnet18 is the name of a network, whose random weights have no moving average");
    assert_int_equal(att_network_wrap(f->model, f->weights, &averaged, &network), ATT_OK);
    assert_false(att_network_is_averaged(network)); /* of no file */
    att_network_close(&network);
    is_refused(f, "", "the name of the checkpoint is empty; expected a file");
    is_refused(f, "vit_tiny_patch16_225", "vit_tiny_patch16_225 is neither a file nor a folder; as a network's name:");
}

static void fill_pixels(float *pixels, size_t count, uint32_t noise)
{
    for (size_t i = 0; i < count; i++) {
        noise = noise * 1664525 + 1013904223;
        pixels[i] = (float)(noise >> 8) / (1 << 24) - 0.5F;
    }
}

/* Compares with a model created for this image size, with the weights of the file. */
static void expect_logits(const fixture *f, const char *path, int height, int width, const float *pixels,
                          float logits[CLASSES])
{
    att_option_values options = tiny_options();
    att_model *model;
    att_weights *weights;
    att_tensors *file;
    att_plan *plan;
    att_session *session;
    att_plan_options infer = att_plan_options_defaults();
    att_options_set_sides(&options, "img_size", height, width);
    assert_int_equal(att_model_create(f->context, "vit_tiny_patch16_224", &options, ATT_F32, &model), ATT_OK);
    assert_int_equal(att_weights_create(att_model_graph(model), "cpu", &weights), ATT_OK);
    assert_int_equal(att_tensors_open(f->context, path, &file), ATT_OK);
    assert_int_equal(att_model_load(model, file, weights), ATT_OK);
    assert_int_equal(att_plan_compile(att_model_graph(model), &infer, &plan), ATT_OK);
    assert_int_equal(att_session_create(plan, weights, 1, &session), ATT_OK);
    assert_int_equal(att_session_bind(session, "image", pixels), ATT_OK);
    assert_int_equal(att_session_run(session, 1), ATT_OK);
    assert_int_equal(att_session_output(session, "logits", 0, 1, logits), ATT_OK);
    att_session_destroy(&session);
    att_plan_destroy(&plan);
    att_tensors_close(&file);
    att_weights_destroy(&weights);
    att_model_destroy(&model);
}

static void link_into(const char *file, const char *folder, const char *name, char path[300])
{
    snprintf(path, 300, "%s/%s", folder, name);
    assert_int_equal(link(file, path), 0);
}

static void is_found(fixture *f, const char *folder, const char *expected)
{
    char found[300];
    assert_int_equal(att_network_find_file(f->context, folder, found, sizeof found), ATT_OK);
    assert_string_equal(found, expected);
}

/* Folders of Lightning, Accelerate and the transformers library's Trainer, whose files have names of their own. */
FIXTURE_TEST(the_only_checkpoint_in_a_folder_is_opened)
{
    char path[160], logs[160], version[200], checkpoints[240], one[300], other[300], index[300];
    export(f, path);
    path_to(f, "lightning_logs", logs);
    snprintf(version, sizeof version, "%s/version_0", logs);
    snprintf(checkpoints, sizeof checkpoints, "%s/checkpoints", version);
    assert_int_equal(mkdir(logs, 0777), 0);
    assert_int_equal(mkdir(version, 0777), 0);
    assert_int_equal(mkdir(checkpoints, 0777), 0);
    is_refused(f, logs, "checkpoints is a folder without weights");
    link_into(path, checkpoints, "optimizer.pt", index); /* states of the training are no candidates */
    link_into(path, version, "hparams.yaml", other);
    link_into(path, checkpoints, "epoch=3-step=40.ckpt", one);
    is_found(f, checkpoints, one);
    is_found(f, version, one);
    is_found(f, logs, one);
    att_network *network = open_network(f, logs);
    assert_string_equal(att_network_path(network), one);
    att_network_close(&network);
    link_into(path, checkpoints, "epoch=12-step=90.ckpt", other);
    is_refused(f, logs, "checkpoints holds several checkpoints: epoch=12-step=90.ckpt, epoch=3-step=40.ckpt; name one");
    for (int i = 0; i < 8; i++) {
        char name[16];
        snprintf(name, sizeof name, "%d.ckpt", i);
        link_into(path, checkpoints, name, other);
    }
    is_refused(f, logs,
               "several checkpoints: 0.ckpt, 1.ckpt, 2.ckpt, 3.ckpt, 4.ckpt, 5.ckpt, 6.ckpt, 7.ckpt, ...; name");
}

FIXTURE_TEST(parts_of_weights_are_not_taken_for_all)
{
    char path[160], folder[160], one[300], two[300];
    export(f, path);
    path_to(f, "sharded", folder);
    assert_int_equal(mkdir(folder, 0777), 0);
    link_into(path, folder, "model-00001-of-00002.safetensors", one);
    is_refused(f, folder, "holds parts of weights, such as model-00001-of-00002.safetensors, and lacks their index");
    is_refused(f, one, "has one of several parts of the weights; name its folder, or the index");
    assert_int_equal(unlink(one), 0);
    link_into(path, folder, "model-00001-of-00001.safetensors", two);
    is_found(f, folder, two);
    is_found(f, two, two);
}

/* The folder of a training with DeepSpeed names its newest checkpoint. */
FIXTURE_TEST(folders_of_other_programs_are_opened)
{
    char path[160], folder[160], step[200], name[256];
    export(f, path);
    path_to(f, "run", folder);
    snprintf(step, sizeof step, "%s/global_step7", folder);
    assert_int_equal(mkdir(folder, 0777), 0);
    assert_int_equal(mkdir(step, 0777), 0);
    snprintf(name, sizeof name, "%s/latest", folder);
    FILE *latest = fopen(name, "w");
    assert_non_null(latest);
    fputs("global_step7\n", latest);
    fclose(latest);
    is_refused(f, folder, "global_step7 is a folder without weights");
    snprintf(name, sizeof name, "%s/mp_rank_00_model_states.pt", step);
    assert_int_equal(link(path, name), 0);
    att_network *network = open_network(f, folder);
    assert_string_equal(att_network_path(network), name);
    att_network_close(&network);
    assert_int_equal(unlink(name), 0);
    snprintf(name, sizeof name, "%s/zero_pp_rank_0_mp_rank_00_model_states.pt", step);
    assert_int_equal(link(path, name), 0);
    is_refused(f, folder, "holds DeepSpeed's parts of the weights");
    is_refused(f, step, "make one file of them with zero_to_fp32.py");
    assert_int_equal(unlink(name), 0);
    snprintf(name, sizeof name, "%s/open_clip_model.safetensors", step);
    assert_int_equal(link(path, name), 0);
    network = open_network(f, step);
    assert_string_equal(att_network_path(network), name);
    att_network_close(&network);
    assert_int_equal(unlink(name), 0);
    snprintf(name, sizeof name, "%s/.metadata", step);
    assert_int_equal(link(path, name), 0);
    char found[300];
    assert_int_equal(att_network_find_file(f->context, step, found, sizeof found), ATT_OK);
    assert_string_equal(found, name);
    assert_int_equal(unlink(name), 0);
    snprintf(name, sizeof name, "%s/latest", folder);
    latest = fopen(name, "w");
    assert_non_null(latest);
    fputs("../elsewhere", latest);
    fclose(latest);
    is_refused(f, folder, "expected the name of a folder beside it");
    assert_int_equal(unlink(name), 0);
    assert_int_equal(rmdir(step), 0);
    assert_int_equal(rmdir(folder), 0);
}

FIXTURE_TEST(images_of_every_size_are_answered)
{
    static const int sides[][2] = {{8, 8}, {16, 8}, {8, 20}, {12, 12}, {4, 4}, {16, 16}, {16, 4}, {4, 16}, {8, 8}};
    char path[160];
    att_network *network = open_network(f, export(f, path));
    for (size_t i = 0; i < sizeof sides / sizeof *sides; i++) {
        enum { COUNT = 3 };
        float pixels[COUNT * 400], expected[CLASSES];
        int height = sides[i][0], width = sides[i][1];
        size_t each = (size_t)height * (size_t)width;
        att_batch answers;
        fill_pixels(pixels, COUNT * each, 7);
        assert_int_equal(run_pixels(network, pixels, 1, height, width, &answers), ATT_OK);
        CHECK(f->context, run_pixels(network, pixels, COUNT, height, width, &answers));
        const float *logits = att_batch_field(&answers, "logits");
        for (int image = 0; image < COUNT; image++) {
            expect_logits(f, path, height, width, pixels + (size_t)image * each, expected);
            for (int c = 0; c < CLASSES; c++)
                assert_float_equal(logits[image * CLASSES + c], expected[c], 1e-6); /* measured: 0 */
        }
    }
    att_batch answers;
    float pixel = 0;
    assert_fails(f->context, run_pixels(network, &pixel, 1, 3, 8, &answers), ATT_ERR_ARGUMENT, "3");
    assert_int_equal(run_pixels(network, &pixel, 0, 8, 8, &answers), ATT_ERR_ARGUMENT);
    att_network_close(&network);
}

/* Without allocating memory. */
FIXTURE_TEST(plans_of_the_last_sizes_are_kept)
{
    static const int widths[] = {8, 12, 16};
    char path[160];
    float pixels[SIDE * 16] = {0};
    att_network *network = open_network(f, export(f, path));
    att_batch answers;
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 3; i++)
            assert_int_equal(run_pixels(network, pixels, 1, SIDE, widths[i], &answers), ATT_OK);
        f->memory.left = 0;
    }
    f->memory.left = -1;
    att_network_close(&network);
}

/* The last plan is kept even if it needs more memory than all of them may. */
FIXTURE_TEST(plans_of_other_sizes_give_way_to_memory)
{
    static const int widths[] = {8, 12, 16, 8};
    char path[160];
    float pixels[SIDE * 16] = {0};
    att_network *network = open_network(f, export(f, path));
    att_batch answers;
    assert_true(network->views.most_bytes > 1 << 20);
    network->views.most_bytes = 1;
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        assert_int_equal(run_pixels(network, pixels, 1, SIDE, widths[i], &answers), ATT_OK);
        assert_int_equal(network->views.count, 1);
    }
    network->views.most_bytes = SIZE_MAX;
    for (int width = 8; width <= 32; width += 4)
        assert_int_equal(run_pixels(network, (float[SIDE * 32]){0}, 1, SIDE, width, &answers), ATT_OK);
    assert_int_equal(network->views.count, 7);
    att_network_close(&network);
}

/* If the caller's options name no backend, the default one is used. */
FIXTURE_TEST(an_open_backend_is_the_default)
{
    char path[160];
    float pixels[SIDE * SIDE] = {0};
    const att_network_options how = {.seed = 1};
    att_network *network, *wrapped;
    att_batch answers;
    assert_int_equal(att_network_open(f->context, export(f, path), &how, &network), ATT_OK);
    assert_int_equal(run_pixels(network, pixels, 1, SIDE, SIDE, &answers), ATT_OK);
    assert_int_equal(att_network_wrap(f->model, f->weights, &how, &wrapped), ATT_OK);
    att_network_close(&wrapped);
    att_network_close(&network);
}

FIXTURE_TEST(a_network_for_one_image_size_refuses_others)
{
    att_option_values options = att_options_none();
    att_options_set(&options, "img_size", 16);
    att_options_set(&options, "patch_size", 8);
    att_options_set(&options, "embed_dim", 8);
    att_options_set(&options, "depth", 1);
    att_network_options how = att_network_options_defaults();
    how.options = &options;
    att_network *network;
    att_batch answers;
    float *pixels = calloc(3 * 32 * 32, sizeof *pixels);
    assert_int_equal(att_network_open(f->context, "mixer_s16_224", &how, &network), ATT_OK);
    assert_int_equal(run_pixels(network, pixels, 1, 16, 16, &answers), ATT_OK);
    assert_fails(f->context, run_pixels(network, pixels, 1, 32, 32, &answers), ATT_ERR_UNSUPPORTED,
                 "is made for \"image\" (16 x 16 pixels, 3 channels); this network takes no other shapes");
    att_network_close(&network);
    att_options_set_sides(&options, "img_size", 16, 24);
    assert_int_equal(att_network_open(f->context, "mixer_s16_224", &how, &network), ATT_OK);
    assert_fails(f->context, run_pixels(network, pixels, 1, 32, 32, &answers), ATT_ERR_UNSUPPORTED,
                 "is made for \"image\" (16 x 24 pixels, 3 channels); this network takes no other shapes");
    att_network_close(&network);
    free(pixels);
}

FIXTURE_TEST(features_and_maps_are_answered)
{
    enum { TOKENS = 5, WIDTH = 16, HEADS = 2 };
    char path[160];
    float pixels[2 * SIDE * SIDE];
    att_batch answers;
    att_network *network = open_network(f, export(f, path));
    fill_pixels(pixels, 2 * SIDE * SIDE, 3);
    assert_int_equal(att_network_select_outputs(network, "features, tokens ,blocks.*.attn.map,\n blocks.1.attn.stats"),
                     ATT_OK);
    assert_int_equal(run_pixels(network, pixels, 2, SIDE, SIDE, &answers), ATT_OK);
    assert_int_equal(answers.field_count, 5);
    assert_null(att_batch_field(&answers, "logits"));
    assert_fails(f->context, att_network_describe(network, &answers, NULL, count_line, NULL), ATT_ERR_MISMATCH,
                 "do not include those that the task \"classification\" needs to show a prediction");
    assert_non_null(att_batch_field(&answers, "tokens"));
    const float *features = att_batch_field(&answers, "features");
    float weight[CLASSES * WIDTH], bias[CLASSES], logits[CLASSES];
    att_weights_get(f->weights, -1, att_weights_find(f->weights, "head.weight"), weight, CLASSES * WIDTH);
    att_weights_get(f->weights, -1, att_weights_find(f->weights, "head.bias"), bias, CLASSES);
    expect_logits(f, path, SIDE, SIDE, pixels + SIDE * SIDE, logits);
    for (int c = 0; c < CLASSES; c++) {
        float sum = bias[c];
        for (int i = 0; i < WIDTH; i++)
            sum += weight[c * WIDTH + i] * features[WIDTH + i];
        assert_float_equal(sum, logits[c], 1e-6); /* measured: 2e-9 */
    }
    const float *map = att_batch_field(&answers, "blocks.0.attn.map");
    for (int row = 0; row < 2 * HEADS * TOKENS; row++) {
        double sum = 0;
        for (int j = 0; j < TOKENS; j++)
            sum += (double)map[row * TOKENS + j];
        assert_true(fabs(sum - 1) < 1e-5); /* measured: 1e-7 */
    }
    assert_int_equal(att_network_select_outputs(network, "logits,logit?,blocks.0.attn.map,blocks.*.attn.map"), ATT_OK);
    assert_int_equal(run_pixels(network, pixels, 1, SIDE, SIDE, &answers), ATT_OK);
    assert_int_equal(answers.field_count, 3); /* named twice, returned once */
    assert_fails(f->context, att_network_select_outputs(network, "logits,stage3"), ATT_ERR_NOT_FOUND,
                 "the network has no output \"stage3\"; it has logits, features, tokens, stage1, stage2; for attention "
                 "nodes such as blocks.0.attn: .map, .stats, .summary");
    assert_int_equal(run_pixels(network, pixels, 1, SIDE, SIDE, &answers), ATT_OK);
    assert_int_equal(answers.field_count, 3);
    assert_int_equal(att_network_select_outputs(network, NULL), ATT_OK);
    assert_int_equal(run_pixels(network, pixels, 1, SIDE, SIDE, &answers), ATT_OK);
    assert_int_equal(answers.field_count, 1);
    assert_non_null(att_batch_field(&answers, "logits"));
    att_network_close(&network);
}

static att_shape shape_of(const att_batch *answers, const char *name)
{
    int i = 0;
    while (strcmp(answers->fields[i].name, name) != 0)
        i++;
    return answers->fields[i].shape;
}

/* The network has two blocks, whose results are its stages. Asking for them changes no bit of the logits. */
FIXTURE_TEST(blocks_are_stages)
{
    enum { GRID = 2, WIDTH = 16, MAP = GRID * GRID * WIDTH, TOKENS = MAP + WIDTH };
    char path[160];
    float pixels[2 * SIDE * SIDE], logits[2 * CLASSES];
    att_batch answers;
    att_network *network = open_network(f, export(f, path));
    fill_pixels(pixels, 2 * SIDE * SIDE, 3);
    CHECK(f->context, run_pixels(network, pixels, 2, SIDE, SIDE, &answers));
    memcpy(logits, att_batch_field(&answers, "logits"), sizeof logits);
    CHECK(f->context, att_network_select_outputs(network, "logits,tokens,stage1,stage2"));
    CHECK(f->context, run_pixels(network, pixels, 2, SIDE, SIDE, &answers));
    assert_true(att_shape_equal(shape_of(&answers, "stage1"), att_shape_of(GRID, GRID, WIDTH)));
    assert_memory_equal(att_batch_field(&answers, "logits"), logits, sizeof logits);
    const float *tokens = att_batch_field(&answers, "tokens"), *first = att_batch_field(&answers, "stage1"),
                *last = att_batch_field(&answers, "stage2");
    for (int i = 0; i < 2; i++) {
        assert_memory_equal(last + i * MAP, tokens + i * TOKENS + WIDTH, MAP * sizeof *last);
        assert_memory_not_equal(first + i * MAP, last + i * MAP, MAP * sizeof *last);
    }
    att_network_close(&network);
}

FIXTURE_TEST(decoded_images_are_made_ready)
{
    char path[160];
    att_network *network = open_network(f, export(f, path));
    att_image images[2];
    att_batch answers, answer;
    att_network *wrapped;
    const att_transform_options transform = att_network_transform(network);
    for (int i = 0; i < 2; i++)
        assert_int_equal(att_dataset_read(f->eval, f->context, i, 1, &images[i]), ATT_OK);
    assert_int_equal(att_network_run_images(network, images, 2, &answers), ATT_OK);
    const float *logits = att_batch_field(&answers, "logits");
    assert_int_equal(att_network_wrap(f->model, f->weights, NULL, &wrapped), ATT_OK);
    for (int i = 0; i < 2; i++) {
        float pixels[SIDE * SIDE];
        assert_int_equal(att_transform_image(f->context, &transform, &images[i], 0, 0, 0, pixels), ATT_OK);
        assert_int_equal(run_pixels(wrapped, pixels, 1, SIDE, SIDE, &answer), ATT_OK);
        const float *expected = att_batch_field(&answer, "logits");
        for (int c = 0; c < CLASSES; c++)
            assert_float_equal(logits[i * CLASSES + c], expected[c], 1e-6); /* measured: 0 */
        att_image_free(f->context, &images[i]);
    }
    assert_int_equal(att_network_run_file(network, "none.png", &answers), ATT_ERR_NOT_FOUND);

    size_t used = 0;
    write_picture(path_to(f, "picture.png", path));
    for (int i = 0; i < 3; i++) {
        assert_int_equal(att_network_run_file(network, path, &answers), ATT_OK);
        used = i == 0 ? att_context_allocations(f->context).bytes_now : used;
    }
    assert_int_equal(att_context_allocations(f->context).bytes_now, used); /* decoded images are freed */
    att_network_close(&wrapped);
    att_network_close(&network);
}

FIXTURE_TEST(planes_are_interleaved)
{
    enum { CHANNELS = 3, COUNT = 5, HEIGHT = 8, WIDTH = 12, POINTS = HEIGHT * WIDTH };
    float pixels[COUNT][POINTS][CHANNELS], planes[COUNT][CHANNELS][POINTS], wanted[COUNT][CLASSES];
    const float *images[COUNT];
    att_option_values options = tiny_options();
    const att_network_options how = {.options = &options, .seed = 1};
    att_network *network = NULL;
    att_batch answers;
    att_options_set(&options, "in_chans", CHANNELS);
    assert_int_equal(att_network_open(f->context, "vit_tiny_patch16_224", &how, &network), ATT_OK);
    fill_pixels(&pixels[0][0][0], COUNT * POINTS * CHANNELS, 5);
    for (int i = 0; i < COUNT; i++) {
        images[i] = &planes[i][0][0];
        for (int p = 0; p < POINTS; p++)
            for (int c = 0; c < CHANNELS; c++)
                planes[i][c][p] = pixels[i][p][c];
    }
    assert_int_equal(run_pixels(network, &pixels[0][0][0], COUNT, HEIGHT, WIDTH, &answers), ATT_OK);
    memcpy(wanted, att_batch_field(&answers, "logits"), sizeof wanted);
    assert_int_equal(att_network_run_planes(network, images, COUNT, HEIGHT, WIDTH, &answers), ATT_OK);
    assert_memory_equal(att_batch_field(&answers, "logits"), wanted, sizeof wanted);
    assert_int_equal(att_network_run_planes(network, images, 1, HEIGHT, WIDTH, &answers), ATT_OK);
    const float *alone = att_batch_field(&answers, "logits");
    for (int c = 0; c < CLASSES; c++) /* the rounding of a product depends on its rows; measured: 3e-8 */
        assert_true(fabsf(alone[c] - wanted[0][c]) <= 1e-6f);
    assert_int_equal(att_network_run_planes(network, images, 0, HEIGHT, WIDTH, &answers), ATT_ERR_ARGUMENT);
    assert_int_equal(att_network_run_planes(network, images, 1, -1, WIDTH, &answers), ATT_ERR_ARGUMENT);
    assert_int_equal(att_network_run_planes(network, NULL, 1, HEIGHT, WIDTH, &answers), ATT_ERR_ARGUMENT);
    images[1] = NULL;
    assert_int_equal(att_network_run_planes(network, images, 2, HEIGHT, WIDTH, &answers), ATT_ERR_ARGUMENT);
    att_network_close(&network);
}

FIXTURE_TEST(a_data_set_is_evaluated_and_measured)
{
    char path[160];
    att_network *network = open_network(f, export(f, path));
    att_evaluation plain, observed, own;
    att_measure *measure = NULL;
    assert_int_equal(att_network_evaluate(network, f->eval, NULL, &plain), ATT_OK);
    const att_transform_options transform = att_network_transform(network);
    assert_int_equal(att_evaluate(f->model, f->weights, f->eval, &transform, NULL, &own), ATT_OK);
    assert_int_equal(plain.count, EVAL_IMAGES);
    assert_float_equal(plain.metrics[LOSS], own.metrics[LOSS], 1e-9); /* measured: 0 */
    for (int twice = 0; twice < 2; twice++) {
        const char *with = twice ? "nsi" : "entropy";
        att_evaluate_options options = att_evaluate_options_defaults();
        assert_int_equal(att_network_observe(network, with, "*", &measure), ATT_OK);
        options.measure = measure;
        assert_int_equal(att_network_evaluate(network, f->eval, &options, &observed), ATT_OK);
        assert_float_equal(observed.metrics[LOSS], own.metrics[LOSS], 1e-9); /* measured: 0 */
        assert_int_equal(att_measure_instrument_count(measure), 1);
        assert_string_equal(att_measure_instrument_at(measure, 0).name, with);
        assert_int_equal(att_measure_at(measure, 0).count, EVAL_IMAGES);
        assert_int_equal(att_network_evaluate(network, f->eval, &options, NULL), ATT_OK);
        assert_int_equal(att_measure_at(measure, 0).count, 2 * EVAL_IMAGES); /* evaluations add up */
        att_measure_destroy(&measure);
    }
    assert_int_equal(att_network_observe(network, "none", "*", &measure), ATT_ERR_NOT_FOUND);
    assert_null(measure);
    att_network_close(&network);
}

/* A wrapped network answers with the present weights, also those that it resampled for another image size. */
FIXTURE_TEST(changed_weights_are_resampled)
{
    enum { LARGE = 2 * SIDE };
    char path[160];
    float pixels[LARGE * LARGE], before[CLASSES], expected[CLASSES], bias[CLASSES], embedding[5 * 16];
    const int head = att_weights_find(f->weights, "head.bias"), position = att_weights_find(f->weights, "pos_embed");
    att_network *network = NULL;
    att_batch answers;
    fill_pixels(pixels, LARGE * LARGE, 5);
    assert_int_equal(att_network_wrap(f->model, f->weights, NULL, &network), ATT_OK);
    assert_int_equal(run_pixels(network, pixels, 1, LARGE, LARGE, &answers), ATT_OK);
    memcpy(before, att_batch_field(&answers, "logits"), sizeof before);
    assert_int_equal(att_weights_get(f->weights, -1, head, bias, CLASSES), ATT_OK);
    assert_int_equal(att_weights_get(f->weights, -1, position, embedding, 5 * 16), ATT_OK);
    bias[0] += 1;
    for (int i = 0; i < 5 * 16; i++)
        embedding[i] = (float)(i % 7) - 3;
    assert_int_equal(att_weights_set(f->weights, -1, head, bias, CLASSES), ATT_OK);
    assert_int_equal(att_weights_set(f->weights, -1, position, embedding, 5 * 16), ATT_OK);
    assert_int_equal(run_pixels(network, pixels, 1, LARGE, LARGE, &answers), ATT_OK);
    const float *logits = att_batch_field(&answers, "logits");
    assert_true(fabsf(logits[1] - before[1]) > 1e-3F);
    expect_logits(f, export(f, path), LARGE, LARGE, pixels, expected);
    for (int c = 0; c < CLASSES; c++)
        assert_float_equal(logits[c], expected[c], 1e-6); /* measured: 0 */
    att_network_close(&network);
}

typedef struct seen_times {
    int rows, linear, attention;
    bool ordered; /* no operation of block 0 after one of block 1 */
    double seconds;
} seen_times;

static void see_time(void *user, const char *scope, const char *op, const char *kernel, double seconds)
{
    seen_times *seen = user;
    assert_non_null(kernel);
    assert_true(seconds >= 0);
    if (strncmp(scope, "blocks.0", 8) == 0 && seen->attention == 2)
        seen->ordered = false;
    seen->rows++;
    seen->linear += strcmp(op, "linear") == 0;
    seen->attention += strcmp(op, "attention") == 0;
    seen->seconds += seconds;
}

FIXTURE_TEST(operations_are_timed)
{
    char path[160];
    att_network *network = open_network(f, export(f, path));
    seen_times seen = {.ordered = true};
    assert_int_equal(att_network_time(network, 0, see_time, &seen), ATT_ERR_ARGUMENT);
    assert_int_equal(seen.rows, 0);
    assert_int_equal(att_network_time(network, 3, see_time, &seen), ATT_OK);
    assert_int_equal(seen.attention, 2);          /* once each, however often the network runs */
    assert_int_equal(seen.linear, 1 + 2 * 4 + 1); /* patch embedding, blocks, head */
    assert_true(seen.ordered && seen.seconds > 0);
    att_network_close(&network);
}

FIXTURE_TEST(preprocessing_can_be_set)
{
    char path[160];
    att_network *network = open_network(f, export(f, path));
    att_preprocess look = att_network_identity(network)->preprocess;
    look.crop_pct = 0.5;
    look.mean[0] = 0.25;
    assert_int_equal(att_network_set_preprocess(network, &look), ATT_OK);
    assert_true(att_network_transform(network).crop_pct == 0.5);
    assert_true(att_network_transform(network).mean[0] == 0.25);
    look.width = 2 * SIDE;
    assert_fails(f->context, att_network_set_preprocess(network, &look), ATT_ERR_MISMATCH,
                 "takes images of 8 x 8 pixels with 1 channels, not 8 x 16 with 1");
    const att_preprocess own = att_network_identity(network)->preprocess;
    for (int i = 0; i < 8; i++) {
        static const char *const messages[] = {
            "std",
            "std",
            "mean",
            "crop_pct",
            "crop_pct",
            "crop_mode is \"middle\", expected center, floor, squash, border, keep",
            "the preprocessing's crop_mode is \"centerxx\"",
            "the preprocessing's interpolation is \"\", expected bicubic, bilinear, nearest"};
        look = own;
        look.std[0] = i == 0 ? 0 : i == 1 ? (double)NAN : look.std[0];
        look.mean[0] = i == 2 ? (double)INFINITY : look.mean[0];
        look.crop_pct = i == 3 ? 0 : i == 4 ? (double)NAN : look.crop_pct;
        if (i == 5 || i == 6)
            memcpy(look.crop_mode, i == 5 ? "middle\0" : "centerxx", sizeof look.crop_mode);
        if (i == 7)
            look.interpolation[0] = '\0';
        assert_fails(f->context, att_network_set_preprocess(network, &look), ATT_ERR_ARGUMENT, messages[i]);
    }
    assert_memory_equal(&att_network_identity(network)->preprocess, &own, sizeof own);
    att_network_close(&network);
}

/* Fails each allocation of opening and running; nothing stays allocated. */
FIXTURE_TEST(failures_leave_nothing_behind)
{
    char path[160];
    export(f, path);
    lack of = lack_of_memory(f->context, &f->memory);
    while (lack_again(&of)) {
        att_network *network = NULL;
        att_batch answers;
        float pixels[2 * SIDE * SIDE] = {0};
        of.status = att_network_open(f->context, path, NULL, &network);
        if (of.status == ATT_OK)
            of.status = att_network_select_outputs(network, "logits,blocks.0.attn.map");
        if (of.status == ATT_OK) {
            of.status = run_pixels(network, pixels, 1, 2 * SIDE, SIDE, &answers);
            f->memory.left = -1; /* a failure leaves no unusable plan */
            assert_int_equal(run_pixels(network, pixels, 1, 2 * SIDE, SIDE, &answers), ATT_OK);
        }
        att_network_close(&network);
    }
}

/* Labels are indices of the logits: one outside them would read other memory. */
FIXTURE_TEST(a_label_without_a_class_is_refused)
{
    att_network *network;
    att_measure *measure = NULL;
    assert_int_equal(att_network_wrap(f->model, f->weights, NULL, &network), ATT_OK);
    const att_preprocess *p = &att_network_identity(network)->preprocess;
    float *pixels = calloc((size_t)2 * p->in_chans * p->height * p->width, sizeof *pixels);
    assert_non_null(pixels);
    one_input input;
    const att_batch *inputs = images_of(network, pixels, 2, p->height, p->width, &input);
    assert_int_equal(att_network_observe(network, "accuracy", NULL, &measure), ATT_OK);
    const int32_t classes = att_model_classes(f->model), wrong[] = {-1, classes, INT32_MAX};
    for (int i = 0; i < 3; i++) {
        const int32_t labels[] = {0, wrong[i]};
        assert_fails(f->context, att_network_measure(network, measure, inputs, labels), ATT_ERR_ARGUMENT,
                     "the label of image 1 is ");
        assert_int_equal(att_measure_at(measure, 0).count, 0);
    }
    const int32_t labels[] = {0, classes - 1};
    assert_int_equal(att_network_measure(network, measure, inputs, labels), ATT_OK);
    assert_int_equal(att_measure_at(measure, 0).count, 2);
    free(pixels);
    att_measure_destroy(&measure);
    att_network_close(&network);
}

/* Without labels, an instrument that needs them is refused if it is named, and skipped if "all" or a '?' selects it. */
FIXTURE_TEST(a_named_instrument_does_not_go_without_labels)
{
    static const struct {
        const char *with, *message; /* NULL: measured */
    } cases[] = {
        {"accuracy", "accuracy needs the classes of the images: give them as labels, one for each image"},
        {"entropy,accuracy", "accuracy needs"},
        {"all,block_pruning", "block_pruning needs"},
        {"entropy,accuracy?", NULL},
        {NULL, NULL},
    };
    att_network *network;
    assert_int_equal(att_network_wrap(f->model, f->weights, NULL, &network), ATT_OK);
    const att_preprocess *p = &att_network_identity(network)->preprocess;
    float *pixels = calloc((size_t)p->in_chans * p->height * p->width, sizeof *pixels);
    assert_non_null(pixels);
    one_input input;
    const att_batch *inputs = images_of(network, pixels, 1, p->height, p->width, &input);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        att_measure *measure = NULL;
        int count;
        assert_int_equal(att_network_observe(network, cases[i].with, NULL, &measure), ATT_OK);
        assert_int_equal(att_network_measure(network, measure, inputs, NULL),
                         cases[i].message ? ATT_ERR_ARGUMENT : ATT_OK);
        if (cases[i].message)
            assert_message_has(f, cases[i].message);
        const att_measurement *found = att_measure_observed(measure, &count);
        assert_int_equal(count > 0, !cases[i].message);
        for (int k = 0; k < count; k++)
            assert_string_not_equal(found[k].instrument, "accuracy");
        att_measure_destroy(&measure);
    }
    free(pixels);
    att_network_close(&network);
}

/* The probes in the network are those of the last measure. */
FIXTURE_TEST(a_measure_of_before_the_last_is_refused)
{
    att_network *network;
    att_measure *first = NULL, *last = NULL;
    att_evaluate_options options = att_evaluate_options_defaults();
    assert_int_equal(att_network_wrap(f->model, f->weights, NULL, &network), ATT_OK);
    assert_int_equal(att_network_observe(network, "entropy", NULL, &first), ATT_OK);
    assert_int_equal(att_network_observe(network, NULL, NULL, &last), ATT_OK);
    assert_true(att_measure_instrument_count(last) > 1);
    options.measure = first;
    assert_fails(f->context, att_network_evaluate(network, f->eval, &options, NULL), ATT_ERR_ARGUMENT,
                 "are not those that the last call of att_network_observe() made for this network");
    options.measure = last;
    assert_int_equal(att_network_evaluate(network, f->eval, &options, NULL), ATT_OK);
    assert_null(att_measure_at(last, -1).instrument);
    assert_null(att_measure_at(last, att_measure_count(last)).instrument);
    assert_null(att_measure_instrument_at(last, -1).name);
    assert_null(att_measure_instrument_at(last, att_measure_instrument_count(last)).name);
    att_measure_destroy(&last);
    att_measure_destroy(&first);
    att_network_close(&network);
}

FIXTURE_TEST(null_is_refused_or_has_a_meaning)
{
    char path[160], own[ATT_IDENTITY_DESCRIPTION], same[ATT_IDENTITY_DESCRIPTION];
    const char *const none[] = {"picture.png", NULL};
    float pixels[SIDE * SIDE] = {0};
    int lines = 0;
    att_batch answers;
    att_dataset *dataset;
    is_refused(f, NULL, "the file, folder or name of a network is missing: the pointer is NULL");
    assert_int_equal(att_network_find_file(f->context, NULL, path, sizeof path), ATT_ERR_ARGUMENT);
    assert_null(att_model_family_of(NULL).name);
    assert_null(att_model_at(-1).name);
    assert_null(att_model_at(att_model_count()).name);
    assert_null(att_task_at(f->context, -1).name);
    assert_null(att_task_at(f->context, att_task_count(f->context)).name);
    assert_null(att_instrument_at(f->context, -1).name);
    assert_null(att_instrument_at(f->context, att_instrument_count(f->context)).name);
    att_identity found;
    assert_int_equal(att_model_identify(f->context, NULL, NULL, NULL, NULL, &found), ATT_ERR_ARGUMENT);
    assert_int_equal(att_model_load(f->model, NULL, f->weights), ATT_ERR_ARGUMENT);
    assert_int_equal(att_model_load_pretrained(f->model, NULL, f->weights, NULL), ATT_ERR_ARGUMENT);
    att_network *network = open_network(f, export(f, path));
    assert_int_equal(att_network_name_classes(network, NULL), ATT_ERR_ARGUMENT);
    assert_int_equal(att_network_set_preprocess(network, NULL), ATT_ERR_ARGUMENT);
    assert_int_equal(att_network_evaluate(network, NULL, NULL, NULL), ATT_ERR_ARGUMENT);
    assert_int_equal(att_network_open_dataset(network, NULL, 1, NULL, &dataset), ATT_ERR_ARGUMENT);
    assert_int_equal(att_network_open_dataset(network, none, 0, NULL, &dataset), ATT_ERR_ARGUMENT);
    assert_int_equal(att_network_compare_classes(network, NULL, true), ATT_ERR_ARGUMENT);
    assert_int_equal(run_pixels(network, NULL, 1, SIDE, SIDE, &answers), ATT_ERR_ARGUMENT);
    assert_int_equal(att_network_run_images(network, NULL, 1, &answers), ATT_ERR_ARGUMENT);
    assert_int_equal(att_network_run_file(network, NULL, &answers), ATT_ERR_ARGUMENT);
    assert_fails(f->context, att_network_run_files(network, none, 2, &answers), ATT_ERR_ARGUMENT,
                 "the path of an image is missing");
    assert_null(att_network_class_names(network, NULL));
    const att_identity *identity = att_network_identity(network);
    att_identity_describe(f->context, identity, &identity->preprocess, own);
    assert_string_equal(att_identity_describe(f->context, identity, NULL, same), own);
    assert_int_equal(run_pixels(network, pixels, 1, SIDE, SIDE, &answers), ATT_OK);
    assert_int_equal(att_network_describe(network, &answers, NULL, count_line, &lines), ATT_OK);
    assert_int_equal(lines, CLASSES);
    assert_int_equal(att_network_describe(network, NULL, NULL, count_line, &lines), ATT_ERR_ARGUMENT);
    assert_fails(f->context, att_network_describe(network, &answers, NULL, NULL, &lines), ATT_ERR_ARGUMENT,
                 "the function for the lines of a prediction is missing");
    assert_fails(f->context, att_network_write(network, &answers, NULL, NULL), ATT_ERR_ARGUMENT,
                 "the writer of a prediction is missing");
    att_network_close(&network);
}

static void note_random(void *user, att_log_level level, const char *line)
{
    bool *said = user;
    (void)level;
    *said |= strcmp(line,
                    "random weights: vit_tiny_patch16_224 is the name of a network, not a file; seed 42 "
                    "initialises them") == 0;
}

FIXTURE_TEST(random_weights_are_logged)
{
    bool said = false;
    char path[160];
    const att_option_values tiny = tiny_options();
    att_network_options options = att_network_options_defaults();
    att_settings settings = att_settings_defaults();
    att_context *context;
    att_network *network = NULL;
    settings.log = note_random;
    settings.log_user = &said;
    assert_int_equal(att_context_create(&settings, &context), ATT_OK);
    assert_int_equal(att_network_open(context, export(f, path), NULL, &network), ATT_OK);
    assert_false(said);
    att_network_close(&network);
    options.options = &tiny;
    assert_int_equal(att_network_open(context, "vit_tiny_patch16_224", &options, &network), ATT_OK);
    assert_true(said);
    att_network_close(&network);
    att_context_destroy(&context);
}
