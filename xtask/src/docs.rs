//! `cargo xtask docs`: the documentation site, with the programs of its gallery run and its links checked.

use crate::command::{Outcome, option, root, run as execute, target};
use crate::packages;
use std::process::Command;

/// Builds the site into `target/site`; warnings are errors. The package is the one built under the profile, which is
/// built here unless `--package DIR` names one.
pub fn run(arguments: &[String]) -> Outcome {
    let package = match option(arguments, "--package")? {
        Some(package) => package.into(),
        None => {
            packages::ensure_llvm();
            crate::python::build("release")?;
            crate::python::stage("release")?
        }
    };
    let environment = target().join("site-python");
    let python = environment.join("bin/python");
    let requirements = root().join("docs/site/requirements.txt");
    execute(Command::new("python3").args(["-m", "venv"]).arg(&environment))?;
    execute(Command::new(&python).args(["-m", "pip", "install", "-q", "-r"]).arg(requirements))?;
    let site = target().join("site");
    let mut sphinx = Command::new(&python);
    sphinx.args(["-m", "sphinx", "-q", "-W", "-E", "--keep-going", "-b", "html", "-c", "docs/site", "docs"]).arg(&site);
    execute(sphinx.current_dir(root()).env("PYTHONPATH", package).env("MPLBACKEND", "agg"))?;
    execute(Command::new(&python).arg(root().join("docs/site/links.py")).arg(&site))?;
    println!("the site is in {}: open index.html", site.display());
    Ok(())
}
