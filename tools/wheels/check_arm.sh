#!/bin/sh
# Uses the aarch64 wheel of dist/ under qemu, with Debian's Python for ARM, which is unpacked into
# build/arm and not installed. Needs Debian's qemu-user, apt and dpkg, and a Python with pip.
#     tools/wheels/check_arm.sh [tests for pytest ...]
# Emulated, importing NumPy and SciPy alone takes a minute and more.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
arm=$root/build/arm
release=3.13
if ! command -v qemu-aarch64 >/dev/null || ! command -v apt-get >/dev/null; then
    echo "qemu-aarch64 or apt-get is not here: the aarch64 wheel is NOT used" >&2
    exit 1
fi
if [ ! -x "$arm/system/usr/bin/python$release" ]; then
    mkdir -p "$arm/state/lists/partial" "$arm/cache/archives/partial" "$arm/system/usr/lib"
    : >"$arm/status"
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]" \
        "http://deb.debian.org/debian trixie main" >"$arm/sources.list"
    apt() {
        apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State="$arm/state" \
            -o Dir::State::status="$arm/status" -o Dir::Cache="$arm/cache" \
            -o Dir::Etc::sourcelist="$arm/sources.list" -o Dir::Etc::sourceparts=- \
            -o APT::Install-Recommends=0 -o Debug::NoLocking=1 "$@"
    }
    apt update
    apt --yes --download-only install python$release libpython$release-stdlib libstdc++6 libgomp1
    ln -sfn usr/lib "$arm/system/lib"
    for package in "$arm"/cache/archives/*.deb; do dpkg-deb -x "$package" "$arm/system"; done
fi
packages=$arm/packages
rm -rf "$packages"
python3 -m pip install --quiet --disable-pip-version-check --target "$packages" \
    --python-version $release --platform manylinux_2_28_aarch64 --platform manylinux_2_17_aarch64 \
    --platform manylinux2014_aarch64 --only-binary :all: --find-links "$root/dist" \
    decision-machines pytest hypothesis
run() {
    PYTHONPATH=$packages qemu-aarch64 -L "$arm/system" \
        "$arm/system/usr/bin/python$release" "$@"
}
cd "$root"
run tools/wheels/first_prediction.py tests/libraries/xgboost/files
if [ $# -gt 0 ]; then run -m pytest -q -p no:cacheprovider "$@"; fi
