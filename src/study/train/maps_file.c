/* The file of attention maps: its tensors, and the lists in its metadata. */
#include "study/train/maps.h"

#include <string.h>

#include "base/core/error.h"
#include "base/io/json.h"
#include "base/io/safetensors.h"
#include "networks/tasks/draw.h"

enum { TEXT_SIZE = 8192, OWN_TENSORS = 3, TENSORS_PER_NODE = 4 };

/* Returns item `index` of a list of texts. buffer: space in which the text may be written. */
typedef const char *(*text_at)(const att_mapper *m, int index, char buffer[TEXT_SIZE]);

static const char *name_at(const att_mapper *m, int index, char buffer[TEXT_SIZE])
{
    return att_dataset_short_name(m->dataset, m->indices[index], buffer, TEXT_SIZE);
}

static const char *caption_at(const att_mapper *m, int index, char buffer[TEXT_SIZE])
{
    (void)buffer;
    return m->captions[index];
}

/* Destroys the writer. The arena owns its text, *kept. */
static att_status keep_text(att_mapper *m, att_json_writer *json, const char **kept)
{
    const char *text = NULL;
    size_t length = 0;
    att_status status = att_json_writer_finish(json, &text, &length);
    if (status == ATT_OK && !(*kept = att_arena_string(&m->arena, text)))
        status = att_fail_memory(m->context, length, "the metadata of maps");
    att_json_writer_destroy(&json);
    return status;
}

/* Writes `count` texts as a JSON array. The arena owns *list. */
static att_status write_list(att_mapper *m, text_at text, int count, const char **list)
{
    att_json_writer *json;
    ATT_TRY(att_json_writer_create(m->context, false, &json));
    att_json_begin_array(json);
    for (int i = 0; i < count; i++) {
        char buffer[TEXT_SIZE];
        att_json_string(json, text(m, i, buffer));
    }
    att_json_end_array(json);
    return keep_text(m, json, list);
}

static void write_layout(att_json_writer *json, const att_mapped_node *node)
{
    const att_attention_attrs *attrs = node->attrs;
    att_json_begin_object(json);
    att_json_put_string(json, "node", node->scope);
    att_json_put_integer(json, "prefix", attrs->prefix);
    att_json_put_integer(json, "grid_h", attrs->grid_h);
    att_json_put_integer(json, "grid_w", attrs->grid_w);
    att_json_put_integer(json, "window_h", att_attention_height(attrs));
    att_json_put_integer(json, "window_w", att_attention_width(attrs));
    att_json_put_integer(json, "shift_h", attrs->shift_h);
    att_json_put_integer(json, "shift_w", attrs->shift_w);
    att_json_end_object(json);
}

/* Writes the nodes as a JSON array. The arena owns *list. */
static att_status write_nodes(att_mapper *m, const char **list)
{
    att_json_writer *json;
    ATT_TRY(att_json_writer_create(m->context, false, &json));
    att_json_begin_array(json);
    for (int i = 0; i < m->node_count; i++)
        write_layout(json, &m->nodes[i]);
    att_json_end_array(json);
    return keep_text(m, json, list);
}

/* Writes name and colour of each class as a JSON array. The arena owns *list. */
static att_status write_classes(att_mapper *m, const char **list)
{
    att_json_writer *json;
    char colour[ATT_COLOUR_TEXT];
    ATT_TRY(att_json_writer_create(m->context, false, &json));
    att_json_begin_array(json);
    for (int c = 0; c < att_model_classes(m->model); c++) {
        att_json_begin_object(json);
        att_json_put_string(json, "label", c < m->names.label_count ? m->names.labels[c] : NULL);
        att_json_put_string(json, "colour", att_colour_text(m->colours, c, colour));
        att_json_end_object(json);
    }
    att_json_end_array(json);
    return keep_text(m, json, list);
}

