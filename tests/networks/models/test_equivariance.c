/* Attention without positions does not depend on the order of the tokens; attention by relative positions follows a
 * shift of the image. Both are tested on the mean over the tokens, which a permutation or a shift must not change. */
#include "context.h"
#include "networks/models/net.h"

SHARED_CONTEXT(threads, 0)

enum { SIDE = 28, PATCH = 4, GRID = SIDE / PATCH, PIXELS = SIDE * SIDE, CLASSES = 10 };

static att_option_values small(void)
{
    att_option_values options = att_options_none();
    att_options_set(&options, "img_size", SIDE), att_options_set(&options, "patch_size", PATCH);
    att_options_set(&options, "in_chans", 1), att_options_set(&options, "num_classes", CLASSES);
    att_options_set(&options, "embed_dim", 18), att_options_set(&options, "depth", 2);
    att_options_set(&options, "num_heads", 9);
    return options;
}

/* A network whose parameters follow from the formula. sharpness: of isotropic heads around the pixels of a 3 x 3
 * kernel; 0: as it is. */
typedef struct variant {
    const char *name;
    const att_option_values *options;
    double sharpness;
} variant;

static void set_heads(att_weights *weights, double sharpness)
{
    double centers[18], sharp[9];
    for (int h = 0; h < 9; h++)
        centers[2 * h] = h / 3 - 1, centers[2 * h + 1] = h % 3 - 1, sharp[h] = sharpness;
    for (int block = 0; block < 2; block++) {
        char name[64];
        snprintf(name, sizeof name, "blocks.%d.attn.centers", block);
        must(att_weights_set(weights, -1, att_weights_find(weights, name), centers, 18));
        snprintf(name, sizeof name, "blocks.%d.attn.sharpness", block);
        must(att_weights_set(weights, -1, att_weights_find(weights, name), sharp, 9));
    }
}

static void run(const variant *v, const double *image, double logits[CLASSES])
{
    net n = net_create(context, v->name, v->options);
    formula_fill(context, att_model_graph(n.model), n.weights);
    if (v->sharpness > 0)
        set_heads(n.weights, v->sharpness);
    net_run(&n, image, logits);
    net_destroy(&n);
}

/* The largest difference of the logits for two images, relative to the largest logit. */
static double difference(const variant *v, const double *first, const double *second)
{
    double a[CLASSES], b[CLASSES], most = 0, away = 0;
    run(v, first, a);
    run(v, second, b);
    for (int i = 0; i < CLASSES; i++) {
        most = fmax(most, fabs(a[i]));
        away = fmax(away, fabs(a[i] - b[i]));
    }
    return away / most;
}

/* Moves patch i to place 10 i mod 49, so that all patches but the first have other neighbours. */
static void permute(const double *image, double *permuted)
{
    for (int pixel = 0; pixel < PIXELS; pixel++) {
        const int y = pixel / SIDE, x = pixel % SIDE, to = (y / PATCH * GRID + x / PATCH) * 10 % (GRID * GRID);
        permuted[(to / GRID * PATCH + y % PATCH) * SIDE + to % GRID * PATCH + x % PATCH] = image[pixel];
    }
}

TEST(without_positions_the_order_of_patches_does_not_matter)
{
    att_option_values options = small();
    double image[PIXELS], permuted[PIXELS];
    att_options_set(&options, "num_heads", 3);
    att_options_set(&options, "class_token", 0), att_options_set_text(&options, "global_pool", "avg");
    const variant with = {"vit_tiny_patch16_224", &options, 0};
    for (uint32_t i = 0; i < PIXELS; i++)
        image[i] = 4 * formula("image", i);
    permute(image, permuted);
    assert_true(difference(&with, image, permuted) > 1e-4);
    att_options_set_text(&options, "pos_embed", "none");
    assert_true(difference(&with, image, permuted) < 1e-12); /* measured: 2e-16 */
}

/* A square of 6 x 6 pixels on zeros, from (y, x) on. */
static void draw(int y, int x, double *image)
{
    memset(image, 0, PIXELS * sizeof *image);
    for (uint32_t i = 0; i < 36; i++)
        image[(y + (int)i / 6) * SIDE + x + (int)i % 6] = 4 * formula("image", i);
}

/* The square is farther from the border than the two layers reach. The tokens around it are all equal, so that heads
 * which would attend outside the grid find the same values inside. */
TEST(heads_by_shift_follow_a_shift_by_patches)
{
    const att_option_values options = small();
    const variant sharp = {"attention_cnn_isotropic", &options, 10}, soft = {"attention_cnn_isotropic", &options, 0.3};
    double image[PIXELS], moved[PIXELS], between[PIXELS];
    draw(8, 8, image);
    draw(8 + PATCH, 8 + PATCH, moved);
    draw(8, 9, between);
    assert_true(difference(&sharp, image, moved) < 1e-12); /* measured: 3e-16 */
    assert_true(difference(&sharp, image, between) > 1e-4);
    assert_true(difference(&soft, image, moved) > 1e-6); /* wide heads see the border */
}
