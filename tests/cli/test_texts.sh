#!/bin/bash
# Texts: their vectors, the figures of their attention, and what is refused.
. "$(dirname "$0")/lib.sh"

mkdir net
cp "$here"/../goldens/encoders/bert/{config.json,model.safetensors} net
printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' a b c d e f g h i j k l m n o >net/vocab.txt
printf 'a b c\na b c d e f g\na b c\nk\n' >texts.txt

run 0 embed net texts.txt -o mean.npz --json embed.json
out_has 'mean [8]   4 texts   mean.npz'
grep -qF '"count": 4' embed.json || fail 'the figures are not in embed.json'
grep -qF '"shortened": 0' embed.json || fail 'the figures are not in embed.json'
run 0 embed net texts.txt --of both --normalize -o both.safetensors
out_has 'both [16]   4 texts'
run 0 embed net texts.txt --max-length 4 -o short.npz
err_has 'shortened to 4 tokens: 3 of 4 texts'
run 0 measure net texts.txt --with entropy,collapse --brief --json measure.json
out_has 'blocks.1.attn'
grep -qF '"texts": 4' measure.json || fail 'the figures are not in measure.json'
run 0 measure net texts.txt --with entropy --init-seed 3 --brief
out_has 'blocks.1.attn'

# A network by its name has random weights, those of a checkpoint of the same shape.
small='--embed-dim 8 --depth 2 --num-heads 2 --mlp-ratio 2 --vocab-size 20 --max-positions 16'
# shellcheck disable=SC2086
run 0 measure bert_tiny texts.txt --init-seed 3 --tokenizer net $small --with collapse --brief --json named.json
grep -qx 'the network: bert_tiny, no head' stderr || fail "a network without files is described as $(cat stderr)"
grep -qF '"checkpoint": "bert_tiny"' named.json || fail 'the JSON does not name the network'
run 0 measure net texts.txt --init-seed 3 --with collapse --brief --json drawn.json
[ "$(sed 1,4d drawn.json)" = "$(sed 1,4d named.json)" ] || fail 'the weights of a named network are not those of the seed'
run 2 measure bert_tiny texts.txt
err_is <<<'attscope: measure: bert_tiny is the name of a network, without weights: give a checkpoint, or --init-seed N for random weights'
run 2 measure bert_tiny texts.txt --init-seed 3 --model bert_mini
err_has '--model bert_mini: bert_tiny is already the name of a network; leave out one of both'
run 1 measure bert_tiny texts.txt --init-seed 3
err_has 'bert_tiny was made without files, and so without a tokenizer; give the path of one'
run 1 measure bert_tin texts.txt --init-seed 3
err_has 'bert_tin: No such file or directory'

run 0 measure net texts.txt --with distance --limit 2 --brief --json limit.json
out_has '[text lengths]'
grep -qF '"texts": 2' limit.json || fail '--limit has no effect'
grep -qF '"unit": "text lengths"' limit.json || fail 'the unit in limit.json is that of images'
run 0 embed net texts.txt -b 1 -o one.npz

# Flags of images are refused, not ignored.
for flag in '--split test' '--skip-corrupt' '--workers 1' '--coarse-labels'; do
    for command in "measure net texts.txt --with entropy" "embed net texts.txt -o x.npz"; do
        run 2 $command $flag
        err_has "${flag%% *} is for images; bert_base_uncased is a network for texts"
    done
done

# Each line is a text, also a blank one at the end.
printf 'a\n\n\n' >blank.txt
run 0 embed net blank.txt -o x.npz
out_has 'mean [8]   3 texts'
printf '\n\n' >blank.txt
run 0 embed net blank.txt -o x.npz
out_has 'mean [8]   2 texts'
run 0 tokenize net --texts blank.txt
[ "$(grep -cxF '[CLS] [SEP]' stdout)" = 2 ] || fail 'blank lines are not two texts'

# The length of sentence-transformers is the default, for whole texts of 9 tokens.
cp -r net sentence
echo '{"max_seq_length": 4, "do_lower_case": false}' >sentence/sentence_bert_config.json
run 0 embed sentence texts.txt -o x.npz
err_has 'texts are shortened to 4 tokens, as sentence_bert_config.json says; the network takes 16'
err_has 'shortened to 4 tokens: 3 of 4 texts'
cmp -s x.npz short.npz || fail 'the vectors are not those of --max-length 4'
run 0 embed sentence texts.txt --max-length 16 -o x.npz
! grep -q shortened stderr || fail 'texts of at most 9 tokens are shortened to 16'
cmp -s x.npz mean.npz || fail '--max-length does not replace the length in sentence_bert_config.json'
echo '{"max_seq_length": "long"}' >sentence/sentence_bert_config.json
run 1 embed sentence texts.txt -o x.npz
err_has 'sentence_bert_config.json: "max_seq_length" must be a whole number of at least 1, or null'

