/* attscope serve: local pages that show runs while they train, and explore checkpoints. */
#include "cli.h"
#include "network.h"
#include "paths.h"
#include "server.h"

typedef struct settings {
    att_serve_options options;
    att_texts hosts;
} settings;

static const att_flag page_options[] = {
    {"images", .kind = ATT_FLAG_TEXT, .value = "DIR", .help = "folder or archive of images to show models",
     ATT_FLAG_AT(settings, options.images), .once = true},
    {"texts", .kind = ATT_FLAG_TEXT, .value = "FILE",
     .help = "texts to show networks that read texts: UTF-8, one a line", ATT_FLAG_AT(settings, options.texts),
     .once = true},
    {"tokenizer", .kind = ATT_FLAG_TEXT, .value = "PATH",
     .help = "of networks that read texts: tokenizer.json, vocab.txt, or a folder with one of them; without it, that "
             "in the checkpoint's folder",
     ATT_FLAG_AT(settings, options.tokenizer), .once = true},
    {"model", .kind = ATT_FLAG_TEXT, .value = "NAME", .help = "network of all checkpoints that do not name theirs",
     ATT_FLAG_AT(settings, options.network), .once = true},
    {"labels", .kind = ATT_FLAG_TEXT, .value = "NAME", .help = CLI_LABELS_HELP, ATT_FLAG_AT(settings, options.labels),
     .once = true},
    {"port", .kind = ATT_FLAG_INT, .value = "N",
     .help = "port on 127.0.0.1; default: 8765 or, if that is in use, the next free one",
     ATT_FLAG_AT(settings, options.port), .low = 1, .high = 65535, .open = true, .once = true},
    {"allow-host", .kind = ATT_FLAG_TEXTS, .value = "HOST",
     .help = "answer under this host name, too, for a proxy on this machine; may be given several times",
     ATT_FLAG_AT(settings, hosts), .once = true},
};

static const att_flag_group page_group = {"Server", page_options, sizeof page_options / sizeof *page_options,
                                          .defaults = NULL};
static const att_flag_use uses[] = {{&page_group, 0}};

static int run(cli_app *cli, void *user, const char *const *paths, int count)
{
    static const char *const usual[] = {"output/train"}; /* where attscope train writes by default */
    const settings *s = user;
    if (count == 0 && !cli_exists(usual[0]))
        return cli_usage(
            "serve needs a run, a checkpoint or a folder of runs: attscope serve RUN|CHECKPOINT|FOLDER; "
            "without operands it shows %s, which does not exist",
            usual[0]);
    int code = cli_open(cli, 1);
    if (code != CLI_OK)
        return code;
    att_serve_options options = s->options;
    options.paths = count > 0 ? paths : usual;
    options.path_count = count > 0 ? count : 1;
    options.hosts = s->hosts.values;
    options.host_count = s->hosts.count;
    return cli_run_server(cli, &options, "/");
}

const cli_command cli_command_serve = {
    .name = "serve",
    .summary = "shows training runs and explores checkpoints on a local page",
    .operands = "[RUN|[NETWORK=]CHECKPOINT|FOLDER]...",
    .least_operands = 0,
    .most_operands = 64,
    .about =
        "RUN: the folder of a run or a measurement. CHECKPOINT: a file of weights, a\n"
        "folder with model.safetensors or pytorch_model.bin, a name of pretrained weights\n"
        "(timm/NETWORK.TAG, hf-hub:ORG/NAME, torchvision/NETWORK.WEIGHTS), which are\n"
        "downloaded if necessary, or a network's name (random weights). NETWORK: the name of\n"
        "the checkpoint's network, if its file does not say it: resnet20=a.pth resnet32=b.pth.\n"
        "FOLDER: a folder of runs; runs that start later appear, too. Without operands:\n"
        "output/train.\n"
        "All operands must exist. Checkpoints are opened before the address is printed. A\n"
        "warning names each that cannot be opened, and the others are served. If none can be\n"
        "opened and no runs were named, the command fails.\n"
        "The start page lists the runs and their states. For each run, it has the report\n"
        "(attscope report) and charts that grow while the run trains, also of several runs\n"
        "together. Of checkpoints, and of\n"
        "runs with a checkpoint, other pages show their attention on your images or texts, and\n"
        "their predictions with parts removed (explore), their operations with\n"
        "times and figures (network), and what four papers claim (lessons).\n"
        "The server listens on 127.0.0.1 only and prints an address that contains a random\n"
        "token; without the token, nobody can read anything, also not other users of this\n"
        "machine. It writes no files. For a run on another machine, forward the port:\n"
        "  ssh -L 8765:127.0.0.1:8765 gpu.example.org\n"
        "and open the printed address on your machine.",
    .example =
        "  attscope serve output/train\n"
        "  attscope serve deit_tiny_patch16_224.safetensors --images photos\n"
        "  attscope serve resnet20=a.pth resnet32=b.pth --images photos\n"
        "  attscope serve all-MiniLM-L6-v2 --texts sentences.txt",
    .uses = uses,
    .use_count = sizeof uses / sizeof *uses,
    .settings_size = sizeof(settings),
    .run = run,
};
