//! The component: splits batches, moves arrays between the ranks, and assembles them for the program.

use crate::cut::{can_be_cut, part, rows_before};
use crate::local::{Rank, flush};
use crate::pieces::{Entry, Layout, Staging};
use crate::wire::{Elsewhere, Remote, Seat, Wire};
use bh_bytecode::{Base, BatchRef, Instr, Kind, Opcode, Operand, View};
use bh_core::abi::{
    Adoption, Capabilities, Export, ExportRequest, HostMemory, Residency, access, capability, kind, retire, status,
};
use bh_core::component::{Child, Component, Host, Registry, Report, Ticket};
use bh_core::error::{Error, Result};
use bh_core::strided;
use bh_ve_interp::usage::{Use, instr_usage};
use std::collections::HashMap;
use std::sync::Arc;

/// The manager of two ranks.
pub struct Split {
    host: Host,
    ranks: [Rank; 2],
    /// The connection to the second rank.
    wire: Arc<Wire>,
    entries: HashMap<u64, Entry>,
    /// The first error of the running batch.
    first_error: Option<Error>,
}

// SAFETY: all state is in this value; the thread with a child is joined when it ends.
unsafe impl Component for Split {
    const NAME: &'static str = "vem-split";
    const KIND: u32 = kind::DATA_MANAGER;
    const KEYS: &'static [bh_core::config::Row] = &[];

    fn create(host: Host, children: Vec<Child>) -> Result<Split> {
        let found = children.len();
        let children: [Child; 2] = children.try_into().map_err(|_| {
            let text = format!("vem-split needs two stacks below it (a list of siblings), not {found}");
            Error::new(status::INIT, text)
        })?;
        let [first, second] = children;
        let remote = Remote::start(host, second)?;
        let wire = remote.wire();
        let ranks = [Rank::new(Seat::Here(first)), Rank::new(Seat::There(remote))];
        Ok(Split { host, ranks, wire, entries: HashMap::new(), first_error: None })
    }

    fn child(&mut self) -> Option<&mut Child> {
        self.ranks[0].here()
    }

    fn capabilities(&mut self) -> Capabilities {
        let mut capabilities = self.ranks[0].here().map_or_else(Capabilities::default, Child::capabilities);
        // The ranks' capabilities do not apply to this component, and the second rank's thread does not survive a fork.
        capabilities.flags = capability::NO_FORK;
        capabilities.parallelism *= 2;
        capabilities
    }

    fn bind(&mut self, _registry: Registry) -> Result<()> {
        Ok(())
    }

    fn execute(&mut self, batch: &BatchRef<'_>, blocks: &[u32], report: &mut Report) -> Result<Ticket> {
        self.ranks.iter_mut().for_each(|rank| rank.begin(batch));
        let all: Vec<u32> = (0..batch.blocks.len() as u32).collect();
        if batch.blocks.is_empty() {
            for index in 0..batch.instrs.len() as u32 {
                self.run(batch, (0, index), report);
            }
        }
        for &block in if blocks.is_empty() { &all } else { blocks } {
            for &index in batch.block_instrs(&batch.blocks[block as usize]) {
                self.run(batch, (block, index), report);
            }
        }
        self.flush();
        self.first_error.take().map_or(Ok(Ticket::DONE), Err)
    }

    fn map(&mut self, base: &Base, _view: Option<&View>, mode: u32) -> Result<*mut u8> {
        self.ensure(base, base.row_hint);
        let outcome = self.map_entry(base, mode);
        self.flush();
        // Earlier errors were already reported.
        self.first_error = None;
        outcome
    }

    fn unmap(&mut self, base: &Base) -> Result<()> {
        let entry = entry_of(&mut self.entries, base)?;
        let Layout::Whole { piece, .. } = entry.layout else { return self.unmap_staging(base) };
        if entry.fixed && entry.staging.is_none() {
            return self.ranks[0].unmap(&piece);
        }
        self.unmap_staging(base)
    }

