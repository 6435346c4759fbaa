//! The batch under construction: interned views and source lines, constants, and what the flush rules ask for.

use crate::Location;
use crate::array::small_view::{SmallView, mix};
use crate::batch::intern::Index;
use crate::batch::period::Period;
use crate::state::settled::Own;
use bh_bytecode::{Base, Batch, Constant, Extension, Instr, Opcode, Operand, Origin, ViewRec, base_flags};

/// Fills one batch after the other.
pub(crate) struct Builder {
    pub(crate) batch: Batch,
    /// Number of the batch, from 1. Cached view and base indices are good only in their own epoch.
    pub(crate) epoch: u64,
    /// Bytes of the bases that came to life in this batch, or that it drops.
    pub(crate) held_bytes: u64,
    /// Bytes of the bases that the batch ends and did not begin.
    pub(crate) freed_bytes: u64,
    /// Bytes of all bases that have come to life since the program began, without those that were dropped.
    pub(crate) live_bytes: i64,
    /// Bytes that the instructions write: a measure of the work.
    pub(crate) work_bytes: u64,
    pub(crate) period: Period,
    /// Bases that the batch uses and the user may have changed.
    pub(crate) exported: Vec<Base>,
    /// Bases whose last handle went while they were mapped, and how often they were.
    pub(crate) unmaps: Vec<(Base, u32)>,
    /// Data that the batch finds in bases of the stack, adopted for that; `None` where there was no memory for it.
    pub(crate) given: Vec<(Base, Option<Own>)>,
    /// For each base of the batch its place among the recorder's.
    pub(crate) places: Vec<u32>,
    /// For each base of the batch the position of the last instruction that uses it, as loops are looked for.
    used: Vec<u64>,
    /// Where the batch began.
    begin: u64,
    /// Slots of bases that the batch ends.
    pub(crate) freed_slots: Vec<u32>,
    /// Hash of the structure of all operations so far, without the management of data.
    pub(crate) computes: u64,
    /// The batch has its structure written down already.
    pub(crate) signed: bool,
    /// The most operations at a turn of a loop at which batches have ended so often that longer ones pay.
    pub(crate) outgrown: usize,
    /// Constants that a trace has marked, and their marks.
    pub(crate) marks: Vec<(u32, u16)>,
    views: Index,
    origins: Index,
    last_origin: u32,
    /// File names in the string pool: (offset, bytes).
    files: Vec<(u32, u32)>,
}

