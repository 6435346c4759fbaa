//! How many bytes of the device's memory blocks will take, known before the first one runs: plans say what each takes, and
//! arrays what is there already. Nothing is changed.

use crate::arrays::Arrays;
use crate::launch::note_bytes;
use crate::memory::capacity;
use crate::plan::BlockPlan;
use bh_bytecode::{BatchRef, Opcode};
use std::collections::HashMap;

/// The device's memory as it will be.
pub(crate) struct Foretold<'a> {
    arrays: &'a Arrays,
    /// Bytes in use, and the most at a time.
    now: u64,
    most: u64,
    /// Bases whose memory differs from what it is: the bytes that they have then.
    changed: HashMap<u64, u64>,
    /// Bytes of arrays that came in parts.
    parted: HashMap<u64, u64>,
}

impl<'a> Foretold<'a> {
    pub(crate) fn new(arrays: &'a Arrays) -> Foretold<'a> {
        let now = arrays.pool.bytes().0;
        Foretold { arrays, now, most: now, changed: HashMap::new(), parted: HashMap::new() }
    }

    /// The most bytes at a time beyond those in use before; arrays make room for others at the limit.
    pub(crate) fn peak(&self) -> u64 {
        let begin = self.arrays.pool.bytes().0;
        self.most.min(self.arrays.pool.limit.max(begin)) - begin
    }

    /// Bytes that a base has on the device.
    fn bytes_of(&self, id: u64) -> u64 {
        self.changed.get(&id).copied().unwrap_or_else(|| self.arrays.bytes_of(id))
    }

    /// A base gets memory of this many bytes, and has none but that.
    fn set(&mut self, id: u64, bytes: u64) {
        self.now = self.now + bytes - self.bytes_of(id);
        self.changed.insert(id, bytes);
    }

    /// A block with this plan runs.
    pub(crate) fn run(&mut self, batch: &BatchRef<'_>, plan: &BlockPlan) {
        if plan.in_pieces.is_some() {
            // Pieces are made as large as there is room.
            self.most = self.arrays.pool.limit;
            return;
        }
        let launches = plan.chosen(plan.is_special());
        let mut passing: u64 = plan.temporaries.iter().chain(&launches.scratch).map(|&bytes| room(bytes)).sum();
        let notes = launches.all.iter().map(|launch| note_bytes(&launch.code)).max().unwrap_or(0);
        passing += if notes > 0 { room(notes) } else { 0 };
        let places = || launches.all.iter().flat_map(|launch| &launch.code.places);
        passing += if places().any(|place| plan.is_unseen(place)) { room(0) } else { 0 };
        for launch in launches.all.iter().filter(|launch| launch.code.packed && launch.numbers.get().is_none()) {
            // They stay with the plan.
            self.now += room(launch.code.numbers.len() * if launch.code.wide { 8 } else { 4 });
        }
        for (used, parts) in plan.uses.iter().zip(&plan.parts) {
            let base = &batch.bases[used.base as usize];
            if self.bytes_of(base.id) > 0 {
                continue;
            }
            let bytes: u64 = parts.iter().map(|part| part.bytes()).sum();
            let brought = self.parted.entry(base.id).or_insert_with(|| self.arrays.parted_of(base.id));
            *brought += bytes;
            match bytes > 0 && *brought <= base.bytes() / 2 {
                true => passing += room(base.bytes() as usize),
                false => self.set(base.id, room(base.bytes() as usize)),
            }
        }
        let fresh = plan.renames.iter().map(|rename| batch.bases[rename.base as usize]);
        let fresh_bytes: u64 = fresh.clone().map(|base| room(base.bytes() as usize)).sum();
        self.most = self.most.max(self.now + passing + fresh_bytes);
        for base in fresh {
            self.set(base.id, room(base.bytes() as usize));
        }
        // An array that is part of another one may come to need memory of its own.
        for (alias, _) in plan.renames.iter().filter_map(|rename| rename.alias) {
            let alias = batch.bases[alias as usize];
            self.set(alias.id, room(alias.bytes() as usize));
        }
    }

    /// A block ends: the arrays that it drops give their memory back.
    pub(crate) fn end(&mut self, batch: &BatchRef<'_>, block: u32) {
        for &instr in batch.block_instrs(&batch.blocks[block as usize]) {
            let instr = &batch.instrs[instr as usize];
            if !matches!(instr.opcode, Opcode::Free | Opcode::Discard) {
                continue;
            }
            let bases = instr.operands().iter().filter_map(|operand| batch.base_of(operand.as_view()?));
            bases.for_each(|base| self.set(base.id, 0));
        }
    }
}

fn room(bytes: usize) -> u64 {
    capacity(bytes) as u64
}
