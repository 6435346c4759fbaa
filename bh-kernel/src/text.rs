//! The text form of stages, for golden tests and reports.

use crate::kernel::{Arg, BufferRef, Dim, Lowered, SlotMode, Special, Stage, Step};
use std::fmt::{self, Display, Write};

impl Display for Arg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Arg::Value(value) => write!(f, "v{value}"),
            Arg::Constant(constant) => write!(f, "c{constant}"),
        }
    }
}

fn slot_text(stage: &Stage, index: usize) -> String {
    let (slot, parameters) = (&stage.kernel.slots[index], &stage.parameters);
    let mode = match slot.mode {
        SlotMode::Read => "read",
        SlotMode::Write => "write",
        SlotMode::Result => "result",
        SlotMode::Index => "index",
    };
    let inner = match parameters.stride(index).last() {
        _ if parameters.extents.last() == Some(&1) && slot.mode != SlotMode::Index => "unit",
        Some(0) => "broadcast",
        Some(1) => "unit",
        _ => "strided",
    };
    format!("{mode} {} {inner}", slot.dtype)
}

fn buffer_text(buffer: BufferRef) -> String {
    match buffer {
        BufferRef::Base(base) => format!("base{base}"),
        BufferRef::Fresh(base) => format!("fresh{base}"),
        BufferRef::Temporary(number) => format!("temporary{number}"),
        BufferRef::None => "numbers".into(),
    }
}

impl Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kernel, parameters) = (&self.kernel, &self.parameters);
        f.write_str("for")?;
        for (extent, dim) in parameters.extents.iter().zip(&kernel.dims) {
            let role = if *dim == Dim::Reduced { "reduced " } else { "" };
            write!(f, " [{role}{extent}]")?;
        }
        f.write_char('\n')?;
        for (index, slot) in kernel.slots.iter().enumerate() {
            let (buffer, start) = (buffer_text(parameters.buffers[index]), parameters.starts[index]);
            write!(f, "  s{index}: {} {buffer} + {start} {:?}", slot_text(self, index), parameters.stride(index))?;
            if slot.same_as as usize != index {
                write!(f, " = s{}", slot.same_as)?;
            }
            f.write_char('\n')?;
        }
        let mut value = 0;
        for step in &kernel.steps {
            if let Some(dtype) = step.output(&kernel.slots) {
                write!(f, "  v{value} {dtype} = ")?;
                value += 1;
            } else {
                f.write_str("  ")?;
            }
            match step {
                Step::Load { slot } => writeln!(f, "load s{slot}")?,
                Step::Compute { opcode, param, args, count, .. } => {
                    write!(f, "{opcode}")?;
                    if *param != 0 {
                        write!(f, ".{param}")?;
                    }
                    args[..*count as usize].iter().try_for_each(|arg| write!(f, " {arg}"))?;
                    f.write_char('\n')?;
                }
                Step::Range { slot, .. } => writeln!(f, "range s{slot}")?,
                Step::Random { slot, key, .. } => writeln!(f, "random s{slot} {key}")?,
                Step::Gather { source, index, .. } => writeln!(f, "gather g{source} {index}")?,
                Step::Store { slot, arg } => writeln!(f, "store s{slot} {arg}")?,
                Step::Reduce { opcode, slot, arg } => writeln!(f, "{opcode} s{slot} {arg}")?,
            }
        }
        Ok(())
    }
}

/// A lowered block as text.
pub fn describe(lowered: &Lowered) -> String {
    match lowered {
        Lowered::Nothing => "nothing\n".into(),
        Lowered::Loops(stages, temporaries) => {
            let mut text = String::new();
            for (index, temporary) in temporaries.iter().enumerate() {
                text += &format!("temporary{index}: {} x {}\n", temporary.dtype, temporary.len);
            }
            stages.iter().for_each(|stage| text += &stage.to_string());
            text
        }
        Lowered::Special(Special::Accumulate(instr)) => format!("accumulate #{instr}\n"),
        Lowered::Special(Special::Scatter(instr)) => format!("scatter #{instr}\n"),
        Lowered::Special(Special::Product(instr)) => format!("product #{instr}\n"),
        Lowered::Special(Special::Extension(instr)) => format!("extension #{instr}\n"),
    }
}
