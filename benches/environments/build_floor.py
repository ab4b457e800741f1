"""Tells the least that a build of vLLM for processors takes on this machine, to hold an overlay against.

    python3 build_floor.py SOURCES TORCH [--stop-after SECONDS]

SOURCES is the unpacked source distribution of a release, TORCH the folder of an installed torch (its headers are used). Each
source file of the extension's three variants is compiled as `cmake/cpu_extension.cmake` asks, one at a time, and the time
of the processor is added up, which other work on the machine doesn't lengthen much. Linking, oneDNN, and files that don't
compile here are left out: a build takes longer. Only the standard library is imported.
"""

import argparse
import os
import re
import resource
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

COMMON = "-O2 -std=gnu++20 -fPIC -fopenmp -DNDEBUG -DVLLM_CPU_EXTENSION -DVLLM_NUMA_DISABLED -fno-tree-pre -mf16c".split()
AVX512 = "-mavx512f -mavx512vl -mavx512bw -mavx512dq".split()
AMX = [*AVX512, *"-mamx-bf16 -mamx-tile -mavx512bf16 -mavx512vnni -DCPU_CAPABILITY_AMXBF16".split()]
# Which lists of source files each variant of the extension is made of, and its flags.
VARIANTS = {
    "_C": (("VLLM_EXT_SRC_AVX512", "VLLM_EXT_SRC_SGL"), AMX),
    "_C_AVX512": (("VLLM_EXT_SRC_AVX512",), AVX512),
    "_C_AVX2": (("VLLM_EXT_SRC_AVX2",), ["-mavx2"]),
}


def main():
    parser = argparse.ArgumentParser(description="Tells the least that a build of vLLM takes on this machine.")
    parser.add_argument("sources", type=Path, help="unpacked source distribution of a release")
    parser.add_argument("torch", type=Path, help="folder of an installed torch")
    parser.add_argument("--stop-after", type=float, help="stop once compilations have taken this many seconds")
    arguments = parser.parse_args()
    generate = arguments.sources / "csrc/cpu/generate_cpu_attn_dispatch.py"
    if generate.exists():
        subprocess.run([sys.executable, generate.name], cwd=generate.parent, check=True)
    jobs = list(compilations((arguments.sources / "cmake/cpu_extension.cmake").read_text()))
    total, compiled = 0.0, 0
    for number, (variant, source, flags) in enumerate(jobs, 1):
        seconds = compile_one(arguments.sources, arguments.torch, variant, source, flags)
        if seconds is not None:
            total, compiled = total + seconds, compiled + 1
        said = "doesn't compile here" if seconds is None else f"{seconds:.1f} s"
        print(f"{number}/{len(jobs)} {variant} {source}: {said}; {total:.0f} s so far", flush=True)
        if arguments.stop_after is not None and total >= arguments.stop_after:
            break
    cores = os.cpu_count()
    print(f"{compiled} of {len(jobs)} compilations: {total:.0f} s of processor time, {total / cores:.0f} s on {cores} cores")


def compilations(cmake):
    """Yields variant, source file and flags of each compilation that the build file asks for on x86."""
    x86 = cmake[cmake.index("if (ENABLE_X86_ISA)\n    set(") :]
    for variant, (lists, flags) in VARIANTS.items():
        for name in lists:
            for source in re.findall(r'"(csrc[^"]+\.cpp)"', re.search(rf"set\({name}(.*?)\)", x86, re.S).group(1)):
                yield variant, source, flags


def compile_one(sources, torch, variant, source, flags):
    """Compiles a file and returns the seconds of processor time, or None if it doesn't compile."""
    include = [sources / "csrc", sources / "csrc/cpu", sysconfig.get_paths()["include"]]
    include += [torch / "include", torch / "include/torch/csrc/api/include"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.NamedTemporaryFile(suffix=".o") as out:
        command = ["g++", *COMMON, *flags, f"-DTORCH_EXTENSION_NAME={variant}", "-DPy_LIMITED_API=3"]
        command += [word for folder in include for word in ("-I", str(folder))] + ["-c", str(sources / source), "-o", out.name]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime if done.returncode == 0 else None


if __name__ == "__main__":
    main()
