/* The relative positions of a ViT's tensors. */
#include <string.h>

#include "networks/models/checkpoint.h"
#include "networks/models/relative_bias.h"
#include "networks/models/vit.h"

/* The tensors that show them, below a block or shared by all: tables [rows, heads], weights [heads, hidden] of MLPs. */
static const struct place {
    const char *name;
    bool is_shared, is_mlp, is_beit;
} places[] = {
    {"attn.relative_position_bias_table", .is_beit = true},
    {"attn.rel_pos.relative_position_bias_table", .is_shared = false},
    {"attn.rel_pos.mlp.fc2.weight", .is_mlp = true},
    {"rel_pos_bias.relative_position_bias_table", .is_shared = true, .is_beit = true},
    {"shared_rel_pos.relative_position_bias_table", .is_shared = true},
    {"shared_rel_pos.mlp.fc2.weight", .is_shared = true, .is_mlp = true},
};

static const struct place *place_of(const char *name)
{
    const char *rest = name;
    bool in_block = att_checkpoint_block(name, "blocks", &rest) >= 0;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (places[i].is_shared != in_block && strcmp(places[i].name, in_block ? rest : name) == 0)
            return &places[i];
    return NULL;
}

/* The first such tensor. Returns its dimensions, stored in *shape; NULL if there is none. */
static const int64_t *find(const att_tensors *file, const struct place **place, const char **name, att_shape *shape)
{
    for (int i = 0; i < att_tensors_count(file); i++) {
        *name = att_tensors_at(file, i).name;
        *place = place_of(*name);
        const int64_t *dims = *place ? att_checkpoint_dims(file, *name, 2, shape) : NULL;
        if (dims)
            return dims;
    }
    return NULL;
}

bool att_vit_is_table(const char *name)
{
    const struct place *place = place_of(name);
    return place && !place->is_mlp;
}

int64_t att_vit_table_rows(const att_tensors *file)
{
    const struct place *place;
    const char *name;
    att_shape shape;
    const int64_t *dims = find(file, &place, &name, &shape);
    return dims && !place->is_mlp ? dims[0] : 0;
}

/* Modules in place of heads leave fewer columns to a block's table, and fewer inner channels in proportion. */
static void read_heads(const att_tensors *file, const char *name, int64_t columns, att_option_values *found)
{
    const char *rest;
    int block = att_checkpoint_block(name, "blocks", &rest);
    int64_t channels = (int64_t)att_options_number(found, "embed_dim", 1);
    int64_t qkv = block < 0 ? 0 : att_checkpoint_side(file, 0, "blocks.%d.attn.qkv.weight", block);
    int64_t width = !qkv ? channels / columns : qkv / (3 * columns);
    if (width > 0 && channels % width == 0)
        att_options_set(found, "num_heads", (double)(channels / width));
}

void att_vit_read_relative(const att_tensors *file, att_option_values *found)
{
    const struct place *place;
    const char *name;
    att_shape shape;
    const int64_t *dims = find(file, &place, &name, &shape);
    att_options_set_text(found, "rel_pos_type", !dims ? "none" : place->is_mlp ? ATT_VIT_MLP : ATT_VIT_BIAS);
    att_options_set(found, "shared_rel_pos", dims && place->is_shared);
    if (!dims)
        return;
    if (place->is_mlp)
        att_options_set(found, "rel_pos_dim", (double)dims[1]);
    if (place->is_beit)
        att_options_set_text(found, "block_fn", ATT_VIT_BEIT);
    read_heads(file, name, dims[place->is_mlp ? 0 : 1], found);
}
