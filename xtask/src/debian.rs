//! Debian's packages of other systems and machines, unpacked into a folder. Nothing is installed into this one.

use crate::command::{Failure, Outcome, output, run, target};
use crate::packages;
use std::fs;
use std::path::Path;
use std::process::Command;

/// The lists of sources that apt reads: Debian's own, without those of others, which may have nothing for another machine.
const SOURCES: [&str; 2] = ["/etc/apt/sources.list.d/debian.sources", "/etc/apt/sources.list"];

/// The checksums and the names of the packages of a list.
fn entries(list: &str) -> impl Iterator<Item = (&str, &str)> {
    list.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once("  "))
}

/// Fills a folder with the packages of a list, unless it has them. A line of the list is a comment after `#`, or the SHA-256 of a
/// package's file, two spaces, and `name=version` or `name:architecture=version`. If Debian replaces a version, the download fails
/// and names the package.
pub fn unpack(list: &str, folder: &Path) -> Outcome {
    let mark = folder.join("packages");
    if fs::read_to_string(&mark).is_ok_and(|known| known == list) {
        return Ok(());
    }
    packages::ensure(&[("apt-get", "apt"), ("dpkg-deb", "dpkg")])?;
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder)?;
    let archives = target().join("debian/archives");
    let _ = fs::remove_dir_all(&archives);
    download(list, &archives)?;
    for entry in fs::read_dir(&archives)? {
        let file = entry?.path();
        let sum = output(Command::new("sha256sum").arg("--binary").arg(&file))?;
        if !entries(list).any(|(known, _)| sum.starts_with(known)) {
            return Err(Failure(format!("{} has another checksum than the list of packages", file.display())));
        }
        run(Command::new("dpkg-deb").arg("-x").arg(file).arg(folder))?;
    }
    fs::remove_dir_all(&archives)?;
    fs::write(mark, list).map_err(Failure::from)
}

/// Downloads the packages of a list, with lists of sources of our own.
fn download(list: &str, archives: &Path) -> Outcome {
    let apt = target().join("debian");
    for folder in ["lists/partial", "cache/archives/partial", "archives"] {
        fs::create_dir_all(apt.join(folder))?;
    }
    let sources = SOURCES.into_iter().find(|path| Path::new(path).exists());
    let sources = sources.ok_or_else(|| Failure(format!("apt has no {}", SOURCES.join(" or "))))?;
    let at = apt.display();
    let settings = format!(
        "Dir::State::Lists \"{at}/lists\";\nDir::Cache \"{at}/cache\";\nDir::Etc::SourceList \"{sources}\";\n\
         Dir::Etc::SourceParts \"-\";\nAPT::Architectures {{ \"amd64\"; \"arm64\"; }};\nAPT::Sandbox::User \"root\";\n"
    );
    fs::write(apt.join("apt.conf"), settings)?;
    let get = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        run(command.arg("-qq").args(arguments).env("APT_CONFIG", apt.join("apt.conf")).current_dir(archives))
    };
    get(&["update"])?;
    let names = entries(list).map(|(_, name)| name);
    get(&std::iter::once("download").chain(names).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    #[test]
    fn lines_of_lists_are_checksums_and_names() {
        let list = "# What for.\n0a  rustc=1:1.96\n1b  zlib1g:arm64=1.2\n";
        assert_eq!(super::entries(list).collect::<Vec<_>>(), [("0a", "rustc=1:1.96"), ("1b", "zlib1g:arm64=1.2")]);
    }
}
