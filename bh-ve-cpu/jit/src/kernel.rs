//! The code of a kernel: its parameters, and the loops over rows around everything else.
//!
//! Where the views of one array reach into neighbouring rows, several rows are done at a time, side by side: what one row
//! reads above it is what the row before reads in its middle, so each vector of an array is read from the caches once
//! for all of them. What remains of the rows is done one by one.

use crate::complex;
use crate::division::Reciprocal;
use crate::plan::{Form, Plan};
use crate::uniform::Uniform;
use crate::writer::{Value, Writer, memory, vector};
use bh_bytecode::{DType, Opcode};
use bh_fuser::lower::{Arg, SlotMode, Step};
use bh_jit_abi::{Fetch, Folds, Function, LANES, Level, Request, SlotForm, Stride};

/// Writes the module of a kernel; also gives the functions that it calls. An error says what cannot be compiled.
pub(crate) fn write(request: &Request) -> Result<(String, Vec<Option<Function>>), String> {
    let plan = Plan::new(request)?;
    let mut kernel = Kernel {
        request,
        plan: &plan,
        writer: Writer::default(),
        rows: Rows { name: "one", count: 1 },
        cached: Vec::new(),
        loads: Vec::new(),
        reciprocals: Vec::new(),
        uniforms: Vec::new(),
        sums: Vec::new(),
        neutral: Vec::new(),
        carried: Vec::new(),
        streams: Vec::new(),
        in_lines: false,
    };
    kernel.function()?;
    // Vectors that find no register lie in the stack. Without `alignstack` they lie there as the caller's frame has it, mostly
    // across two cache lines: a quarter of D3Q19's time, or nothing, from build to build.
    let attributes = match request.level {
        Level::Avx512 => {
            r#"alignstack=64 "prefer-vector-width"="512" "min-legal-vector-width"="512" "tune-cpu"="skylake-avx512""#
        }
        Level::Avx2 => {
            r#"alignstack=32 "prefer-vector-width"="256" "min-legal-vector-width"="256" "tune-cpu"="haswell""#
        }
    };
    let tail = format!(
        "attributes #0 = {{ nounwind {attributes} }}\n\
         !0 = !{{!\"branch_weights\", i32 1, i32 10000}}\n\
         !1 = !{{i32 1}}\n\
         !2 = !{{!\"branch_weights\", i32 10000, i32 1}}\n"
    );
    let text = kernel.writer.module("define void @kernel(ptr nocapture readonly %call) #0 {", &tail);
    Ok((text, plan.functions))
}

/// Rows that are done side by side.
#[derive(Clone, Copy)]
pub(crate) struct Rows {
    /// Of the loop over them; part of names.
    pub(crate) name: &'static str,
    pub(crate) count: u16,
}

/// The slots, constants and steps while they are written.
pub(crate) struct Kernel<'a> {
    pub(crate) request: &'a Request,
    pub(crate) plan: &'a Plan,
    pub(crate) writer: Writer,
    /// The rows of the current loop.
    pub(crate) rows: Rows,
    /// The values of the current vector, for each row.
    pub(crate) cached: Vec<Vec<Option<Value>>>,
    /// What the current vector's rows have read: slot, row, element, and the vector.
    pub(crate) loads: Vec<(u16, i64, i64, Value)>,
    /// The reciprocals of the current vector's divisors.
    pub(crate) reciprocals: Vec<Reciprocal>,
    /// What is made of divisors that stay the same along a row.
    pub(crate) uniforms: Vec<Uniform>,
    /// The lanes where they are held in registers: for each row and fold, vector by vector.
    pub(crate) sums: Vec<Vec<Vec<Value>>>,
    /// With [`Folds::Results`], the neutral elements of each fold, in vectors of as many elements as rows are joined.
    pub(crate) neutral: Vec<Value>,
    /// The lanes between loops, where they stay in registers: for each fold, vector by vector.
    pub(crate) carried: Vec<Value>,
    /// What the current loop writes past the caches.
    pub(crate) streams: Vec<crate::stream::Stream>,
    /// Do the vectors of the current loop begin where lines of what is written past the caches do?
    pub(crate) in_lines: bool,
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
    /// Its row among those that are done side by side.
    pub(crate) row: u16,
}

