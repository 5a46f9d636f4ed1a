#!/bin/bash
# tokenize: texts, pairs, files of texts, JSON, and what is refused.
. "$(dirname "$0")/lib.sh"

tokenizer=$here/../goldens/texts/uncased.json
run 0 tokenize "$tokenizer" 'Not all.'
out_is <<'TEXT'
[CLS] n ##o ##t a ##l ##l . [SEP]
2 142 30 34 136 27 27 126 3
TEXT
run 0 tokenize "$tokenizer" 'Not' 'all' --max-length 5
out_is <<'TEXT'
[CLS] n [SEP] a [SEP]
2 142 3 136 3
TEXT
err_has '4 tokens removed at the end'
run 0 tokenize "$tokenizer" --plain ''
out_is <<<$'\n'

printf 'Not\r\n\nall\n' >texts.txt
run 0 tokenize "$tokenizer" --texts texts.txt --plain --json tokens.json
out_is <<'TEXT'
n ##o ##t
142 30 34


a ##l ##l
136 27 27
TEXT
tr -d ' \n' <tokens.json >joined
grep -qF '[{"tokens":[{"id":142,"piece":"n","type":0,"text":0,"begin":0,"end":1},' joined || fail "$(cat tokens.json)"
grep -qF '{"tokens":[],"removed":0},' joined || fail "$(cat tokens.json)"
run 0 tokenize "$tokenizer" 'Not' --json -
out_has '"piece": "[CLS]"'
! grep -q '^\[CLS\]' stdout || fail 'the pieces are beside the JSON'

printf 'one\nt\377o\n' >latin1.txt
run 1 tokenize "$tokenizer" --texts latin1.txt
err_is <<<'attscope: latin1.txt: line 2 is not UTF-8 at byte 1 (0xFF); convert it to UTF-8'
run 1 tokenize "$tokenizer" $'t\377o'
err_is <<<'attscope: the text is not UTF-8 at byte 1 (0xFF); convert it to UTF-8'
run 2 tokenize "$tokenizer" one --max-length 1
err_is <<<'attscope: the text: a length of at most 1 tokens has no room for the 2 special tokens'
printf 'one\ntwo\n' >texts.txt
run 2 tokenize "$tokenizer" --texts texts.txt --max-length 1
err_is <<<'attscope: texts.txt: line 1: a length of at most 1 tokens has no room for the 2 special tokens'
mkdir empty
run 1 tokenize empty one
err_is <<<'attscope: empty has neither tokenizer.json nor vocab.txt'
usage 'tokenize needs TOKENIZER TEXT, or TOKENIZER --texts FILE; see attscope tokenize --help' tokenize "$tokenizer"
usage 'give texts as operands or as --texts FILE, not both' tokenize "$tokenizer" one --texts texts.txt
finish
