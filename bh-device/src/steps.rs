//! Running folds and scatters whose arrays do not fit the device together: parts of them, one after the other in the order
//! that gives each result, on arrays in host memory. Each part is a batch of its own, whose bases are the windows of arrays
//! that it uses.

use crate::code::{self, Code, Range, Variant};
use crate::launch::{Failure, Launcher};
use crate::parted::Steps;
use crate::pieces::{Part, Window, windows_of};
use crate::stream::Home;
use bh_bytecode::{Base, Batch, BatchRef, Instr, Opcode, Operand, View};
use bh_core::abi::status;
use bh_core::{Error, Result};
use bh_kernel::{BufferRef, Dim, Kernel, Lowered, Parameters, Runner, Slot, SlotMode, Special, Stage, lower};

/// A part of a scatter: of the output's outermost dimension, and of the indices.
struct Share {
    rows: (i64, i64),
    part: Part,
}

/// The accesses of an instruction as a loop nest that computes nothing, to find what a part uses.
fn accesses(batch: &BatchRef<'_>, views: &[(View, u32, SlotMode)]) -> Stage {
    let mut stage = Stage { kernel: Kernel::default(), parameters: Parameters::default() };
    for (number, (view, base, mode)) in views.iter().enumerate() {
        let dtype = batch.bases[*base as usize].dtype();
        let slot = Slot { dtype, mode: *mode, same_as: number as u16 };
        stage.kernel.slots.push(slot);
        stage.parameters.extents = view.shape().to_vec();
        stage.parameters.buffers.push(BufferRef::Base(*base));
        stage.parameters.starts.push(view.start());
        stage.parameters.strides.extend_from_slice(view.stride());
    }
    stage.kernel.dims = vec![Dim::Kept; stage.parameters.extents.len()];
    stage
}

/// A batch whose bases are windows.
struct Small {
    batch: Batch,
    windows: Vec<Window>,
}

impl Small {
    fn new(windows: Vec<Window>) -> Small {
        let mut batch = Batch::default();
        for (number, window) in windows.iter().enumerate() {
            batch.push_base(Base::new(number as u64 + 1, window.dtype, window.len.max(1)));
        }
        Small { batch, windows }
    }

    /// A view of a base that is in the window with this number.
    fn view(&mut self, window: usize, start: i64, shape: &[i64], stride: &[i64]) -> Result<Operand> {
        let start = start - self.windows[window].first;
        let view = View::new(start, shape, stride).map_err(|why| Error::new(status::ARGUMENT, why.to_string()))?;
        Ok(Operand::view(self.batch.push_view(window as u32, &view)))
    }

    fn push(&mut self, opcode: Opcode, param: u16, operands: &[Operand]) {
        self.batch.push_instr(Instr { param, ..Instr::new(opcode, operands) });
        let number = self.batch.instrs.len() as u32 - 1;
        self.batch.push_block(&[number], &[]);
    }
}

/// Where a view begins in a part of its elements.
fn start(view: &View, part: &Part) -> i64 {
    view.stride().iter().zip(&part.offsets).fold(view.start(), |start, (stride, offset)| start + stride * offset)
}

/// The operation that an accumulate repeats.
fn folded(opcode: Opcode) -> Opcode {
    if opcode == Opcode::MultiplyAccumulate { Opcode::Multiply } else { Opcode::Add }
}

impl Launcher {
    /// Runs an instruction in parts. Its output is in host memory afterwards. Returns how many parts and kernels there were, and the
    /// instructions that failed while the others went on.
    pub(crate) fn in_steps(&mut self, batch: &BatchRef<'_>, steps: &Steps) -> Result<(u64, u64, Vec<Failure>)> {
        self.arrays.tick();
        let mut homes = self.homes(batch, &steps.uses)?;
        let mut done = (0, 0, Vec::new());
        match steps.special {
            Special::Accumulate(_) => self.accumulate(batch, steps.instr, &mut homes, &mut done)?,
            _ => self.scatter(batch, steps.instr, &mut homes, &mut done)?,
        }
        Ok(done)
    }