impl Kernel<'_> {
    fn slots(&self) -> impl Iterator<Item = (usize, &SlotForm)> {
        self.request.slots.iter().enumerate().filter(|(_, slot)| slot.mode != SlotMode::Result)
    }

    /// The slots that have a position of their own, and its type.
    fn positions(&self) -> Vec<(usize, &'static str)> {
        let kind = |mode| if mode == SlotMode::Index { "i64" } else { "ptr" };
        self.slots().filter(|(_, slot)| slot.near.is_none()).map(|(at, slot)| (at, kind(slot.mode))).collect()
    }

    /// The folds: their reductions' opcodes, types and arguments.
    pub(crate) fn folds(&self) -> Vec<(Opcode, DType, Arg)> {
        let dtype = |slot: u16| self.request.slots[usize::from(slot)].dtype;
        let fold = |step: &Step| match *step {
            Step::Reduce { opcode, slot, arg } => Some((opcode, dtype(slot), arg)),
            _ => None,
        };
        self.request.steps.iter().filter_map(fold).collect()
    }

    pub(crate) fn widths(&self) -> Vec<u16> {
        let mut widths: Vec<u16> = self.plan.loops.iter().map(|each| each.width).collect();
        widths.dedup();
        widths
    }

    /// The name of a slot's position in a row, counted from the first of those that are done side by side.
    pub(crate) fn position(&self, slot: usize, row: i64) -> String {
        let (above, name) = (if row < 0 { "m" } else { "" }, self.rows.name);
        format!("%p{slot}.{name}.{above}{}", row.abs())
    }

    /// The name of a fold's lanes or elements in a row.
    pub(crate) fn accumulator(&self, fold: usize, row: u16) -> String {
        format!("%a{fold}.{}.{row}", self.rows.name)
    }

    fn function(&mut self) -> Result<(), String> {
        self.writer.begin("entry");
        self.parameters();
        self.writer.line("%some = icmp sgt i64 %count, 0");
        let many = self.plan.rows;
        if many > 1 {
            self.writer.line(format_args!("%rows.many = and i64 %rows, {}", -i64::from(many)));
            self.writer.line("br i1 %some, label %many.begin, label %exit");
            self.row_loop(Rows { name: "many", count: many }, ("0", "%rows.many"), "one.begin")?;
            self.row_loop(Rows { name: "one", count: 1 }, ("%rows.many", "%rows"), "exit")?;
        } else {
            self.writer.line("br i1 %some, label %one.begin, label %exit");
            self.row_loop(Rows { name: "one", count: 1 }, ("0", "%rows"), "exit")?;
        }
        self.writer.begin("exit");
        self.writer.line("ret void");
        Ok(())
    }

    /// The loop over rows `from` to `end`, some side by side.
    fn row_loop(&mut self, rows: Rows, (from, end): (&str, &str), after: &str) -> Result<(), String> {
        self.rows = rows;
        let Rows { name, count } = rows;
        self.writer.begin(&format!("{name}.begin"));
        self.place_fetched();
        self.writer.line(format_args!("%{name}.some = icmp slt i64 {from}, {end}"));
        self.writer.line(format_args!("br i1 %{name}.some, label %{name}.row, label %{after}"));
        self.writer.begin(&format!("{name}.row"));
        self.writer.line(format_args!("%{name}.at = phi i64 [ {from}, %{name}.begin ], [ %{name}.next, %{name}.end ]"));
        self.place_slots();
        self.place_accumulators();
        self.begin_result()?;
        self.invariants();
        if self.plan.block == 0 {
            self.segment(0, "%count", None)?;
        } else {
            self.blocks()?;
        }
        self.end_result(end)?;
        self.writer.line(format_args!("br label %{name}.end"));
        self.writer.begin(&format!("{name}.end"));
        self.writer.line(format_args!("%{name}.next = add i64 %{name}.at, {count}"));
        self.writer.line(format_args!("%{name}.more = icmp slt i64 %{name}.next, {end}"));
        self.writer.line(format_args!("br i1 %{name}.more, label %{name}.row, label %{after}"));
        Ok(())
    }

    /// Where the slots are in the rows that are read and written.
    fn place_slots(&mut self) {
        for (slot, kind) in self.positions() {
            let near = |(_, form): &(usize, &SlotForm)| form.near.is_some_and(|near| usize::from(near.slot) == slot);
            let reach = self.slots().filter(near).map(|(_, form)| form.near.map_or(0, |near| i64::from(near.rows)));
            let mut reach: Vec<i64> = reach.chain([0]).collect();
            reach.sort_unstable();
            reach.dedup();
            let mut rows: Vec<i64> =
                reach.iter().flat_map(|reach| (0..i64::from(self.rows.count)).map(move |row| row + reach)).collect();
            rows.sort_unstable();
            rows.dedup();
            for row in rows {
                let name = self.position(slot, row);
                let number = self.writer.value(format_args!("add i64 %{}.at, {row}", self.rows.name));
                let distance = self.writer.value(format_args!("mul i64 {number}, %o{slot}"));
                if kind == "ptr" {
                    self.writer.line(format_args!("{name} = getelementptr i8, ptr %q{slot}, i64 {distance}"));
                } else {
                    self.writer.line(format_args!("{name} = add i64 %q{slot}, {distance}"));
                }
            }
        }
    }

    /// Where each row is folded into: one of the sets of lanes, elements of its own, or the same ones as the others.
    fn place_accumulators(&mut self) {
        for (fold, (_, dtype, _)) in self.folds().into_iter().enumerate() {
            for row in 0..self.rows.count {
                let number = self.writer.value(format_args!("add i64 %{}.at, {row}", self.rows.name));
                let (of, each) = match self.request.folds {
                    // The lanes of one row after the other.
                    Folds::Results => (self.writer.value("add i64 0, 1"), LANES.to_string()),
                    Folds::Elements => (number, "%count".to_owned()),
                    Folds::Columns => (number, "0".to_owned()),
                    Folds::Lanes | Folds::Sets | Folds::None => {
                        (self.writer.value(format_args!("and i64 {number}, %last.set")), LANES.to_string())
                    }
                };
                let elements = self.writer.value(format_args!("mul i64 {of}, {each}"));
                let name = self.accumulator(fold, row);
                let kind = memory(dtype);
                self.writer.line(format_args!("{name} = getelementptr {kind}, ptr %b{fold}, i64 {elements}"));
            }
        }
    }

    /// Reads the call.
    fn parameters(&mut self) {
        let numbers = ["rows", "count", "sets"].map(|name| (name, "i64"));
        let tables = ["slots", "inner", "outer", "ahead", "constants", "accumulators", "functions", "scratch"];
        let fields = numbers.into_iter().chain(tables.map(|name| (name, "ptr")));
        for (at, (name, kind)) in fields.enumerate() {
            self.load_field("call", at, name, kind);
        }
        self.writer.line("%last.set = sub i64 %sets, 1");
        for (at, kind) in self.positions() {
            self.load_field("slots", at, &format!("q{at}"), kind);
            self.load_field("outer", at, &format!("o{at}"), "i64");
        }
        self.compare_streams();
        for at in self.fetching().into_iter().filter(|&at| self.request.slots[at].fetch == Fetch::Beyond) {
            self.load_field("ahead", at, &format!("h{at}"), "i64");
        }
        let strided = |slot: &SlotForm| slot.stride == Stride::Other || slot.mode == SlotMode::Index;
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
        self.load_neutral();
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
                let splat = complex::broadcast(&mut self.writer, *dtype, width, format_args!("%k{at}"));
                let constant = Value::Constant(at as u16, width);
                self.writer.line(format_args!("{constant} = freeze {} {splat}", vector(*dtype, width)));
            }
            if self.plan.multiplied.divides_by(Arg::Constant(at as u16)) {
                let elements = self.writer.value("mul i64 %rows, %count");
                let divisor = |width| Value::Constant(at as u16, width);
                self.place_uniform(*dtype, &format!("%k{at}"), divisor, elements);
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
        if dtype == DType::Bool {
            let byte = self.writer.value(format_args!("load i8, ptr {address}, align 1"));
            self.writer.line(format_args!("%{name} = icmp ne i8 {byte}, 0"));
        } else {
            let (kind, align) = (complex::single(dtype), dtype.real_part().size());
            self.writer.line(format_args!("%{name} = load {kind}, ptr {address}, align {align}"));
        }
    }

    /// Reads what stays the same along each row.
    fn invariants(&mut self) {
        let is_invariant = |slot: &SlotForm| slot.mode == SlotMode::Read && slot.stride == Stride::Zero;
        let slots: Vec<(usize, DType)> =
            self.slots().filter(|(_, slot)| is_invariant(slot)).map(|(at, slot)| (at, slot.dtype)).collect();
        for (at, dtype) in slots {
            let divides = self.plan.multiplied.divides_by_slot(self.request, at as u16);
            for row in 0..self.rows.count {
                let name = format!("e{at}.{}.{row}", self.rows.name);
                let address = self.position(at, row.into());
                self.scalar(&name, &address, dtype);
                for width in self.widths() {
                    let splat = complex::broadcast(&mut self.writer, dtype, width, format_args!("%{name}"));
                    let invariant = self.invariant(at as u16, width, row);
                    self.writer.line(format_args!("{invariant} = freeze {} {splat}", vector(dtype, width)));
                }
                if divides {
                    let rows = self.rows.name;
                    let divisor = |width| Value::Invariant(at as u16, width, rows, row);
                    self.place_uniform(dtype, &format!("%{name}"), divisor, "%count");
                }
            }
        }
    }

    /// What a slot that stays the same along each row has in a row.
    pub(crate) fn invariant(&self, slot: u16, width: u16, row: u16) -> Value {
        Value::Invariant(slot, width, self.rows.name, row)
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
                let target = self.unit_address(at, 0, "%b", 0);
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
                    Some(slot) => self.unit_address(usize::from(slot), 0, "%b", 0).to_string(),
                    None => buffer_name(self.plan.value_buffers[usize::from(operand)]),
                },
            };
        }
        let target = buffer_name(value.and_then(|value| self.plan.value_buffers[value]));
        let [a, b, c] = [&pointers[0], &pointers[1], &pointers[2]];
        self.writer.line(format_args!("call void %f{function}(i64 %m, ptr {target}, ptr {a}, ptr {b}, ptr {c})"));
    }
}

