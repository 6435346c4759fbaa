//! The code of a kernel: what is known while it is built.

mod blocks;
mod body;
mod loops;
mod parameters;
mod rows;

pub(crate) use parameters::{Parameters, Slot};
pub(crate) use rows::Rows;

use crate::builder::{Builder, Value};
use crate::non_temporal::Stream;
use crate::plan::Plan;
use bh_bytecode::{DType, Opcode};
use bh_jit_abi::{Level, Request};
use bh_kernel::{Arg, Step};
use inkwell::IntPredicate;
use inkwell::context::Context;
use inkwell::module::Module;

/// Builds the module of a kernel. An error says what cannot be compiled.
pub(crate) fn build<'c>(context: &'c Context, request: &'c Request, plan: &'c Plan) -> Result<Module<'c>, String> {
    let b = Builder::new(context, "kernel");
    set_attributes(&b, request.level);
    let parameters = Parameters::load(&b, request, plan);
    let mut kernel = Kernel {
        request,
        plan,
        rows: Rows::new(&parameters),
        parameters,
        vector: CurrentVector::default(),
        sums: Vec::new(),
        carried: Vec::new(),
        streams: Vec::new(),
        in_lines: false,
    };
    function(&b, &mut kernel)?;
    Ok(b.finish())
}

/// How LLVM is to make code of a function.
pub(crate) fn set_attributes(b: &Builder<'_>, level: Level) {
    // Vectors that find no register lie in the stack. Without `alignstack` they lie there as the caller's frame has it, mostly
    // across two cache lines: a quarter of D3Q19's time, or nothing, from build to build.
    let (align, bits, processor) = match level {
        Level::Avx512 => (64, "512", "skylake-avx512"),
        Level::Avx2 => (32, "256", "haswell"),
    };
    b.set_attribute("nounwind", 0);
    b.set_attribute("alignstack", align);
    b.set_text_attribute("prefer-vector-width", bits);
    b.set_text_attribute("min-legal-vector-width", bits);
    b.set_text_attribute("tune-cpu", processor);
}

/// What is known of a kernel while it is built.
pub(crate) struct Kernel<'c> {
    pub(crate) request: &'c Request,
    pub(crate) plan: &'c Plan,
    /// What the call says.
    pub(crate) parameters: Parameters<'c>,
    /// What the current rows have.
    pub(crate) rows: Rows<'c>,
    pub(crate) vector: CurrentVector<'c>,
    /// The lanes where they are held in registers: for each row and fold, vector by vector.
    pub(crate) sums: Vec<Vec<Vec<Value<'c>>>>,
    /// The lanes between loops, where they stay in registers: for each fold, vector by vector.
    pub(crate) carried: Vec<Value<'c>>,
    /// What the current loop writes past the caches.
    pub(crate) streams: Vec<Stream<'c>>,
    /// Do the vectors of the current loop begin where lines of what is written past the caches do?
    pub(crate) in_lines: bool,
}

/// The place of a vector.
#[derive(Clone, Copy)]
pub(crate) struct At<'c> {
    /// The first element of the current group in the row, and in the block.
    pub(crate) element: Value<'c>,
    pub(crate) index: Value<'c>,
    /// The vector's distance from there, in elements.
    pub(crate) offset: u16,
    pub(crate) width: u16,
    /// Which lanes count, if not all.
    pub(crate) mask: Option<Value<'c>>,
    pub(crate) segment: usize,
    /// Its number in the group, where lanes are held in registers.
    pub(crate) register: Option<usize>,
    /// Its row among those that are done side by side.
    pub(crate) row: u16,
}

/// Where something lies that is read: slot, row and element.
pub(crate) type Position = (usize, i64, i64);

/// What is known of the current vector.
#[derive(Default)]
pub(crate) struct CurrentVector<'c> {
    /// The values of the steps, for each row.
    values: Vec<Vec<Option<Value<'c>>>>,
    /// What its rows have read.
    loads: Vec<(Position, Value<'c>)>,
}

impl<'c> CurrentVector<'c> {
    /// What was read from a place.
    pub(crate) fn read(&self, place: Position) -> Option<Value<'c>> {
        self.loads.iter().find(|(known, _)| *known == place).map(|(_, value)| *value)
    }

    /// Keeps what is read from a place.
    pub(crate) fn keep(&mut self, place: Position, value: Value<'c>) -> Value<'c> {
        self.loads.push((place, value));
        value
    }
}

impl Kernel<'_> {
    /// The folds: their reductions' opcodes and types.
    pub(crate) fn folds(&self) -> Vec<(Opcode, DType)> {
        folds(self.request)
    }
}

/// The folds of a request.
fn folds(request: &Request) -> Vec<(Opcode, DType)> {
    let fold = |step: &Step| match *step {
        Step::Reduce { opcode, slot, .. } => Some((opcode, request.slots[usize::from(slot)].dtype)),
        _ => None,
    };
    request.steps.iter().filter_map(fold).collect()
}

impl<'c> Kernel<'c> {
    /// The value of a constant in the vectors of a place.
    fn constant(&self, constant: u16, at: &At<'c>) -> Value<'c> {
        self.parameters.constants[usize::from(constant)].of_width(at.width)
    }

    /// The slot whose memory can be the operand of a call.
    fn dense_operand(&self, arg: Arg) -> Option<u16> {
        match arg {
            Arg::Value(value) => self.plan.dense_load(self.request, value),
            Arg::Constant(_) => None,
        }
    }
}

fn function<'c>(b: &Builder<'c>, kernel: &mut Kernel<'c>) -> Result<(), String> {
    let (none, all) = (b.index(0), kernel.parameters.rows);
    let some = b.compare(IntPredicate::SGT, kernel.parameters.count, none);
    let [one, exit] = b.blocks(["rows", "exit"]);
    let side_by_side = kernel.plan.schedule.rows;
    if side_by_side > 1 {
        let many = b.block("rows.side.by.side");
        let grouped = b.and(all, b.index(-i64::from(side_by_side)));
        b.branch(some, (many, exit));
        b.begin(many);
        rows::build(b, kernel, side_by_side, (none, grouped), one)?;
        b.begin(one);
        rows::build(b, kernel, 1, (grouped, all), exit)?;
    } else {
        b.branch(some, (one, exit));
        b.begin(one);
        rows::build(b, kernel, 1, (none, all), exit)?;
    }
    b.begin(exit);
    b.end();
    Ok(())
}

#[cfg(test)]
mod tests {
    use bh_jit_abi::{Level, Request};
    use bh_kernel::{Arg, SlotMode, Step};

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
