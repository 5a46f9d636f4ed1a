/* The rows, scores, sums and rollout of explorers against the maps of networks. */
#include "study/explore/networks.h"

/* The token of key j of the window in which `token` lies: the grid is rolled up and to the left, then cut. */
static int key_token(const att_explorer_layer *layer, int token, int j)
{
    if (!layer->window_h)
        return j;
    int h = layer->grid_h, w = layer->grid_w;
    int y = (token / w + h - layer->shift_h) % h, x = (token % w + w - layer->shift_w) % w;
    y = y / layer->window_h * layer->window_h + j / layer->window_w;
    x = x / layer->window_w * layer->window_w + j % layer->window_w;
    return (y + layer->shift_h) % h * w + (x + layer->shift_w) % w;
}

/* Compares a row of a head with that of a map. A key that is not in the row has no weight. */
static double row_error(const att_explorer_layer *layer, int query, const float *row, const float *map, int keys)
{
    double most = 0;
    int seen = 0, expected = 0;
    for (int j = 0; j < layer->tokens; j++)
        seen += !isnan(row[j]);
    for (int j = 0; j < keys; j++) {
        float weight = row[key_token(layer, query, j)];
        expected += !isnan(weight);
        most = larger(most, fabs((isnan(weight) ? 0 : (double)weight) - (double)map[j]));
    }
    assert_int_equal(seen, expected);
    return most;
}

TEST(rows_are_those_of_the_maps)
{
    const att_batch inputs = image_input(SIDE);
    static float rows[64 * SIDE * SIDE];
    for (int n = 0; n < NETWORKS; n++) {
        att_network *network = open_network(n);
        att_explorer *explorer = explore(network);
        att_batch answers, maps;
        double most = 0, largest = 1;
        must(att_explorer_run(explorer, &inputs, &answers));
        int layers = att_explorer_layer_count(explorer);
        assert_int_equal(layers, n == RESNET ? 0 : n == SWIN || n == SWIN_V2 ? 4 : 2);
        if (layers > 0) {
            must(att_network_select_outputs(network, "*.map"));
            must(att_network_run(network, &inputs, &maps));
        }
        for (int l = 0; l < layers; l++) {
            att_explorer_layer layer = att_explorer_layer_at(explorer, l);
            char name[128];
            snprintf(name, sizeof name, "%s.map", layer.scope);
            const float *map = att_batch_field(&maps, name);
            assert_non_null(map);
            int keys = layer.window_h ? layer.window_h * layer.window_w : layer.tokens;
            for (int i = 0; i < layer.queries; i++) {
                must(att_explorer_row(explorer, l, i, &(att_row_options){true, true, true}, rows));
                for (int e = 0; e < layer.heads * layer.tokens; e++)
                    largest = isnan(rows[e]) ? largest : larger(largest, fabs((double)rows[e]));
                must(att_explorer_row(explorer, l, i, NULL, rows));
                for (int h = 0; h < layer.heads; h++)
                    most = larger(most, row_error(&layer, i, rows + h * layer.tokens,
                                                  map + ((int64_t)h * layer.queries + i) * keys, keys));
            }
        }
        print_message("%s: rows differ from the map by at most %.2g, scores are at most %.3g\n", networks[n].model,
                      most, largest);
        assert_true(most < 1e-6 * largest); /* an error of a score is one of the weight; measured: at most 1e-7 */
        close_both(&explorer, &network);
    }
}

