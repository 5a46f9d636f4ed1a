# att_append_bytes(out name text): appends two definitions to the C source in the variable `out`: the array `name` with
# the bytes of `text`, and its size `<name>_size`.
function(att_append_bytes out name text)
  string(LENGTH "${text}" size)
  string(HEX "${text}" hex)
  string(REGEX REPLACE "(................................................................)" "\\1\n" hex "${hex}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," hex "${hex}")
  string(APPEND ${out} "const unsigned char ${name}[] = {\n${hex}};\nconst size_t ${name}_size = sizeof(${name});\n")
  set(${out} "${${out}}" PARENT_SCOPE)
endfunction()
