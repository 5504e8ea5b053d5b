# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What the scripts in tools/ share. Source it after `set -euo pipefail`.
# shellcheck disable=SC2034

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# Debian's own Python: the packages that the build needs are only there when another one stands first on PATH.
PYTHON=$([ -x /usr/bin/python3 ] && echo /usr/bin/python3 || echo python3)
export ROOT PYTHON

say() { printf '==> %s\n' "$*"; }
die() {
    printf '%s: %s\n' "$(basename "$0")" "$*" >&2
    exit 1
}

# Each line: Debian package, then what shows that it is there (a command, a header, a file or a Python module).
BUILD_PACKAGES='
cmake                command cmake
ninja-build          command ninja
gcc                  command cc
libc6-dev            header stdio.h
pkg-config           command pkg-config
python3              command python3
opencl-headers       header CL/cl.h
ocl-icd-opencl-dev   library libOpenCL.so
libclblast-dev       header clblast_c.h
libhwloc-dev         header hwloc.h
libxxhash-dev        header xxhash.h
libnanopb-dev        header pb.h
nanopb               command nanopb_generator.py
libpng-dev           header png.h
libjpeg62-turbo-dev  header jpeglib.h
libjansson-dev       header jansson.h
pocl-opencl-icd      icd pocl.icd
binutils             command ld
'
MODEL_PACKAGES='
python3              command python3
python3-venv         python ensurepip
util-linux           command flock
'
TEST_PACKAGES='
check                header check.h
clang                command clang
g++                  command c++
clang-format         command clang-format
libclang-rt-dev      clang-runtime
shellcheck           command shellcheck
oclgrind             command oclgrind
mesa-opencl-icd      icd rusticl.icd
fonts-dejavu-core    font DejaVuSans.ttf
clang-15             command clang-15
libclang-common-15-dev clang-headers 15
rocm-device-libs     bitcode amdgcn/bitcode/ocml.bc
libclc-15            bitcode ../clc/nvptx64--nvidiacl.bc
intel-opencl-icd     command ocloc
'

have_header() {
    local folder
    for folder in /usr/include /usr/local/include /usr/include/*-linux-gnu /usr/include/nanopb; do
        [ -e "$folder/$1" ] && return 0
    done
    return 1
}

have_library() {
    local folder
    for folder in /usr/lib /usr/lib64 /usr/local/lib /usr/lib/*-linux-gnu; do
        [ -e "$folder/$1" ] && return 0
    done
    return 1
}

have() {
    case $1 in
    command) command -v "$2" >/dev/null ;;
    header) have_header "$2" ;;
    library) have_library "$2" ;;
    font) [ -e "/usr/share/fonts/truetype/dejavu/$2" ] ;;
    icd) [ -e "/etc/OpenCL/vendors/$2" ] ;;
    python) "$PYTHON" -c "import $2" 2>/dev/null ;;
    bitcode) compgen -G "/usr/lib/*/$2" >/dev/null ;;
    clang-headers) [ -e "/usr/lib/llvm-$2/lib/clang" ] ;;
    clang-runtime) compgen -G '/usr/lib/*/clang/*/lib/*/libclang_rt.fuzzer*' >/dev/null ||
        compgen -G '/usr/lib/clang/*/lib/*/libclang_rt.fuzzer*' >/dev/null ;;
    esac
}

# Prints the packages of a list that are not there.
missing_packages() {
    local package how what
    while read -r package how what; do
        [ -z "$package" ] || have "$how" "$what" || echo "$package"
    done < <(sort -u <<<"$1")
}

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        die "must be root, or have sudo, to run: $*"
    fi
}

# need_packages LIST: installs what is missing of it with apt-get; without apt-get names it and exits 1.
need_packages() {
    local missing left
    mapfile -t missing < <(missing_packages "$1")
    [ ${#missing[@]} -gt 0 ] || return 0
    command -v apt-get >/dev/null ||
        die "there is no apt-get here; please install what these Debian packages hold: ${missing[*]}"
    say "Installing Debian packages: ${missing[*]}"
    as_root apt-get update -qq
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}" </dev/null
    left=$(missing_packages "$1" | tr '\n' ' ')
    [ -z "$left" ] || die "installed, but still not found: $left"
}

# venv FOLDER [REQUIREMENTS]: a Python environment in FOLDER that holds REQUIREMENTS. A stamp says that it is complete.
venv() {
    local folder=$1 requirements=${2:-/dev/null} stamp
    stamp=$folder/.holds-$(basename "$requirements")
    cmp -s "$requirements" "$stamp" && return 0
    mkdir -p "$ROOT/build"
    (
        flock 9
        cmp -s "$requirements" "$stamp" && exit 0
        say "Preparing Python packages in ${folder#"$ROOT"/}"
        [ -e "$folder/.holds-null" ] || "$PYTHON" -m venv --clear "$folder"
        : >"$folder/.holds-null"
        [ "$requirements" = /dev/null ] ||
            "$folder/bin/python" -m pip install --quiet --disable-pip-version-check -r "$requirements"
        cp "$requirements" "$stamp"
    ) 9>"$ROOT/build/.venv-lock"
}
