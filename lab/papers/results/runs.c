/* The runs on which results are judged. Their criteria are in the file of each paper. */
#include <string.h>

#include "lab/papers/results/list.h"
#include "lab/papers/results/recipes.h"

/* A sweep of the run's recipe. It skips what is finished by itself. */
#define SWEEP(run, vary, seeds, instruments) \
    {                                        \
        .arguments = {                       \
            "sweep",                         \
            "{recipe}",                      \
            "{data}",                        \
            "--vary",                        \
            vary,                            \
            "--seeds",                       \
            seeds,                           \
            "--measure",                     \
            instruments,                     \
            "--output",                      \
            "{root}",                        \
            "--experiment",                  \
            run                              \
        }                                    \
    }
/* Accuracy of each network with the centre of the images set to 0. */
#define OCCLUDE(side)                                            \
    {                                                            \
        .arguments = {"validate",     "{data}",                  \
                      "--split",      "test",                    \
                      "--checkpoint", "{each}/last.safetensors", \
                      "--occlude",    side,                      \
                      "--json",       "{each}/occluded.json"},   \
        .writes = "{each}/occluded.json"                         \
    }
#define STACK(name, ...)                                                                                        \
    {                                                                                                           \
        .arguments =                                                                                            \
            {"stack", "--depth", "6", "--seed", "{seed}", "--json", "{run}/" name "-{seed}.json", __VA_ARGS__}, \
        .writes = "{run}/" name "-{seed}.json", .seeds = 5                                                      \
    }
#define EQUATION(system, method)                                                             \
    {                                                                                        \
        .arguments = {"ode", system, "--method", method, "--json", "{run}/" system ".json"}, \
        .writes = "{run}/" system ".json"                                                    \
    }
#define TASK(...) TASK_OF(__VA_ARGS__, NULL)
#define TASK_OF(name, ...)                                                                                             \
    {                                                                                                                  \
        .arguments = {"experiment", name,    "--seed",       "{seed}",       "--json",   "{run}/" name "-{seed}.json", \
                      "--output",   "{run}", "--experiment", name "-{seed}", __VA_ARGS__},                             \
        .writes = "{run}/" name "-{seed}.json", .seeds = 3                                                             \
    }

/* Instruments on a text encoder. */
#define ENCODER(json, draws, network, with, ...)                                                          \
    {                                                                                                     \
        .arguments = {"measure", network,       "{data}",    "--max-length", "128",         "--with",     \
                      with,      "--tokenizer", "{weights}", "--json",       "{run}/" json, __VA_ARGS__}, \
        .writes = "{run}/" json, .seeds = (draws)                                                         \
    }
#define ENCODER_START(json, network, with, ...) \
    ENCODER(json "-{seed}.json", 3, network, with, "--vocab-size", "30522", "--init-seed", "{seed}", __VA_ARGS__)
#define ALL_OF_ENCODER "collapse,head_chains,paths"

