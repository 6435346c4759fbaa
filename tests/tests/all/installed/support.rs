//! The installation under test, tests' directories, and commands with readable failures.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// The installation.
pub fn prefix() -> PathBuf {
    let prefix =
        std::env::var_os("BH_TEST_PREFIX").expect("BH_TEST_PREFIX names an installed bh; try `cargo xtask test`");
    let prefix = PathBuf::from(prefix);
    assert!(prefix.join("bin/bh").is_file(), "BH_TEST_PREFIX: there is no bh in {}", prefix.display());
    prefix
}

/// The repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_path_buf()
}

/// A directory outside of the repository, removed if the test passes and kept otherwise.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new(name: &str) -> Scratch {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("bh-{name}-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file of the directory and returns its path.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = fs::remove_dir_all(&self.0);
        }
    }
}

/// A command without the tester's own settings of bh.
pub fn command(program: impl AsRef<Path>) -> Command {
    let mut command = Command::new(program.as_ref());
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("BH_") {
            command.env_remove(name);
        }
    }
    // Ignores the user's own configuration.
    command.env("XDG_CONFIG_HOME", "/nonexistent");
    command
}

/// Runs a command, which must succeed; returns its standard output.
pub fn run(command: &mut Command) -> String {
    let (ended, printed, errors) = attempt(command);
    assert!(ended, "{command:?} failed\n{printed}\n{errors}");
    printed
}

/// Runs a command; returns success, standard output and standard error.
pub fn attempt(command: &mut Command) -> (bool, String, String) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.success(), text(&output.stdout), text(&output.stderr))
}

/// The output of pkg-config for bh in an installation.
pub fn pkg_config(prefix: &Path, options: &[&str]) -> Vec<String> {
    let mut command = command("pkg-config");
    // Ignores other installations' files.
    command
        .args(options)
        .arg("bh")
        .env("PKG_CONFIG_LIBDIR", prefix.join("lib/pkgconfig"))
        .env_remove("PKG_CONFIG_PATH");
    run(&mut command).split_whitespace().map(str::to_owned).collect()
}

/// Compiles one file against an installation, with warnings as errors; returns the program.
pub fn compile(prefix: &Path, source: &Path) -> PathBuf {
    let program = source.with_extension("program");
    let cpp = source.extension().is_some_and(|extension| extension == "cpp");
    let mut compiler = command(if cpp { "c++" } else { "cc" });
    compiler.arg(if cpp { "-std=c++17" } else { "-std=c99" }).args(["-Wall", "-Wextra", "-Werror", "-O1", "-o"]);
    compiler.arg(&program).arg(source).args(pkg_config(prefix, &["--cflags", "--libs"]));
    compiler.arg(format!("-Wl,-rpath,{}", prefix.join("lib").display())).args(["-lm", "-lpthread"]);
    run(&mut compiler);
    program
}

/// Copies a directory tree; links stay links.
pub fn copy_tree(from: &Path, to: &Path) {
    run(command("cp").arg("-a").arg(from).arg(to));
}