fn buffer_name(buffer: Option<u16>) -> String {
    buffer.map_or_else(|| "null".to_owned(), |buffer| format!("%buffer{buffer}"))
}

/// Fills a buffer with a constant.
fn fill(writer: &mut Writer, dtype: DType, constant: usize, buffer: u16, block: usize) {
    let (place, align) = (memory(dtype), dtype.real_part().size());
    let body = writer.label("fill");
    let after = writer.label("filled");
    let value = if dtype == DType::Bool {
        format!("i8 {}", writer.value(format_args!("zext i1 %k{constant} to i8")))
    } else {
        format!("{} %k{constant}", complex::single(dtype))
    };
    let before = writer.block().to_owned();
    writer.line(format_args!("br label %{body}"));
    writer.begin(&body);
    writer.line(format_args!("%at.{body} = phi i64 [ 0, %{before} ], [ %next.{body}, %{body} ]"));
    writer.line(format_args!("%to.{body} = getelementptr {place}, ptr %buffer{buffer}, i64 %at.{body}"));
    writer.line(format_args!("store {value}, ptr %to.{body}, align {align}"));
    writer.line(format_args!("%next.{body} = add i64 %at.{body}, 1"));
    writer.line(format_args!("%more.{body} = icmp slt i64 %next.{body}, {block}"));
    writer.line(format_args!("br i1 %more.{body}, label %{body}, label %{after}"));
    writer.begin(&after);
}

