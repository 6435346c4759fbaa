//! Joins the processes that a launcher started.

use crate::transport::Transport;
use crate::transport::remote::Remote;
use bh_core::abi::status;
use bh_core::component::Host;
use bh_core::error::{Error, Result};
use bh_core::launcher::Launcher;
use bh_core::stack::COMMUNICATOR;

/// The libraries that there may be.
const LIBRARIES: &[&str] = &["openmpi", "mpich"];

/// The most bytes that one call of MPI gets, as its counts are 31 bits wide.
const PART_BYTES: usize = 1 << 30;

/// Joins the processes that a launcher started, or those of the program's communicator; `None` if there is none, or the
/// config asks for ranks in one process.
pub fn connect(host: &Host) -> Result<Option<Remote>> {
    let launcher = Launcher::find();
    let asked = host.config("transport").unwrap_or_else(|| "auto".into());
    let handle = host.handle(COMMUNICATOR).addr();
    let communicator = (handle != 0).then_some(handle as u32 as i32);
    let mut names = match asked.as_str() {
        "in-process" => return Ok(None),
        "auto" if host.config("ranks").is_some() => return Ok(None),
        "auto" => candidates(launcher.as_ref()),
        "openmpi" | "mpich" => vec![asked.as_str()],
        _ => return Err(Error::of_key("transport", "auto, in-process, openmpi or mpich", &asked)),
    };
    if names.is_empty() && communicator.is_some() {
        // A program that is started without a launcher may have initialised MPI, too.
        names = loaded();
    }
    let part: usize = host.config_or("part_bytes", PART_BYTES as u64)?.try_into().unwrap_or(PART_BYTES);
    let mut outcome = Ok(None);
    for name in names {
        outcome = Remote::open(name, communicator, part).map(Some);
        if outcome.is_ok() {
            break;
        }
    }
    let Some(remote) = outcome? else { return Ok(None) };
    match launcher {
        Some(Launcher { variable, size: size @ 2.., library, .. }) if remote.ranks() == 1 && communicator.is_none() => {
            let launcher = library.unwrap_or("another MPI");
            let text = format!(
                "wrong mpirun: {variable} is {size}, set by the launcher of {launcher}, but bh uses {} and finds itself \
                 alone; start the program with that library's mpirun, or set BH_CLUSTER_TRANSPORT",
                remote.library()
            );
            Err(Error::new(status::INIT, text))
        }
        _ => Ok(Some(remote)),
    }
}

/// The libraries that may connect the processes: the launcher's, or all under one that does not say.
fn candidates(launcher: Option<&Launcher>) -> Vec<&'static str> {
    match launcher {
        Some(Launcher { library: Some(library), .. }) => vec![library],
        Some(Launcher { size: 2.., .. }) => LIBRARIES.to_vec(),
        _ => Vec::new(),
    }
}

/// The libraries whose MPI the program has loaded.
fn loaded() -> Vec<&'static str> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let names = [("openmpi", "/libmpi.so"), ("mpich", "/libmpich.so")];
    names.iter().filter(|(_, file)| maps.contains(file)).map(|(name, _)| *name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launchers_name_their_library() {
        let names = |variables: &[(&str, &str)]| {
            let find =
                |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
            candidates(Launcher::read(find).as_ref())
        };
        assert_eq!(names(&[("OMPI_COMM_WORLD_SIZE", "4")]), ["openmpi"]);
        assert_eq!(names(&[("PMI_SIZE", "2")]), ["mpich"]);
        assert_eq!(names(&[("SLURM_NTASKS", "2")]), ["openmpi", "mpich"]);
        assert_eq!(names(&[("SLURM_NTASKS", "1")]), [""; 0]);
        assert_eq!(names(&[]), [""; 0]);
    }
}
