//! The steps of a kernel for one vector of each row.

use crate::divider::is_root;
use crate::kernel::{At, Kernel};
use crate::math;
use crate::operations::{self, Operation};
use crate::plan::{Form, OutputIn, combiner};
use crate::writer::{Value, Writer, element};
use bh_bytecode::{DType, Opcode};
use bh_fuser::lower::{Arg, Step};
use bh_jit_abi::Folds;

impl Kernel<'_> {
    /// The steps of a segment for one vector of each row.
    pub(crate) fn vectors(&mut self, at: &At) -> Result<(), String> {
        let rows = self.rows.count;
        self.cached.clear();
        self.cached.resize(usize::from(rows), vec![None; self.plan.made.len()]);
        self.loads.clear();
        self.reciprocals.clear();
        self.prefetch(at);
        let rows: Vec<At> = (0..rows).map(|row| At { row, ..at.clone() }).collect();
        self.values(&rows)?;
        let ends = self.ends(&rows)?;
        let mut streamed = Vec::new();
        // What rows fold into the same elements: read and written once.
        let mut columns: Vec<(Operation, Vec<Value>)> = Vec::new();
        for (at, fold, step, value) in ends {
            match step {
                Step::Store { slot, .. } => match self.stream(slot.into(), at.row) {
                    Some(stream) => streamed.push((stream, value)),
                    None => self.store(slot.into(), value, at),
                },
                Step::Reduce { opcode, slot, .. } => {
                    let dtype = self.request.slots[usize::from(slot)].dtype;
                    let operation = Operation {
                        opcode: combiner(opcode)?,
                        param: 0,
                        input: dtype,
                        output: dtype,
                        level: self.request.level,
                        fast_math: false,
                        width: at.width,
                    };
                    if self.request.folds != Folds::Columns {
                        self.fold(fold, operation, &[value], at)?;
                    } else if let Some((_, values)) = columns.get_mut(fold) {
                        values.push(value);
                    } else {
                        columns.push((operation, vec![value]));
                    }
                }
                _ => {}
            }
        }
        for (fold, (operation, values)) in columns.into_iter().enumerate() {
            self.fold(fold, operation, &values, &rows[0])?;
        }
        self.write_streams(&streamed, at);
        Ok(())
    }

    /// Makes the values of a segment for one vector of each row: step by step, so that the rows' chains of operations run
    /// side by side.
    fn values(&mut self, rows: &[At]) -> Result<(), String> {
        for value in 0..self.plan.made.len() as u16 {
            let step = self.plan.made[usize::from(value)];
            let buffer = self.plan.value_buffers[usize::from(value)];
            for at in rows {
                let wanted = if self.plan.is_repeatable(self.request, value) {
                    // Made where it is used; if a call uses it, in the segment before the call.
                    buffer.is_some() && at.segment == 0
                } else {
                    self.plan.segment[step] == at.segment && !matches!(self.plan.forms[step], Form::Called(_))
                };
                if !wanted {
                    continue;
                }
                let made = self.value(value, at)?;
                if let Some(buffer) = buffer {
                    self.store_buffer(buffer, self.request.steps[step].output_in(self.request), made, at);
                }
            }
        }
        Ok(())
    }

    /// What the last segment stores and folds: the row, the number of the fold, the step and the value. All reads come
    /// before the writes.
    fn ends<'a>(&mut self, rows: &'a [At]) -> Result<Vec<(&'a At, usize, Step, Value)>, String> {
        let mut ends = Vec::new();
        for at in rows.iter().filter(|at| at.segment + 1 == self.plan.segments) {
            let mut folds = 0;
            for step in &self.request.steps {
                if let Step::Store { arg, .. } | Step::Reduce { arg, .. } = *step {
                    ends.push((at, folds, *step, self.argument(arg, at)?));
                    folds += usize::from(matches!(step, Step::Reduce { .. }));
                }
            }
        }
        Ok(ends)
    }

    fn argument(&mut self, arg: Arg, at: &At) -> Result<Value, String> {
        match arg {
            Arg::Constant(constant) => Ok(Value::Constant(constant, at.width)),
            Arg::Value(value) => self.value(value, at),
        }
    }

    /// A value of the current vector: what is known, what lies in a buffer, or what its step makes.
    fn value(&mut self, value: u16, at: &At) -> Result<Value, String> {
        if let Some(known) = self.cached[usize::from(at.row)][usize::from(value)] {
            return Ok(known);
        }
        let index = self.plan.made[usize::from(value)];
        let step = self.request.steps[index];
        let made_before = self.plan.segment[index] < at.segment && !self.plan.is_repeatable(self.request, value);
        let made = match self.plan.value_buffers[usize::from(value)] {
            Some(buffer) if made_before => {
                let dtype = step.output_in(self.request);
                let address = self.buffer_address(buffer, dtype, at);
                self.load_vector(dtype, &address.to_string(), 0, at.width)
            }
            _ => self.step(index, &step, at)?,
        };
        self.cached[usize::from(at.row)][usize::from(value)] = Some(made);
        Ok(made)
    }

    fn step(&mut self, index: usize, step: &Step, at: &At) -> Result<Value, String> {
        match *step {
            Step::Load { slot } => Ok(self.load(slot, at)),
            Step::Range { slot, output } => {
                let number = self.number(slot, at);
                Ok(operations::from_number(&mut self.writer, number, output, at.width))
            }
            Step::Random { slot, key: Arg::Constant(key), output } => {
                let number = self.number(slot, at);
                let address = self.writer.value(format_args!("getelementptr i8, ptr %constants, i64 {}", key * 16));
                let low = self.writer.value(format_args!("load i32, ptr {address}, align 4"));
                let wide = self.writer.value(format_args!("zext i32 {low} to i64"));
                let key = self.writer.broadcast("i64", at.width, wide);
                Ok(operations::random(&mut self.writer, number, key, output, at.width))
            }
            Step::Compute { opcode, param, input, output, args, count } => {
                let mut operands = [Value::Register(0); 3];
                for (operand, arg) in operands.iter_mut().zip(&args[..usize::from(count)]) {
                    *operand = self.argument(*arg, at)?;
                }
                if let Some(quotient) = self.uniform_quotient(step, operands, at) {
                    return Ok(quotient);
                }
                if let Some(quotient) = self.quotient(step, operands, at) {
                    return Ok(quotient);
                }
                if let Some(root) = self.root(step, operands[0], at) {
                    return Ok(root);
                }
                if let Some(modulus) = self.modulus(step, operands[0], at) {
                    return Ok(modulus);
                }
                let (level, fast_math, width) = (self.request.level, self.request.fast_math, at.width);
                match self.plan.forms[index] {
                    Form::Inlined(function) => self.inlined(function, (opcode, input), operands, at),
                    _ => Operation { opcode, param, input, output, level, fast_math, width }
                        .write(&mut self.writer, operands)
                        .ok_or_else(|| format!("{opcode} of {input}")),
                }
            }
            _ => Err("a step without code".into()),
        }
    }

    /// A mathematical function: the instructions for ordinary lanes, and a call for vectors with others.
    fn inlined(
        &mut self,
        function: u16,
        (opcode, dtype): (Opcode, DType),
        [x, y, _]: [Value; 3],
        at: &At,
    ) -> Result<Value, String> {
        let width = at.width;
        let single = dtype == DType::F32;
        let (kind, wide) = (format!("<{width} x {}>", element(dtype)), format!("<{width} x double>"));
        let binary = opcode.info().inputs == 2;
        let widen = |writer: &mut Writer, value: Value| {
            if single { writer.value(format_args!("fpext {kind} {value} to {wide}")) } else { value }
        };
        let first = widen(&mut self.writer, x);
        let second = if binary { widen(&mut self.writer, y) } else { first };
        let result = math::evaluate(&mut self.writer, self.request.level, width, (opcode, single), (first, second));
        let (result, special) = result.ok_or_else(|| format!("{opcode} of {dtype}"))?;
        let result = if single { self.writer.value(format_args!("fptrunc {wide} {result} to {kind}")) } else { result };
        let Some(special) = special else { return Ok(result) };
        let called = |writer: &mut Writer| {
            let size = dtype.size();
            let (b, target) = (
                writer.value("getelementptr i8, ptr %scratch, i64 256"),
                writer.value("getelementptr i8, ptr %scratch, i64 512"),
            );
            writer.line(format_args!("store {kind} {x}, ptr %scratch, align {size}"));
            if binary {
                writer.line(format_args!("store {kind} {y}, ptr {b}, align {size}"));
            }
            writer.line(format_args!(
                "call void %f{function}(i64 {width}, ptr {target}, ptr %scratch, ptr {b}, ptr null)"
            ));
            writer.value(format_args!("load {kind}, ptr {target}, align {size}"))
        };
        Ok(unless_special(&mut self.writer, &kind, result, special, at, called))
    }

    /// The root that a step makes, if it is made by multiplications: those of `bh-vector`, with the bits of the instruction.
    fn root(&mut self, step: &Step, x: Value, at: &At) -> Option<Value> {
        if !self.plan.multiplied.has_roots() || !is_root(step) {
            return None;
        }
        let function = (Opcode::Sqrt, false);
        let (root, special) = math::evaluate(&mut self.writer, self.request.level, at.width, function, (x, x))?;
        let Some(special) = special else { return Some(root) };
        let kind = format!("<{} x double>", at.width);
        let exact =
            |writer: &mut Writer| writer.intrinsic(&format!("llvm.sqrt.v{}f64", at.width), &kind, &[(&kind, &x)]);
        Some(unless_special(&mut self.writer, &kind, root, special, at, exact))
    }
}