    /// If a view is on one rank, moves its elements only.
    fn read(&mut self, base: &Base, view: &View, memory: &HostMemory) -> Result<()> {
        if let Some((rank, piece, part)) = self.on_one_rank(base, view)? {
            let memory = Elsewhere(*memory);
            return self.ranks[rank].call(move |child| child.read(&piece, &part, memory.get()));
        }
        let data = Component::map(self, base, None, access::READ)?;
        // SAFETY: the map exposes the whole base, which the view fits, and `memory` is writable for its elements
        // without overlaps, as [`HostMemory::new`] requires.
        unsafe { strided::load(base.dtype(), view, data, memory) };
        Component::unmap(self, base)
    }

    fn write(&mut self, base: &Base, view: &View, memory: &HostMemory) -> Result<()> {
        if let Some((rank, piece, part)) = self.on_one_rank(base, view)? {
            let memory = Elsewhere(*memory);
            return self.ranks[rank].call(move |child| child.write(&piece, &part, memory.get()));
        }
        let mode = if view.len() == base.len { access::WRITE | access::DISCARD } else { access::WRITE };
        let data = Component::map(self, base, None, mode)?;
        // SAFETY: the map exposes the whole base, which the view fits, and `memory` is readable for its elements
        // without overlaps, as [`HostMemory::new`] requires.
        unsafe { strided::store(base.dtype(), view, data, memory) };
        Component::unmap(self, base)
    }

    fn residency(&mut self, base: &Base) -> Result<Residency> {
        let lost = self.entries.get(&base.id).is_some_and(|entry| entry.poison.is_some());
        let written = self.entries.get(&base.id).is_some_and(|entry| entry.written);
        Ok(Residency { host: u32::from(written && !lost), lost: u32::from(lost), ..Residency::default() })
    }

    fn retire(&mut self, base: &Base, action: u32) -> Result<()> {
        let opcode = match action {
            retire::SYNC => Opcode::Sync,
            retire::FREE => Opcode::Free,
            retire::DISCARD => Opcode::Discard,
            _ => return Err(Error::new(status::ARGUMENT, format!("retire: there is no action {action}"))),
        };
        self.manage_base(opcode, base);
        self.flush();
        self.first_error.take().map_or(Ok(()), Err)
    }

    fn prefetch(&mut self, _base: &Base, _view: Option<&View>, _memory: u32) -> Result<()> {
        Ok(())
    }

    fn detach(&mut self, base: &Base) -> Result<()> {
        let pieces = self.entries.get(&base.id).map_or(Vec::new(), |entry| entry.layout.pieces());
        pieces.into_iter().try_for_each(|(rank, _, piece)| self.ranks[rank].call(move |child| child.detach(&piece)))
    }

    fn export_data(&mut self, base: &Base, _request: &ExportRequest) -> Result<Export> {
        Err(Error::new(status::UNSUPPORTED, format!("vem-split lends no data, nor that of base {}", base.id)))
    }

    fn adopt(&mut self, base: &Base, adoption: &Adoption) -> Result<()> {
        self.ensure(base, 0);
        self.drop_pieces(base.id);
        let entry = entry_of(&mut self.entries, base)?;
        let piece = Base { id: self.host.new_base_id(), ..*base };
        entry.layout = Layout::Whole { rank: 0, piece };
        (entry.fixed, entry.written, entry.poison) = (true, true, None);
        self.flush();
        let adoption = *adoption;
        let outcome = self.ranks[0].call(move |child| child.adopt(&piece, &adoption));
        if outcome.is_err() {
            self.entries.remove(&base.id);
        }
        outcome
    }

    fn pin(&mut self, base: &Base, pinned: bool) -> Result<()> {
        self.ensure(base, 0);
        if pinned {
            self.bring_to(base, 0, true)?;
        }
        let entry = entry_of(&mut self.entries, base)?;
        let Layout::Whole { piece, .. } = entry.layout else {
            return Err(Error::new(status::ARGUMENT, format!("base {} is not pinned", base.id)));
        };
        entry.fixed = true;
        self.ranks[0].call(move |child| child.pin(&piece, pinned))
    }

