//! Ranks in processes of their own: messages go through a library that is loaded when a cluster asks for it.

use crate::transport::Transport;
use bh_cluster_abi::{OPEN_SYMBOL, OpenFn, TransportTable, VERSION, outcome};
use bh_core::abi::status;
use bh_core::error::{Error, Result};
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use std::ffi::{CStr, CString, c_char};
use std::ops::Range;
use std::path::PathBuf;

/// The error text of a rank's end: no failure, but the end of rank 0's process.
pub const ENDED: &str = "rank 0 has ended";

/// The libraries that there may be, with the variable by which their launchers tell a process how many there are.
const LIBRARIES: &[(&str, &str)] = &[("openmpi", "OMPI_COMM_WORLD_SIZE"), ("mpich", "PMI_SIZE")];

/// Another launcher's variable, of which no library can be told.
const SLURM: &str = "SLURM_NTASKS";

/// What a launcher says about the processes that it started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Launch {
    /// The library that it belongs to, if that can be told.
    pub library: Option<String>,
    /// The variable that says how many processes there are, and what it says.
    pub size: Option<(String, usize)>,
}

impl Launch {
    /// Reads the variables of the launchers.
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> Launch {
        let number = |name: &str| variable(name).and_then(|text| text.parse::<usize>().ok());
        for (library, name) in LIBRARIES {
            if let Some(size) = number(name) {
                return Launch { library: Some((*library).to_owned()), size: Some(((*name).to_owned(), size)) };
            }
        }
        Launch { library: None, size: number(SLURM).map(|size| (SLURM.to_owned(), size)) }
    }

    /// The library to load: the launcher's, or the first one that is there under a launcher that does not say.
    pub fn candidates(&self) -> Vec<&str> {
        match (&self.library, &self.size) {
            (Some(library), _) => vec![library],
            (None, Some((_, 2..))) => LIBRARIES.iter().map(|(name, _)| *name).collect(),
            _ => Vec::new(),
        }
    }
}

/// The other processes.
#[derive(Clone, Copy)]
pub struct Remote {
    table: &'static TransportTable,
}

impl Remote {
    /// Loads the transport library of this name and joins the other processes.
    pub fn open(name: &str, communicator: Option<i32>) -> Result<Remote> {
        let file = find(name)?;
        let fail = |text: String| Error::new(status::LIBRARY, format!("cluster: '{}': {text}", file.display()));
        // SAFETY: the file is a library of bh, beside this one.
        let library = unsafe { Library::open(Some(&file), RTLD_NOW | RTLD_LOCAL) };
        let library = library.map_err(|error| fail(format!("cannot be loaded: {error}")))?;
        // SAFETY: what exports this name is an open function.
        let open = unsafe { library.get::<OpenFn>(OPEN_SYMBOL) }.map(|symbol| *symbol);
        let open = open.map_err(|_| fail(format!("exports no '{OPEN_SYMBOL}'")))?;
        std::mem::forget(library);
        let mut text = [0 as c_char; 1024];
        let handle = communicator.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: the handle and the text live through the call.
        let table = unsafe { open(VERSION, handle, text.as_mut_ptr(), text.len()).as_ref() };
        let Some(table) = table else {
            // SAFETY: the function wrote a text with its NUL.
            let text = unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy();
            return Err(Error::new(status::INIT, format!("cluster: {text}")));
        };
        Ok(Remote { table })
    }

    /// This process.
    pub fn rank(&self) -> usize {
        self.table.rank as usize
    }

    /// Name and version of the library that moves the messages.
    pub fn library(&self) -> String {
        // SAFETY: the text lives as long as the process.
        unsafe { CStr::from_ptr(self.table.library) }.to_string_lossy().into_owned()
    }

    fn check(&self, code: i32) -> Result<()> {
        match code {
            outcome::OK => Ok(()),
            outcome::ENDED => Err(Error::new(status::SHUTDOWN, ENDED)),
            _ => {
                let mut text = [0 as c_char; 1024];
                // SAFETY: the text has this capacity, and the function ends it with a NUL.
                let text = unsafe {
                    (self.table.error)(self.table.context, text.as_mut_ptr(), text.len());
                    CStr::from_ptr(text.as_ptr()).to_string_lossy().into_owned()
                };
                Err(Error::new(status::EXECUTION, format!("cluster: {text}")))
            }
        }
    }
}

/// The library's file: beside this one.
fn find(name: &str) -> Result<PathBuf> {
    let own = bh_core::loader::own_directory().unwrap_or_default();
    let file = format!("libbh_cluster_{name}.so");
    let directories = [own.clone(), own.join("bh"), own.join(name)];
    let found = directories.iter().map(|directory| directory.join(&file)).find(|file| file.is_file());
    found.ok_or_else(|| {
        let text = format!(
            "cluster: bh was built without the library '{file}', which moves messages through {name}; it is looked for in {}",
            own.display()
        );
        Error::new(status::LIBRARY, text)
    })
}

impl Transport for Remote {
    fn ranks(&self) -> usize {
        self.table.ranks as usize
    }

    fn hosted(&self) -> Range<usize> {
        self.rank()..self.rank() + 1
    }

    fn send(&mut self, _from: usize, to: usize, bytes: Vec<u8>) -> Result<()> {
        // SAFETY: the bytes live through the call.
        self.check(unsafe { (self.table.send)(self.table.context, to as u32, bytes.as_ptr(), bytes.len()) })
    }

    fn receive(&mut self, _at: usize, from: usize) -> Result<Vec<u8>> {
        let mut count = 0;
        // SAFETY: the count lives through the call.
        self.check(unsafe { (self.table.receive)(self.table.context, from as u32, &mut count) })?;
        let mut bytes = vec![0; count];
        // SAFETY: the buffer has as many bytes as were announced.
        self.check(unsafe { (self.table.take)(self.table.context, bytes.as_mut_ptr(), count) })?;
        Ok(bytes)
    }

    fn abort(&mut self, text: &str) {
        let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
        // SAFETY: the text lives through the call, which does not return.
        unsafe { (self.table.abort)(self.table.context, text.as_ptr()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(variables: &[(&str, &str)]) -> Launch {
        let find = |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        Launch::read(find)
    }

    #[test]
    fn launchers_name_their_library() {
        assert_eq!(launch(&[("OMPI_COMM_WORLD_SIZE", "4")]).candidates(), ["openmpi"]);
        assert_eq!(launch(&[("PMI_SIZE", "2")]).candidates(), ["mpich"]);
        assert_eq!(launch(&[("SLURM_NTASKS", "2")]).candidates(), ["openmpi", "mpich"]);
        assert_eq!(launch(&[("SLURM_NTASKS", "1")]).candidates(), [""; 0]);
        assert_eq!(launch(&[]).candidates(), [""; 0]);
    }
}