/// A value of the type `kind`, or where a lane that counts is special what `exact` makes.
pub(crate) fn unless_special(
    writer: &mut Writer,
    kind: &str,
    value: Value,
    special: Value,
    at: &At,
    exact: impl FnOnce(&mut Writer) -> Value,
) -> Value {
    let any = is_special(writer, special, at);
    let (slow, join) = (writer.label("slow"), writer.label("join"));
    let fast = writer.block().to_owned();
    writer.line(format_args!("br i1 {any}, label %{slow}, label %{join}, !prof !0"));
    writer.begin(&slow);
    let exact = exact(writer);
    writer.line(format_args!("br label %{join}"));
    writer.begin(&join);
    writer.value(format_args!("phi {kind} [ {value}, %{fast} ], [ {exact}, %{slow} ]"))
}

/// A value of the type `kind`: what `common` makes, or where a lane that counts is special what `exact` makes.
pub(crate) fn either(
    writer: &mut Writer,
    kind: &str,
    special: Value,
    at: &At,
    common: impl FnOnce(&mut Writer) -> Value,
    exact: impl FnOnce(&mut Writer) -> Value,
) -> Value {
    let any = is_special(writer, special, at);
    let (fast, slow, join) = (writer.label("fast"), writer.label("slow"), writer.label("join"));
    writer.line(format_args!("br i1 {any}, label %{slow}, label %{fast}, !prof !0"));
    writer.begin(&fast);
    let common = common(writer);
    writer.line(format_args!("br label %{join}"));
    writer.begin(&slow);
    let exact = exact(writer);
    writer.line(format_args!("br label %{join}"));
    writer.begin(&join);
    writer.value(format_args!("phi {kind} [ {common}, %{fast} ], [ {exact}, %{slow} ]"))
}

/// Is any lane that counts among these?
fn is_special(writer: &mut Writer, mut lanes: Value, at: &At) -> Value {
    let width = at.width;
    if let Some(mask) = at.mask {
        lanes = writer.value(format_args!("and <{width} x i1> {lanes}, {mask}"));
    }
    let bits = writer.value(format_args!("bitcast <{width} x i1> {lanes} to i{width}"));
    writer.value(format_args!("icmp ne i{width} {bits}, 0"))
}
