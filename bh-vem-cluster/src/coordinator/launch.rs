//! Joins the processes that a launcher started.

use crate::coordinator::meeting::Meeting;
use crate::transport::Transport;
use crate::transport::remote::Remote;
use bh_core::abi::{log_level, status};
use bh_core::component::Host;
use bh_core::error::{Error, Result};
use bh_core::keys::cluster;
use bh_core::launcher::Launcher;
use bh_core::stack::COMMUNICATOR;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The available transport libraries, at most.
const LIBRARIES: &[&str] = &["openmpi", "mpich"];

/// All ranks have joined, so further contexts need not wait for them.
pub static JOINED: AtomicBool = AtomicBool::new(false);

/// Joins the processes of a launcher, or those of the program's communicator. `None` if there are none, or if the
/// configuration asks for ranks in one process. The [`Meeting`] limits the wait of the first context while it lives.
pub fn connect(host: &Host) -> Result<Option<(Remote, Option<Meeting>)>> {
    let launcher = Launcher::find();
    let asked = host.setting(&cluster::TRANSPORT)?;
    let handle = host.handle(COMMUNICATOR).addr();
    let communicator = (handle != 0).then_some(handle as u32 as i32);
    let mut names = match asked.as_str() {
        "in-process" => return Ok(None),
        "auto" if host.config(&cluster::RANKS).is_some() => return Ok(None),
        "auto" => candidates(launcher.as_ref()),
        "openmpi" | "mpich" => vec![asked.as_str()],
        _ => return Err(Error::of_key("transport", "auto, in-process, openmpi or mpich", &asked)),
    };
    if names.is_empty() && communicator.is_some() {
        // A program without a launcher may have initialised MPI itself.
        names = loaded();
    }
    if let (true, Some(tasks)) = (names.is_empty(), Launcher::forgotten_tasks()) {
        let text =
            format!("cluster: SLURM_NTASKS is {tasks}, but srun or mpirun did not start this process: it works alone");
        host.log(log_level::WARN, &text);
    }
    if let (Some(launcher), None, [name]) = (&launcher, communicator, &names[..])
        && !launcher.runs(name)
    {
        return Err(wrong_launcher(launcher, name));
    }
    let seconds = host.setting(&cluster::MEET_SECONDS)?;
    let limit =
        (seconds > 0 && !names.is_empty() && !JOINED.load(Ordering::Acquire)).then(|| Duration::from_secs(seconds));
    let meeting = limit.zip(launcher.filter(|launcher| launcher.size > 1));
    let meeting = meeting.and_then(|(limit, launcher)| Meeting::begin(limit, launcher));
    let part: usize = host.setting(&cluster::PART_BYTES)?.try_into().unwrap_or(usize::MAX);
    let mut outcome = Ok(None);
    for name in names {
        outcome = Remote::open(name, communicator, part).map(Some);
        if outcome.is_ok() {
            break;
        }
    }
    let Some(remote) = outcome? else { return Ok(None) };
    match launcher {
        Some(launcher @ Launcher { size: 2.., .. }) if remote.ranks() == 1 && communicator.is_none() => {
            Err(wrong_launcher(&launcher, &remote.library()))
        }
        _ => Ok(Some((remote, meeting))),
    }
}

/// The error for a launcher whose processes cannot connect through this library.
fn wrong_launcher(Launcher { variable, size, library, .. }: &Launcher, used: &str) -> Error {
    let launcher = library.unwrap_or("another MPI");
    let text = format!(
        "wrong mpirun: {variable} is {size}, set by the launcher of {launcher}, but bh uses {used}, by which this process is \
         alone; start the program with that library's mpirun, or set BH_CLUSTER_TRANSPORT"
    );
    Error::new(status::INIT, text)
}

/// The libraries to try: the launcher's, or all if the launcher does not identify one.
fn candidates(launcher: Option<&Launcher>) -> Vec<&'static str> {
    match launcher {
        Some(Launcher { library: Some(library), .. }) => vec![library],
        Some(Launcher { size: 2.., .. }) => LIBRARIES.to_vec(),
        _ => Vec::new(),
    }
}

/// The libraries of the MPI that the program has already loaded.
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
        assert_eq!(names(&[("SLURM_STEP_NUM_TASKS", "2")]), ["openmpi", "mpich"]);
        assert_eq!(names(&[("SLURM_STEP_NUM_TASKS", "1")]), [""; 0]);
        assert_eq!(names(&[("SLURM_NTASKS", "2")]), [""; 0]);
        assert_eq!(names(&[]), [""; 0]);
    }
}
