//! The Debian package: built from an installation, unpacked without root, and used.

use super::install::check_cmake;
use super::support::{Scratch, command, compile, prefix, root, run};

#[test]
fn the_debian_package_is_complete() {
    let scratch = Scratch::new("deb");
    let file = scratch.path().join("bh.deb");
    // The usual compression takes most of a minute; nothing here depends on it.
    let quick = [("DPKG_DEB_COMPRESSOR_TYPE", "gzip"), ("DPKG_DEB_COMPRESSOR_LEVEL", "1")];
    run(command("sh").arg(root().join("packaging/deb.sh")).arg(prefix()).arg(&file).envs(quick));

    let fields = run(command("dpkg-deb").arg("--field").arg(&file));
    for field in ["Package: bh\n", concat!("Version: ", env!("CARGO_PKG_VERSION")), "Depends: libc6", "Description: "] {
        assert!(fields.contains(field), "{field:?} in\n{fields}");
    }
    let contents = run(command("dpkg-deb").arg("--contents").arg(&file));
    for line in contents.lines() {
        assert!(line.contains(" root/root "), "not root's: {line}");
    }

    let unpacked = scratch.path().join("root");
    run(command("dpkg-deb").arg("--extract").arg(&file).arg(&unpacked));
    let prefix = unpacked.join("usr");
    for file in ["share/doc/bh/copyright", "share/man/man1/bh.1.gz", "lib/bh/libbh_ve_cpu.so", "include/bh.h"] {
        assert!(prefix.join(file).is_file(), "{file} in\n{contents}");
    }
    let source = scratch.write(
        "main.c",
        "#include <bh.h>\n#include <stdio.h>\nint main(void) {\n    bh_array *a;\n    const char *text;\n    \
         int64_t shape[] = {3};\n    if (bh_ones(&a, NULL, BH_TYPE_F32, 1, shape) || bh_format(&text, a)) return 1;\n    \
         puts(text);\n    return 0;\n}\n",
    );
    let printed = run(&mut command(compile(&prefix, &source)));
    assert_eq!(printed.trim(), "[1. 1. 1.]");
    check_cmake(&prefix);
    let info = run(command(prefix.join("bin/bh")).arg("info"));
    assert!(info.contains(" * cpu"), "{info}");
}