/* Runs of resnet29 are in f32, so that they are the same on every processor. */
static const att_result_run runs[] = {
    {.name = "modules",
     .about = "resnet29 with each module on CIFAR-10, three seeds",
     .data = "cifar10",
     .recipe = att_results_recipe_cifar10_quick,
     .hours = 4.5,
     .steps = {{.arguments = {"sweep", "{recipe}", "{data}", "--vary", "modules=none,se,eca,fca,srm,step", "--seeds",
                              "1,2,3", "--measure", "accuracy,nsi,tns,stiff_surface,gate,gate_stiffness,skip_block",
                              "--correlate", "tns/tns attention,accuracy/top1", "--set", "amp=false", "--output",
                              "{root}", "--experiment", "modules"}},
               {.arguments = {"convert", "{each}/last.safetensors", "{each}/attention.safetensors", "--to-attention",
                              "all", "--json", "{each}/attention.json"},
                .writes = "{each}/attention.json"}}},
    {.name = "heads",
     .about = "six layers of learned positions with nine heads on CIFAR-10, three seeds",
     .data = "cifar10",
     .recipe = att_results_recipe_attention_cnn_quick,
     .hours = 1,
     .steps = {SWEEP("heads", "model=attention_cnn_learned", "1,2,3", "accuracy,head_shape")}},
    {.name = "stacks",
     .about = "random stacks of attention with and without skips, norms and MLPs, five seeds",
     .hours = 0.05,
     .steps = {STACK("one-head", "--num-heads", "1"), STACK("attention", "--num-heads", "4"),
               STACK("skip", "--num-heads", "4", "--skip"), STACK("norm", "--num-heads", "4", "--norm", "token"),
               STACK("mlp", "--num-heads", "4", "--mlp"),
               STACK("price", "--num-heads", "4", "--mlp", "--mlp-gains", "0.25", "2")}},
    {.name = "paths",
     .about = "three tasks of Dong et al., three networks each",
     .hours = 1.2,
     .steps = {TASK("sort"), TASK("memorize"), TASK("hull", "--lr", "1e-4", "--epochs", "12")}},
    {.name = "encoders",
     .about = "BERT-base and ALBERT-base at initialisation, three seeds, on texts",
     .data = "long-texts",
     .weights = "minilm",
     .hours = 0.15,
     .steps = {ENCODER_START("bert", "bert_base_uncased", ALL_OF_ENCODER, NULL),
               ENCODER_START("albert", "albert_base_v2", ALL_OF_ENCODER, NULL)}},
    {.name = "minilm",
     .about = "a trained MiniLM, and its architecture at initialisation, three seeds, on texts",
     .data = "long-texts",
     .weights = "minilm",
     .hours = 0.06,
     .steps = {ENCODER("trained.json", 0, "{weights}", "collapse", "--f64"),
               ENCODER("trained-maps.json", 0, "{weights}", "head_chains,paths", NULL),
               ENCODER_START("start", "minilm_l6_h384", "collapse", "--f64")}},
    {.name = "pieces",
     .about = "memorisation of Dong et al. with texts that WordPiece divides, three networks",
     .data = "short-texts",
     .weights = "minilm",
     .hours = 0.7,
     .steps = {TASK("memorize", "--texts", "{data}", "--tokenizer", "{weights}")}},
    {.name = "circle",
     .about = "two points on a circle, one layer with and without skips and MLPs, ten seeds",
     .hours = 0.01,
     .steps = {{.arguments = {"experiment", "circle", "--seed", "{seed}", "--threads", "1", "--json",
                              "{run}/circle-{seed}.json", "--output", "{run}", "--experiment", "circle-{seed}"},
                .writes = "{run}/circle-{seed}.json",
                .seeds = 10}}},
    {.name = "uniform",
     .about = "a ViT of 6 blocks on Fashion-MNIST with each form of uniform attention, three seeds",
     .data = "fashion-mnist",
     .recipe = att_results_recipe_fashion_vit_quick,
     .hours = 1.2,
     .steps = {SWEEP("uniform",
                     "modules=none,cb,cb@before_mlp,cb@mid_mlp,cb@after_attn,cb@after_attn+cb@after_mlp,"
                     "cb@after_mlp:3-5,cb:pool=max,cb:pool=class,cb_s,se@after_mlp,uniform_head:how=replace,"
                     "uniform_head:how=compensate,uniform_head",
                     "1,2,3", "accuracy,entropy,distance,cbs_scale")}},
    {.name = "uniform-ten",
     .about = "six of these variants, ten seeds",
     .data = "fashion-mnist",
     .recipe = att_results_recipe_fashion_vit_quick,
     .hours = 1.6,
     .steps = {SWEEP("uniform-ten", "modules=none,cb,cb_s,se@after_mlp,uniform_head,cb@after_mlp:3-5",
                     "1,2,3,4,5,6,7,8,9,10", "accuracy,entropy,distance,cbs_scale")}},
    {.name = "context",
     .about = "a ViT of 36 tokens on CIFAR-10 for 30 epochs with context broadcasting, three seeds",
     .data = "cifar10",
     .recipe = att_results_recipe_context,
     .hours = 1.4,
     .steps = {SWEEP("context", "modules=none,cb,cb_s,cb@after_mlp:3-5", "1,2,3",
                     "accuracy,entropy,distance,cbs_scale"),
               OCCLUDE("12"),
               {.arguments = {"validate", "{data}", "--split", "test", "--checkpoint", "{each}/last.safetensors",
                              "--fgsm", "0.00392", "--json", "{each}/fgsm.json"},
                .writes = "{each}/fgsm.json"}}},
    {.name = "vit",
     .about = "the ViT of 6 blocks on Fashion-MNIST without modules, five seeds, with every view on its maps",
     .data = "fashion-mnist",
     .recipe = att_results_recipe_fashion_vit_quick,
     .hours = 0.4,
     .steps = {SWEEP("vit", "modules=none", "1,2,3,4,5",
                     "accuracy,collapse,skip_weight,head_chains,paths,jacobian,jacobian_spectral,entropy_step")}},
    {.name = "extra-layer",
     .about = "a ViT of 8 blocks on Fashion-MNIST with an extra MSA or MLP after the last one, ten seeds",
     .data = "fashion-mnist",
     .recipe = att_results_recipe_fashion_vit_quick,
     .hours = 0.9,
     .steps = {{.arguments = {"sweep", "{recipe}", "{data}", "--vary", "extra_layer=attn,mlp", "--seeds",
                              "1,2,3,4,5,6,7,8,9,10", "--measure", "accuracy", "--set", "depth=8", "--output", "{root}",
                              "--experiment", "extra-layer"}}}},
    {.name = "head-counts",
     .about = "the ViT of 6 blocks on Fashion-MNIST with 1 to 8 heads, with and without CB, three seeds",
     .data = "fashion-mnist",
     .recipe = att_results_recipe_fashion_vit_quick,
     .hours = 0.9,
     .steps = {{.arguments = {"sweep", "{recipe}", "{data}", "--vary", "num_heads=1,2,4,8", "--vary", "modules=none,cb",
                              "--seeds", "1,2,3", "--measure", "accuracy,entropy", "--output", "{root}", "--experiment",
                              "head-counts"}}}},
    {.name = "blocks",
     .about = "resnet29 with SE in a single block, each that begins no stage, on CIFAR-10, two epochs, three seeds",
     .data = "cifar10",
     .recipe = att_results_recipe_cifar10_quick,
     .hours = 1.8,
     .steps = {{.arguments = {"sweep", "{recipe}", "{data}", "--vary",
                              "modules=none,se@after_branch:1,se@after_branch:2,se@after_branch:4,se@after_branch:5,"
                              "se@after_branch:7,se@after_branch:8",
                              "--seeds", "1,2,3", "--measure", "accuracy,nsi", "--set", "amp=false", "--set",
                              "epochs=2", "--output", "{root}", "--experiment", "blocks"}}}},
    {.name = "inputs",
     .about = "resnet29 with the four inputs of StepNet on CIFAR-10, three seeds",
     .data = "cifar10",
     .recipe = att_results_recipe_cifar10_quick,
     .hours = 3,
     .steps = {{.arguments = {"sweep", "{recipe}", "{data}", "--vary",
                              "modules=step,step:input=x_t,step:input=x_t1,step:input=difference", "--seeds", "1,2,3",
                              "--measure", "accuracy", "--set", "amp=false", "--output", "{root}", "--experiment",
                              "inputs"}}}},
    {.name = "streets",
     .about = "UPerNet over DeiT-Tiny on CamVid with context broadcasting, three seeds",
     .data = "camvid",
     .weights = "deit-tiny",
     .recipe = att_results_recipe_upernet_camvid,
     .hours = 2,
     .steps = {{.arguments = {"sweep", "{recipe}", "{data}", "--vary", "modules=none,cb,cb_s", "--seeds", "1,2,3",
                              "--set", "initial_checkpoint={weights}", "--measure", "entropy", "--output", "{root}",
                              "--experiment", "streets"}},
               {.arguments = {"validate", "{data}", "--split", "val", "--checkpoint", "{each}/last.safetensors",
                              "--img-scale", "480", "360", "--json", "{each}/whole.json"},
                .writes = "{each}/whole.json"}}},
    {.name = "equations",
     .about = "the heat equation, Van der Pol's and Robertson's: steps and stiffness",
     .hours = 0.005,
     .steps = {EQUATION("heat", "euler"), EQUATION("vanderpol", "rkf45"), EQUATION("robertson", "rkf45")}},
    {.name = "costs",
     .about = "costs of modules in ViT-S",
     .hours = 0.001,
     .steps = {{.arguments = {"models", "vit_small_patch16_224", "--compare", "cb", "--compare", "cb_s", "--compare",
                              "cb@mid_mlp", "--compare", "se@after_mlp", "--json", "{run}/costs.json"},
                .writes = "{run}/costs.json"}}},
};
enum { RUNS = sizeof runs / sizeof *runs };

int att_result_run_count(void)
{
    return RUNS;
}

const att_result_run *att_result_run_at(int index)
{
    return index >= 0 && index < RUNS ? &runs[index] : NULL;
}

const att_result_run *att_result_run_find(const char *name)
{
    for (int i = 0; i < RUNS; i++)
        if (strcmp(runs[i].name, name) == 0)
            return &runs[i];
    return NULL;
}