impl Builder {
    pub(crate) fn new() -> Builder {
        Builder {
            batch: Batch::default(),
            epoch: 1,
            held_bytes: 0,
            freed_bytes: 0,
            live_bytes: 0,
            work_bytes: 0,
            period: Period::new(),
            exported: Vec::new(),
            unmaps: Vec::new(),
            given: Vec::new(),
            places: Vec::new(),
            used: Vec::new(),
            begin: 0,
            freed_slots: Vec::new(),
            computes: 0,
            signed: false,
            outgrown: 0,
            marks: Vec::new(),
            views: Index::new(),
            origins: Index::new(),
            last_origin: 0,
            files: Vec::new(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.batch.instrs.is_empty()
    }

    /// Hands out the closed batch and goes on with `empty`.
    pub(crate) fn take(&mut self, empty: Batch) -> Batch {
        self.places.clear();
        self.used.clear();
        self.begin = self.period.position();
        self.epoch += 1;
        self.held_bytes = 0;
        self.freed_bytes = 0;
        self.work_bytes = 0;
        self.computes = 0;
        self.signed = false;
        self.outgrown = 0;
        self.views.clear();
        self.origins.clear();
        self.last_origin = 0;
        self.files.clear();
        std::mem::replace(&mut self.batch, empty)
    }

    /// Instructions since the batch began, those among them that end an array in a batch that waits.
    pub(crate) fn turned(&self) -> u64 {
        self.period.position() - self.begin
    }

    /// Appends a base, which is the recorder's at `place`.
    pub(crate) fn push_base(&mut self, base: Base, slot: u32, place: u32) -> u32 {
        self.enter_next(base, slot, place);
        self.batch.push_base(base)
    }

    /// Does the accounts of the first base of the batch's table that is not entered.
    pub(crate) fn enter_next(&mut self, base: Base, slot: u32, place: u32) {
        self.batch.slots.push(slot);
        self.places.push(place);
        self.used.push(self.begin.saturating_sub(1));
        if base.has(base_flags::BORN) {
            self.held_bytes = self.held_bytes.saturating_add(base.bytes());
            self.live_bytes = self.live_bytes.saturating_add_unsigned(base.bytes());
        }
    }

    /// The index of a view of a base of the batch.
    #[inline]
    pub(crate) fn intern_view(&mut self, base: u32, view: &SmallView) -> u32 {
        let next = self.batch.views.len() as u32;
        let batch = &self.batch;
        let equal = |row: u32| {
            let record = &batch.views[row as usize];
            record.base == base
                && record.start == view.start
                && record.rank as usize == view.rank()
                && &batch.dims[record.dims as usize..][..2 * view.rank()] == view.dims()
        };
        let index = self.views.find_or_insert(mix(view.hash, u64::from(base)), next, equal);
        if index == next {
            let dims = self.batch.dims.len() as u32;
            self.batch.dims.extend_from_slice(view.dims());
            let (rank, start, len) = (view.rank() as u32, view.start, view.len);
            self.batch.views.push(ViewRec { base, rank, start, len, dims, reserved: 0 });
        }
        index
    }

    pub(crate) fn push_constant(&mut self, constant: Constant) -> Operand {
        if let [low, high, ..] = constant.reserved
            && (low, high) != (0, 0)
        {
            let plain = Constant { reserved: [0; 7], ..constant };
            let at = self.batch.push_constant(plain);
            self.marks.push((at, u16::from_ne_bytes([low, high])));
            return Operand::constant(at);
        }
        Operand::constant(self.batch.push_constant(constant))
    }

    /// Takes over the tables of a batch but for its slots and places, which the caller appends.
    pub(crate) fn refill(&mut self, from: &Batch) {
        let batch = &mut self.batch;
        macro_rules! copy {
            ($($table:ident),*) => { $( batch.$table.clone_from(&from.$table); )* };
        }
        bh_bytecode::for_each_table!(copy);
        batch.header = from.header;
        batch.slots.clear();
        self.signed = true;
        self.places.clear();
    }

    /// Makes sure that the batch names an extension method.
    pub(crate) fn declare_extension(&mut self, opcode: Opcode, name: &str) {
        if self.batch.extensions.iter().all(|extension| extension.opcode != opcode) {
            let (offset, len) = self.batch.push_string(name);
            self.batch.extensions.push(Extension { opcode, reserved: 0, name: offset, name_len: len });
        }
    }

    /// The index of a source line plus one, or 0 for none.
    #[inline]
    pub(crate) fn intern_origin(&mut self, location: Location<'_>) -> u32 {
        if location.line == 0 || location.file.is_empty() {
            return 0;
        }
        if let Some(last) = (self.last_origin as usize).checked_sub(1)
            && self.batch.origins[last].line == location.line
            && self.file(self.batch.origins[last]) == location.file
        {
            return self.last_origin;
        }
        if std::str::from_utf8(location.file).is_err() {
            return 0;
        }
        self.last_origin = self.find_origin(location) + 1;
        self.last_origin
    }

    fn file(&self, origin: Origin) -> &[u8] {
        &self.batch.strings[origin.file as usize..][..origin.file_len as usize]
    }

    fn find_origin(&mut self, location: Location<'_>) -> u32 {
        let next = self.batch.origins.len() as u32;
        let batch = &self.batch;
        let equal = |row: u32| {
            let origin = &batch.origins[row as usize];
            origin.line == location.line
                && &batch.strings[origin.file as usize..][..origin.file_len as usize] == location.file
        };
        let hash = mix(location.file.len() as u64, u64::from(location.line));
        let index = self.origins.find_or_insert(hash, next, equal);
        if index == next {
            let pool = &self.batch.strings;
            let known = |&(offset, len): &(u32, u32)| &pool[offset as usize..][..len as usize] == location.file;
            let (file, file_len) = match self.files.iter().copied().find(known) {
                Some(file) => file,
                None => {
                    let file = (self.batch.strings.len() as u32, location.file.len() as u32);
                    self.batch.strings.extend_from_slice(location.file);
                    self.files.push(file);
                    file
                }
            };
            self.batch.origins.push(Origin { file, file_len, line: location.line });
        }
        index
    }

    /// Tells the search for loops of an array of `bytes` bytes that ends, of which the batch says nothing.
    pub(crate) fn note_discard(&mut self, structure: u64, bytes: u64) {
        let hash = mix(structure, u64::from(Opcode::Discard.0));
        self.period.push(hash, self.live_bytes, Some((self.begin.saturating_sub(1), bytes)));
    }

    /// Ends a base: the view is one of it, and its structure has this hash.
    pub(crate) fn push_discard(&mut self, base: u32, view: u32, structure: u64) {
        let bytes = self.batch.bases[base as usize].bytes();
        self.batch.bases[base as usize].flags |= base_flags::DIES;
        let hash = mix(structure, u64::from(Opcode::Discard.0));
        self.period.push(hash, self.live_bytes, Some((self.used[base as usize], bytes)));
        self.batch.instrs.push(Instr::new(Opcode::Discard, &[Operand::view(view)]));
    }

    /// Appends an instruction whose operands' structure has the hash `structure`.
    #[inline]
    pub(crate) fn push_instr(&mut self, instr: Instr, structure: u64) {
        let code = u64::from(instr.opcode.0) | u64::from(instr.param) << 16 | u64::from(instr.order) << 32;
        let hash = mix(structure, code);
        if !instr.opcode.is_system() {
            self.computes = mix(self.computes, hash);
            for view in instr.operands().iter().filter_map(|operand| operand.as_view()) {
                // Generators have views of no base.
                if let Some(used) = self.used.get_mut(self.batch.views[view as usize].base as usize) {
                    *used = self.period.position();
                }
            }
        }
        self.period.push(hash, self.live_bytes, None);
        self.batch.instrs.push(instr);
    }
}

/// Says of the bases of a finished batch which live on.
pub(crate) fn close(batch: &mut Batch) {
    let living = batch.bases.iter_mut().filter(|base| !base.has(base_flags::DIES));
    living.for_each(|base| base.flags |= base_flags::LIVE_OUT);
}
