#!/bin/bash
# attscope stack: its tables, JSON, special stacks, wrong flags.
. "$(dirname "$0")/lib.sh"
too_long_sanitized

small='stack --embed-dim 8 --num-heads 2 --tokens 6'

run 0 $small --depth 3
out_has '3 layers, 6 tokens of width 8, 2 heads, attention only, norm none, seed 42'
out_has 'Bounds that fail, of 3: branch paper 0, branch safe 0, from X_0 paper 0, from X_0 safe 0'
[ "$(grep -Ec '^ +3 ' stdout)" -eq 2 ] || fail "no row of layer 3 in both tables"

# Far beyond the range of a double: ln r = -e^A.
run 0 $small --depth 800
grep -Eq '^ *800 +-e\^87[0-9]\.[0-9]+ ' stdout || fail "ln r of layer 800: $(grep '^ *800 ' stdout)"
grep -Eq "r within a double's range slope (2\.9|3\.0)" stdout || fail "slope: $(grep slope stdout)"
grep -Eq 'all finite ln r +slope 3\.0000' stdout || fail "slope: $(grep slope stdout)"

# A single token equals the mean: its residual is 0.
run 0 $small --depth 2 --tokens 1
grep -Eq '^ *2 +-inf +-inf ' stdout || fail "the residual of one token: $(cat stdout)"
out_has '-inf: all tokens of X_0 are equal, so that r is 0'
out_has 'none: fewer than two layers'

# Tokens that sharp attention makes equal.
run 0 stack --init-std 10 --tokens 8 --embed-dim 8 --num-heads 2
grep -Eq '^ *3 +-inf +-inf ' stdout || fail "the residual of sharp attention: $(cat stdout)"
out_has "-inf: attention is so sharp that the tokens become equal in layer 3: r is 0, or beyond a double's range"
run 0 stack --init-std 10 --tokens 8 --embed-dim 8 --num-heads 2 --repeats 2
out_has 'not all finite'
out_has 'in the first such stack'
run 0 stack --init-std 10 --tokens 8 --embed-dim 8 --num-heads 2 --depth 4 --mlp --mlp-gains 1 --samples 2
out_has '-inf: the tokens of a sample become equal'
run 0 $small --depth 2 --mlp --mlp-gains 1 --samples 2
grep -q '^-inf' stdout && fail 'a remark on -inf without one'

# A bound that forces a decrease is not marked.
run 0 $small --depth 3 --num-heads 1 --input-std 1e-3
grep -q ' v' <(grep -E '^ *[123] ' stdout) && fail "vacuous bounds of tiny tokens: $(cat stdout)"
run 0 $small --depth 3 --num-heads 1 --input-std 10
grep -Eq '^ *3 .* v$' stdout || fail "no vacuous bound of large tokens: $(cat stdout)"

run 0 $small --depth 3 --norm column
out_has 'one layer from the same tokens: at most'
run 0 $small --depth 3 --norm token
out_has 'No bound from X_0'
run 0 $small --depth 3 --skip --mlp
out_has 'The paper has no bound for skips and MLPs together'

run 0 $small --depth 3 --mlp --repeats 3 --mlp-gains 0.5 1 --samples 2
out_has 'seed 42 to 44, mean +- deviation (n = 3)'
out_has 'What a larger Lipschitz constant of the MLP costs: 2 samples'
run 0 $small --depth 3 --mlp --repeats 2 --mlp-gains 0.5 1 --samples 2 --json -
[ "$(grep -c '"layer":' stdout)" -eq 8 ] || fail "layers of the JSON: $(cat stdout)"
[ "$(grep -c '"gradient_variance":' stdout)" -eq 4 ] || fail "prices of the JSON: $(cat stdout)"
run 0 $small --depth 3 --norm column --json column.json
grep -q '"difference_of_layer":' column.json || fail "no absorption in the JSON: $(cat column.json)"

