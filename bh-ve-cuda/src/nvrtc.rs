//! NVRTC, NVIDIA's compiler as a library: from texts in CUDA C++ to machine code or PTX.

use crate::compilers::{self, Compilers};
use crate::language::BRIEF;
use crate::library::{Handle, functions, open};
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::PathBuf;
use std::ptr;
use std::sync::OnceLock;

functions! {
    /// The compiler's functions.
    Functions {
        version: "nvrtcVersion"(*mut c_int, *mut c_int);
        count: "nvrtcGetNumSupportedArchs"(*mut c_int);
        architectures: "nvrtcGetSupportedArchs"(*mut c_int);
        create: "nvrtcCreateProgram"(
            *mut Handle, *const c_char, *const c_char, c_int, *const *const c_char, *const *const c_char
        );
        destroy: "nvrtcDestroyProgram"(*mut Handle);
        compile: "nvrtcCompileProgram"(Handle, c_int, *const *const c_char);
        log_size: "nvrtcGetProgramLogSize"(Handle, *mut usize);
        log: "nvrtcGetProgramLog"(Handle, *mut c_char);
        code_size: "nvrtcGetCUBINSize"(Handle, *mut usize);
        code: "nvrtcGetCUBIN"(Handle, *mut c_char);
        ptx_size: "nvrtcGetPTXSize"(Handle, *mut usize);
        ptx: "nvrtcGetPTX"(Handle, *mut c_char);
    }
}

/// The versions of CUDA whose compiler may be used, the newest first.
const VERSIONS: [u32; 2] = [13, 12];

/// The compiler.
pub struct Nvrtc {
    compilers: Compilers<Functions>,
    /// The file of which further compilers are copies.
    place: Option<PathBuf>,
    /// Its version.
    pub version: (i32, i32),
    /// Where it was found.
    pub file: String,
    /// The architectures that it makes code for: 90 for compute capability 9.0.
    architectures: Vec<i32>,
}

/// The target of generated code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Machine code for this architecture.
    Code(i32),
    /// PTX for this architecture, which the driver translates.
    Ptx(i32),
}

impl Nvrtc {
    /// The compiler, of the version of the driver or an older one; the error says in one sentence that there is none. It is looked
    /// for once in a process.
    pub fn find(driver: u32) -> Result<&'static Nvrtc, &'static str> {
        static FOUND: OnceLock<Result<Nvrtc, String>> = OnceLock::new();
        FOUND.get_or_init(|| Nvrtc::load(driver, compilers::usual())).as_ref().map_err(String::as_str)
    }

    /// The compiler, of which there may be `most`.
    fn load(driver: u32, most: usize) -> Result<Nvrtc, String> {
        let versions: Vec<u32> = VERSIONS.into_iter().filter(|version| *version <= driver).collect();
        let Some((library, file)) = open("nvrtc", &versions) else {
            let newest = versions.first().unwrap_or(&VERSIONS[VERSIONS.len() - 1]);
            return Err(format!(
                "NVIDIA's compiler NVRTC is not installed (libnvrtc.so.{newest}; pip install nvidia-cuda-nvrtc, or set CUDA_PATH)"
            ));
        };
        // SAFETY: the library is NVRTC, and stays loaded.
        let functions = unsafe { Functions::of(&library) };
        std::mem::forget(library);
        let functions = functions.map_err(|why| format!("{file}, NVIDIA's compiler, is not usable: {why}"))?;
        let (mut major, mut minor, mut count) = (0, 0, 0);
        // SAFETY: all lead to numbers.
        unsafe {
            (functions.version)(&mut major, &mut minor);
            (functions.count)(&mut count);
        }
        let mut architectures = vec![0; count.max(0) as usize];
        // SAFETY: there is room for as many numbers as it has.
        unsafe { (functions.architectures)(architectures.as_mut_ptr()) };
        let place = compilers::file_of(functions.version as *const c_void);
        Ok(Nvrtc { compilers: Compilers::new(most, functions), place, version: (major, minor), file, architectures })
    }

    /// Programs that are compiled at a time.
    pub fn count(&self) -> usize {
        self.compilers.count()
    }

    /// Makes one more, if there are not enough; see [`bh_device::driver::Driver::add_compiler`].
    pub fn add(&self) -> bool {
        self.compilers.add(|| {
            let file = self.place.as_ref()?;
            // The compiler loads this library by its name, which a copy finds only if it is already loaded.
            let (major, minor) = self.version;
            let builtins = file.with_file_name(format!("libnvrtc-builtins.so.{major}.{minor}"));
            // SAFETY: NVIDIA's libraries may be loaded at any time.
            unsafe { Library::open(Some(&builtins), RTLD_NOW | RTLD_LOCAL) }.into_iter().for_each(std::mem::forget);
            let library = compilers::copy(file)?;
            // SAFETY: the library is NVRTC, and stays loaded.
            let functions = unsafe { Functions::of(&library) };
            std::mem::forget(library);
            // A copy may lack what it needs. The first program also makes it ready.
            let text = "extern \"C\" __global__ void bh() {}";
            functions.ok().filter(|functions| run(functions, text, Form::Ptx(self.architectures[0]), &[]).is_ok())
        })
    }

    /// The target for a device of this compute capability: machine code if the compiler knows it, else PTX for the newest
    /// older one. None if it knows only newer ones.
    pub fn form(&self, capability: (i32, i32)) -> Option<Form> {
        form(&self.architectures, capability)
    }

