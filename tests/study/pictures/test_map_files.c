/* Files of maps: names, values, means, refusals. tests/python/test_relevance.py tests the pictures and their formats.
 */
#include <attscope/map_files.h>

#include <dirent.h>
#include <unistd.h>

#include "study/networks.h"

enum { SIDE = 28, PIXELS = SIDE * SIDE * 3, GRID = 28 };

static const option vit[] = {{"embed_dim", NULL, 32}, {"depth", NULL, 2}, {"num_heads", NULL, 2}, {NULL, NULL, 0}};

static att_network *open_vit(void)
{
    return open_small("vit_tiny_patch16_224", SIDE, 7, 4, vit, att_network_options_defaults());
}

/* --- names -------------------------------------------------------------------------------------------------------- */

TEST(photographs_have_names_of_their_own)
{
    static const char *const given[][2] = {
        {"a/b/cat.JPG", "cat"},    {"cat.png", "cat-2"}, {"c/Cat.webp", "Cat-3"}, {"dog", "dog"},
        {"cat-2.jpeg", "cat-2-2"}, {"x.tar", "x.tar"},   {".png", ".png"},        {"ant.jpg", "ant"},
        {"dog", "dog-2"},          {"bee", "bee"},
    };
    att_picture_names *names = NULL;
    const char *taken[sizeof given / sizeof *given];
    must(att_picture_names_create(context, &names));
    for (size_t i = 0; i < sizeof given / sizeof *given; i++)
        must(att_picture_names_take(names, given[i][0], &taken[i]));
    for (size_t i = 0; i < sizeof given / sizeof *given; i++) /* they live as long as `names` */
        assert_string_equal(taken[i], given[i][1]);
    att_picture_names_destroy(&names);
    assert_null(names);
}

/* --- files -------------------------------------------------------------------------------------------------------- */

/* What att_map_options.found was told. */
typedef struct told {
    char names[8][32], maps[8][8][64];
    double values[8][8][GRID]; /* of the first 28 cells */
    int count, map_count;
} told;

static void note(void *user, const char *name, const att_named_map *maps, int count)
{
    told *t = user;
    snprintf(t->names[t->count], sizeof t->names[0], "%s", name);
    t->map_count = count;
    for (int m = 0; m < count; m++) {
        snprintf(t->maps[t->count][m], sizeof t->maps[0][0], "%s", maps[m].name);
        assert_true(maps[m].map.height * maps[m].map.width >= GRID);
        memcpy(t->values[t->count][m], maps[m].map.values, sizeof t->values[0][0]);
    }
    t->count++;
}

static void make_folder(char folder[64])
{
    strcpy(folder, "/tmp/att_maps_XXXXXX");
    assert_non_null(mkdtemp(folder));
}

/* Removes the folder; returns how many files it had. */
static int empty_folder(const char *folder)
{
    char command[128];
    int count = -2;
    DIR *of = opendir(folder);
    assert_non_null(of);
    while (readdir(of))
        count++;
    closedir(of);
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    assert_int_equal(system(command), 0);
    return count;
}

static void fill_image(int number, float pixels[PIXELS])
{
    const att_batch inputs = image_input(SIDE);
    memcpy(pixels, inputs.data[0], PIXELS * sizeof *pixels);
    for (int i = 0; i < PIXELS; i++)
        pixels[i] *= 1 - 2 * (number & 1);
}

/* Draws two images with these options, and returns the number of files. */
static int draw_two(att_network *network, att_map_options options, told *t)
{
    char folder[64];
    static float pixels[PIXELS];
    att_map_files *files = NULL;
    *t = (told){0};
    options.found = note;
    options.found_user = t;
    make_folder(folder);
    must(att_map_files_open(network, &options, folder, &files));
    for (int i = 0; i < 2; i++) {
        fill_image(i, pixels);
        must(att_map_files_add(files, "some/cat.png", i, pixels));
    }
    must(att_map_files_finish(files));
    const int64_t written = att_map_files_count(files);
    att_map_files_close(&files);
    assert_null(files);
    const int count = empty_folder(folder);
    assert_int_equal(count, written);
    return count;
}

