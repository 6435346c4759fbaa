//! The code of a kernel: loops over rows, blocks and vectors, around the steps of the body.

use crate::math;
use crate::operations::{self, Operation};
use crate::plan::{Form, Loop, OutputIn, Plan, combiner};
use crate::writer::{Value, Writer, element, memory};
use bh_bytecode::DType;
use bh_fuser::lower::{Arg, SlotMode, Step};
use bh_jit_abi::{Folds, Function, LANES, Level, ROW_SETS, Request, Stride};

/// Writes the module of a kernel; also gives the functions that it calls. An error says what cannot be compiled.
pub(crate) fn write(request: &Request) -> Result<(String, Vec<Option<Function>>), String> {
    let plan = Plan::new(request)?;
    let mut kernel = Kernel { request, plan: &plan, writer: Writer::default(), cached: Vec::new(), sums: Vec::new() };
    kernel.function()?;
    let attributes = match request.level {
        Level::Avx512 => r#""prefer-vector-width"="512" "min-legal-vector-width"="512" "tune-cpu"="skylake-avx512""#,
        Level::Avx2 => r#""prefer-vector-width"="256" "min-legal-vector-width"="256" "tune-cpu"="haswell""#,
    };
    let tail =
        format!("attributes #0 = {{ nounwind {attributes} }}\n!0 = !{{!\"branch_weights\", i32 1, i32 10000}}\n");
    let text = kernel.writer.module("define void @kernel(ptr nocapture readonly %call) #0 {", &tail);
    Ok((text, plan.functions))
}

/// The slots, constants and steps while they are written.
pub(crate) struct Kernel<'a> {
    pub(crate) request: &'a Request,
    pub(crate) plan: &'a Plan,
    pub(crate) writer: Writer,
    /// The values of the current vector.
    cached: Vec<Option<Value>>,
    /// The lanes of each fold, vector by vector, where they are held in registers.
    pub(crate) sums: Vec<Vec<Value>>,
}

/// The place of a vector.
#[derive(Clone)]
pub(crate) struct At {
    /// The first element of the current group in the row, and in the block.
    pub(crate) element: String,
    pub(crate) index: String,
    /// The vector's distance from there, in elements.
    pub(crate) offset: u16,
    pub(crate) width: u16,
    /// Which lanes count, if not all.
    pub(crate) mask: Option<Value>,
    pub(crate) segment: usize,
    /// Its number in the group, where lanes are held in registers.
    pub(crate) register: Option<usize>,
}