/* softmax(scores) is the row, and the scores are the sums of their terms. */
TEST(scores_are_sums_of_terms)
{
    const att_batch inputs = image_input(SIDE);
    enum { ROOM = 64 * SIDE };
    static float rows[ROOM], scores[ROOM], content[ROOM], positions[ROOM];
    for (int n = VIT; n < RESNET; n++) {
        att_network *network = open_network(n);
        att_explorer *explorer = explore(network);
        att_batch answers;
        double most = 0;
        must(att_explorer_run(explorer, &inputs, &answers));
        att_explorer_layer layer = att_explorer_layer_at(explorer, 1);
        assert_true(layer.heads * layer.tokens <= ROOM);
        assert_int_equal(layer.content, n != ISOTROPIC && n != QUADRATIC);
        assert_int_equal(layer.positions, n >= RELATIVE);
        int query = layer.queries / 2;
        must(att_explorer_row(explorer, 1, query, NULL, rows));
        must(att_explorer_row(explorer, 1, query, &(att_row_options){true, true, true}, scores));
        must(att_explorer_row(explorer, 1, query, &(att_row_options){true, false, true}, content));
        must(att_explorer_row(explorer, 1, query, &(att_row_options){false, true, true}, positions));
        for (int h = 0; h < layer.heads; h++) {
            double sum = 0;
            for (int j = h * layer.tokens; j < (h + 1) * layer.tokens; j++)
                sum += isnan(scores[j]) ? 0 : exp((double)scores[j]);
            for (int j = h * layer.tokens; j < (h + 1) * layer.tokens; j++) {
                assert_int_equal(isnan(scores[j]), isnan(rows[j]));
                if (isnan(scores[j]))
                    continue;
                most = larger(most, fabs(exp((double)scores[j]) / sum - (double)rows[j]));
                most = larger(most, fabs((double)content[j] + (double)positions[j] - (double)scores[j]) /
                                        larger(1, fabs((double)scores[j])));
                assert_true(layer.content || content[j] == 0);
                assert_true(layer.positions || positions[j] == 0);
            }
        }
        print_message("%s: scores differ by at most %.2g\n", networks[n].model, most);
        assert_true(most < 1e-5); /* measured: 6e-7, at scores up to 40 */
        close_both(&explorer, &network);
    }
}

TEST(sums_and_rollout_follow_from_rows)
{
    const att_batch inputs = image_input(SIDE);
    enum { ROOM = 4 * 256 };
    static float rows[ROOM];
    static double sums[ROOM], means[2][ROOM][ROOM];
    att_network *network = open_network(REGISTERS);
    att_explorer *explorer = explore(network);
    att_batch answers;
    double weights[ROOM], way[ROOM], expected[ROOM] = {0}, most = 0;
    must(att_explorer_run(explorer, &inputs, &answers));
    att_explorer_layer layer = att_explorer_layer_at(explorer, 0);
    const int tokens = layer.tokens;
    for (int l = 0; l < 2; l++) {
        for (int i = 0; i < tokens; i++)
            weights[i] = i % 3;
        must(att_explorer_sum(explorer, l, weights, sums));
        for (int i = 0; i < tokens; i++) {
            must(att_explorer_row(explorer, l, i, NULL, rows));
            for (int j = 0; j < tokens; j++)
                for (int h = 0; h < layer.heads; h++) {
                    means[l][i][j] += (double)rows[h * tokens + j] / layer.heads;
                    sums[h * tokens + j] -= weights[i] * (double)rows[h * tokens + j];
                }
        }
        for (int e = 0; e < layer.heads * tokens; e++)
            most = larger(most, fabs(sums[e]));
    }
    print_message("sums differ by %.2g\n", most);
    assert_true(most < 1e-5); /* measured: 4e-7; rows are rounded to f32 */
    const int query = 5;
    must(att_explorer_rollout(explorer, 1, query, way));
    most = 0;
    for (int i = 0; i < tokens; i++) {
        double above = means[1][query][i] / 2 + (i == query ? 0.5 : 0);
        for (int j = 0; j < tokens; j++)
            expected[j] += above * (means[0][i][j] / 2 + (i == j ? 0.5 : 0));
    }
    for (int j = 0; j < tokens; j++)
        most = larger(most, fabs(expected[j] - way[j]));
    print_message("rollout differs by %.2g\n", most);
    assert_true(most < 1e-6); /* measured: 1.4e-8 */
    close_both(&explorer, &network);
    network = open_network(SWIN);
    explorer = explore(network);
    must(att_explorer_run(explorer, &inputs, &answers));
    assert_fails(context, att_explorer_rollout(explorer, 1, 0, way), ATT_ERR_UNSUPPORTED, "has windows");
    close_both(&explorer, &network);
}
