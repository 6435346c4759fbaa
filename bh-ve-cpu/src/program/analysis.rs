//! What is known about a stage before registers are numbered: how its slots are accessed, where each value lives, and
//! which steps become one primitive.

use super::Geometry;
use crate::primitives::{LanesFn, PrimFn, Primitives, Side, SumFn};
use bh_bytecode::{DType, Opcode};
use bh_fuser::lower::{Arg, BufferRef, Dim, Slot, SlotMode, Stage, Step};
use std::collections::HashSet;

/// The fewest and the most terms of a sum of many blocks. Three terms are one super-instruction already.
const SUM_LEAST: usize = 4;
pub(crate) const SUM_TERMS: usize = 128;

/// Where a value is before registers are numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Home {
    /// In a slot's memory.
    Slot(u16),
    /// In a register.
    Register,
    /// Nowhere: it is made inside the primitive that uses it.
    Nowhere,
}

/// How a slot can be accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// A block is a dense run of memory.
    Direct,
    /// Every block of a line has the same elements.
    Invariant,
    /// Through a strided copy.
    Strided,
}

/// A value of the body.
#[derive(Clone, Copy, Debug)]
pub(super) struct Value {
    pub(super) home: Home,
    pub(super) dtype: DType,
    /// The step that makes it.
    pub(super) made: usize,
    /// The last step that uses it.
    pub(super) last: usize,
    /// How many steps use it, each operand counted.
    pub(super) uses: usize,
    /// Is it used as a block, and not only as a single element?
    block: bool,
}

/// How a step is carried out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Form {
    /// The primitive, if it is not the step's own.
    pub(super) run: Option<PrimFn>,
    /// The fold into lanes of what is made of the operands, if the step is that of a reduction.
    pub(super) lanes: Option<LanesFn>,
    /// The operands.
    pub(super) args: [Arg; 3],
    /// How many of them count.
    pub(super) count: usize,
    /// The operand that is a single element.
    pub(super) scalar: Option<usize>,
    /// The sum, if the step is one of many blocks.
    pub(super) sum: Option<SumFn>,
    /// Its terms: a part of [`Analysis::terms`]. The only operand besides is a single element, if any.
    pub(super) terms: (usize, usize),
}

/// A chain of additions of squares: all of its steps, and what the squares are of.
struct Squares {
    steps: Vec<usize>,
    terms: Vec<Arg>,
}

/// The analysis of a stage.
pub(super) struct Analysis<'a> {
    pub(super) stage: &'a Stage,
    pub(super) geometry: Geometry,
    pub(super) values: Vec<Value>,
    pub(super) forms: Vec<Form>,
    /// Terms of sums.
    pub(super) terms: Vec<Arg>,
    /// Must each constant be splat over a block?
    pub(super) splat: Vec<bool>,
    /// The slots whose memory is used again while the caches have it.
    resident: &'a [bool],
    /// Outputs of so many bytes bypass the caches.
    stream_bytes: u64,
    /// Bytes that all slots touch, each buffer counted once, and the buffers that are read.
    touched: u64,
    read: HashSet<BufferRef>,
}