run 2 $small --init-std 1e-200
err_has "a stack's init_std is 1e-200, expected 0 or 1e-50 to 1e6"
usage '--num-heads 3 does not divide --embed-dim 8' $small --num-heads 3
usage '--pre-norm says where the norm is, and needs --norm token or --norm column' $small --pre-norm
usage '--norm: there is no "colum"; did you mean column?' $small --norm colum
usage '--mlp-gains needs --mlp and --norm none: it is the price of an MLP without norm' $small --mlp-gains 1
usage '--mlp-ratio and --mlp-gain are of the MLPs, and need --mlp' $small --mlp-ratio 2
usage '--norm-eps is of the norm of each token, and needs --norm token' $small --norm column --norm-eps 0.1
usage '--samples requires --mlp-gains' $small --mlp --samples 2
usage '--mlp-gains needs a --depth of at most 200, not 201' $small --mlp --depth 201 --mlp-gains 1
run 1 $small --json no/such/folder.json
err_has 'no/such/folder.json'
run 1 $small --depth 100000 --json .
err_has '.: Is a directory'
usage '--mlp-gains: "nan" is one too many or out of range: a number from 0 to 1000000, up to 8 of them' $small --mlp --mlp-gains 1 nan
usage '--mlp-gains: "inf" is one too many or out of range: a number from 0 to 1000000, up to 8 of them' $small --mlp --mlp-gains 1 inf
usage 'stack needs an image after CHECKPOINT, whose tokens are X_0' stack file.safetensors
run 2 stack file.safetensors a.jpg --repeats 2
err_has 'sizes, weights and tokens are those of CHECKPOINT'
run 2 stack file.safetensors a.jpg --depth 3
err_has 'leave out the flags for random stacks'
for norm in '--norm token' '--norm column' '--norm column --pre-norm'; do
    run 2 stack file.safetensors a.jpg $norm
    err_has 'with CHECKPOINT, the norms are those of a ViT: give --norm token --pre-norm, or neither'
done
usage 'stack: "b.jpg" is one operand too many; stack takes one CHECKPOINT and one IMAGE' stack file.safetensors a.jpg b.jpg
usage '--model names the network of CHECKPOINT, which is missing' stack --model deit_tiny_patch16_224
run 1 stack no.safetensors a.jpg
err_has 'no.safetensors'

# A trained ViT with layer scale: with all switches the stack is the network, whose residuals `measure` knows. The
# largest error of ln(r / |X|) is 7e-8, that of f32.
idx data
run 0 train data ${network/--depth 1/--depth 3} $recipe --init-values 0.5 --epochs 1 --output output --experiment scaled
run 0 measure output/scaled "$ATT_GOLDENS/images/420.jpg" --with residual --json measured.json
run 0 stack output/scaled "$ATT_GOLDENS/images/420.jpg" --norm token --pre-norm --skip --mlp --json stack.json
# same WHAT: the residuals in stack.json are those in measured.json.
same() {
    awk '/"node": "(input|blocks.*add2)"/ {
        getline
        composite = /composite/
        getline
        gsub(/[^-+0-9.e]/, "", $2)
        if (composite) printf "%.12g\n", log($2)
    }' measured.json >measured
    awk '/"residual_relative": /{getline; gsub(/[^-+0-9.e]/, "", $2); print $2}' stack.json >found
    [ "$(wc -l <measured)" -eq 4 ] || fail "$(wc -l <measured) measured residuals, expected 4"
    paste measured found | awk '!($1 != "" && $2 != "" && ($1 - $2)^2 < 1e-12) { exit 1 }' ||
        fail "residuals of a stack and of its network, $1: $(paste measured found)"
}
same 'layer scale'

fill_tensors output/scaled/last.safetensors nan.safetensors nan blocks.1.mlp.fc1.weight
run 1 stack nan.safetensors "$ATT_GOLDENS/images/420.jpg" --norm token --pre-norm
err_has 'the tensor "blocks.1.mlp.fc1.weight" contains NaN or infinity'

# Queries, keys and values by separate layers, or with separate biases, and another eps of the norms.
eva="--model eva_giant_patch14_224 --img-size 8 --patch-size 4 --in-chans 1 --num-classes 4 --embed-dim 16 --depth 3
    --num-heads 2 --mlp-ratio 2 --norm-eps 0.01"