    fn accumulate(
        &mut self,
        batch: &BatchRef<'_>,
        instr: u32,
        homes: &mut [Home],
        done: &mut (u64, u64, Vec<Failure>),
    ) -> Result<()> {
        let record = &batch.instrs[instr as usize];
        let operand = |at: usize| {
            let view = record.operands()[at].as_view().unwrap_or_default();
            (batch.view(view), batch.views[view as usize].base)
        };
        let ((output, to), (input, from)) = (operand(0), operand(1));
        let axis = record.param.trailing_zeros() as usize;
        let views = [(input, from, SlotMode::Read), (output, to, SlotMode::Write)];
        let nest = accesses(batch, &views);
        // The element before a part's first one along the axis.
        let step = output.stride()[axis];
        let mut carry = output.stride().to_vec();
        carry[axis] = 0;
        let mut left = vec![Part::whole(&nest)];
        while let Some(part) = left.pop() {
            if part.extents.contains(&0) {
                continue;
            }
            let continues = part.offsets[axis] > 0;
            let (mut windows, slots) = windows_of(&nest, &part, batch);
            let (source, result) = (slots[0].unwrap_or_default(), slots[1].unwrap_or_default());
            let first = start(&output, &part);
            if continues {
                // The same dimensions, one element back: the window reaches there, and keeps what is there.
                let lowest = first - step.max(0)
                    + carry.iter().zip(&part.extents).map(|(s, e)| (s * (e - 1)).min(0)).sum::<i64>();
                let highest = first - step.min(0)
                    + carry.iter().zip(&part.extents).map(|(s, e)| (s * (e - 1)).max(0)).sum::<i64>();
                let window = &mut windows[result];
                let end = (window.first + window.len).max(highest + 1);
                window.first = window.first.min(lowest.max(0));
                window.len = end.min(batch.bases[to as usize].len) - window.first;
                window.needed = true;
            }
            let mut small = Small::new(windows);
            let found = small.view(result, first, &part.extents, output.stride())?;
            let given = small.view(source, start(&input, &part), &part.extents, input.stride())?;
            small.push(record.opcode, record.param, &[found, given]);
            if continues {
                let before = small.view(result, first - step, &part.extents, &carry)?;
                small.push(folded(record.opcode), 0, &[found, before, found]);
            }
            let target = self.arrays.pool.target;
            let (mut codes, scratch) = code::accumulate(&small.batch.as_ref(), 0, &target, Variant::Parameterised);
            if continues && let Lowered::Loops(stages, _) = lower(&small.batch.as_ref(), 1, Runner::Items) {
                let more = stages.iter().flat_map(|s| code::stage(s, &target, Variant::Parameterised, &mut Vec::new()));
                codes.extend(more.collect::<Vec<Code>>());
            }
            let parts = self.step(batch, &small, (codes, scratch), homes, done)?;
            if !parts {
                left.extend(halves(&part, || part.split(&nest, batch))?.into_iter().rev());
            }
        }
        Ok(())
    }

