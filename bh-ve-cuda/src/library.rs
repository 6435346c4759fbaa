//! Where NVIDIA's libraries are, and tables of their functions. Nothing of CUDA is there when bh is built.

use bh_core::environment::variable_os;
use bh_core::loader::own_directory;
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use std::path::{Path, PathBuf};

/// A handle of one of NVIDIA's libraries, which any thread may use.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Handle(pub(crate) *mut std::ffi::c_void);

impl Handle {
    /// No handle.
    pub(crate) const NULL: Handle = Handle(std::ptr::null_mut());
}

// SAFETY: the libraries take their handles on any thread.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

/// A table of functions, each with the symbol that it has in its library. All return a status.
macro_rules! functions {
    ($(#[$about:meta])* $table:ident { $($name:ident: $symbol:literal ($($argument:ty),* $(,)?);)* }) => {
        $(#[$about])*
        pub(crate) struct $table {
            $(pub(crate) $name: unsafe extern "C" fn($($argument),*) -> std::ffi::c_int,)*
        }

        impl $table {
            /// The functions of a library; the error names one that it lacks.
            ///
            /// # Safety
            /// The library must be the one whose functions these are, and never be unloaded.
            pub(crate) unsafe fn of(library: &libloading::os::unix::Library) -> std::result::Result<$table, String> {
                // SAFETY: the library declares these functions so, as `# Safety` asks.
                unsafe {
                    Ok($table {
                        $($name: *library
                            .get::<unsafe extern "C" fn($($argument),*) -> std::ffi::c_int>($symbol)
                            .map_err(|_| concat!("it lacks the function ", $symbol))?,)*
                    })
                }
            }
        }
    };
}
pub(crate) use functions;

/// The file of a library in one of its versions.
fn file(stem: &str, version: u32) -> String {
    format!("lib{stem}.so.{version}")
}

/// The folders of an installation of CUDA that have libraries.
fn of_installation(root: &Path) -> [PathBuf; 3] {
    ["lib64", "lib", "targets/x86_64-linux/lib"].map(|folder| root.join(folder))
}

/// The folders of NVIDIA's Python packages in a folder of Python packages.
fn of_packages(site: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(site.join("nvidia")).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> =
        entries.map(|entry| entry.path().join("lib")).filter(|path| path.is_dir()).collect();
    // Packages of several versions may be there: the newest comes first.
    folders.sort_by(|a, b| b.cmp(a));
    folders
}

/// The folders in which NVIDIA's libraries are looked for after the system's, the first first: those of the variables `CUDA_PATH`
/// and `CUDA_HOME`, of the usual place, and of NVIDIA's Python packages beside the package that this library belongs to.
fn folders() -> Vec<PathBuf> {
    let named = ["CUDA_PATH", "CUDA_HOME"].into_iter().filter_map(variable_os).map(PathBuf::from);
    let mut folders: Vec<PathBuf> =
        named.chain([PathBuf::from("/usr/local/cuda")]).flat_map(|root| of_installation(&root)).collect();
    folders.extend(own_directory().iter().flat_map(|own| own.ancestors()).flat_map(of_packages));
    folders
}

/// Loads a library in the first of these versions that the first place has, and says where it was found. The system's own search
/// comes first.
pub(crate) fn open(stem: &str, versions: &[u32]) -> Option<(Library, String)> {
    let files = || versions.iter().map(|version| file(stem, *version));
    let found = files().map(PathBuf::from).chain(
        folders()
            .into_iter()
            .flat_map(|folder| files().map(move |file| folder.join(file)))
            .filter(|path| path.is_file()),
    );
    found.into_iter().find_map(|path| {
        // SAFETY: NVIDIA's libraries may be loaded at any time.
        let library = unsafe { Library::open(Some(&path), RTLD_NOW | RTLD_LOCAL) }.ok()?;
        Some((library, path.display().to_string()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_of_all_forms_are_found_and_the_newest_first() {
        let site = std::env::temp_dir().join(format!("bh-cuda-packages-{}", std::process::id()));
        for folder in ["nvidia/cuda_nvrtc/lib", "nvidia/cu12/lib", "nvidia/cu13/lib", "nvidia/empty"] {
            std::fs::create_dir_all(site.join(folder)).unwrap();
        }
        let found = of_packages(&site);
        std::fs::remove_dir_all(&site).unwrap();
        let names: Vec<_> = found.iter().map(|path| path.strip_prefix(&site).unwrap().to_str().unwrap()).collect();
        assert_eq!(names, ["nvidia/cuda_nvrtc/lib", "nvidia/cu13/lib", "nvidia/cu12/lib"]);
        assert_eq!(file("nvrtc", 13), "libnvrtc.so.13");
    }
}