impl<'a> Analysis<'a> {
    /// Analyses a stage. Slots that are `resident` are never written past the caches.
    pub(super) fn new(stage: &'a Stage, resident: &'a [bool], primitives: Primitives) -> Analysis<'a> {
        let geometry = Geometry::new(&stage.kernel, &stage.parameters);
        let splat = vec![false; stage.kernel.constants.len()];
        let (values, forms, terms) = (Vec::new(), Vec::new(), Vec::new());
        let stream_bytes = primitives.stream_bytes;
        let (touched, read) = touched(stage);
        let mut analysis =
            Analysis { stage, geometry, values, forms, terms, splat, resident, stream_bytes, touched, read };
        analysis.collect();
        analysis.sum(primitives);
        analysis.sum_squares(primitives);
        analysis.fuse(primitives);
        analysis.fuse_folds(primitives);
        analysis.find_scalars(primitives);
        analysis.count_uses();
        analysis.place_loads();
        analysis.materialise_swapped();
        analysis.store_directly();
        analysis
    }

    pub(super) fn slots(&self) -> &'a [Slot] {
        &self.stage.kernel.slots
    }

    pub(super) fn steps(&self) -> &'a [Step] {
        &self.stage.kernel.steps
    }

    pub(super) fn access(&self, slot: u16) -> Access {
        let strides = self.stage.parameters.stride(slot as usize);
        let geometry = &self.geometry;
        let line = strides[geometry.line_dim];
        if geometry.spans() {
            let inner = strides[geometry.line_dim + 1];
            match (line, inner) {
                (0, _) => Access::Invariant,
                (_, 1) if line == geometry.row => Access::Direct,
                _ => Access::Strided,
            }
        } else {
            match line {
                _ if geometry.line == 1 => Access::Direct,
                0 => Access::Invariant,
                1 => Access::Direct,
                _ => Access::Strided,
            }
        }
    }

    /// Is what the slot writes, or all that the kernel touches, so much that it should bypass the caches? Not if the kernel
    /// reads the same buffer.
    pub(super) fn streams(&self, slot: u16) -> bool {
        let parameters = &self.stage.parameters;
        let buffer = parameters.buffers[slot as usize];
        (bytes(self.stage, slot.into()) >= self.stream_bytes || self.touched >= self.stream_bytes.saturating_mul(2))
            && !self.resident.get(slot as usize).is_some_and(|&resident| resident)
            && self.access(slot) == Access::Direct
            && !self.read.contains(&buffer)
            && parameters.gathers.iter().all(|source| source.buffer != buffer)
    }

    /// Lists values and forms as the steps have them.
    fn collect(&mut self) {
        for (index, step) in self.steps().iter().enumerate() {
            let mut args = [Arg::Constant(0); 3];
            args.iter_mut().zip(step.args()).for_each(|(to, from)| *to = *from);
            let count = step.args().len();
            self.forms.push(Form { run: None, lanes: None, args, count, scalar: None, sum: None, terms: (0, 0) });
            if let Some(dtype) = step.output(self.slots()) {
                let value = Value { home: Home::Register, dtype, made: index, last: index, uses: 0, block: false };
                self.values.push(value);
            }
        }
        self.count_uses();
    }

    fn count_uses(&mut self) {
        for value in &mut self.values {
            (value.last, value.uses, value.block) = (value.made, 0, false);
        }
        self.splat.fill(false);
        for (index, form) in self.forms.iter().enumerate() {
            let operands = form.args[..form.count].iter().enumerate().map(|(at, arg)| (form.scalar != Some(at), arg));
            let terms = self.terms[form.terms.0..form.terms.1].iter().map(|arg| (true, arg));
            for (block, arg) in operands.chain(terms) {
                match *arg {
                    Arg::Value(value) => {
                        let value = &mut self.values[value as usize];
                        value.last = index;
                        value.uses += 1;
                        value.block |= block;
                    }
                    Arg::Constant(constant) => self.splat[constant as usize] |= block,
                }
            }
        }
    }

    /// The inputs of a step in the form that it has.
    pub(super) fn inputs(&self, index: usize) -> impl Iterator<Item = Arg> {
        let form = &self.forms[index];
        form.args[..form.count].iter().chain(self.terms(index)).copied()
    }

    /// The terms of a step that is a sum of many blocks.
    pub(super) fn terms(&self, index: usize) -> &[Arg] {
        let (first, end) = self.forms[index].terms;
        &self.terms[first..end]
    }

    /// Turns chains of additions, one after the other, into sums that read every term once and keep the running sum in
    /// vector registers. All terms but the first are memory: others would need a register of their own each.
    fn sum(&mut self, primitives: Primitives) {
        for index in (0..self.forms.len()).rev() {
            let Step::Compute { opcode: Opcode::Add, input, .. } = self.steps()[index] else { continue };
            let sum = primitives.sum(input, false);
            if self.forms[index].count != 2 || sum.is_none() {
                continue;
            }
            let (mut chain, mut terms) = (Vec::new(), Vec::new());
            let (mut next, mut start) = (Some(index), None);
            while let Some(at) = next {
                let [left, right, _] = self.forms[at].args;
                // Addition is commutative, so the chain may come from either side.
                let (rest, term) = if self.is_memory(right) { (left, right) } else { (right, left) };
                if !self.is_memory(term) || terms.len() + 2 > SUM_TERMS {
                    break;
                }
                chain.push(at);
                terms.push(term);
                start = Some(rest);
                next = self.only_use(rest, Opcode::Add);
            }
            terms.extend(start);
            if terms.len() < SUM_LEAST {
                continue;
            }
            terms.reverse();
            let first = self.terms.len();
            self.terms.extend(terms);
            for &at in &chain[1..] {
                self.drop_step(at);
            }
            let form = &mut self.forms[index];
            (form.count, form.sum, form.terms) = (0, sum, (first, self.terms.len()));
        }
        self.count_uses();
        self.scale_sums();
    }

    /// Merges a multiplication by a single element into the sum before it.
    fn scale_sums(&mut self) {
        for index in 0..self.forms.len() {
            let Step::Compute { opcode: Opcode::Multiply, input, output, .. } = self.steps()[index] else { continue };
            for at in 0..2 {
                let (Arg::Value(sum), factor) = (self.forms[index].args[at], self.forms[index].args[1 - at]) else {
                    continue;
                };
                let Value { made, uses: 1, .. } = self.values[sum as usize] else { continue };
                let Form { sum: run, terms, .. } = self.forms[made];
                if terms.0 == terms.1 || input != output || !self.is_scalar(factor) {
                    continue;
                }
                self.drop_step(made);
                let args = [factor; 3];
                self.forms[index] = Form { args, count: 1, scalar: Some(0), sum: run, terms, ..self.forms[index] };
                break;
            }
        }
        self.count_uses();
    }

    /// Turns sums of squares, as distances are made of, into sums that read every block once; a single element may be added
    /// at the end.
    fn sum_squares(&mut self, primitives: Primitives) {
        for index in (0..self.forms.len()).rev() {
            let Step::Compute { opcode: Opcode::Add, input, .. } = self.steps()[index] else { continue };
            let Some(sum) = primitives.sum(input, true).filter(|_| self.is_plain(index)) else { continue };
            let [left, right, _] = self.forms[index].args;
            let (single, rest) = match (self.is_scalar(left), self.is_scalar(right)) {
                (false, true) => (Some(right), self.only_use(left, Opcode::Add)),
                (true, false) => (Some(left), self.only_use(right, Opcode::Add)),
                _ => (None, Some(index)),
            };
            let Some(Squares { steps, mut terms }) = rest.and_then(|last| self.squares(last)) else { continue };
            terms.reverse();
            let first = self.terms.len();
            self.terms.extend(terms);
            steps.into_iter().filter(|&step| step != index).for_each(|step| self.drop_step(step));
            let (args, count, scalar) = single.map_or((self.forms[index].args, 0, None), |it| ([it; 3], 1, Some(0)));
            let terms = (first, self.terms.len());
            self.forms[index] = Form { args, count, scalar, sum: Some(sum), terms, ..self.forms[index] };
        }
        self.count_uses();
    }

    /// The squares that a chain of additions adds up, the last one first; `None` if it adds other things as well.
    fn squares(&self, last: usize) -> Option<Squares> {
        let (mut steps, mut terms, mut at) = (Vec::new(), Vec::new(), last);
        while terms.len() + 2 <= SUM_TERMS {
            steps.push(at);
            let [left, right, _] = self.forms[at].args;
            // Addition is commutative, so the chain may come from either side.
            let (rest, (square, of)) = match (self.square(left), self.square(right)) {
                (first, Some(second)) => (first.ok_or(left), second),
                (Some(first), None) => (Err(right), first),
                (None, None) => return None,
            };
            steps.push(square);
            terms.push(of);
            match rest {
                Ok((square, of)) => {
                    steps.push(square);
                    terms.push(of);
                    return Some(Squares { steps, terms });
                }
                Err(rest) => at = self.only_use(rest, Opcode::Add)?,
            }
        }
        None
    }

    /// The step of a square that has no other use, and what it is of.
    fn square(&self, arg: Arg) -> Option<(usize, Arg)> {
        let Arg::Value(value) = arg else { return None };
        let Value { made, uses: 1, .. } = self.values[value as usize] else { return None };
        let [a, b, _] = self.forms[made].args;
        match self.steps()[made] {
            Step::Compute { opcode: Opcode::Multiply, .. } if self.is_plain(made) && a == b => Some((made, a)),
            Step::Compute { opcode: Opcode::Powi, param: 2, .. } if self.is_plain(made) => Some((made, a)),
            _ => None,
        }
    }

    /// Leaves out a step whose work another one does.
    fn drop_step(&mut self, index: usize) {
        (self.forms[index].count, self.forms[index].terms) = (0, (0, 0));
        // Values are in the order of the steps that make them.
        if let Ok(at) = self.values.binary_search_by_key(&index, |value| value.made) {
            self.values[at].home = Home::Nowhere;
        }
    }

    /// Is it a load of memory that can be used as it is?
    fn is_memory(&self, arg: Arg) -> bool {
        match arg {
            Arg::Constant(_) => false,
            Arg::Value(value) => match self.steps()[self.values[value as usize].made] {
                Step::Load { slot } => self.access(slot) == Access::Direct,
                _ => false,
            },
        }
    }

    /// Is a step with operands still a primitive of its own?
    fn is_plain(&self, step: usize) -> bool {
        let Form { run, count, terms, .. } = self.forms[step];
        run.is_none() && count > 0 && terms.0 == terms.1
    }

    /// The step that makes a value, if it has this opcode, is still a plain one, and the value has one use.
    fn only_use(&self, arg: Arg, wanted: Opcode) -> Option<usize> {
        let Arg::Value(value) = arg else { return None };
        let Value { made, uses: 1, .. } = self.values[value as usize] else { return None };
        match self.steps()[made] {
            Step::Compute { opcode, .. } if opcode == wanted && self.forms[made].count == 2 => Some(made),
            _ => None,
        }
    }

    /// Merges a binary operation into the only user of its result, where there is a primitive for both.
    fn fuse(&mut self, primitives: Primitives) {
        for index in 0..self.forms.len() {
            let Step::Compute { opcode: second, input, output, count: count @ 1..=2, .. } = self.steps()[index] else {
                continue;
            };
            if input != output || self.forms[index].count != count as usize {
                continue;
            }
            for at in 0..count as usize {
                let Arg::Value(value) = self.forms[index].args[at] else { continue };
                let Value { made, uses: 1, .. } = self.values[value as usize] else { continue };
                let Step::Compute { opcode: first, input: inner, count: 2, .. } = self.steps()[made] else { continue };
                if inner != input || self.forms[made].run.is_some() || self.forms[made].count != 2 {
                    continue;
                }
                let [a, b, _] = self.forms[made].args;
                let c = self.forms[index].args[1 - at];
                let single = count == 2 && self.is_scalar(c);
                let root = if count == 2 {
                    self.root(a).map(|root| (root, b)).or(self.root(b).map(|root| (root, a)))
                } else {
                    None
                };
                if let Some(((root, x), b)) = root
                    && let Some(run) = primitives.rooted(first, second, at == 1, single)
                {
                    let scalar = single.then_some(2);
                    self.forms[index] = Form { run: Some(run), args: [x, b, c], count: 3, scalar, ..self.forms[index] };
                    self.drop_step(made);
                    self.drop_step(root);
                    break;
                }
                let Some(run) = primitives.fused(first, second, at == 1, single, input) else { continue };
                let (operands, scalar) = (count as usize + 1, single.then_some(2));
                self.forms[index] =
                    Form { run: Some(run), args: [a, b, c], count: operands, scalar, ..self.forms[index] };
                self.forms[made].count = 0;
                self.values[value as usize].home = Home::Nowhere;
                break;
            }
        }
    }

    /// The step of a square root of f64 that has no other use, and what it is of.
    fn root(&self, arg: Arg) -> Option<(usize, Arg)> {
        let Arg::Value(value) = arg else { return None };
        let Value { made, uses: 1, .. } = self.values[value as usize] else { return None };
        match self.steps()[made] {
            Step::Compute { opcode: Opcode::Sqrt, input: DType::F64, .. } if self.is_plain(made) => {
                Some((made, self.forms[made].args[0]))
            }
            _ => None,
        }
    }

    /// Merges a binary operation, or a square, into the fold that is the only user of its result, where lines are folded into
    /// lanes.
    fn fuse_folds(&mut self, primitives: Primitives) {
        for index in 0..self.forms.len() {
            let Step::Reduce { opcode, arg: Arg::Value(value), .. } = self.steps()[index] else { continue };
            let Value { made, uses: 1, dtype, .. } = self.values[value as usize] else { continue };
            let Step::Compute { opcode: first, param, input, .. } = self.steps()[made] else { continue };
            let form = self.forms[made];
            let first = match (first, param, form.count) {
                (Opcode::Powi, 2, 1) => Opcode::Multiply,
                (_, _, 2) => first,
                _ => continue,
            };
            let Some(combiner) = opcode.combiner() else { continue };
            if form.run.is_none()
                && input == dtype
                && self.folds_into_lanes(index)
                && let Some(lanes) = primitives.lanes_of(first, combiner, dtype)
            {
                let args = [form.args[0], form.args[form.count - 1], form.args[0]];
                self.forms[index] = Form { lanes: Some(lanes), args, count: 2, ..form };
                self.drop_step(made);
            }
        }
    }

    /// Is a step the fold of elements of a line, as they are, into lanes?
    fn folds_into_lanes(&self, step: usize) -> bool {
        let Step::Reduce { slot, arg: Arg::Value(value), .. } = self.steps()[step] else { return false };
        self.geometry.line_role() == Dim::Reduced
            && self.geometry.steps.is_none()
            && self.slots()[slot as usize].dtype == self.values[value as usize].dtype
    }

    /// Takes single elements where a primitive accepts them: constants, and loads that stay the same along a line.
    fn find_scalars(&mut self, primitives: Primitives) {
        for index in 0..self.forms.len() {
            let Step::Compute { opcode, input, count: 2, .. } = self.steps()[index] else { continue };
            let form = self.forms[index];
            if form.run.is_some() || form.count != 2 {
                continue;
            }
            for (at, side) in [(1, Side::Right), (0, Side::Left)] {
                if self.is_scalar(form.args[at])
                    && !self.is_scalar(form.args[1 - at])
                    && let Some(run) = primitives.with_scalar(opcode, side, input)
                {
                    self.forms[index] = Form { run: Some(run), scalar: Some(at), ..form };
                    break;
                }
            }
        }
    }

    fn is_scalar(&self, arg: Arg) -> bool {
        match arg {
            Arg::Constant(_) => true,
            Arg::Value(value) => match self.steps()[self.values[value as usize].made] {
                Step::Load { slot } => !self.geometry.spans() && self.access(slot) == Access::Invariant,
                _ => false,
            },
        }
    }

    /// Loads need no register where their memory can be used as it is.
    fn place_loads(&mut self) {
        for index in 0..self.values.len() {
            let Step::Load { slot } = self.steps()[self.values[index].made] else { continue };
            let direct = match self.access(slot) {
                Access::Direct => true,
                Access::Invariant => !self.values[index].block,
                Access::Strided => false,
            };
            if direct {
                self.values[index].home = Home::Slot(slot);
            }
        }
    }

    /// Loads whose value is stored elsewhere at the end, while their own memory is overwritten at the end as well, must
    /// be copied first.
    fn materialise_swapped(&mut self) {
        let (slots, steps) = (self.slots(), self.steps());
        let mut written = vec![false; slots.len()];
        for step in steps {
            if let Step::Store { slot, .. } = step {
                written[usize::from(slots[*slot as usize].same_as)] = true;
            }
        }
        for step in steps {
            if let Step::Store { slot: target, arg: Arg::Value(value) } = step
                && let Home::Slot(slot) = self.values[*value as usize].home
                && slots[slot as usize].same_as != slots[*target as usize].same_as
                && written[usize::from(slots[slot as usize].same_as)]
            {
                self.values[*value as usize].home = Home::Register;
            }
        }
    }

    /// Gives values that are stored densely the output's memory as their home, when no load still needs what is there.
    fn store_directly(&mut self) {
        let slots = self.slots();
        let group = |slot: u16| usize::from(slots[slot as usize].same_as);
        // The last step that needs what is in the memory of each group of slots.
        let mut needed = vec![0; slots.len()];
        for value in &self.values {
            let (slot, last) = match (value.home, self.steps()[value.made]) {
                (Home::Slot(slot), _) => (slot, value.last),
                // It is read when it is copied into its register.
                (Home::Register, Step::Load { slot }) => (slot, value.made),
                _ => continue,
            };
            let known = &mut needed[group(slot)];
            *known = last.max(*known);
        }
        for step in self.steps() {
            let &Step::Store { slot, arg: Arg::Value(value) } = step else { continue };
            let Value { home, made, .. } = self.values[value as usize];
            let load = matches!(self.steps()[made], Step::Load { .. });
            if home != Home::Register || load || self.access(slot) != Access::Direct || self.streams(slot) {
                continue;
            }
            let known = &mut needed[group(slot)];
            if *known <= made {
                self.values[value as usize].home = Home::Slot(slot);
                *known = self.values[value as usize].last.max(*known);
            }
        }
    }
}

/// Bytes that a slot touches.
fn bytes(stage: &Stage, slot: usize) -> u64 {
    let parameters = &stage.parameters;
    let moves = |(&extent, &stride): (&i64, &i64)| if stride == 0 { 1 } else { extent };
    let elements: i64 = parameters.extents.iter().zip(parameters.stride(slot)).map(moves).product();
    elements as u64 * stage.kernel.slots[slot].dtype.size() as u64
}

/// Bytes that all slots touch, each buffer counted once, and the buffers that are read.
fn touched(stage: &Stage) -> (u64, HashSet<BufferRef>) {
    let (mut known, mut read) = (HashSet::new(), HashSet::new());
    let mut total = 0;
    for (at, (slot, &buffer)) in stage.kernel.slots.iter().zip(&stage.parameters.buffers).enumerate() {
        if known.insert(buffer) && matches!(slot.mode, SlotMode::Read | SlotMode::Write) {
            total += bytes(stage, at);
        }
        if slot.mode == SlotMode::Read {
            read.insert(buffer);
        }
    }
    (total, read)
}
