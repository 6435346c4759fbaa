//! Machine code from an object file in executable memory. Only what the kernel compiler makes is understood: sections
//! without symbols from elsewhere, and references relative to the instruction.

use std::ptr;

const HEADER: usize = 64;
const ALLOCATED: u64 = 2;
const NO_BITS: u32 = 8;
const RELOCATIONS: u32 = 4;
const SYMBOLS: u32 = 2;
/// References relative to their place: to data, and to functions.
const RELATIVE: [u32; 2] = [2, 4];

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

/// A section of the file.
struct Section {
    kind: u32,
    flags: u64,
    offset: usize,
    size: usize,
    link: usize,
    info: usize,
    alignment: usize,
    /// Where it is in the image, if it is.
    placed: Option<usize>,
}

struct File<'a>(&'a [u8]);

impl File<'_> {
    fn bytes<const N: usize>(&self, at: usize) -> Option<[u8; N]> {
        self.0.get(at..)?.first_chunk().copied()
    }

    fn short(&self, at: usize) -> Option<u16> {
        self.bytes(at).map(u16::from_le_bytes)
    }

    fn word(&self, at: usize) -> Option<u32> {
        self.bytes(at).map(u32::from_le_bytes)
    }

    fn long(&self, at: usize) -> Option<u64> {
        self.bytes(at).map(u64::from_le_bytes)
    }

    fn size(&self, at: usize) -> Option<usize> {
        self.long(at).and_then(|value| value.try_into().ok())
    }

    fn sections(&self) -> Option<Vec<Section>> {
        let (table, size, count) = (self.size(40)?, usize::from(self.short(58)?), usize::from(self.short(60)?));
        let section = |index: usize| {
            let at = table.checked_add(index * size)?;
            self.0.get(at..at.checked_add(HEADER)?)?;
            Some(Section {
                kind: self.word(at + 4)?,
                flags: self.long(at + 8)?,
                offset: self.size(at + 24)?,
                size: self.size(at + 32)?,
                link: self.word(at + 40)? as usize,
                info: self.word(at + 44)? as usize,
                alignment: self.size(at + 48)?,
                placed: None,
            })
        };
        (0..count).map(section).collect()
    }
}

/// The finished image, and where the kernel begins in it. `None` if the file is not what we understand.
fn link(object: &[u8]) -> Option<(Vec<u8>, usize)> {
    let file = File(object);
    // 64 bits, little-endian, relocatable, x86-64.
    if object.len() < HEADER || object[..6] != *b"\x7fELF\x02\x01" || file.short(16)? != 1 || file.short(18)? != 62 {
        return None;
    }
    let mut sections = file.sections()?;
    let mut image = Vec::new();
    for section in &mut sections {
        if section.flags & ALLOCATED == 0 || section.kind == NO_BITS || section.size == 0 {
            continue;
        }
        let content = object.get(section.offset..section.offset.checked_add(section.size)?)?;
        if section.alignment > 4096 {
            return None;
        }
        image.resize(image.len().next_multiple_of(section.alignment.max(1)), 0);
        section.placed = Some(image.len());
        image.extend(content);
    }
    // The tables lie inside the file, so that what follows stays inside as well.
    let tables = sections.iter().filter(|section| [RELOCATIONS, SYMBOLS].contains(&section.kind));
    for table in tables {
        object.get(table.offset..table.offset.checked_add(table.size)?)?;
    }
    let symbols = sections.iter().find(|section| section.kind == SYMBOLS)?;
    let names = sections.get(symbols.link)?.offset;
    let symbol = |index: usize| {
        let at = symbols.offset + index * 24;
        let section = sections.get(usize::from(file.short(at + 6)?)).filter(|_| index * 24 < symbols.size)?;
        section.placed?.checked_add(file.size(at + 8)?)
    };
    for relocations in sections.iter().filter(|section| section.kind == RELOCATIONS) {
        let Some(target) = sections.get(relocations.info).and_then(|section| section.placed) else { continue };
        for at in (relocations.offset..relocations.offset + relocations.size).step_by(24) {
            let (offset, info, addend) = (file.size(at)?, file.long(at + 8)?, file.long(at + 16)? as i64);
            if !RELATIVE.contains(&(info as u32)) {
                return None;
            }
            let place = target.checked_add(offset)?;
            let value = (symbol((info >> 32) as usize)? as i64).checked_add(addend)?.checked_sub(place as i64)?;
            let value = i32::try_from(value).ok()?.to_le_bytes();
            image.get_mut(place..place.checked_add(4)?)?.copy_from_slice(&value);
        }
    }
    let is_kernel = |index: &usize| {
        let name = file.word(symbols.offset + index * 24).map_or(0, |name| name as usize);
        names.checked_add(name).and_then(|at| object.get(at..)).is_some_and(|text| text.starts_with(b"kernel\0"))
    };
    // The name of the file is among the symbols as well, but in no section.
    let entry = (0..symbols.size / 24).filter(is_kernel).find_map(symbol)?;
    (entry < image.len()).then_some((image, entry))
}

impl Mapping {
    /// Places the code of an object file in memory.
    pub(super) fn new(object: &[u8]) -> Option<Mapping> {
        let (image, entry) = link(object)?;
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a fresh anonymous mapping, which nothing executes before it is complete and read-only.
        unsafe {
            let data = libc::mmap(ptr::null_mut(), image.len(), protection, flags, -1, 0);
            if data == libc::MAP_FAILED {
                return None;
            }
            let mapping = Mapping { data: data.cast(), bytes: image.len(), entry };
            mapping.data.copy_from_nonoverlapping(image.as_ptr(), image.len());
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
