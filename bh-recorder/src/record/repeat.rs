//! Instructions that were recorded once are recorded again, on other arrays.

use crate::array::small_view::{SmallView, mix};
use crate::record::Source;
use crate::state::layout::Layout;
use crate::state::{Followup, State};
use crate::{ArrayId, Location, Recorder};
use bh_bytecode::batch::NO_BASE;
use bh_bytecode::{BatchRef, Instr, Kind, Opcode, Operand};
use bh_core::abi::status;
use bh_core::error::{Error, Result};
use bh_core::reserve;

impl Recorder {
    /// Records an instruction of an earlier batch as it was, with its order of folding and its place in the program, on arrays whose
    /// bases have the lengths and types of its own. `outputs`: one for each output; `inputs`: by the places of bases in the batch.
    pub fn repeat(
        &self,
        tables: &BatchRef<'_>,
        instr: &Instr,
        outputs: &[ArrayId],
        inputs: &[(u32, ArrayId)],
    ) -> Result<()> {
        let mut state = self.state();
        state.running()?;
        reserve::check()?;
        let begin = state.clock();
        let ids: Vec<ArrayId> = inputs.iter().map(|&(_, array)| array).chain(outputs.iter().copied()).collect();
        let places = state.places_of(&ids)?;
        state.hand_out(&places);
        let mut windows = Vec::with_capacity(instr.operands().len());
        let recorded = state.repeat(tables, instr, (outputs, inputs), &mut windows);
        windows.into_iter().for_each(|window| state.release(window));
        let followup = recorded?;
        state.count_recording(begin);
        self.follow(state, followup)
    }
}

impl State {
    /// `windows`: takes the handles that are made for the operands.
    fn repeat(
        &mut self,
        tables: &BatchRef<'_>,
        instr: &Instr,
        (outputs, inputs): (&[ArrayId], &[(u32, ArrayId)]),
        windows: &mut Vec<u32>,
    ) -> Result<Followup> {
        let (mut sources, mut operands) = (Vec::new(), instr.operands);
        let (mut structure, mut followup) = (0, Followup::Nothing);
        for (position, &operand) in instr.operands().iter().enumerate() {
            let Some(index) = operand.as_view() else {
                let constant = tables.constants[operand.as_constant().unwrap_or_default() as usize];
                operands[position] = self.builder.push_constant(constant);
                sources.push(Source::Constant(constant));
                continue;
            };
            let (view, base) = (tables.view(index), tables.views[index as usize].base);
            if base == NO_BASE {
                let numbers = SmallView::new(&view);
                structure = mix(structure, numbers.hash);
                operands[position] = Operand::view(self.builder.intern_view(NO_BASE, &numbers));
                continue;
            }
            let input = inputs.iter().find(|&&(other, _)| other == base).map(|&(_, array)| array);
            let array = outputs.get(position).copied().or(input);
            let array =
                array.ok_or_else(|| Error::new(status::HANDLE, "a base of a repeated operation has no array"))?;
            let whole = self.find(array)?;
            let window = self.window(whole, &view)?;
            windows.push(window);
            followup = followup.max(self.followup(window));
            structure = mix(structure, self.handles.at(window).view.hash);
            operands[position] = Operand::view(self.intern(window));
            if position >= outputs.len() {
                sources.push(Source::Handle(window));
            }
        }
        let is_elementwise = instr.opcode.kind() == Kind::Elementwise;
        let written = windows.iter().take(outputs.len()).copied().collect::<Vec<u32>>();
        for &out in &written {
            let layout = if is_elementwise { self.result_layout(out, &sources) } else { Layout::default() };
            self.mark_written(out, layout);
            self.count_work(out);
        }
        if let Some(name) = tables.extension_name(instr.opcode).filter(|_| instr.opcode.is_extension()) {
            self.builder.declare_extension(instr.opcode, name);
        }
        let location =
            tables.origin(instr).map_or(Location::UNKNOWN, |(file, line)| Location { file: file.as_bytes(), line });
        self.push_instr(Instr { operands, origin: 0, ..*instr }, location, structure);
        written.iter().for_each(|&out| self.sync_pinned(out, followup));
        debug_assert!(instr.opcode != Opcode::Discard, "ends of arrays are not repeated");
        Ok(followup)
    }
}
