#!/bin/bash
# A training run with a teacher of other size and normalisation: its messages, records, resumes and refusals; in a sweep.
. "$(dirname "$0")/lib.sh"
too_long_sanitized
idx data

train 0 teacher --img-size 16 --mean 0.4 --std 0.3 --epochs 4
train 0 alone --epochs 2
! grep -q teacher out/alone/metrics.jsonl || fail 'the records of a training run without a teacher name one'
train 0 hard --epochs 2 --teacher out/teacher --json hard.json
err_has 'the teacher out/teacher: vit_tiny_patch16_224'
err_has 'the teacher: pos_embed: resampled from 4 x 4 patches to 2 x 2'
err_has 'the loss is 0.5 that of the labels + 0.5 that of the class that the teacher finds most probable'
[ "$(grep -c '^the loss is ' stderr)" = 1 ] || fail "$command_line: the loss is explained twice"
grep -qE '^epoch 2/2 .* waiting for data, [0-9]+ % the teacher$' stderr || fail 'the time of the teacher is not shown'
grep -qE '^[0-9.]+ images/s, [0-9]+ % of the time waiting for data, [0-9]+ % the teacher$' stderr ||
    fail 'the share of the teacher in the whole time is not shown'
grep -q '"teacher_share"' hard.json || fail 'hard.json has no teacher_share'
grep -q '"event":"run_begin".*"teacher":"out/teacher"' out/hard/metrics.jsonl || fail 'the records lack the teacher'
grep -q '"event":"epoch".*"teacher_share":0' out/hard/metrics.jsonl || fail 'the records lack the time of the teacher'
for line in 'teacher: out/teacher' 'teacher_model: null' 'distillation_type: hard' 'distillation_alpha: 0.5' \
    'distillation_tau: 1'; do
    grep -qxF "$line" out/hard/args.yaml || fail "args.yaml has no line '$line'"
done
train 0 soft --epochs 2 --teacher out/teacher/last.safetensors --distillation-type soft --distillation-alpha 0.9 \
    --distillation-tau 3
err_has "the loss is 0.1 that of the labels + 0.9 T^2 KL(teacher || network) / 4, at temperature T = 3; as in DeiT's"
! grep -q 'has no effect' stderr || fail 'a temperature of soft distillation is said to have no effect'
train 0 cool --epochs 1 --teacher out/teacher --distillation-tau 3
err_has '--distillation-tau 3 has no effect: it is the temperature of --distillation-type soft'
train 0 none --epochs 2 --teacher out/teacher --distillation-type none
err_has '--distillation-type none: the teacher is not used'

# A resume reads the teacher from args.yaml, and gives the same bits.
mkdir out/resumed
cp out/hard/args.yaml out/resumed
cp out/hard/checkpoint-0.safetensors out/resumed/last.safetensors
run 0 train --resume out/resumed/last.safetensors
cmp -s out/hard/last.safetensors out/resumed/last.safetensors || fail 'a resume with a teacher gives other bits'
run 1 train --resume out/hard --teacher out/alone
err_has 'cannot be resumed exactly: its teacher is out/teacher, here it is out/alone, with other weights or preprocessing'
run 1 train --resume out/alone --teacher out/teacher
err_has 'cannot be resumed exactly: it has no teacher, here it is out/teacher'

# --- refusals, before anything is written
train 1 wrong --teacher vit_tiny_patch16_224
err_has 'attscope: --teacher: there is no file or folder "vit_tiny_patch16_224"'
train 1 wrong --teacher out/teacher/args.yaml
err_has 'attscope: --teacher out/teacher/args.yaml, for "image" (8 x 8 pixels, 1 channel): '
train 1 wrong --teacher out/teacher --num-classes 5
err_has 'attscope: the teacher out/teacher has 4 classes, but the network has 5'
! grep -q 'are meaningful' stderr || fail 'advice about the classes of a teacher that is refused'
train 1 wrong --teacher out/teacher --in-chans 3
err_has 'attscope: the teacher out/teacher takes "image" (8 x 8 pixels, 1 channel), but the network "image" (8 x 8 pixels, 3 channels)'
for flags in '--distillation-type soft' '--distillation-alpha 0.1' '--distillation-tau 2'; do
    # shellcheck disable=SC2086
    train 2 wrong $flags
    err_has 'attscope: --distillation-type, -alpha and -tau need --teacher FILE'
done
train 2 wrong --teacher-model resnet20
err_has 'attscope: --teacher-model needs --teacher FILE'
usage '--distillation-alpha: "1.5" is not a number from 0 to 1' train data --distillation-alpha 1.5
usage '--distillation-type: there is no "sotf"; did you mean soft?' train data --distillation-type sotf
[ ! -e out/wrong ] || fail 'a refused training left a folder'

# --- a sweep
run 0 sweep out/hard/args.yaml data --vary distillation-type=none,hard --set epochs=1 --measure accuracy --output out \
    --experiment sweep
out_has 'distillation-type=hard'
run 1 sweep out/hard/args.yaml data --vary teacher=out/teacher,out/absent --output out --experiment absent
err_has '--teacher: there is no file or folder "out/absent"'
[ ! -e out/absent ] || fail 'a refused sweep left a folder'

# --- a teacher that has moved
mv out/teacher out/moved
run 1 train --resume out/hard
err_has '"out/teacher"; if it has moved, give its new place with --teacher FILE'
run 0 train --resume out/hard --teacher out/moved
finish
