//! Extension methods: names get opcodes, calls are recorded like any other operation.

use crate::immediate::settling::Use;
use crate::record::{Input, Operation, Source};
use crate::sync::lock;
use crate::{ArrayId, Location, Recorder};
use bh_bytecode::Opcode;
use bh_bytecode::methods::{is_program, shown};
use bh_core::abi::status;
use bh_core::error::{Error, Result};

impl Recorder {
    /// The opcode of an extension method; an error if no component of the stack has it.
    pub fn extension(&self, name: &str) -> Result<Opcode> {
        let state = self.state();
        state.running()?;
        let known = state.extensions.iter().position(|known| known == name);
        drop(state);
        known.map_or_else(|| self.announce(name), |place| Ok(Opcode(Opcode::FIRST_EXTENSION + place as u16)))
    }

    /// As [`Recorder::extension`], but the components are asked again, as one of them may have a new method of this name.
    pub fn refresh_extension(&self, name: &str) -> Result<Opcode> {
        self.announce(name)
    }

    /// Records a call of an extension method.
    pub fn call_extension(
        &self,
        opcode: Opcode,
        outs: &[ArrayId],
        inputs: &[Input],
        location: Location<'_>,
    ) -> Result<()> {
        let out = if let &[out] = outs { Some(Use::of_output(out, None)) } else { None };
        let mut state = self.state_for(opcode, inputs, out);
        state.running()?;
        let known = opcode.0.checked_sub(Opcode::FIRST_EXTENSION).map(usize::from);
        if known.is_none_or(|number| number >= state.extensions.len()) {
            return Err(Error::new(status::ARGUMENT, format!("opcode {} is no registered extension method", opcode.0)));
        }
        let outs = outs.iter().map(|&out| state.find(out)).collect::<Result<Vec<u32>>>()?;
        let resolve = |(position, input)| state.resolve_one(opcode, position, input);
        let sources = inputs.iter().enumerate().map(resolve).collect::<Result<Vec<Source>>>()?;
        let followup = state.record_extension(Operation { opcode, param: 0, location }, &outs, &sources)?;
        self.follow(state, followup)
    }
}

impl Recorder {
    /// Tells the stack a method's name and its old or new number.
    fn announce(&self, name: &str) -> Result<Opcode> {
        if name.is_empty() {
            return Err(Error::new(status::ARGUMENT, "extension method: the name is empty"));
        }
        // One at a time, so that a new number belongs to one name. The state stays open while the stack is asked.
        let _announcing = lock(&self.announcing);
        let (executor, known, count) = {
            let state = self.state();
            let running = state.running.as_ref();
            if is_program(name) && running.is_some_and(|running| !running.options.programs) {
                return Err(Error::new(status::UNSUPPORTED, "scalar programs are switched off (recorder.programs)"));
            }
            let known = state.extensions.iter().position(|known| known == name);
            (state.executor()?, known, state.extensions.len())
        };
        let position = u16::try_from(known.unwrap_or(count)).ok();
        let number = position.and_then(|position| Opcode::FIRST_EXTENSION.checked_add(position));
        let opcode = Opcode(number.ok_or_else(|| Error::new(status::ARGUMENT, "too many extension methods"))?);
        if !executor.with_backend(|backend| backend.extmethod(name, opcode))? {
            let text = format!("extension method '{}': no component of this stack has it", shown(name));
            return Err(Error::new(status::UNSUPPORTED, text));
        }
        if known.is_none() {
            self.state().extensions.push(name.to_owned());
        }
        Ok(opcode)
    }
}