# Texts become lower case before a tokenizer that keeps the case.
tr abc ABC <texts.txt >upper.txt
echo '{"do_lower_case": false}' >sentence/tokenizer_config.json
echo '{"do_lower_case": true}' >sentence/sentence_bert_config.json
run 0 embed sentence upper.txt -o x.npz
cmp -s x.npz mean.npz || fail 'do_lower_case in sentence_bert_config.json has no effect'
run 0 embed sentence upper.txt --max-length 16 -o x.npz
cmp -s x.npz mean.npz || fail 'do_lower_case has no effect beside --max-length'
echo '{"do_lower_case": false}' >sentence/sentence_bert_config.json
run 0 embed sentence upper.txt -o x.npz
! cmp -s x.npz mean.npz || fail 'texts become lower case without do_lower_case'
echo '{"do_lower_case": "yes"}' >sentence/sentence_bert_config.json
run 1 embed sentence texts.txt -o x.npz
err_has 'sentence_bert_config.json: "do_lower_case" must be true, false or null'
rm sentence/tokenizer_config.json
rm sentence/sentence_bert_config.json
sed -i '$d' sentence/vocab.txt
run 0 embed sentence texts.txt -o x.npz
err_has 'warning: sentence: the tokenizer has 19 pieces, and the vocabulary of bert_base_uncased has 20'

# What a network reads, and what was given.
image="$here/../goldens/images/damaged_420.jpg"
for data in . "$image"; do
    run 1 measure net "$data"
    err_has 'bert_base_uncased reads texts, a file of them in UTF-8 with one a line'
    run 1 embed net "$data" -o x.npz
    err_has 'bert_base_uncased reads texts, a file of them in UTF-8 with one a line'
done
for command in 'predict net texts.txt' 'validate net texts.txt' 'probe net texts.txt texts.txt'; do
    run 1 $command
    err_has 'bert_base_uncased reads texts, and this needs a network that reads images'
    ! grep -qF 'attscope train' stderr || fail "$command advises a training run"
done

# Maps of texts: a picture and the values for each line.
run 0 maps net texts.txt -o maps --query token:1 --attn-layers 1 --heads 1 --json maps.json
[ "$(ls maps | wc -l)" = 8 ] || fail "maps of 4 texts: $(ls maps)"
grep -qF '>b</text>' maps/text1.attention.blocks.1.attn.head1.svg || fail 'a word is not in its picture'
run 0 maps net texts.txt -o grid --form grid --show attention,mean --max-length 4
err_has 'shortened to 4 tokens: 3 of 4 texts'
[ "$(ls grid | wc -l)" = 12 ] || fail "maps in a grid: $(ls grid)"
run 1 maps net texts.txt -o m --format png
err_has 'pictures of texts are svg'
run 1 maps net texts.txt -o m --mean-maps all
err_has 'mean maps are of images'
run 1 maps net texts.txt -o m --show chefer
err_has 'this one has no head'
run 2 maps net texts.txt texts.txt -o m
err_has 'reads texts: give one file of them'
run 1 maps net . -o m
err_has 'bert_base_uncased reads texts, a file of them in UTF-8 with one a line'
run 2 maps "$here/../goldens/layouts/dinov3" "$image" -o m --tokenizer net
err_has '--tokenizer and --max-length are for texts'

# Ablations of texts: by the vector, or by the class that the unchanged network predicts.
run 0 ablate net texts.txt --heads all --branches mlp --json ablate.json --npz ablate.npz
out_has '4 texts, by the vector "mean"'
[ "$(grep -cE '^  blocks\.' stdout)" = 6 ] || fail "parts: $(cat stdout)"
! grep -qE 'accuracy|p_class' stdout || fail 'a network without classes has an accuracy'
grep -q '^28 runs of a text in ' stderr || fail "the number of runs: $(cat stderr)"
grep -qF '"texts": 4' ablate.json || fail 'the JSON has no number of texts'
run 1 ablate net texts.txt --tokens class
err_has 'token N of two texts are different words'
run 1 ablate net texts.txt --greedy
err_has 'a greedy ablation needs classes'
run 2 ablate net texts.txt --split test
err_has '--split is for images'

run 1 explain net texts.txt
err_has 'attscope maps --show chefer draws the relevance of the tokens of a text'
run 1 stack net "$image"
err_has 'attscope measure --with collapse switches skips and MLPs off in networks for texts'

run 0 probe --help
! grep -qE 'a text|texts' stdout || fail 'probe, which takes images, speaks of texts'