impl Kernel<'_> {
    fn slots(&self) -> impl Iterator<Item = (usize, &bh_jit_abi::SlotForm)> {
        self.request.slots.iter().enumerate().filter(|(_, slot)| slot.mode != SlotMode::Result)
    }

    /// The slots that have a position of their own, and its type.
    fn positions(&self) -> Vec<(usize, &'static str)> {
        let kind = |mode| if mode == SlotMode::Index { "i64" } else { "ptr" };
        self.slots().filter(|(_, slot)| slot.near.is_none()).map(|(at, slot)| (at, kind(slot.mode))).collect()
    }

    /// The folds: their reductions' opcodes, types and arguments.
    fn folds(&self) -> Vec<(bh_bytecode::Opcode, DType, Arg)> {
        let dtype = |slot: u16| self.request.slots[usize::from(slot)].dtype;
        let fold = |step: &Step| match *step {
            Step::Reduce { opcode, slot, arg } => Some((opcode, dtype(slot), arg)),
            _ => None,
        };
        self.request.steps.iter().filter_map(fold).collect()
    }

    fn widths(&self) -> Vec<u16> {
        let mut widths: Vec<u16> = self.plan.loops.iter().map(|each| each.width).collect();
        widths.dedup();
        widths
    }

    fn function(&mut self) -> Result<(), String> {
        self.writer.begin("entry");
        self.parameters();
        let positions = self.positions();
        let folds = self.folds();
        self.writer.line("%rows.some = icmp sgt i64 %rows, 0");
        self.writer.line("%count.some = icmp sgt i64 %count, 0");
        self.writer.line("%some = and i1 %rows.some, %count.some");
        let entry = self.writer.block().to_owned();
        self.writer.line("br i1 %some, label %row, label %exit");
        self.writer.begin("row");
        self.writer.line(format_args!("%at.row = phi i64 [ 0, %{entry} ], [ %next.row, %row.end ]"));
        for (at, kind) in &positions {
            self.writer.line(format_args!("%p{at} = phi {kind} [ %q{at}, %{entry} ], [ %n{at}, %row.end ]"));
        }
        for fold in 0..folds.len() {
            self.writer.line(format_args!("%a{fold} = phi ptr [ %b{fold}, %{entry} ], [ %m{fold}, %row.end ]"));
        }
        self.invariants();
        if self.plan.block == 0 {
            self.segment(0, "%count", None)?;
        } else {
            self.blocks()?;
        }
        self.writer.line("br label %row.end");
        self.writer.begin("row.end");
        for (at, kind) in &positions {
            if *kind == "ptr" {
                self.writer.line(format_args!("%n{at} = getelementptr i8, ptr %p{at}, i64 %o{at}"));
            } else {
                self.writer.line(format_args!("%n{at} = add i64 %p{at}, %o{at}"));
            }
        }
        self.writer.line("%next.row = add i64 %at.row, 1");
        self.writer.line(format_args!("%set = and i64 %next.row, {}", ROW_SETS - 1));
        self.writer.line(format_args!("%set.lanes = mul i64 %set, {LANES}"));
        for (at, (_, dtype, _)) in folds.iter().enumerate() {
            let (from, step) =
                if self.request.folds == Folds::Elements { ("a", "%count") } else { ("b", "%set.lanes") };
            self.writer.line(format_args!("%m{at} = getelementptr {}, ptr %{from}{at}, i64 {step}", memory(*dtype)));
        }
        self.writer.line("%more.row = icmp slt i64 %next.row, %rows");
        self.writer.line("br i1 %more.row, label %row, label %exit");
        self.writer.begin("exit");
        self.writer.line("ret void");
        Ok(())
    }

    /// Reads the call.
    fn parameters(&mut self) {
        let fields = ["rows", "count", "slots", "inner", "outer", "constants", "accumulators", "functions", "scratch"];
        for (at, name) in fields.iter().enumerate() {
            let kind = if at < 2 { "i64" } else { "ptr" };
            self.load_field("call", at, name, kind);
        }
        for (at, kind) in self.positions() {
            self.load_field("slots", at, &format!("q{at}"), kind);
            self.load_field("outer", at, &format!("o{at}"), "i64");
        }
        let strided = |slot: &bh_jit_abi::SlotForm| slot.stride == Stride::Other || slot.mode == SlotMode::Index;
        let strided: Vec<usize> = self.slots().filter(|(_, slot)| strided(slot)).map(|(at, _)| at).collect();
        for at in strided {
            self.load_field("inner", at, &format!("s{at}"), "i64");
            for width in self.widths() {
                let stride = self.writer.broadcast("i64", width, format_args!("%s{at}"));
                let lanes: Vec<String> = (0..width).map(|lane| format!("i64 {lane}")).collect();
                self.writer
                    .line(format_args!("%l{at}.w{width} = mul <{width} x i64> {stride}, <{}>", lanes.join(", ")));
            }
        }
        for at in 0..self.folds().len() {
            self.load_field("accumulators", at, &format!("b{at}"), "ptr");
        }
        for at in 0..self.plan.functions.len() {
            self.load_field("functions", at, &format!("f{at}"), "ptr");
        }
        for (at, offset) in self.plan.buffers.iter().enumerate() {
            self.writer.line(format_args!("%buffer{at} = getelementptr i8, ptr %scratch, i64 {offset}"));
        }
        for (at, dtype) in self.request.constants.iter().enumerate() {
            let address = self.writer.value(format_args!("getelementptr i8, ptr %constants, i64 {}", at * 16));
            self.scalar(&format!("k{at}"), &address.to_string(), *dtype);
            for width in self.widths() {
                let splat = self.writer.broadcast(element(*dtype), width, format_args!("%k{at}"));
                let (constant, kind) = (Value::Constant(at as u16, width), element(*dtype));
                self.writer.line(format_args!("{constant} = freeze <{width} x {kind}> {splat}"));
            }
        }
        for (at, buffer) in self.plan.constant_buffers.iter().enumerate() {
            if let Some(buffer) = buffer {
                fill(&mut self.writer, self.request.constants[at], at, *buffer, self.plan.block);
            }
        }
    }

    /// Reads a 64-bit field of a table.
    fn load_field(&mut self, table: &str, at: usize, name: &str, kind: &str) {
        let address = self.writer.value(format_args!("getelementptr i8, ptr %{table}, i64 {}", at * 8));
        self.writer.line(format_args!("%{name} = load {kind}, ptr {address}, align 8"));
    }

    /// Reads one element.
    fn scalar(&mut self, name: &str, address: &str, dtype: DType) {
        let kind = memory(dtype);
        if dtype == DType::Bool {
            let byte = self.writer.value(format_args!("load i8, ptr {address}, align 1"));
            self.writer.line(format_args!("%{name} = icmp ne i8 {byte}, 0"));
        } else {
            self.writer.line(format_args!("%{name} = load {kind}, ptr {address}, align {}", dtype.size()));
        }
    }

    /// Reads what stays the same along the row.
    fn invariants(&mut self) {
        let is_invariant = |slot: &bh_jit_abi::SlotForm| slot.mode == SlotMode::Read && slot.stride == Stride::Zero;
        let slots: Vec<(usize, DType)> =
            self.slots().filter(|(_, slot)| is_invariant(slot)).map(|(at, slot)| (at, slot.dtype)).collect();
        for (at, dtype) in slots {
            self.scalar(&format!("e{at}"), &format!("%p{at}"), dtype);
            for width in self.widths() {
                let splat = self.writer.broadcast(element(dtype), width, format_args!("%e{at}"));
                let (invariant, kind) = (Value::Invariant(at as u16, width), element(dtype));
                self.writer.line(format_args!("{invariant} = freeze <{width} x {kind}> {splat}"));
            }
        }
    }

    /// The loop over blocks: segments, and calls between them.
    fn blocks(&mut self) -> Result<(), String> {
        let before = self.writer.block().to_owned();
        let size = self.plan.block;
        self.writer.line("br label %block");
        self.writer.begin("block");
        self.writer.line(format_args!("%b = phi i64 [ 0, %{before} ], [ %next.block, %block.end ]"));
        self.writer.line("%left = sub i64 %count, %b");
        self.writer.line(format_args!("%is.whole = icmp ugt i64 %left, {size}"));
        self.writer.line(format_args!("%m = select i1 %is.whole, i64 {size}, i64 %left"));
        for segment in 0..self.plan.segments {
            self.segment(segment, "%m", Some("%b"))?;
            for (index, step) in self.request.steps.iter().enumerate() {
                if let (Form::Called(function), Step::Compute { args, count, .. }) = (self.plan.forms[index], step)
                    && self.plan.segment[index] == segment
                {
                    let value = self.plan.made.iter().position(|&made| made == index);
                    self.call(function, value, &args[..usize::from(*count)]);
                }
            }
        }
        let copy = self.plan.functions.iter().position(Option::is_none).unwrap_or(0);
        for (at, slot) in self.request.slots.iter().enumerate() {
            if let Some(buffer) = self.plan.slot_buffers[at] {
                let target = self.unit_address(at, "%b", 0);
                let bytes = self.writer.value(format_args!("mul i64 %m, {}", slot.dtype.size()));
                self.writer.line(format_args!("call void %f{copy}(i64 {bytes}, ptr {target}, ptr %buffer{buffer})"));
            }
        }
        self.writer.line("br label %block.end");
        self.writer.begin("block.end");
        self.writer.line(format_args!("%next.block = add i64 %b, {size}"));
        self.writer.line("%more.block = icmp slt i64 %next.block, %count");
        self.writer.line("br i1 %more.block, label %block, label %blocks.end");
        self.writer.begin("blocks.end");
        Ok(())
    }

    /// Calls a function on a block.
    fn call(&mut self, function: u16, value: Option<usize>, args: &[Arg]) {
        let mut pointers = vec!["null".to_owned(); 3];
        for (pointer, arg) in pointers.iter_mut().zip(args) {
            *pointer = match *arg {
                Arg::Constant(constant) => buffer_name(self.plan.constant_buffers[usize::from(constant)]),
                Arg::Value(operand) => match self.plan.dense_load(self.request, operand) {
                    Some(slot) => self.unit_address(usize::from(slot), "%b", 0).to_string(),
                    None => buffer_name(self.plan.value_buffers[usize::from(operand)]),
                },
            };
        }
        let target = buffer_name(value.and_then(|value| self.plan.value_buffers[value]));
        let [a, b, c] = [&pointers[0], &pointers[1], &pointers[2]];
        self.writer.line(format_args!("call void %f{function}(i64 %m, ptr {target}, ptr {a}, ptr {b}, ptr {c})"));
    }

    /// The loops of a segment over a block of `length` elements that begins at element `base` of the row.
    fn segment(&mut self, segment: usize, length: &str, base: Option<&str>) -> Result<(), String> {
        let mut from = "0".to_owned();
        for each in &self.plan.loops {
            from = self.one_loop(segment, *each, length, base, &from)?;
        }
        Ok(())
    }

    /// One loop, from element `from` of the block on; gives the element where it ends.
    fn one_loop(
        &mut self,
        segment: usize,
        each: Loop,
        length: &str,
        base: Option<&str>,
        from: &str,
    ) -> Result<String, String> {
        let group = i64::from(each.width * each.unroll);
        let end = if each.masked || group == 1 {
            length.to_owned()
        } else {
            let left = self.writer.value(format_args!("sub i64 {length}, {from}"));
            let whole = self.writer.value(format_args!("and i64 {left}, {}", -group));
            self.writer.value(format_args!("add i64 {whole}, {from}")).to_string()
        };
        let some = self.writer.value(format_args!("icmp slt i64 {from}, {end}"));
        let (enter, body, leave, after) = (
            self.writer.label("enter"),
            self.writer.label("loop"),
            self.writer.label("leave"),
            self.writer.label("after"),
        );
        self.writer.line(format_args!("br i1 {some}, label %{enter}, label %{after}"));
        self.writer.begin(&enter);
        let last = segment + 1 == self.plan.segments;
        let in_registers = group == 32 && !each.masked && self.request.folds == Folds::Lanes && last;
        let folds = if in_registers { self.folds() } else { Vec::new() };
        let mut starts = Vec::new();
        for (at, (_, dtype, _)) in folds.iter().enumerate() {
            for vector in 0..each.unroll {
                starts.push(self.load_vector(*dtype, &format!("%a{at}"), vector * each.width, each.width));
            }
        }
        self.writer.line(format_args!("br label %{body}"));
        self.writer.begin(&body);
        let index = format!("%j.{body}");
        let next = format!("%next.{body}");
        let latch = format!("{body}.end");
        self.writer.line(format_args!("{index} = phi i64 [ {from}, %{enter} ], [ {next}, %{latch} ]"));
        self.sums.clear();
        let mut names = Vec::new();
        for (at, (_, dtype, _)) in folds.iter().enumerate() {
            let mut vectors = Vec::new();
            for vector in 0..each.unroll {
                let name = format!("%sum.{body}.{at}.{vector}");
                let start = starts[at * usize::from(each.unroll) + usize::from(vector)];
                let kind = format!("<{} x {}>", each.width, element(*dtype));
                vectors.push(self.writer.value(format_args!("phi {kind} [ {start}, %{enter} ], [ {name}, %{latch} ]")));
                names.push((name, kind));
            }
            self.sums.push(vectors);
        }
        let element = match base {
            Some(base) => self.writer.value(format_args!("add i64 {base}, {index}")).to_string(),
            None => index.clone(),
        };
        let mask = each.masked.then(|| {
            let left = self.writer.value(format_args!("sub i64 {length}, {index}"));
            let short = self.writer.value(format_args!("trunc i64 {left} to i32"));
            let limit = self.writer.broadcast("i32", each.width, short);
            let lanes: Vec<String> = (0..each.width).map(|lane| format!("i32 {lane}")).collect();
            self.writer.value(format_args!("icmp ugt <{} x i32> {limit}, <{}>", each.width, lanes.join(", ")))
        });
        for vector in 0..each.unroll {
            let register = in_registers.then_some(usize::from(vector));
            let (element, index, offset) = (element.clone(), index.clone(), vector * each.width);
            self.vector(&At { element, index, offset, width: each.width, mask, segment, register })?;
        }
        self.writer.line(format_args!("br label %{latch}"));
        self.writer.begin(&latch);
        self.writer.line(format_args!("{next} = add i64 {index}, {group}"));
        for ((name, kind), sum) in names.iter().zip(self.sums.iter().flatten()) {
            self.writer.line(format_args!("{name} = freeze {kind} {sum}"));
        }
        let more = self.writer.value(format_args!("icmp slt i64 {next}, {end}"));
        self.writer.line(format_args!("br i1 {more}, label %{body}, label %{leave}"));
        self.writer.begin(&leave);
        for (at, (_, dtype, _)) in folds.iter().enumerate() {
            for vector in 0..each.unroll {
                let sum = self.sums[at][usize::from(vector)];
                self.store_vector(*dtype, &format!("%a{at}"), vector * each.width, each.width, sum);
            }
        }
        self.writer.line(format_args!("br label %{after}"));
        self.writer.begin(&after);
        Ok(end)
    }

    /// The steps of a segment for one vector.
    fn vector(&mut self, at: &At) -> Result<(), String> {
        self.cached.clear();
        self.cached.resize(self.plan.made.len(), None);
        let last = at.segment + 1 == self.plan.segments;
        for value in 0..self.plan.made.len() as u16 {
            let step = self.plan.made[usize::from(value)];
            let own = self.plan.segment[step] == at.segment && !matches!(self.plan.forms[step], Form::Called(_));
            let buffer = self.plan.value_buffers[usize::from(value)];
            if self.plan.is_repeatable(self.request, value) {
                // Made where it is used; if a call uses it, in the segment before the call.
                let Some(buffer) = buffer else { continue };
                if at.segment == 0 {
                    let made = self.value(value, at)?;
                    self.store_buffer(buffer, self.request.steps[step].output_in(self.request), made, at);
                }
            } else if own {
                let made = self.value(value, at)?;
                if let Some(buffer) = buffer {
                    self.store_buffer(buffer, self.request.steps[step].output_in(self.request), made, at);
                }
            }
        }
        if !last {
            return Ok(());
        }
        // All reads come before the writes.
        let mut ends = Vec::new();
        for step in &self.request.steps {
            if let Step::Store { arg, .. } | Step::Reduce { arg, .. } = *step {
                ends.push((*step, self.argument(arg, at)?));
            }
        }
        let mut fold = 0;
        for (step, value) in ends {
            match step {
                Step::Store { slot, .. } => self.store(usize::from(slot), value, at),
                Step::Reduce { opcode, slot, .. } => {
                    let dtype = self.request.slots[usize::from(slot)].dtype;
                    self.fold(
                        fold,
                        Operation {
                            opcode: combiner(opcode)?,
                            param: 0,
                            input: dtype,
                            output: dtype,
                            level: self.request.level,
                            fast_math: false,
                            width: at.width,
                        },
                        value,
                        at,
                    )?;
                    fold += 1;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn argument(&mut self, arg: Arg, at: &At) -> Result<Value, String> {
        match arg {
            Arg::Constant(constant) => Ok(Value::Constant(constant, at.width)),
            Arg::Value(value) => self.value(value, at),
        }
    }

    /// A value of the current vector: what is known, what lies in a buffer, or what its step makes.
    fn value(&mut self, value: u16, at: &At) -> Result<Value, String> {
        if let Some(known) = self.cached[usize::from(value)] {
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
        self.cached[usize::from(value)] = Some(made);
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
        (opcode, dtype): (bh_bytecode::Opcode, DType),
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
        let Some(mut special) = special else { return Ok(result) };
        if let Some(mask) = at.mask {
            special = self.writer.value(format_args!("and <{width} x i1> {special}, {mask}"));
        }
        let bits = self.writer.value(format_args!("bitcast <{width} x i1> {special} to i{width}"));
        let any = self.writer.value(format_args!("icmp ne i{width} {bits}, 0"));
        let (slow, join) = (self.writer.label("slow"), self.writer.label("join"));
        let fast = self.writer.block().to_owned();
        self.writer.line(format_args!("br i1 {any}, label %{slow}, label %{join}, !prof !0"));
        self.writer.begin(&slow);
        let size = dtype.size();
        let (b, target) = (
            self.writer.value("getelementptr i8, ptr %scratch, i64 256"),
            self.writer.value("getelementptr i8, ptr %scratch, i64 512"),
        );
        self.writer.line(format_args!("store {kind} {x}, ptr %scratch, align {size}"));
        if binary {
            self.writer.line(format_args!("store {kind} {y}, ptr {b}, align {size}"));
        }
        self.writer
            .line(format_args!("call void %f{function}(i64 {width}, ptr {target}, ptr %scratch, ptr {b}, ptr null)"));
        let exact = self.writer.value(format_args!("load {kind}, ptr {target}, align {size}"));
        self.writer.line(format_args!("br label %{join}"));
        self.writer.begin(&join);
        Ok(self.writer.value(format_args!("phi {kind} [ {result}, %{fast} ], [ {exact}, %{slow} ]")))
    }
}

fn buffer_name(buffer: Option<u16>) -> String {
    buffer.map_or_else(|| "null".to_owned(), |buffer| format!("%buffer{buffer}"))
}

/// Fills a buffer with a constant.
fn fill(writer: &mut Writer, dtype: DType, constant: usize, buffer: u16, block: usize) {
    let kind = memory(dtype);
    let body = writer.label("fill");
    let after = writer.label("filled");
    let value = if dtype == DType::Bool {
        writer.value(format_args!("zext i1 %k{constant} to i8")).to_string()
    } else {
        format!("%k{constant}")
    };
    let before = writer.block().to_owned();
    writer.line(format_args!("br label %{body}"));
    writer.begin(&body);
    writer.line(format_args!("%at.{body} = phi i64 [ 0, %{before} ], [ %next.{body}, %{body} ]"));
    writer.line(format_args!("%to.{body} = getelementptr {kind}, ptr %buffer{buffer}, i64 %at.{body}"));
    writer.line(format_args!("store {kind} {value}, ptr %to.{body}, align {}", dtype.size()));
    writer.line(format_args!("%next.{body} = add i64 %at.{body}, 1"));
    writer.line(format_args!("%more.{body} = icmp slt i64 %next.{body}, {block}"));
    writer.line(format_args!("br i1 %more.{body}, label %{body}, label %{after}"));
    writer.begin(&after);
}
