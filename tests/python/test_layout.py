"""The structs and constants of the package are those of the headers."""

import ctypes
import os
import subprocess
from pathlib import Path

from attscope import _library as lib
from common import Case, environment, main

INCLUDE = Path(__file__).parents[2] / "include"


class Layout(Case):
    def compile_and_run(self, lines):
        """Runs a C program that prints numbers, each by an expression."""
        code = "#include <attscope/attscope.h>\n#include <attscope/lab.h>\n#include <stdio.h>\nint main(void)\n{\n"
        code += "".join(f'    printf("%zu\\n", (size_t)({line}));\n' for line in lines)
        Path("layout.c").write_text(code + "}\n")
        compiler = os.environ.get("CC", "cc")
        subprocess.run([compiler, f"-I{INCLUDE}", "layout.c", "-o", "layout"], check=True)
        run = subprocess.run(["./layout"], check=True, capture_output=True, text=True, env=environment())
        return [int(line) for line in run.stdout.split()]

    def test_structs(self):
        structs = [value for value in vars(lib).values() if isinstance(value, type(ctypes.Structure))]
        self.assertGreater(len(structs), 20)
        lines, wanted = [], []
        for struct in structs:
            name = struct.__name__
            lines.append(f"sizeof({name})")
            wanted.append((name, ctypes.sizeof(struct)))
            for member, kind in struct._fields_:
                in_c = member.rstrip("_")  # "with" is a word of Python
                lines.append(f"offsetof({name}, {in_c}) * 65536 + sizeof((({name} *)0)->{in_c})")
                wanted.append((f"{name}.{member}", getattr(struct, member).offset * 65536 + ctypes.sizeof(kind)))
        for (name, value), found in zip(wanted, self.compile_and_run(lines), strict=True):
            self.assertEqual(found, value, name)

    def test_constants(self):
        names = {
            "ATT_F32": lib.F32,
            "ATT_F64": lib.F64,
            "ATT_FULL": lib.FULL,
            "ATT_MIXED": lib.MIXED,
            "ATT_LOG_WARNING": lib.LOG_WARNING,
            "ATT_EVENT_EPOCH": lib.EVENT_EPOCH,
            "ATT_OPTION_SWITCH": lib.SWITCH,
            "ATT_HEAD_REMOVED": lib.HEAD_REMOVED,
            "ATT_HEAD_UNIFORM": lib.HEAD_UNIFORM,
            "ATT_INSERTION": lib.CURVES.index("insertion"),
            "ATT_CURVE_MOST_STEPS": lib.MOST_STEPS,
            "ATT_MAX_RANK": lib.MAX_RANK,
            "ATT_MOST_SCALES": lib.MOST_SCALES,
        }
        for i, name in enumerate(lib.TORCH_DTYPES):
            known = name.replace("bfloat", "BF").replace("float", "F").replace("uint", "U").replace("int", "I")
            names[f"ATT_SAFETENSORS_{known.upper()}"] = i
        self.assertEqual(self.compile_and_run(names), list(names.values()))

    def test_version(self):
        header = (INCLUDE / "attscope" / "version.h").read_text()
        self.assertIn(f'#define ATT_VERSION "{lib.version}"', header)


if __name__ == "__main__":
    main()