# A network for texts is refused before the run begins.
idx data
run 1 train data --model bert_tiny --output out
err_has 'bert_tiny reads texts, and this needs a network that reads images'
! grep -qF 'trains bert_tiny' stderr || fail 'a run is announced that cannot be'

# A classifier of texts: its data have no classes.
mkdir classes
cp "$here"/../goldens/encoders/bert_classes/{config.json,model.safetensors} net/vocab.txt classes
run 0 measure classes texts.txt --brief
err_has 'accuracy is left out: it needs classes, and texts have none'
! grep -q accuracy stdout || fail 'accuracy is measured without classes'
run 0 ablate classes texts.txt --greedy --brief
grep -qE '^unchanged: accuracy 100.00 %, loss [0-9.]+, p_class [0-9.]+; 4 texts, of which 4 have no class' stdout ||
    fail "the unchanged classifier: $(cat stdout)"
run 0 maps classes texts.txt -o relevance --show chefer,grad_cam --class 1
grep -qF '<rect' relevance/text4.chefer.svg || fail 'no map of relevance of a text'
run 1 maps classes texts.txt -o m --show occlusion
err_has 'occlusion needs an image, and this network reads texts; these methods apply to texts: chefer'
run 1 measure classes texts.txt --with accuracy
err_has 'accuracy cannot be measured on these texts: it needs classes, and texts have none'
run 1 measure net texts.txt --with entropy,stiffness_index
err_has 'stiffness_index cannot be measured on these texts: it needs texts of one length'
run 2 measure net texts.txt --with entropy --samples 2
err_has '--samples is for images; bert_base_uncased is a network for texts'
run 2 embed net texts.txt --knn 3
err_has '--knn classifies images'
run 1 embed net texts.txt --tokenizer "$here/../goldens/texts/uncased.json" -o x.npz
err_has 'give the tokenizer of this network'
run 2 embed net texts.txt --max-length 17 -o x.npz
err_has '--max-length 17: bert_base_uncased takes at most 16 tokens'
run 1 embed net nothing.txt -o x.npz
err_has 'nothing.txt'
: >empty.txt
run 2 embed net empty.txt -o x.npz
err_has 'empty.txt: there are no texts'
rm net/vocab.txt
run 1 embed net texts.txt -o x.npz
err_has 'net has no tokenizer (tokenizer.json or vocab.txt); give the path of the network'
run 0 inspect net
out_has 'bert_base_uncased'
out_has 'max_positions'

# Random texts without padding.
run 0 bench --model bert_tiny --batch-size 2 --repeats 1
out_has 'bert_tiny/infer'

needs python3
python3 - <<'END' || fail 'the vectors or figures of texts are wrong'
import json, math, struct, zipfile

def read(path):
    data = zipfile.ZipFile(path).read("features.npy")
    header = 10 + struct.unpack("<H", data[8:10])[0]
    values = struct.unpack(f"<{(len(data) - header) // 4}f", data[header:])
    return [values[i:i + 8] for i in range(0, len(values), 8)]

def array(path, name, kind):
    data = zipfile.ZipFile(path).read(f"{name}.npy")
    header = 10 + struct.unpack("<H", data[8:10])[0]
    return struct.unpack(f"<{(len(data) - header) // struct.calcsize(kind)}{kind}", data[header:])

told = json.load(open("maps.json"))
for i, count in enumerate([5, 9, 5, 3]):
    name = f"attention.blocks.1.attn.head1"
    weights, ids = array(f"maps/text{i + 1}.npz", name, "d"), array(f"maps/text{i + 1}.npz", "tokens", "i")
    assert len(weights) == len(ids) == count and abs(sum(weights) - 1) < 1e-6, weights
    assert told[i]["text"] == f"text{i + 1}" and told[i]["maps"][0]["values"] == list(weights), told[i]
assert told[0]["tokens"] == ["[CLS]", "a", "b", "c", "[SEP]"], told[0]
mean, short = read("mean.npz"), read("short.npz")
assert mean[0] == mean[2] and mean[0] != mean[1] and short[3] == mean[3] and short[0] != mean[0]
data = open("both.safetensors", "rb").read()
length = struct.unpack("<Q", data[:8])[0]
begin, end = json.loads(data[8:8 + length])["features"]["data_offsets"]
both = struct.unpack(f"<{(end - begin) // 4}f", data[8 + length + begin:8 + length + end])
assert all(abs(sum(x * x for x in both[i:i + 16]) - 1) < 1e-5 for i in range(0, 64, 16))
counts = [5, 9, 5, 3]
found = [m for m in json.load(open("measure.json"))["measurements"] if m["instrument"] == "entropy"][0]
assert found["n"] == 4 and abs(found["bound"] - sum(map(math.log, counts)) / 4) < 1e-6, found
END
finish
