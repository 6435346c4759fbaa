//! How many forms with their numbers in the text a kernel gets: loops over rows start the same kernel with other offsets each, and building
//! hundreds of forms of little work takes longer than they save.

use std::collections::HashMap;

/// Forms of a kernel at most.
const MOST: usize = 8;
/// Blocks that move this many bytes get one in any case.
pub(crate) const WORTH: u64 = 16 << 20;
/// Kernels that are known; beyond, counting begins anew.
const KERNELS: usize = 1 << 14;

/// The names of the blocks that have a form, by what their kernels are apart from numbers.
#[derive(Default)]
pub(crate) struct Forms(HashMap<u128, Vec<u128>>);

impl Forms {
    /// May the block `name` of these kernels have a form of its own? It counts from now on.
    pub(crate) fn has_room(&mut self, kernels: u128, name: u128) -> bool {
        if self.0.len() >= KERNELS {
            self.0.clear();
        }
        let known = self.0.entry(kernels).or_default();
        let has = known.contains(&name);
        if !has && known.len() < MOST {
            known.push(name);
        }
        has || known.last() == Some(&name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_blocks_of_a_kernel_have_forms() {
        let mut forms = Forms::default();
        for _ in 0..2 {
            assert!((0..MOST as u128).all(|name| forms.has_room(1, name)));
            assert!((MOST as u128..20).all(|name| !forms.has_room(1, name)));
        }
        assert!(forms.has_room(2, 20));
    }
}
