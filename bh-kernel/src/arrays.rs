//! The arrays of a chain while it takes in block after block: versions of bases, each of which ends where a rename begins the next
//! one, and temporaries of blocks.

use crate::survey::Survey;
use crate::tiling::TileRename;
use crate::{BufferRef, Stage, Temporary};
use bh_bytecode::DType;
use bh_bytecode::batch::NO_BASE;
use std::collections::HashMap;
use std::ops::{Deref, DerefMut};

/// The array of a slot that addresses no memory.
pub(crate) const NO_ARRAY: u32 = u32::MAX;

/// An array of a chain, with the facts `A` that its kind of chain collects.
#[derive(Clone)]
pub(crate) struct Array<A> {
    /// Its base; `NO_BASE` for temporaries.
    pub(crate) base: u32,
    pub(crate) dtype: DType,
    pub(crate) len: i64,
    /// Does it begin in the chain, in place of an earlier version?
    pub(crate) fresh: bool,
    /// The block that first uses it in the chain.
    pub(crate) made: u32,
    /// The block that ends it by a rename.
    pub(crate) replaced: Option<u32>,
    /// Does another base become an alias of it?
    pub(crate) aliased: bool,
    /// Does a nest write it?
    pub(crate) written: bool,
    /// Does a nest use it otherwise than row by row?
    pub(crate) irregular: bool,
    own: A,
}

impl<A> Array<A> {
    /// Bytes of an element.
    pub(crate) fn size(&self) -> i64 {
        self.dtype.size() as i64
    }

    /// Does its content end before block `end`?
    pub(crate) fn dies(&self, survey: &Survey<'_>, end: u32) -> bool {
        let replaced = self.replaced.is_some_and(|block| block < end);
        replaced || (!self.aliased && survey.last_use(self.base).is_some_and(|last| last < end))
    }
}

impl<A> Deref for Array<A> {
    type Target = A;

    fn deref(&self) -> &A {
        &self.own
    }
}

impl<A> DerefMut for Array<A> {
    fn deref_mut(&mut self) -> &mut A {
        &mut self.own
    }
}

/// The arrays of a chain by number.
pub(crate) struct Arrays<'a, A> {
    survey: &'a Survey<'a>,
    /// The first facts of an array of a base.
    facts: fn(&Survey<'_>, u32) -> A,
    list: Vec<Array<A>>,
    /// Renames so far, with their blocks.
    pub(crate) renames: Vec<(u32, TileRename)>,
    /// The array that each buffer is now.
    current: HashMap<BufferRef, u32>,
    block: u32,
}

impl<A> Deref for Arrays<'_, A> {
    type Target = Vec<Array<A>>;

    fn deref(&self) -> &Vec<Array<A>> {
        &self.list
    }
}

impl<A> DerefMut for Arrays<'_, A> {
    fn deref_mut(&mut self) -> &mut Vec<Array<A>> {
        &mut self.list
    }
}

impl<'a, A> Arrays<'a, A> {
    /// None yet.
    pub(crate) fn new(survey: &'a Survey<'a>, facts: fn(&Survey<'_>, u32) -> A) -> Arrays<'a, A> {
        Arrays { survey, facts, list: Vec::new(), renames: Vec::new(), current: HashMap::new(), block: 0 }
    }

    /// The chain takes in a block: its temporaries and the fresh buffers of its renames are new arrays.
    pub(crate) fn begin(&mut self, block: u32, temporaries: &[Temporary]) {
        self.block = block;
        for (number, &Temporary { dtype, len }) in (0..).zip(temporaries) {
            let array = self.add(NO_BASE, dtype, len);
            self.current.insert(BufferRef::Temporary(number), array);
        }
        let batch = self.survey.batch;
        for rename in batch.renames(&batch.blocks[block as usize]) {
            let array = self.add_base(rename.base);
            self.list[array as usize].fresh = true;
            self.list[array as usize].aliased = rename.alias != NO_BASE;
            self.current.insert(BufferRef::Fresh(rename.base), array);
        }
    }

    /// The renames of the block take effect.
    pub(crate) fn end(&mut self) {
        let batch = self.survey.batch;
        for rename in batch.renames(&batch.blocks[self.block as usize]) {
            let alias = (rename.alias != NO_BASE).then_some((rename.alias, rename.alias_view));
            self.renames.push((self.block, TileRename { base: rename.base, alias }));
            if let Some(fresh) = self.current.remove(&BufferRef::Fresh(rename.base)) {
                self.replace(rename.base, fresh);
            }
        }
    }

    /// A new version of a base from the next nest on, as a rename makes it.
    pub(crate) fn renew(&mut self, base: u32) -> u32 {
        let array = self.add_base(base);
        self.list[array as usize].fresh = true;
        self.replace(base, array);
        array
    }

    /// The array that a buffer is now, if a nest has used it.
    pub(crate) fn current(&self, buffer: BufferRef) -> Option<u32> {
        self.current.get(&buffer).copied()
    }

    /// The array of each slot.
    pub(crate) fn of_slots(&mut self, stage: &Stage) -> Vec<u32> {
        let array = |&buffer: &BufferRef| match (self.current(buffer), buffer) {
            (Some(array), _) => array,
            (None, BufferRef::Base(base)) => {
                let array = self.add_base(base);
                self.current.insert(buffer, array);
                array
            }
            (None, _) => NO_ARRAY,
        };
        stage.parameters.buffers.iter().map(array).collect()
    }

    fn replace(&mut self, base: u32, array: u32) {
        if let Some(old) = self.current.insert(BufferRef::Base(base), array) {
            self.list[old as usize].replaced = Some(self.block);
        }
    }

    fn add_base(&mut self, base: u32) -> u32 {
        let record = &self.survey.batch.bases[base as usize];
        self.add(base, record.dtype(), record.len)
    }

    fn add(&mut self, base: u32, dtype: DType, len: i64) -> u32 {
        self.list.push(Array {
            base,
            dtype,
            len,
            fresh: false,
            made: self.block,
            replaced: None,
            aliased: false,
            written: false,
            irregular: false,
            own: (self.facts)(self.survey, base),
        });
        self.list.len() as u32 - 1
    }
}