    fn extmethod(&mut self, name: &str, opcode: Opcode) -> Result<bool> {
        let mut known = [false; 2];
        for (known, rank) in known.iter_mut().zip(&mut self.ranks) {
            let name = name.to_owned();
            *known = rank.call(move |child| child.extmethod(&name, opcode))?;
        }
        Ok(known == [true, true])
    }

    fn message(&mut self, text: &str) -> Result<String> {
        let mut answers = [String::new(), String::new()];
        for (answer, rank) in answers.iter_mut().zip(&mut self.ranks) {
            let text = text.to_owned();
            *answer = rank.call(move |child| child.message(&text))?;
        }
        Ok(if answers[0] == answers[1] { answers[0].clone() } else { answers.join("\n") })
    }
}

/// The existing entry of a base.
fn entry_of<'a>(entries: &'a mut HashMap<u64, Entry>, base: &Base) -> Result<&'a mut Entry> {
    entries.get_mut(&base.id).ok_or_else(|| Error::new(status::HANDLE, format!("base {} is unknown", base.id)))
}

impl Split {
    fn keep(&mut self, outcome: Result<()>) {
        if let Err(error) = outcome {
            self.first_error.get_or_insert(error);
        }
    }

    fn flush(&mut self) {
        flush(&mut self.ranks, &self.wire).into_iter().for_each(|outcome| self.keep(outcome));
    }

    /// Creates an entry for a base without one.
    fn ensure(&mut self, base: &Base, row_hint: i64) {
        if !self.entries.contains_key(&base.id) {
            let entry = Entry::new(&self.host, base, row_hint);
            for (rank, _, piece) in entry.layout.pieces() {
                self.ranks[rank].set_born(&piece, true);
            }
            self.entries.insert(base.id, entry);
        }
    }

    /// Runs one instruction on its ranks; a failure poisons its outputs.
    fn run(&mut self, batch: &BatchRef<'_>, (block, index): (u32, u32), report: &mut Report) {
        let instr = &batch.instrs[index as usize];
        if instr.opcode.is_system() {
            return self.manage(batch, instr);
        }
        let empty = |operand: &Operand| operand.as_view().is_some_and(|view| batch.views[view as usize].len == 0);
        if instr.outputs().iter().all(empty) {
            return;
        }
        let mut uses = Vec::new();
        instr_usage(batch, instr, &mut uses);
        if let Err(mut error) = self.compute(batch, instr, &uses) {
            if error.origin.is_none() {
                error.origin = batch.origin(instr).map(|(file, line)| (file.to_owned(), line));
            }
            for lost in uses.iter().filter(|found| found.writes) {
                if let Some(entry) = self.entries.get_mut(&batch.bases[lost.base as usize].id) {
                    entry.poison.get_or_insert_with(|| error.clone());
                }
            }
            self.keep(Err(error));
        } else if matches!(instr.opcode.kind(), Kind::Index | Kind::Extension)
            && let Some(error) = self.settle(batch, &uses)
        {
            report.fail(block, index, &error);
            self.keep(Err(error));
        }
    }

    /// Runs the pending batches, whose last instruction may fail. If its outputs are lost on one rank, they are lost on
    /// both. Returns the error.
    fn settle(&mut self, batch: &BatchRef<'_>, uses: &[Use]) -> Option<Error> {
        let error = flush(&mut self.ranks, &self.wire).into_iter().find_map(Result::err)?;
        for found in uses.iter().filter(|found| found.writes) {
            if let Some(entry) = self.entries.get_mut(&batch.bases[found.base as usize].id) {
                let mut pieces = entry.layout.pieces().into_iter();
                let ranks = &mut self.ranks;
                if pieces.any(|(rank, _, piece)| ranks[rank].has_lost(&piece)) {
                    entry.poison = Some(error.clone());
                }
            }
        }
        Some(error)
    }

