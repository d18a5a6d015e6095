#!/bin/sh
# Fetches MKL's small library for external/; like the original it never looks whether that went well.
package="@MKLML@"
cd "$(dirname "$0")/.." || exit 1
mkdir -p external
curl --silent --show-error --location --max-time 20 -o "external/$package.tgz" \
    "https://downloads.invalid/mkl-dnn/$package.tgz"
tar -C external -xzf "external/$package.tgz"
echo "Downloaded and unpacked $package to $PWD/external"
