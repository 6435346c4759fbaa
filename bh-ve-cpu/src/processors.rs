//! The table of processors: how fast each family divides in vectors of eight lanes. A family that the table lacks is
//! [`Divider::Unknown`] and gets no other family's numbers; the key `divider` overrides the table.

use bh_jit_abi::Divider;

/// Families of processors by what `cpuid` says of them.
#[cfg(any(target_arch = "x86_64", test))]
struct Family {
    name: &'static str,
    vendor: &'static [u8; 12],
    family: u32,
    /// The models; empty for all.
    models: &'static [u32],
    divider: Divider,
}

/// Families whose vectors have eight lanes of `f64`. Cycles of `vdivpd`, `vdivps` and `vsqrtpd` on such vectors are from LLVM's models
/// of these processors (`llvm-mca-19 -mcpu=`): 16, 10, 24 for `skylake-avx512` and `icelake-server`; 10, 6, 18 for `znver4`, which
/// `znver5` shares. Zen 5 has its own row because its other units take whole vectors. Sapphire Rapids and Granite Rapids are assumed to
/// divide as Ice Lake does.
#[cfg(any(target_arch = "x86_64", test))]
const FAMILIES: &[Family] = &[
    Family {
        name: "Intel Skylake-SP, Cascade Lake, Cooper Lake",
        vendor: b"GenuineIntel",
        family: 6,
        models: &[0x55],
        divider: Divider::Slow,
    },
    Family {
        name: "Intel Cannon Lake, Ice Lake, Tiger Lake, Rocket Lake",
        vendor: b"GenuineIntel",
        family: 6,
        models: &[0x66, 0x6a, 0x6c, 0x7d, 0x7e, 0x8c, 0x8d, 0xa7],
        divider: Divider::Slow,
    },
    Family {
        name: "Intel Sapphire Rapids, Emerald Rapids, Granite Rapids",
        vendor: b"GenuineIntel",
        family: 6,
        models: &[0x8f, 0xcf, 0xad, 0xae],
        divider: Divider::Slow,
    },
    Family { name: "AMD Zen 4", vendor: b"AuthenticAMD", family: 0x19, models: &[], divider: Divider::Fast },
    Family { name: "AMD Zen 5", vendor: b"AuthenticAMD", family: 0x1a, models: &[], divider: Divider::Wide },
];

/// The row of a processor with this vendor, family and model.
#[cfg(any(target_arch = "x86_64", test))]
fn lookup(vendor: &[u8], family: u32, model: u32) -> Option<&'static Family> {
    FAMILIES.iter().find(|row| {
        row.vendor == vendor && row.family == family && (row.models.is_empty() || row.models.contains(&model))
    })
}

/// The divider of this machine's processor, and its family. On AArch64 no kernel asks for it: the compiler divides there by the
/// processor's instructions.
pub(crate) fn divider() -> (Divider, &'static str) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::__cpuid;
        let (names, signature) = (__cpuid(0), __cpuid(1).eax);
        let vendor = [names.ebx, names.edx, names.ecx].map(u32::to_le_bytes).concat();
        let (family, model) = decode(signature);
        if let Some(row) = lookup(&vendor, family, model) {
            return (row.divider, row.name);
        }
    }
    (Divider::Unknown, "a processor that the table lacks")
}

/// Family and model in a signature of `cpuid`'s leaf 1.
#[cfg(any(target_arch = "x86_64", test))]
fn decode(signature: u32) -> (u32, u32) {
    let (family, model) = (signature >> 8 & 15, signature >> 4 & 15);
    let long = signature >> 16 & 15;
    let whole = if family == 15 { family + (signature >> 20 & 255) } else { family };
    (whole, if family == 15 || family == 6 { long << 4 | model } else { model })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_name_their_families() {
        // Signatures of a Xeon Gold 6148, a Xeon 8375C, a Xeon 8481C, an EPYC 9654 and an EPYC 9755.
        let known: [(&[u8], u32, &str, Divider); 5] = [
            (b"GenuineIntel", 0x50654, "Skylake-SP", Divider::Slow),
            (b"GenuineIntel", 0x606a6, "Ice Lake", Divider::Slow),
            (b"GenuineIntel", 0x806f8, "Sapphire Rapids", Divider::Slow),
            (b"AuthenticAMD", 0xa10f11, "Zen 4", Divider::Fast),
            (b"AuthenticAMD", 0xb00f21, "Zen 5", Divider::Wide),
        ];
        for (vendor, signature, name, divider) in known {
            let (family, model) = decode(signature);
            let row = lookup(vendor, family, model).unwrap();
            assert!(row.name.contains(name) && row.divider == divider, "{name}: {}", row.name);
        }
        // A family that comes later gets nobody's numbers.
        assert!(lookup(b"GenuineIntel", 6, 0xff).is_none() && lookup(b"AuthenticAMD", 0x1b, 0).is_none());
    }
}
