#!/bin/bash
# Hostile archives and images: files outside the archive are skipped and counted; files that would not fit into memory
# are refused with one message, before memory is allocated.
. "$(dirname "$0")/../cli/lib.sh"
idx data
# shellcheck disable=SC2086
run 0 train data $network $recipe --epochs 1 --output out --experiment made
checkpoint=out/made/last.safetensors
pictures=$here/../goldens/images

# Names that lead out of the archive, absolute names, links to other places.
mkdir -p inside/box/val/{a,b}
cp "$pictures/422.jpg" inside/box/val/a/1.jpg
cp "$pictures/grey.png" inside/box/val/b/2.png
cp "$pictures/grey.png" inside/evil.png
ln -s /etc/passwd inside/box/val/a/link.png
ln inside/box/val/a/1.jpg inside/box/val/b/hard.jpg
(cd inside/box && tar --sort=name -cPf ../../evil.tar val ../evil.png "$work/inside/evil.png")
printf '%s\n' a b >classes.txt
run 0 validate evil.tar --checkpoint $checkpoint --class-map classes.txt
err_has 'warning: evil.tar: skipped 4 links, devices, sparse files or unsafe names'
err_has 'evil.tar, val: 2 images, 2 classes'; grep -qE '2 images$' stdout || fail "$command_line: $(cat stdout)"
[ "$(find . -name 'evil*' | sort | tr '\n' ' ')" = './evil.tar ./inside/evil.png ' ] || fail 'something was unpacked'

# A gzipped tar that decompresses to a thousand times its size, and to more than is allowed.
mkdir -p bomb/val/a
head -c 100000000 /dev/zero >bomb/val/a/1.png
tar -C bomb -czf bomb.tar.gz val
[ "$(wc -c <bomb.tar.gz)" -lt 200000 ] || fail 'the archive is too large for this test'
run 1 train bomb.tar.gz --initial-checkpoint $checkpoint --epochs 1 --cache-bytes 1000000 --output out --experiment bomb
err_has 'attscope: bomb.tar.gz: its files exceed the limit of 1000000 bytes kept in memory'

# A zip whose only image is 400 MB of zeros: a local header, the deflated bytes (which gzip writes between its header
# and its checksum), the directory and its end.
little() { # NUMBER: in 4 bytes
    local i
    for i in 0 8 16 24; do printf '%b' "\\x$(printf '%02x' $(($1 >> i & 255)))"; done
}
head -c 400000000 /dev/zero | gzip -1n >zeros.gz
packed=$(($(wc -c <zeros.gz) - 18)) entry=val/a/1.png
{ printf '\24\0\0\0\10\0\0\0\0\0'; tail -c 8 zeros.gz | head -c 4; little $packed; little 400000000; printf '\13\0\0\0'; } >facts
{
    printf 'PK\3\4'; cat facts; printf %s $entry; tail -c +11 zeros.gz | head -c $packed
    printf 'PK\1\2\24\0'; cat facts; printf '\0\0\0\0\0\0\0\0\0\0\0\0\0\0'; printf %s $entry
    printf 'PK\5\6\0\0\0\0\1\0\1\0'; little 57; little $((41 + packed)); printf '\0\0'
} >bomb.zip
run 1 validate bomb.zip --checkpoint $checkpoint --class-map classes.txt
err_has 'bomb.zip/val/a/1.png: 400000000 bytes, more than the limit of 268435456'

# A gzipped IDX file with data after its images.
mkdir idx
{ head -c 8 data/t10k-images-idx3-ubyte; head -c 100000000 /dev/zero; } | gzip >idx/t10k-images-idx3-ubyte.gz
cp data/t10k-labels-idx1-ubyte idx
run 1 validate idx --checkpoint $checkpoint
err_has 'attscope: idx/t10k-images-idx3-ubyte.gz'

# Images whose headers state gigabytes: 60,000 x 60,000 and 65,500 x 65,500 pixels.
printf '\211PNG\r\n\032\n\0\0\0\015IHDR\0\0\352\140\0\0\352\140\010\002\0\0\0\017\260\342\025' >bomb.png
printf '\377\330\377\302\0\021\010\377\334\377\334\003\001\042\0\002\021\0\003\021\0\377\332\0\014\003\001\0\002\0\003\0\0\077\0\377\331' >bomb.jpg
for picture in bomb.png bomb.jpg; do
    run 1 predict $checkpoint $picture
    err_has "attscope: $picture: "
    err_has 'an image may have at most 67108864'
done
finish
