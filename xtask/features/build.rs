//! Nothing: with a build script, cargo counts the build dependencies of the manifest.

fn main() {}
