//! Gives the shared library its versioned name.

fn main() {
    let major = std::env::var("CARGO_PKG_VERSION_MAJOR").unwrap_or_default();
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libbh_bridge_c.so.{major}");
    println!("cargo:rerun-if-changed=build.rs");
}
