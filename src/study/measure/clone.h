/* measure/clone.h - copies parts of a graph with substitutions: what would a value be if other values were replaced?
 *
 * The caller replaces values of the graph by others of the same shape, and asks for the copy of a value that depends on
 * them:
 *
 *     att_clone clone;
 *     att_clone_begin(graph, NULL, NULL, &clone);
 *     att_clone_replace(&clone, step.before, x);          another stream in place of x_t
 *     att_value f = att_clone_value(&clone, branch);      the branch f of that stream
 *     att_clone_end(&clone);
 *
 * The copy of a value is its replacement if it has one; the value itself if no input of its node is copied, which is
 * so for parameters and inputs of the network; otherwise the output of a new node with the same op, attributes and
 * scope, and with copied inputs. A value is copied once. Only what a copy needs is added to the graph.
 *
 * Copies are for probes, so that no result of the network changes a bit (att_graph_probe()). Between att_clone_begin()
 * and att_clone_end() every node that is added to the graph counts as a copy (att_node.copy), also those that the
 * caller adds: instruments and searches for attention ignore copies.
 */
#ifndef ATT_MEASURE_CLONE_H
#define ATT_MEASURE_CLONE_H

#include "engine/graph/graph.h"

/* A rule for special nodes. Called once for each node that depends on a replaced value. node: the original, valid
 * during the call; in: the copies of its inputs, node->in_count of them. Returns the value that takes the place of
 * out[0], which may be one of `in` (a norm replaced by the identity: return in[0]) or made by nodes that the rule
 * adds; ATT_NONE: the node is copied. If a value is returned, the node's other outputs have no copy. */
typedef att_value att_clone_rule(void *user, att_graph *graph, const att_node *node, const att_value *in);

typedef struct att_clone {
    att_graph *graph;
    att_clone_rule *rule;
    void *user;
    /* May be set after att_clone_begin() if the graph is never compiled for training: nodes that act on the whole batch
     * in training are then copied, too. */
    bool inference;
    struct att_cloned *values; /* of the graph's values when the cloning began */
    int count;
    bool was_copying;
} att_clone;

/* Begins a set of copies; one at a time for a graph. rule: NULL for none. On success the caller ends it with
 * att_clone_end(). Errors: that of the graph; ERR_MEMORY. */
att_status att_clone_begin(att_graph *graph, att_clone_rule *rule, void *user, att_clone *clone);
void att_clone_end(att_clone *clone);

/* Replaces a value of the original graph. Replace a value before a value that depends on it is copied: copies that
 * exist do not change. A value may be replaced by itself, so that the rule is asked for the nodes that depend on it. If
 * `by` has another shape or type, the graph fails (ERR_ARGUMENT). */
void att_clone_replace(att_clone *clone, att_value value, att_value by);

/* Returns the copy of a value of the original graph; a value added since then is returned itself. Returns ATT_NONE if
 * the graph has failed, or fails it: ERR_UNSUPPORTED if the value depends on a node that acts on the whole batch in
 * training (batch norm; see `inference`), whose copy would take part in running statistics, or on an output for which
 * the rule gave no value. */
att_value att_clone_value(att_clone *clone, att_value value);

#endif