#[cfg(test)]
mod tests {
    use bh_fuser::lower::{Arg, SlotMode, Step};
    use bh_jit_abi::{Level, Request};

    /// More values at a time than there are registers: all slots are read before the first is written.
    fn kernel(level: Level) -> Request {
        let count = 40;
        let loads = (0..count).map(|slot| Step::Load { slot });
        let stores = (0..count).map(|value| Step::Store { slot: count + value, arg: Arg::Value(value) });
        let modes = [SlotMode::Read, SlotMode::Write].map(|mode| vec![mode; count.into()]).concat();
        crate::request(level, &modes, loads.chain(stores).collect())
    }

    #[test]
    fn what_finds_no_register_is_aligned() {
        for (level, register, bytes) in [(Level::Avx512, "%zmm", 64), (Level::Avx2, "%ymm", 32)] {
            let assembly = crate::assembly(&kernel(level)).unwrap();
            let spills = assembly.lines().filter(|line| line.contains("%rsp)") && line.contains(register));
            let spills: Vec<&str> = spills.collect();
            assert!(!spills.is_empty(), "{assembly}");
            let is_aligned = |line: &&str| line.contains("vmova") || line.contains("vmovdqa");
            assert!(spills.iter().all(is_aligned), "{spills:?}");
            assert!(assembly.contains(&format!("andq\t$-{bytes}, %rsp")), "{assembly}");
        }
    }
}
