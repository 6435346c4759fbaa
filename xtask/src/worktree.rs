//! `cargo xtask worktree DIR`: a further checkout on a branch of its own, whose target folder begins as a copy of this one's, so
//! that nothing is built again that is the same.

use crate::command::{Failure, Outcome, output, root, run as execute, target};
use crate::test::PROFILE;
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

/// Runs the command line `worktree DIR`; the branch has the name of the folder.
pub fn run(arguments: &[String]) -> Outcome {
    let [folder] = arguments else { return Err(Failure("worktree needs one folder".into())) };
    let folder = Path::new(folder);
    let name = folder.file_name().and_then(|name| name.to_str());
    let name = name.ok_or_else(|| Failure(format!("{} is no folder to make", folder.display())))?;
    let mut add = Command::new("git");
    execute(add.args(["worktree", "add", "-b", name]).arg(folder).current_dir(root()))?;
    let folder = root().join(folder);
    copy_built(&folder.join("target"))?;
    age_sources(&folder)?;
    println!("{} is on the branch {name}, with what was built here", folder.display());
    Ok(())
}

/// Copies what was built, and the environment of Python's tests, while no cargo writes there.
fn copy_built(to: &Path) -> Outcome {
    fs::create_dir_all(to)?;
    // Cargo holds this file's lock while it builds.
    let lock = File::options().create(true).append(true).open(target().join(PROFILE).join(".cargo-lock"))?;
    lock.lock()?;
    for part in [PROFILE, "python", "CACHEDIR.TAG"] {
        if target().join(part).exists() {
            execute(Command::new("cp").args(["-a", "--reflink=auto"]).arg(target().join(part)).arg(to))?;
        }
    }
    Ok(())
}

/// Gives the files that are the same here and there the time that they have here: cargo builds again what is newer than its
/// results.
fn age_sources(folder: &Path) -> Outcome {
    let list = output(Command::new("git").args(["ls-files", "-z"]).current_dir(folder))?;
    for name in list.split_terminator('\0') {
        let (here, there) = (root().join(name), folder.join(name));
        let is_file = |path: &Path| fs::symlink_metadata(path).is_ok_and(|data| data.is_file());
        if is_file(&here) && is_file(&there) && fs::read(&here)? == fs::read(&there)? {
            File::options().append(true).open(&there)?.set_modified(fs::metadata(&here)?.modified()?)?;
        }
    }
    Ok(())
}