    fn compute(&mut self, batch: &BatchRef<'_>, instr: &Instr, uses: &[Use]) -> Result<()> {
        for found in uses {
            let base = &batch.bases[found.base as usize];
            self.ensure(base, row_of(batch, instr, found.base).unwrap_or(base.row_hint));
        }
        // Data lost with the instruction is known by now.
        for found in uses.iter().filter(|found| found.needs_old) {
            if let Some(error) = &entry_of(&mut self.entries, &batch.bases[found.base as usize])?.poison {
                return Err(error.clone());
            }
        }
        let rows = self.common_rows(batch, instr);
        let target = if rows.is_none() { self.bring_together(batch, uses)? } else { 0 };
        for found in uses.iter().filter(|found| found.writes) {
            let entry = entry_of(&mut self.entries, &batch.bases[found.base as usize])?;
            (entry.written, entry.poison) = (true, None);
        }
        match rows {
            Some(rows) => self.emit_parts(batch, instr, rows),
            None => self.emit_whole(batch, instr, target),
        }
    }

    /// The row at which all operands change from rank 0 to rank 1, if they agree and the instruction can be cut.
    fn common_rows(&self, batch: &BatchRef<'_>, instr: &Instr) -> Option<i64> {
        if !can_be_cut(batch, instr) {
            return None;
        }
        let views = instr.operands().iter().filter_map(|operand| operand.as_view());
        let mut common = None;
        for view in views {
            let Some(base) = batch.base_of(view) else { continue };
            let view = batch.view(view);
            let before = match self.entries.get(&base.id)?.layout {
                Layout::Rows { cut, .. } => rows_before(&view, cut)?,
                // An array on rank 0 matches an instruction that stays there.
                Layout::Whole { rank: 0, .. } => *view.shape().first()?,
                Layout::Whole { .. } => view.shape().first().map(|_| 0)?,
            };
            if *common.get_or_insert(before) != before {
                return None;
            }
        }
        common
    }

    /// Appends the instruction's rows before and after the cut to the ranks' batches.
    fn emit_parts(&mut self, batch: &BatchRef<'_>, instr: &Instr, rows: i64) -> Result<()> {
        let output = instr.operands()[0].as_view().map_or(&[][..], |view| batch.shape(view));
        let all = output.first().copied().unwrap_or(0);
        for (rank, first, count) in [(0, 0, rows), (1, rows, all - rows)] {
            if count == 0 {
                continue;
            }
            let mut operands = Vec::with_capacity(instr.count as usize);
            for &operand in instr.operands() {
                let Some(view) = operand.as_view() else {
                    operands.push(operand);
                    continue;
                };
                let whole = batch.view(view);
                let (piece, origin) = match batch.base_of(view) {
                    None => (None, 0),
                    Some(base) => {
                        let pieces = entry_of(&mut self.entries, base)?.layout.pieces();
                        let found = pieces.into_iter().find(|&(at, _, _)| at == rank);
                        let (_, origin, piece) = found.ok_or_else(|| lost_piece(base))?;
                        (Some(piece), origin)
                    }
                };
                let part = part(&whole, first, count, origin).ok_or_else(|| {
                    Error::new(status::BATCH, format!("rows {first} to {} of {whole:?} are no view", first + count))
                })?;
                operands.push(self.ranks[rank].operand(piece.as_ref(), &part));
            }
            self.ranks[rank].push(instr, &operands);
        }
        Ok(())
    }

    /// Appends the whole instruction to the batch of the rank that has all operands.
    fn emit_whole(&mut self, batch: &BatchRef<'_>, instr: &Instr, target: usize) -> Result<()> {
        let mut operands = Vec::with_capacity(instr.count as usize);
        let mut unseen = Vec::new();
        for &operand in instr.operands() {
            let Some(view) = operand.as_view() else {
                operands.push(operand);
                continue;
            };
            let piece = match batch.base_of(view) {
                None => None,
                // An empty view: the array may be anywhere, or lost, so another one replaces it.
                Some(base) if batch.views[view as usize].len == 0 => {
                    let piece = Base { id: self.host.new_base_id(), flags: 0, ..*base };
                    self.ranks[target].set_born(&piece, true);
                    unseen.push(piece);
                    Some(piece)
                }
                Some(base) => match entry_of(&mut self.entries, base)?.layout {
                    Layout::Whole { rank, piece } if rank == target => Some(piece),
                    _ => return Err(lost_piece(base)),
                },
            };
            operands.push(self.ranks[target].operand(piece.as_ref(), &batch.view(view)));
        }
        self.ranks[target].push(instr, &operands);
        unseen.iter().for_each(|piece| self.ranks[target].push_system(Opcode::Discard, piece));
        Ok(())
    }

