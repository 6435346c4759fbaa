//! Machine code from an object file in executable memory. The loader understands the kernel compiler's files only: sections without
//! symbols from elsewhere, and references relative to the instruction.

use super::relocation::{Reference, write_aarch64, write_x86_64};
use object::elf::SHF_ALLOC;
use object::read::elf::{ElfFile64, ElfSymbol64};
use object::{
    Architecture, LittleEndian, Object, ObjectKind, ObjectSection, ObjectSymbol, RelocationFlags, RelocationTarget,
    SectionFlags,
};
use std::collections::HashMap;
use std::ptr;

/// Code in memory.
pub(super) struct Mapping {
    data: *mut u8,
    bytes: usize,
    entry: usize,
}

// SAFETY: nothing changes after it is made.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped with this size.
        unsafe { libc::munmap(self.data.cast(), self.bytes) };
    }
}

/// This machine's architecture, as object files name it.
const OWN: Architecture = if cfg!(target_arch = "aarch64") { Architecture::Aarch64 } else { Architecture::X86_64 };

/// The finished image, which must be placed at the beginning of a page, and the kernel's offset in it. `None` if the file has another
/// form, or is for another architecture.
fn link(object: &[u8], architecture: Architecture) -> Option<(Vec<u8>, usize)> {
    let file = ElfFile64::<LittleEndian>::parse(object).ok()?;
    if file.kind() != ObjectKind::Relocatable || file.architecture() != architecture {
        return None;
    }
    let write = if architecture == Architecture::Aarch64 { write_aarch64 } else { write_x86_64 };
    let (mut image, mut placed) = (Vec::new(), HashMap::new());
    for section in file.sections() {
        // Tables that end beyond the file are refused here as well.
        let content = section.data().ok()?;
        let SectionFlags::Elf { sh_flags, .. } = section.flags() else { return None };
        if !sh_flags.contains(SHF_ALLOC) || content.is_empty() {
            continue;
        }
        if section.align() > 4096 {
            return None;
        }
        image.resize(image.len().next_multiple_of(section.align().max(1) as usize), 0);
        placed.insert(section.index(), image.len());
        image.extend_from_slice(content);
    }
    let place = |symbol: ElfSymbol64<'_, '_, LittleEndian>| {
        let begin: &usize = placed.get(&symbol.section_index()?)?;
        begin.checked_add(symbol.address().try_into().ok()?)
    };
    for section in file.sections() {
        let Some(&begin) = placed.get(&section.index()) else { continue };
        for (offset, relocation) in section.relocations() {
            let RelocationTarget::Symbol(symbol) = relocation.target() else { return None };
            let RelocationFlags::Elf { r_type: kind } = relocation.flags() else { return None };
            let symbol = place(file.symbol_by_index(symbol).ok()?)? as i64;
            let at = begin.checked_add(offset.try_into().ok()?)?;
            write(&mut image, &Reference { kind, at, target: symbol.checked_add(relocation.addend())? })?;
        }
    }
    // The name of the file is among the symbols as well, but in no section.
    let entry = file.symbols().filter(|symbol| symbol.name() == Ok("kernel")).find_map(place)?;
    (entry < image.len()).then_some((image, entry))
}

/// Makes written code visible to the fetching of instructions, which x86-64 does itself. macOS has a function of its own for that, and
/// does not promise programs the register with the sizes.
///
/// # Safety
/// `data` must be valid for `bytes` bytes.
#[cfg(all(target_arch = "aarch64", target_os = "macos"))]
unsafe fn make_fetchable(data: *const u8, bytes: usize) {
    unsafe extern "C" {
        fn sys_icache_invalidate(start: *const std::ffi::c_void, bytes: usize);
    }
    // SAFETY: the caller's memory, of which only lines of caches are changed.
    unsafe { sys_icache_invalidate(data.cast(), bytes) }
}

/// As above.
///
/// # Safety
/// `data` must be valid for `bytes` bytes.
#[cfg(all(target_arch = "aarch64", not(target_os = "macos")))]
unsafe fn make_fetchable(data: *const u8, bytes: usize) {
    use std::arch::asm;
    // SAFETY: the instructions clean and invalidate lines of the caches that hold the code, and change no data. The register
    // with the lines' sizes is readable for programs.
    unsafe {
        let sizes: u64;
        asm!("mrs {}, ctr_el0", out(reg) sizes, options(nomem, nostack));
        let lines = |shift: u64| {
            let line = 4usize << (sizes >> shift & 15);
            (data.addr() & !(line - 1)..data.addr() + bytes).step_by(line)
        };
        for line in lines(16) {
            asm!("dc cvau, {}", in(reg) line, options(nostack));
        }
        asm!("dsb ish", options(nostack));
        for line in lines(0) {
            asm!("ic ivau, {}", in(reg) line, options(nostack));
        }
        asm!("dsb ish", "isb", options(nostack));
    }
}

/// # Safety
/// None is needed: there is nothing to do.
#[cfg(not(target_arch = "aarch64"))]
unsafe fn make_fetchable(_: *const u8, _: usize) {}

impl Mapping {
    /// Places the code of an object file in memory.
    pub(super) fn new(object: &[u8]) -> Option<Mapping> {
        let (image, entry) = link(object, OWN)?;
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a fresh anonymous mapping, which nothing executes before it is complete and read-only.
        unsafe {
            let data = libc::mmap(ptr::null_mut(), image.len(), protection, flags, -1, 0);
            if data == libc::MAP_FAILED {
                return None;
            }
            let mapping = Mapping { data: data.cast(), bytes: image.len(), entry };
            mapping.data.copy_from_nonoverlapping(image.as_ptr(), image.len());
            make_fetchable(mapping.data, mapping.bytes);
            let executable = libc::mprotect(data, image.len(), libc::PROT_READ | libc::PROT_EXEC) == 0;
            executable.then_some(mapping)
        }
    }

    /// The kernel.
    pub(super) fn entry(&self) -> *const u8 {
        self.data.wrapping_add(self.entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anything_else_is_refused() {
        assert!(Mapping::new(b"").is_none());
        assert!(Mapping::new(&[0; 4096]).is_none());
        let mut header = vec![0; 4096];
        header[..6].copy_from_slice(b"\x7fELF\x02\x01");
        (header[16], header[18]) = (1, 62);
        assert!(Mapping::new(&header).is_none(), "no sections");
        header[40..48].copy_from_slice(&u64::MAX.to_le_bytes());
        (header[58], header[60]) = (64, 3);
        assert!(Mapping::new(&header).is_none(), "sections beyond the end");
    }
}