    fn scatter(
        &mut self,
        batch: &BatchRef<'_>,
        instr: u32,
        homes: &mut [Home],
        done: &mut (u64, u64, Vec<Failure>),
    ) -> Result<()> {
        let record = &batch.instrs[instr as usize];
        let view_of =
            |operand: &Operand| operand.as_view().map(|view| (batch.view(view), batch.views[view as usize].base));
        let Some((output, to)) = view_of(&record.operands()[0]) else { return Ok(()) };
        let inputs: Vec<Option<(View, u32)>> = record.operands()[1..].iter().map(view_of).collect();
        let reads: Vec<(View, u32, SlotMode)> =
            inputs.iter().flatten().map(|(view, base)| (*view, *base, SlotMode::Read)).collect();
        let nest = accesses(batch, &reads);
        let whole: i64 = output.shape().iter().product();
        let height = output.shape().first().copied().unwrap_or(1);
        let mut left = vec![Share { rows: (0, height), part: Part::whole(&nest) }];
        while let Some(share) = left.pop() {
            let (first, rows) = share.rows;
            if rows == 0 || share.part.extents.contains(&0) {
                continue;
            }
            let (mut windows, slots) = windows_of(&nest, &share.part, batch);
            let (mut shape, step) = (output.shape().to_vec(), output.stride().first().copied().unwrap_or(0));
            shape.first_mut().into_iter().for_each(|extent| *extent = rows);
            let begin = output.start() + step * first;
            let written = accesses(batch, &[(view(begin, &shape, output.stride())?, to, SlotMode::Read)]);
            let (own, _) = windows_of(&written, &Part::whole(&written), batch);
            let result = windows.len();
            windows.extend(own.into_iter().map(|window| Window { written: true, ..window }));
            let bytes = windows.iter().map(Window::bytes).collect::<Vec<usize>>();
            let mut small = Small::new(windows);
            let mut operands = vec![small.view(result, begin, &shape, output.stride())?];
            let mut slots = slots.into_iter();
            for (input, operand) in inputs.iter().zip(&record.operands()[1..]) {
                operands.push(match input {
                    Some((input, _)) => {
                        let window = slots.next().flatten().unwrap_or_default();
                        small.view(window, start(input, &share.part), &share.part.extents, input.stride())?
                    }
                    None => {
                        let constant = batch.constants[operand.as_constant().unwrap_or_default() as usize];
                        Operand::constant(small.batch.push_constant(constant))
                    }
                });
            }
            small.push(record.opcode, record.param, &operands);
            let range = Range { first: first * (whole / height.max(1)), whole };
            let target = self.arrays.pool.target;
            let codes = code::scatter_range(&small.batch.as_ref(), 0, &target, Variant::Parameterised, Some(range));
            let (mut codes, scratch) = codes.ok_or_else(|| Error::new(status::MEMORY, "out of device memory"))?;
            // Failures are those of the instruction.
            codes.iter_mut().flat_map(|code| &mut code.failing).for_each(|failing| failing.0 = instr);
            if !self.step(batch, &small, (codes, scratch), homes, done)? {
                let (read, own) = (bytes[..result].iter().sum::<usize>(), bytes[result]);
                left.extend(share.halves(own > read)?.into_iter().rev());
            }
        }
        Ok(())
    }

    /// Runs a part; false if there is no memory for it, and nothing has been done.
    fn step(
        &mut self,
        batch: &BatchRef<'_>,
        small: &Small,
        (codes, scratch): (Vec<Code>, Vec<usize>),
        homes: &mut [Home],
        (pieces, kernels, failures): &mut (u64, u64, Vec<Failure>),
    ) -> Result<bool> {
        let ready = match self.bring(codes, small.windows.clone(), &[], &scratch) {
            Ok(ready) => ready,
            Err(error) if error.status == status::MEMORY => return Ok(false),
            Err(error) => return Err(error),
        };
        *pieces += 1;
        *kernels += ready.kernels();
        let own = small.batch.as_ref();
        let constants = BatchRef { constants: own.constants, ..*batch };
        self.piece(&constants, &ready, &[], homes, failures)?;
        Ok(true)
    }
}

fn view(start: i64, shape: &[i64], stride: &[i64]) -> Result<View> {
    View::new(start, shape, stride).map_err(|why| Error::new(status::ARGUMENT, why.to_string()))
}

/// Two parts of one that does not fit.
fn halves(part: &Part, split: impl FnOnce() -> Option<[Part; 2]>) -> Result<[Part; 2]> {
    let text = || format!("out of device memory: a part of {:?} elements does not fit", part.extents);
    split().ok_or_else(|| Error::new(status::MEMORY, text()))
}

impl Share {
    /// Two shares, the one that comes first in C order first: halves of the output if that is larger and can be parted.
    fn halves(self, output: bool) -> Result<[Share; 2]> {
        let Share { rows: (first, rows), part } = self;
        let longest = part.extents.iter().position(|&extent| extent > 1);
        match longest {
            Some(dim) if !output || rows < 2 => {
                let [a, b] = part.halves(dim);
                Ok([a, b].map(|part| Share { rows: (first, rows), part }))
            }
            _ if rows > 1 => {
                let half = rows / 2;
                let later = Share { rows: (first + half, rows - half), part: part.clone() };
                Ok([Share { rows: (first, half), part }, later])
            }
            _ => Err(Error::new(status::MEMORY, "out of device memory: an element does not fit")),
        }
    }
}
