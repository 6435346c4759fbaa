//! Where NVIDIA's libraries are, and tables of their functions. Nothing of CUDA is there when bh is built.

use bh_core::environment::variable_os;
use bh_core::loader::own_directory;
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use std::ffi::c_int;
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

/// A library with its functions.
pub(crate) struct Loaded<F> {
    pub(crate) functions: F,
    /// Its version.
    pub(crate) version: String,
    /// Where it was found.
    pub(crate) file: String,
}

/// A library for work on the device.
pub(crate) struct Known {
    /// Its name in texts.
    pub(crate) title: &'static str,
    pub(crate) stem: &'static str,
    /// The version of its file.
    pub(crate) version: OfCuda,
    /// The libraries that it needs, which are loaded before it if it does not find them by itself.
    pub(crate) needs: &'static [(&'static str, OfCuda)],
}

/// The version of a file, given the major version of CUDA.
type OfCuda = fn(u32) -> u32;

/// The status of a library's function that there is no memory.
pub(crate) const NO_MEMORY: c_int = 2;

impl Known {
    /// Loads the library of this major version of CUDA. `of` makes its table, and `version` asks for a part of its version; the error
    /// says in one sentence why there is none.
    pub(crate) fn load<F>(
        &self,
        cuda: u32,
        of: unsafe fn(&Library) -> Result<F, String>,
        version: fn(&F) -> unsafe extern "C" fn(c_int, *mut c_int) -> c_int,
    ) -> Result<Loaded<F>, String> {
        let number = (self.version)(cuda);
        let again = || {
            for (stem, version) in self.needs {
                // It stays loaded, so that the system finds it by its name.
                open(stem, &[version(cuda)]).into_iter().for_each(|(library, _)| std::mem::forget(library));
            }
            open(self.stem, &[number])
        };
        let Some((library, file)) = open(self.stem, &[number]).or_else(again) else {
            let package = if cuda < 13 { format!("-cu{cuda}") } else { String::new() };
            let (file, stem) = (self::file(self.stem, number), self.stem);
            return Err(format!("{file} cannot be loaded; pip install nvidia-{stem}{package}, or set CUDA_PATH"));
        };
        // SAFETY: the library is the one whose functions these are, and stays loaded.
        let functions = unsafe { of(&library) };
        std::mem::forget(library);
        let functions = functions.map_err(|why| format!("{file} is not usable: {why}"))?;
        let part = |part: c_int| {
            let mut value = 0;
            // SAFETY: `value` takes a number.
            unsafe { version(&functions)(part, &mut value) };
            value.to_string()
        };
        let version = [0, 1, 2].map(part).join(".");
        Ok(Loaded { functions, version, file })
    }

    /// A line about a library that has been looked for.
    pub(crate) fn told<F>(&self, found: &Result<Loaded<F>, String>) -> String {
        match found {
            Ok(Loaded { version, file, .. }) => format!("{}: {version} of {file}", self.title),
            Err(why) => format!("{}: none ({why})", self.title),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    functions! {
        /// A function that no library has.
        Missing {
            property: "bhHasNoSuchFunction"(c_int, *mut c_int);
        }
    }

    #[test]
    fn libraries_that_are_missing_or_lack_functions_say_so() {
        let none = Known { title: "cuNone", stem: "bh-none", version: |cuda| cuda - 1, needs: &[] };
        let load = |known: &Known, cuda| known.load(cuda, Missing::of, |functions| functions.property);
        let outcome = load(&none, 12);
        assert_eq!(
            none.told(&outcome),
            "cuNone: none (libbh-none.so.11 cannot be loaded; pip install nvidia-bh-none-cu12, or set CUDA_PATH)"
        );
        // The system's mathematics are there, without that function.
        let other = Known { title: "cuMath", stem: "m", version: |_| 6, needs: &[("bh-none", |cuda| cuda)] };
        let why = load(&other, 13).map(|_| ()).unwrap_err();
        assert_eq!(why, "libm.so.6 is not usable: it lacks the function bhHasNoSuchFunction");
    }

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