    /// Of these options, those that it knows.
    pub fn known(&self, options: &'static [&'static str]) -> &'static [&'static str] {
        let skip = self.version.0 < 13 && matches!(options, [BRIEF, ..]);
        &options[usize::from(skip)..]
    }

    /// Compiles a text. The error is the compiler's log.
    pub fn compile(&self, text: &str, form: Form, options: &[&str]) -> Result<Vec<u8>, String> {
        self.compilers.with(|functions| match options {
            // A kernel of the user may need what the short form lacks.
            [BRIEF, rest @ ..] => run(functions, text, form, options).or_else(|_| run(functions, text, form, rest)),
            _ => run(functions, text, form, options),
        })
    }
}

fn run(functions: &Functions, text: &str, form: Form, options: &[&str]) -> Result<Vec<u8>, String> {
    let (architecture, size, read) = match form {
        Form::Code(number) => (format!("--gpu-architecture=sm_{number}"), functions.code_size, functions.code),
        Form::Ptx(number) => (format!("--gpu-architecture=compute_{number}"), functions.ptx_size, functions.ptx),
    };
    let program = Program::new(functions, text)?;
    let options: Vec<CString> =
        [architecture.as_str()].iter().chain(options).filter_map(|option| CString::new(*option).ok()).collect();
    let options: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
    // SAFETY: there are as many options, which live through the call.
    let outcome = unsafe { (functions.compile)(program.handle, options.len() as c_int, options.as_ptr()) };
    if outcome != 0 {
        // SAFETY: the first function tells the size of the data that the second one writes.
        let log = unsafe { program.read(functions.log_size, functions.log) }.unwrap_or_default();
        let log = CStr::from_bytes_until_nul(&log).map(CStr::to_string_lossy).unwrap_or_default();
        return Err(format!("status {outcome}: {}", log.trim()));
    }
    // SAFETY: the first function tells the size of the data that the second one writes.
    let code = unsafe { program.read(size, read) };
    code.filter(|code| !code.is_empty()).ok_or_else(|| "the compiler made no code".to_owned())
}

fn form(known: &[i32], (major, minor): (i32, i32)) -> Option<Form> {
    let own = major * 10 + minor;
    match known.contains(&own) {
        true => Some(Form::Code(own)),
        false => known.iter().copied().filter(|&known| known < own).max().map(Form::Ptx),
    }
}

/// A program of the compiler.
struct Program<'a> {
    functions: &'a Functions,
    handle: Handle,
}

impl<'a> Program<'a> {
    fn new(functions: &'a Functions, text: &str) -> Result<Program<'a>, String> {
        let text = CString::new(text).map_err(|_| "the text has a byte of zeros".to_owned())?;
        let mut handle = Handle::NULL;
        // SAFETY: the texts live through the call, and there are no headers.
        let outcome =
            unsafe { (functions.create)(&mut handle, text.as_ptr(), c"bh.cu".as_ptr(), 0, ptr::null(), ptr::null()) };
        if outcome == 0 {
            Ok(Program { functions, handle })
        } else {
            Err(format!("status {outcome}: no program can be made"))
        }
    }

    /// Bytes that the compiler has; none if it has not.
    ///
    /// # Safety
    /// `read` must write as many bytes as `size` gives.
    unsafe fn read(
        &self,
        size: unsafe extern "C" fn(Handle, *mut usize) -> c_int,
        read: unsafe extern "C" fn(Handle, *mut c_char) -> c_int,
    ) -> Option<Vec<u8>> {
        let mut len = 0;
        // SAFETY: the program is one of the compiler's, and there is room for what `read` writes.
        unsafe {
            if size(self.handle, &mut len) != 0 {
                return None;
            }
            let mut bytes = vec![0; len];
            (read(self.handle, bytes.as_mut_ptr().cast()) == 0).then_some(bytes)
        }
    }
}

impl Drop for Program<'_> {
    fn drop(&mut self) {
        // SAFETY: the program is used by nothing else.
        unsafe { (self.functions.destroy)(&mut self.handle) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_that_the_compiler_does_not_know_get_ptx() {
        let known = [75, 80, 90];
        assert_eq!(form(&known, (9, 0)), Some(Form::Code(90)));
        assert_eq!(form(&known, (12, 0)), Some(Form::Ptx(90)));
        assert_eq!(form(&known, (8, 6)), Some(Form::Ptx(80)));
        assert_eq!(form(&known, (7, 0)), None);
    }

    #[test]
    fn compilers_side_by_side_make_the_same_code() {
        // Without the compiler there is nothing to compare.
        let Ok(nvrtc) = Nvrtc::load(u32::MAX, 3) else { return };
        while nvrtc.add() {}
        assert_eq!(nvrtc.count(), 3);
        let text = "extern \"C\" __global__ void bh(double *a) { a[threadIdx.x] = sin(a[threadIdx.x]); }";
        let compile = || nvrtc.compile(text, Form::Code(90), nvrtc.known(&crate::language::OPTIONS)).unwrap();
        let codes: Vec<Vec<u8>> = std::thread::scope(|scope| {
            let all: Vec<_> = (0..6).map(|_| scope.spawn(compile)).collect();
            all.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(codes.iter().all(|code| *code == codes[0]));
    }
}