TEST(each_image_has_its_files_and_means_are_means)
{
    att_network *network = open_vit();
    att_map_options options = att_map_options_defaults();
    static told single, mean;
    options.show = "attention,grad_cam,centre";
    options.layers = "all";
    options.heads = "0,1";
    options.format = "png,svg";
    options.target = 3;
    assert_int_equal(draw_two(network, options, &single), 2 * (6 * 2 + 1));
    assert_int_equal(single.count, 2);
    assert_string_equal(single.names[0], "cat");
    assert_string_equal(single.names[1], "cat-2");
    assert_int_equal(single.map_count, 6);
    assert_string_equal(single.maps[0][1], "attention.blocks.0.attn.head1");
    assert_string_equal(single.maps[0][4], "grad_cam");
    options.means = "all";
    assert_int_equal(draw_two(network, options, &mean), 6 * 2 + 1);
    assert_int_equal(mean.count, 1);
    assert_string_equal(mean.names[0], "mean");
    for (int m = 0; m < 6; m++)
        for (int i = 0; i < GRID; i++) {
            const double expected = (single.values[0][m][i] + single.values[1][m][i]) / 2;
            assert_true(fabs(mean.values[0][m][i] - expected) <= 1e-15 * fabs(expected) + 1e-300);
        }
    options.means = "class";
    assert_int_equal(draw_two(network, options, &mean), 2 * (6 * 2 + 1));
    assert_string_equal(mean.names[1], "mean.class1");
    assert_memory_equal(mean.values[1], single.values[1], sizeof single.values[1]);
    options.form = "grid";
    options.means = "none";
    assert_int_equal(draw_two(network, options, &single), 2 * (3 * 2 + 1));
    att_network_close(&network);
}

/* --- refusals ----------------------------------------------------------------------------------------------------- */

TEST(what_cannot_be_drawn_is_refused)
{
    char folder[64];
    static float pixels[PIXELS];
    att_network *network = open_vit();
    att_map_files *files = NULL;
    const att_map_options defaults = att_map_options_defaults();
    att_map_options wrong[10];
    static const char *const says[] = {"form \"x\"",   "format \"\"",     "colours \"jet\"", "scale \"1\"",
                                       "zoom 17",      "mean maps \"x\"", "at \"2,0\"",      "both choose the query",
                                       "did you mean", "are maps, too"};
    for (int i = 0; i < 10; i++)
        wrong[i] = defaults;
    wrong[0].form = "x";
    wrong[1].format = "";
    wrong[2].colours = "jet";
    wrong[3].scale = "1";
    wrong[4].zoom = 17;
    wrong[5].means = "x";
    wrong[6].at = "2,0";
    wrong[7].at = wrong[7].query = "0,0";
    wrong[8].show = "gradcam";
    wrong[9].show = "attention,nothing";
    for (int i = 0; i < 10; i++) {
        assert_fails(context, att_map_options_check(context, &wrong[i]), ATT_ERR_ARGUMENT, says[i]);
        assert_fails(context, att_map_files_open(network, &wrong[i], "/nowhere", &files), ATT_ERR_ARGUMENT, says[i]);
    }
    assert_null(files);
    make_folder(folder);
    static const struct {
        const char *layers, *heads, *query, *means, *says;
    } later[] = {
        {"2", NULL, NULL, "none", "layers \"2\": the network has 2"},
        {"0", "2", NULL, "none", "heads \"2\": blocks.0.attn has 2 heads"},
        {"0", NULL, "prefix:1", "none", "query \"prefix:1\": blocks.0.attn has 1 tokens"},
        {"0", NULL, "4,0", "none", "grid of 4 x 7"},
        {"0", NULL, NULL, "class", "need images with classes"},
    };
    for (size_t i = 0; i < sizeof later / sizeof *later; i++) {
        att_map_options options = defaults;
        options.layers = later[i].layers;
        options.heads = later[i].heads;
        options.query = later[i].query;
        options.means = later[i].means;
        must(att_map_files_open(network, &options, folder, &files));
        fill_image(0, pixels);
        assert_fails(context, att_map_files_add(files, "cat", -1, pixels), ATT_ERR_ARGUMENT, later[i].says);
        att_map_files_close(&files);
    }
    assert_int_equal(empty_folder(folder), 0);
    att_network_close(&network);
}
