#!/bin/sh
# Makes a Debian package of an installation: packaging/deb.sh PREFIX FILE.deb
# PREFIX is what `cargo xtask install --prefix` made. Needs dpkg-deb and binutils; no root.
set -eu

if [ $# -ne 2 ] || [ ! -x "$1/bin/bh" ]; then
    echo "usage: $0 PREFIX FILE.deb    (PREFIX: made by cargo xtask install)" >&2
    exit 2
fi
prefix=$1
file=$2
repository=$(cd "$(dirname "$0")/.." && pwd)

# The installation's own pkg-config file knows the version.
version=$(sed -n 's/^Version: *//p' "$prefix/lib/pkgconfig/bh.pc")
architecture=$(dpkg --print-architecture)

tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
umask 022
chmod 755 "$tree"
mkdir -p "$tree/DEBIAN" "$tree/usr"
cp -a "$prefix/." "$tree/usr/"

# Debian's places for licences and manuals.
documents=$tree/usr/share/doc/bh
mkdir -p "$documents"
{
    echo "bh $version, licensed under MIT or Apache-2.0, at your option."
    echo
    cat "$repository/LICENSE-MIT"
    echo
    echo "The Apache License 2.0 is in /usr/share/common-licenses/Apache-2.0."
} > "$documents/copyright"
cp "$repository/CHANGELOG.md" "$documents/changelog"
gzip -9nf "$documents/changelog"
find "$tree/usr/share/man" -name '*.1' -exec gzip -9nf {} +

# Symbols for debuggers stay behind; what is exported stays.
find "$tree/usr/bin" "$tree/usr/lib" -type f \( -name 'bh' -o -name '*.so*' \) -exec strip --strip-unneeded {} +
find "$tree/usr" -type d -exec chmod 755 {} +
find "$tree/usr" -type f -exec chmod 644 {} +
chmod 755 "$tree/usr/bin/"*

cat > "$tree/DEBIAN/control" <<CONTROL
Package: bh
Version: $version
Section: science
Priority: optional
Architecture: $architecture
Maintainer: The bh maintainers <bh@localhost>
Installed-Size: $(du -sk "$tree/usr" | cut -f1)
Depends: libc6, libgcc-s1
Suggests: openmpi-bin | mpich, ocl-icd-libopencl1
Description: lazy, fused array programs on every core
 Library, components, headers and tools of bh, which records whole-array
 operations of C and C++ programs as vector bytecode, fuses them, and runs them
 on the engine that a configuration file names.
CONTROL
# dpkg runs ldconfig by itself when this is asked.
echo "activate-noawait ldconfig" > "$tree/DEBIAN/triggers"
(cd "$tree" && find usr -type f -print0 | sort -z | xargs -0 md5sum) > "$tree/DEBIAN/md5sums"

dpkg-deb --root-owner-group --build "$tree" "$file" > /dev/null
echo "made $file"