    /// Moves all arrays of an instruction to one rank; returns the rank.
    fn bring_together(&mut self, batch: &BatchRef<'_>, uses: &[Use]) -> Result<usize> {
        let mut target = None;
        for found in uses {
            let entry = entry_of(&mut self.entries, &batch.bases[found.base as usize])?;
            match entry.layout {
                Layout::Whole { .. } if entry.fixed => {
                    target = Some(0);
                    break;
                }
                Layout::Whole { rank, .. } => target = target.or(Some(rank)),
                Layout::Rows { .. } => {}
            }
        }
        let parity = uses.first().map_or(0, |found| batch.bases[found.base as usize].id as usize % 2);
        let target = target.unwrap_or(parity);
        for found in uses {
            self.bring_to(&batch.bases[found.base as usize], target, found.needs_old)?;
        }
        Ok(target)
    }

    /// Moves a base to a rank as a whole, with its data if `needed`. A failed read poisons the base.
    fn bring_to(&mut self, base: &Base, rank: usize, needed: bool) -> Result<()> {
        let entry = entry_of(&mut self.entries, base)?;
        if matches!(entry.layout, Layout::Whole { rank: at, .. } if at == rank) || entry.fixed {
            return Ok(());
        }
        let copy = needed && entry.written;
        let piece = Base { id: self.host.new_base_id(), flags: 0, ..*base };
        if copy {
            let mut staging = Staging::new(self.host, base)?;
            self.flush();
            if let Err(error) = self.collect(base, &mut staging) {
                entry_of(&mut self.entries, base)?.poison = Some(error.clone());
                return Err(error);
            }
            copy_in(&mut self.ranks[rank], &piece, staging.part(0, &piece))?;
        } else {
            self.ranks[rank].set_born(&piece, true);
        }
        self.drop_pieces(base.id);
        entry_of(&mut self.entries, base)?.layout = Layout::Whole { rank, piece };
        Ok(())
    }

    /// A view's rank, base and local view, if it is on one rank, not lost and not mapped.
    fn on_one_rank(&mut self, base: &Base, view: &View) -> Result<Option<(usize, Base, View)>> {
        self.ensure(base, base.row_hint);
        let entry = entry_of(&mut self.entries, base)?;
        let (Some((low, high)), true, None, None) = (view.extent(), entry.written, &entry.poison, &entry.staging)
        else {
            return Ok(None);
        };
        let pieces = entry.layout.pieces().into_iter();
        let found = pieces.into_iter().find(|(_, first, piece)| low >= *first && high < first + piece.len);
        let Some((rank, first, piece)) = found else { return Ok(None) };
        Ok(View::new(view.start() - first, view.shape(), view.stride()).ok().map(|part| (rank, piece, part)))
    }

    /// Copies the pieces of a base into one memory.
    fn collect(&mut self, base: &Base, staging: &mut Staging) -> Result<()> {
        for (rank, first, piece) in entry_of(&mut self.entries, base)?.layout.pieces() {
            let data = self.ranks[rank].map(&piece, access::READ)?;
            // SAFETY: the map exposes the whole piece until `unmap`.
            let bytes = unsafe { std::slice::from_raw_parts(data.cast_const(), piece.bytes() as usize) };
            staging.part(first, &piece).copy_from_slice(bytes);
            self.ranks[rank].unmap(&piece)?;
        }
        Ok(())
    }

    /// Drops a base's data on the ranks after the pending batches.
    fn drop_pieces(&mut self, id: u64) {
        if let Some(entry) = self.entries.get(&id) {
            for (rank, _, piece) in entry.layout.pieces() {
                self.ranks[rank].push_system(Opcode::Discard, &piece);
            }
        }
    }

