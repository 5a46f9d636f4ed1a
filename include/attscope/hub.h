/* attscope/hub.h - pretrained weights by name, from the Hugging Face Hub and from torchvision.
 *
 * A name is accepted wherever a checkpoint is: by att_network_open() and att_network_find_file(), and by the command.
 * A file or folder whose path equals the name has precedence.
 *
 *   timm/NETWORK.TAG               a repository of timm's on the Hub; without .TAG, the network's default tag
 *   hf-hub:ORG/NAME                any repository of the Hub, at its branch main
 *   hf-hub:ORG/NAME@REVISION       the same, at another branch, a tag or a commit
 *   torchvision/NETWORK.WEIGHTS    weights of torchvision ("torchvision/resnet50.IMAGENET1K_V2"); without .WEIGHTS,
 *                                  torchvision's default
 *
 * Look-up. Of a repository, attscope uses config.json; for a network of the transformers library that reads images also
 * preprocessor_config.json and processor_config.json, for one that reads texts tokenizer.json or else vocab.txt with
 * special_tokens_map.json, tokenizer_config.json and sentence_bert_config.json; and the first of model.safetensors,
 * pytorch_model.bin and, each directly after its file, their indexes (.index.json) with the files that they list. If
 * the Hub's cache has them, no connection is opened, so a branch stays at the commit at which it was downloaded.
 * Otherwise they are downloaded into it, in the layout of the Hub's Python client (blobs, refs, snapshots), which finds
 * them there. torchvision's files are looked up in, and downloaded into, the folder of torch.hub.
 *
 * Connections. Only HTTPS. Exception: if HF_ENDPOINT is an address http://localhost, http://127.0.0.1 or http://[::1],
 * requests and redirects within this machine may use HTTP. A redirect is followed if it obeys this rule, at most 10
 * times. The token is sent to the host and port of the endpoint and to no other. A transfer that breaks off is
 * continued where it ended, by this call or a later one; five attempts in a row without a new byte end the call.
 *
 * Verification. Every file must have the size that the Hub states and its hash: SHA-256 for large files, git's SHA-1
 * for others; for torchvision, the first 8 hexadecimal digits of SHA-256 that are part of the file's name. Until then
 * its name ends in ".incomplete". Files that are in the cache are not verified again.
 *
 * Several processes may share a cache: locks let one of them download a file while the others wait.
 *
 * Environment variables, all with their meaning for huggingface_hub or torch:
 *
 *   HF_HUB_CACHE             the cache; else HF_HOME/hub, else XDG_CACHE_HOME/huggingface/hub, else
 *                            ~/.cache/huggingface/hub
 *   HF_ENDPOINT              the Hub's address; default https://huggingface.co
 *   HF_HUB_OFFLINE           1, ON, YES, TRUE: open no connection
 *   HF_TOKEN, HF_TOKEN_PATH  the access token, or the file that holds it (default HF_HOME/token); not sent if
 *                            HF_HUB_DISABLE_IMPLICIT_TOKEN is 1. A file that cannot be read counts as missing, and
 *                            the message of a Hub's refusal says why it cannot be read
 *   HF_HUB_DOWNLOAD_TIMEOUT  seconds without a byte after which a transfer counts as broken off; default 10
 *   TORCH_HOME               torch.hub's folder: TORCH_HOME/hub/checkpoints; else XDG_CACHE_HOME/torch, else
 *                            ~/.cache/torch
 *   HOME                     ~; needed only for a cache whose place the variables above leave open
 *   https_proxy, no_proxy    as curl reads them
 *   SSL_CERT_FILE, ...       file of certificates to trust, instead of the system's; also REQUESTS_CA_BUNDLE,
 *                            CURL_CA_BUNDLE and SSL_CERT_DIR, as for Python and curl; the first that is set counts
 */
#ifndef ATTSCOPE_HUB_H
#define ATTSCOPE_HUB_H

#include <attscope/context.h>
#include <attscope/progress.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Returns whether the text is written as one of the names above: it begins with "timm/", "hf-hub:", "hf_hub:" or
 * "torchvision/". */
ATT_API bool att_hub_is_name(const char *text);

/* Sets a function that later downloads call with their progress, on the calling thread: stage "download", done and
 * total in MB (10^6 bytes), batch and batches in bytes, speed in MB/s. The first call for a file has batch 0, the last
 * one has batch equal to batches. If the function returns false, the download ends with ERR_STOPPED and can be
 * continued later. NULL: none. */
ATT_API void att_hub_show_progress(att_context *context, att_progress_fn show, void *user);

#ifdef __cplusplus
}
#endif
#endif