static int list_node(const att_mapped_node *n, int64_t k, att_safetensors_tensor *tensors)
{
    int64_t heads = n->heads, patches = n->keys - n->prefix_tokens;
    int count = 0;
    tensors[count++] = (att_safetensors_tensor){n->patches_name, ATT_SAFETENSORS_U16,
                                                att_shape_of(k, heads, n->tokens, patches), n->patches};
    tensors[count++] = (att_safetensors_tensor){n->figures_name, ATT_SAFETENSORS_F32,
                                                att_shape_of(k, heads + 1, n->tokens, ATT_MAPS_FIGURES), n->figures};
    tensors[count++] =
        (att_safetensors_tensor){n->place_name, ATT_SAFETENSORS_I32, att_shape_of(k, heads + 1, n->tokens), n->place};
    if (n->prefix_tokens > 0)
        tensors[count++] = (att_safetensors_tensor){n->prefix_name, ATT_SAFETENSORS_F32,
                                                    att_shape_of(k, heads, n->tokens, n->prefix_tokens), n->prefix};
    return count;
}

/* The shape [k][shape of a sample]. */
static att_shape shape_of_images(int64_t k, att_shape sample)
{
    att_shape shape = {.rank = sample.rank + 1, .dims = {k}};
    memcpy(&shape.dims[1], sample.dims, (size_t)sample.rank * sizeof *sample.dims);
    return shape;
}

static int list_tensors(const att_mapper *m, att_safetensors_tensor *tensors)
{
    const att_transform_options *t = m->transform;
    int64_t k = m->count;
    int count = 0;
    tensors[count++] = (att_safetensors_tensor){ATT_MAPS_IMAGE, ATT_SAFETENSORS_U8,
                                                att_shape_of(k, t->height, t->width, t->channels), m->images};
    tensors[count++] = (att_safetensors_tensor){"label", ATT_SAFETENSORS_I64, att_shape_of(k), m->labels};
    if (m->classes)
        tensors[count++] = (att_safetensors_tensor){ATT_MAPS_CLASSES, ATT_SAFETENSORS_U16,
                                                    att_shape_of(k, t->height, t->width), m->classes};
    for (int i = 0; i < m->inference.output_count; i++)
        tensors[count++] = (att_safetensors_tensor){
            m->outputs[i].name, m->inference.outputs[i].dtype == ATT_I32 ? ATT_SAFETENSORS_I32 : ATT_SAFETENSORS_F32,
            shape_of_images(k, m->inference.outputs[i].shape), m->outputs[i].values};
    for (int i = 0; i < m->node_count; i++)
        count += list_node(&m->nodes[i], k, &tensors[count]);
    return count;
}

att_status att_mapper_write(att_mapper *m, const char *path)
{
    int max_tensors = OWN_TENSORS + m->inference.output_count + TENSORS_PER_NODE * m->node_count;
    size_t size = (size_t)max_tensors * sizeof(att_safetensors_tensor);
    att_safetensors_tensor *tensors = att_arena_allocate(&m->arena, size);
    if (!tensors)
        return att_fail_memory(m->context, size, "a list of maps");
    const char *nodes, *names, *captions, *classes = NULL;
    ATT_TRY(write_nodes(m, &nodes));
    ATT_TRY(write_list(m, name_at, (int)m->count, &names));
    ATT_TRY(write_list(m, caption_at, (int)m->count, &captions));
    if (m->classes)
        ATT_TRY(write_classes(m, &classes));
    enum { ALWAYS = 5, MOST = 7 };
    att_safetensors_pair metadata[MOST] = {{"maps", ATT_MAPS_FORMAT},
                                           {"model", att_model_name(m->model)},
                                           {"nodes", nodes},
                                           {"names", names},
                                           {"captions", captions}};
    size_t given = ALWAYS;
    if (classes)
        metadata[given++] = (att_safetensors_pair){ATT_MAPS_CLASSES, classes};
    if (m->options->weights)
        metadata[given++] = (att_safetensors_pair){"weights", m->options->weights};
    att_safetensors_content content = {
        .tensors = tensors, .tensor_count = list_tensors(m, tensors), .metadata = metadata, .metadata_count = given};
    return att_safetensors_write(m->context, path, &content);
}