for form in 'fused --qkv-fused' 'apart --no-qkv-fused'; do
    read -r name flag <<<"$form"
    run 0 train data $eva "$flag" $recipe --epochs 1 --output output --experiment "$name"
    run 0 measure "output/$name" "$ATT_GOLDENS/images/420.jpg" --with residual --json measured.json
    run 0 stack "output/$name" "$ATT_GOLDENS/images/420.jpg" --norm token --pre-norm --skip --mlp --json stack.json
    same "$name"
done
usage "leave out the flags for random stacks" stack output/apart "$ATT_GOLDENS/images/420.jpg" --norm-eps 0.01
run 0 train data ${network/vit_tiny_patch16_224/beit_base_patch16_224} $recipe --epochs 1 --output output --experiment beit
run 1 stack output/beit "$ATT_GOLDENS/images/420.jpg" --norm token --pre-norm
terms='attscope stack computes attention whose scores are products of queries and keys alone, and the scores of'
printf 'attscope: beit_base_patch16_224: %s blocks.0.attn also have terms of positions or masks\n' "$terms" | err_is
run 0 train data ${network/vit_tiny_patch16_224/eva02_tiny_patch14_224} $recipe --epochs 1 --output output --experiment eva02
run 1 stack output/eva02 "$ATT_GOLDENS/images/420.jpg" --norm token --pre-norm
err_has "a linear layer in front of the attention's queries, keys and values, but the result of \"rotary\""

# Networks without attention that compares queries with keys.
tiny='--img-size 8 --in-chans 1 --num-classes 4'
for model in attention_cnn_isotropic attention_cnn_quadratic; do
    run 0 train data --model $model --patch-size 2 --embed-dim 8 --depth 2 $tiny $recipe --epochs 1 --output output \
        --experiment $model
    run 1 stack output/$model "$ATT_GOLDENS/images/420.jpg"
    err_has "$model: attscope stack needs the blocks of a ViT, whose attention compares queries with keys; blocks.0.attn attends by position alone"
done
run 0 train data --model attention_cnn_content --patch-size 2 --embed-dim 8 --depth 2 $tiny $recipe --epochs 1 \
    --output output --experiment content
run 1 stack output/content "$ATT_GOLDENS/images/420.jpg"
err_has "attention_cnn_content: $terms blocks.0.attn also have terms of positions or masks"
usage 'data is a folder, and stack needs one image, whose tokens are X_0' stack output/content data
run 0 train data --model resnet20 $tiny $recipe --epochs 1 --output output --experiment convs
run 1 stack output/convs "$ATT_GOLDENS/images/420.jpg"
err_has 'resnet20: attscope stack needs the blocks of a ViT; this network has no attention'
run 0 convert output/convs heads.safetensors --to-attention all
run 1 stack heads.safetensors "$ATT_GOLDENS/images/420.jpg"
err_has 'attends by position alone'

# DeiT-Tiny with its weights, with and without skips and MLPs, against timm in f64. The largest error of ln r is 5e-7:
# attscope computes the tokens in front of the first block in f32.
needs_shared data/weights/deit_tiny_patch16_224.safetensors data/imagenet200/val
data=$ATT_SHARED/data
while read -r photograph skip mlp expected; do
    flags='--norm token --pre-norm'
    [ "$skip" -eq 1 ] && flags="$flags --skip"
    [ "$mlp" -eq 1 ] && flags="$flags --mlp"
    run 0 stack "$data/weights/deit_tiny_patch16_224.safetensors" "$data/imagenet200/val/$photograph" $flags --json -
    awk '/"residual": /{getline; gsub(/[^-+0-9.e]/, "", $2); print $2}' stdout >found
    [ "$(wc -l <found)" -eq 13 ] || fail "$flags: $(wc -l <found) residuals"
    tr ' ' '\n' <<<"$expected" | paste - found |
        awk -F'\t' '$1 != "" && !($2 != "" && ($1 - $2)^2 < 1e-10) { exit 1 }' ||
        fail "$flags: residuals $(tr '\n' ' ' <found), expected $expected"
done <"${ATT_GOLDENS:?}/stack_deit.txt"
finish
