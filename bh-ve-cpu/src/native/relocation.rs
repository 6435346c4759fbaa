//! References of machine code to other places of its image, written into the instructions that make them.

use object::elf::{self, RelocationType};

/// A reference: its type in ELF's tables, where in the image it is, and the place in the image that it names.
pub(super) struct Reference {
    pub(super) kind: RelocationType,
    pub(super) at: usize,
    pub(super) target: i64,
}

/// Bytes of the pages in which AArch64's instructions count addresses. Images begin with such a page, whatever the system's pages are.
const PAGE: i64 = 4096;

/// Writes a reference of code for x86-64: a distance in 32 bits. `None` if it is another one.
pub(super) fn write_x86_64(image: &mut [u8], reference: &Reference) -> Option<()> {
    let Reference { kind, at, target } = *reference;
    let relative = matches!(kind, elf::R_X86_64_PC32 | elf::R_X86_64_PLT32);
    if relative { write_distance(image, at, target) } else { None }
}

/// Writes a reference of code for AArch64. `None` if it is of another kind than the code generator's small model has within an
/// image, or too far.
pub(super) fn write_aarch64(image: &mut [u8], reference: &Reference) -> Option<()> {
    let Reference { kind, at, target } = *reference;
    if kind == elf::R_AARCH64_PREL32 {
        return write_distance(image, at, target);
    }
    let bytes: &mut [u8; 4] = image.get_mut(at..at.checked_add(4)?)?.try_into().ok()?;
    let instruction = u32::from_le_bytes(*bytes);
    *bytes = in_aarch64(instruction, kind, at as i64, target)?.to_le_bytes();
    Some(())
}

/// An instruction of AArch64 with the place that it refers to.
fn in_aarch64(instruction: u32, kind: RelocationType, at: i64, target: i64) -> Option<u32> {
    let within = target.rem_euclid(PAGE) as u32;
    // The place within its page, in units of the instruction's operand.
    let of_size = |size: u32| within.is_multiple_of(size).then(|| with_field(instruction, (10, 12), within / size));
    match kind {
        elf::R_AARCH64_ADR_PREL_PG_HI21 => {
            let pages = i32::try_from(target.div_euclid(PAGE) - at.div_euclid(PAGE)).ok()?;
            if !(-1 << 20..1 << 20).contains(&pages) {
                return None;
            }
            let low = with_field(instruction, (29, 2), pages as u32);
            Some(with_field(low, (5, 19), (pages >> 2) as u32))
        }
        elf::R_AARCH64_ADD_ABS_LO12_NC | elf::R_AARCH64_LDST8_ABS_LO12_NC => of_size(1),
        elf::R_AARCH64_LDST16_ABS_LO12_NC => of_size(2),
        elf::R_AARCH64_LDST32_ABS_LO12_NC => of_size(4),
        elf::R_AARCH64_LDST64_ABS_LO12_NC => of_size(8),
        elf::R_AARCH64_LDST128_ABS_LO12_NC => of_size(16),
        _ => None,
    }
}

/// An instruction with other bits in a field of `bits` bits.
fn with_field(instruction: u32, (begin, bits): (u32, u32), value: u32) -> u32 {
    let mask = (1 << bits) - 1;
    instruction & !(mask << begin) | (value & mask) << begin
}

/// Writes how far the target is from the reference.
fn write_distance(image: &mut [u8], at: usize, target: i64) -> Option<()> {
    let distance = i32::try_from(target.checked_sub(at as i64)?).ok()?;
    image.get_mut(at..at.checked_add(4)?)?.copy_from_slice(&distance.to_le_bytes());
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_written_where_they_fit() {
        let mut image = vec![0xee; 16];
        let reference = |kind, at, target| Reference { kind, at, target };
        write_x86_64(&mut image, &reference(elf::R_X86_64_PC32, 4, 20)).unwrap();
        assert_eq!(image[..8], [0xee, 0xee, 0xee, 0xee, 16, 0, 0, 0]);
        write_aarch64(&mut image, &reference(elf::R_AARCH64_PREL32, 4, 0)).unwrap();
        assert_eq!(image[4..8], (-4i32).to_le_bytes());
        assert!(write_x86_64(&mut image, &reference(elf::R_X86_64_PC32, 13, 0)).is_none(), "beyond the end");
        assert!(write_x86_64(&mut image, &reference(elf::R_X86_64_64, 0, 0)).is_none());
        assert!(write_x86_64(&mut image, &reference(elf::R_X86_64_PC32, 0, 1 << 31)).is_none(), "too far");
        assert!(write_aarch64(&mut image, &reference(elf::R_AARCH64_CALL26, 0, 4)).is_none());
        assert!(write_aarch64(&mut image, &reference(elf::R_AARCH64_ABS64, 0, 4)).is_none());
    }

    /// The instructions are as an assembler writes them: `adrp x8, …`, `ldr q0, [x8, …]`, `ldr d0, [x8, …]`, `add x8, x8, …`.
    #[test]
    fn instructions_of_aarch64_take_pages_and_places_within() {
        let in_code = |instruction, kind, at, target| in_aarch64(instruction, kind, at, target);
        let page = elf::R_AARCH64_ADR_PREL_PG_HI21;
        assert_eq!(in_code(0x9000_0008, page, 0x10, 0x20), Some(0x9000_0008));
        assert_eq!(in_code(0x9000_0008, page, 0x10, 0x1020), Some(0xb000_0008));
        assert_eq!(in_code(0x9000_0008, page, 0x10, 0x5020), Some(0xb000_0028));
        assert_eq!(in_code(0x9000_0008, page, 0x2010, 0x1ff8), Some(0xf0ff_ffe8));
        assert_eq!(in_code(0x9000_0008, page, 0, 1 << 32), None, "too far");
        assert_eq!(in_code(0x3dc0_0100, elf::R_AARCH64_LDST128_ABS_LO12_NC, 0, 0x1020), Some(0x3dc0_0900));
        assert_eq!(in_code(0x3dc0_0100, elf::R_AARCH64_LDST128_ABS_LO12_NC, 0, 0x1028), None, "no multiple of 16");
        assert_eq!(in_code(0xfd40_0100, elf::R_AARCH64_LDST64_ABS_LO12_NC, 0, 0x28), Some(0xfd40_1500));
        assert_eq!(in_code(0x9100_0108, elf::R_AARCH64_ADD_ABS_LO12_NC, 0, 0x1fff), Some(0x913f_fd08));
        // The old bits of the field are cleared.
        assert_eq!(in_code(0x913f_fd08, elf::R_AARCH64_ADD_ABS_LO12_NC, 0, 0x1001), Some(0x9100_0508));
    }
}