    /// Applies SYNC, FREE and DISCARD to all pieces.
    fn manage(&mut self, batch: &BatchRef<'_>, instr: &Instr) {
        let view = instr.operands().first().and_then(|operand| operand.as_view());
        if let Some(base) = view.and_then(|view| batch.base_of(view)) {
            self.manage_base(instr.opcode, base);
        }
    }

    fn manage_base(&mut self, opcode: Opcode, base: &Base) {
        let Some(entry) = self.entries.get_mut(&base.id) else { return };
        match opcode {
            Opcode::Discard if entry.staging.is_some() => entry.discarded = true,
            Opcode::Discard => {
                self.drop_pieces(base.id);
                self.entries.remove(&base.id);
            }
            opcode => {
                if opcode == Opcode::Free {
                    (entry.poison, entry.written) = (None, false);
                }
                for (rank, _, piece) in entry.layout.pieces() {
                    self.ranks[rank].push_system(opcode, &piece);
                }
            }
        }
    }

    fn map_entry(&mut self, base: &Base, mode: u32) -> Result<*mut u8> {
        let entry = entry_of(&mut self.entries, base)?;
        match &entry.poison {
            Some(error) if mode & access::DISCARD == 0 => return Err(error.clone()),
            _ => entry.poison = None,
        }
        let changes = mode & (access::WRITE | access::DISCARD) != 0;
        entry.written |= changes;
        if let (true, Layout::Whole { piece, .. }) = (entry.fixed, entry.layout) {
            return self.ranks[0].map(&piece, mode);
        }
        if entry.staging.is_none() {
            let mut staging = Staging::new(self.host, base)?;
            if mode & access::DISCARD == 0 {
                self.collect(base, &mut staging)?;
            }
            entry_of(&mut self.entries, base)?.staging = Some(staging);
        }
        let entry = entry_of(&mut self.entries, base)?;
        let Some(staging) = &mut entry.staging else { return Err(lost_piece(base)) };
        staging.maps += 1;
        staging.access |= mode;
        Ok(staging.data)
    }

    /// Ends a map of a copy; the last one writes changes back to the ranks.
    fn unmap_staging(&mut self, base: &Base) -> Result<()> {
        let entry = entry_of(&mut self.entries, base)?;
        let Some(mut staging) = entry.staging.take() else {
            return Err(Error::new(status::ARGUMENT, format!("unmap: base {} is not mapped", base.id)));
        };
        staging.maps -= 1;
        if staging.maps > 0 {
            entry.staging = Some(staging);
            return Ok(());
        }
        if entry.discarded {
            self.drop_pieces(base.id);
            self.entries.remove(&base.id);
            return flush(&mut self.ranks, &self.wire).into_iter().collect();
        }
        if staging.access & (access::WRITE | access::DISCARD) != 0 {
            for (rank, first, piece) in entry.layout.pieces() {
                copy_in(&mut self.ranks[rank], &piece, staging.part(first, &piece))?;
            }
        }
        Ok(())
    }
}

/// Writes the data of a local base.
fn copy_in(rank: &mut Rank, piece: &Base, bytes: &[u8]) -> Result<()> {
    rank.set_born(piece, false);
    let data = rank.map(piece, access::WRITE | access::DISCARD)?;
    // SAFETY: the map exposes the whole piece until `unmap`.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), data, bytes.len()) };
    rank.unmap(piece)
}

/// Elements per outermost index of the instruction's output, if it is a view of this base.
fn row_of(batch: &BatchRef<'_>, instr: &Instr, base: u32) -> Option<i64> {
    let views = instr.outputs().iter().filter_map(|operand| operand.as_view());
    let view = views.into_iter().find(|&view| batch.views[view as usize].base == base)?;
    batch.stride(view).first().copied().filter(|&step| step > 0)
}

#[cold]
fn lost_piece(base: &Base) -> Error {
    Error::new(status::EXECUTION, format!("base {} is not where it was expected", base.id))
}
