//! Keeps LLVM's static objects alive while the process ends.
//!
//! LLVM makes many of its static objects when it first needs them, and has the end of the process destroy them. What was
//! made last is destroyed first, so a kernel that is being compiled then loses them before anybody can wait for it. Here
//! LLVM's own reference to the function that registers destructors (`__cxa_atexit`) is led to one that registers nothing,
//! in the table that the dynamic linker fills in for the library (System V ABI, "Procedure Linkage Table"). The system
//! takes the memory back anyway, and LLVM's library is never unloaded.

use libc::{Elf64_Phdr, dl_phdr_info};
use std::ffi::{CStr, c_char, c_int, c_void};

/// Entries of a library's dynamic section that are wanted here.
const STRINGS: i64 = 5;
const SYMBOLS: i64 = 6;
const JUMPS: i64 = 23;
const JUMPS_BYTES: i64 = 2;

/// An entry of the dynamic section.
#[repr(C)]
struct Dynamic {
    tag: i64,
    value: u64,
}

/// A place that the dynamic linker fills in with the address of a symbol.
#[repr(C)]
struct Relocation {
    offset: u64,
    info: u64,
    _addend: i64,
}

/// A symbol of a library.
#[repr(C)]
struct Symbol {
    name: u32,
    _kind: [u8; 4],
    _value: [u64; 2],
}

/// In place of `__cxa_atexit`: the destructor never runs.
extern "C" fn register_nothing(_: Option<extern "C" fn(*mut c_void)>, _: *mut c_void, _: *mut c_void) -> c_int {
    0
}

/// To be called once LLVM is loaded and before it compiles. Where LLVM's library has no such table, nothing changes.
pub fn keep() {
    // SAFETY: the callback gets valid descriptions of libraries that are loaded.
    unsafe { libc::dl_iterate_phdr(Some(visit), std::ptr::null_mut()) };
}

unsafe extern "C" fn visit(info: *mut dl_phdr_info, _: usize, _: *mut c_void) -> c_int {
    // SAFETY: the dynamic linker describes a library that stays loaded meanwhile, its headers and its name.
    unsafe {
        let name = (*info).dlpi_name;
        if name.is_null() || !CStr::from_ptr(name).to_bytes().windows(7).any(|part| part == b"libLLVM") {
            return 0;
        }
        let headers = std::slice::from_raw_parts((*info).dlpi_phdr, usize::from((*info).dlpi_phnum));
        redirect((*info).dlpi_addr, headers);
    }
    0
}

/// # Safety
/// `base` and `headers` must be those of a library that is loaded.
unsafe fn redirect(base: u64, headers: &[Elf64_Phdr]) {
    let Some(dynamic) = headers.iter().find(|header| header.p_type == libc::PT_DYNAMIC) else { return };
    // SAFETY: the section ends with an entry of tag 0; addresses in it are those in memory. The tables that it names are
    // complete, and every relocation of this table is for a symbol and a word of the library.
    unsafe {
        let first = (base + dynamic.p_vaddr) as *const Dynamic;
        let entries = || (0..).map(|at| &*first.add(at)).take_while(|entry| entry.tag != 0);
        let value = |tag| entries().find(|entry| entry.tag == tag).map(|entry| entry.value);
        let (Some(strings), Some(symbols), Some(jumps), Some(bytes)) =
            (value(STRINGS), value(SYMBOLS), value(JUMPS), value(JUMPS_BYTES))
        else {
            return;
        };
        let jumps = std::slice::from_raw_parts(jumps as *const Relocation, bytes as usize / size_of::<Relocation>());
        for jump in jumps {
            let symbol = &*(symbols as *const Symbol).add((jump.info >> 32) as usize);
            if CStr::from_ptr((strings as *const c_char).add(symbol.name as usize)) == c"__cxa_atexit" {
                replace((base + jump.offset) as *mut usize, headers, base);
            }
        }
    }
}

/// # Safety
/// `place` must be the word of a library's table that holds the address of `__cxa_atexit`.
unsafe fn replace(place: *mut usize, headers: &[Elf64_Phdr], base: u64) {
    let at = place as u64;
    // SAFETY: the library's word is written while nobody calls through it: no kernel is compiled yet. A page that became
    // read-only after linking is writable meanwhile, and if it cannot be, the word stays.
    unsafe {
        let sealed = headers.iter().any(|header| {
            let begin = base + header.p_vaddr;
            header.p_type == libc::PT_GNU_RELRO && (begin..begin + header.p_memsz).contains(&at)
        });
        let size = libc::sysconf(libc::_SC_PAGESIZE) as usize;
        let page = (at as usize / size * size) as *mut c_void;
        if sealed && libc::mprotect(page, size, libc::PROT_READ | libc::PROT_WRITE) != 0 {
            return;
        }
        place.write(register_nothing as *const () as usize);
        if sealed {
            libc::mprotect(page, size, libc::PROT_READ);
        }
    }
}
