//! Legal batches pass, each kind of fault is named, and hostile tables never panic.

use super::validate;
use crate::batch::{Base, Batch, Constant, Instr, NO_BASE, Operand, Origin, base_flags};
use crate::dtype::DType;
use crate::opcode::Opcode;
use crate::order::FIXED;
use crate::view::View;

/// A batch under construction, with whole-base views by name of their base.
#[derive(Default)]
struct Builder {
    batch: Batch,
}

impl Builder {
    fn base(&mut self, dtype: DType, len: i64) -> u32 {
        let id = self.batch.bases.len() as u64 + 1;
        self.batch.push_base(Base::new(id, dtype, len))
    }

    fn view(&mut self, base: u32, start: i64, shape: &[i64], stride: &[i64]) -> Operand {
        let view = View::new(start, shape, stride).unwrap();
        Operand::view(self.batch.intern_view(base, &view))
    }

    fn array(&mut self, dtype: DType, shape: &[i64]) -> Operand {
        let base = self.base(dtype, shape.iter().product());
        let view = View::contiguous(shape).unwrap();
        Operand::view(self.batch.intern_view(base, &view))
    }

    fn index(&mut self, shape: &[i64]) -> Operand {
        Operand::view(self.batch.intern_view(NO_BASE, &View::contiguous(shape).unwrap()))
    }

    fn constant<T: crate::Element>(&mut self, value: T) -> Operand {
        Operand::constant(self.batch.push_constant(Constant::from_value(value)))
    }

    fn run(&mut self, opcode: Opcode, param: u16, operands: &[Operand]) {
        let mut instr = Instr::new(opcode, operands);
        instr.param = param;
        self.batch.push_instr(instr);
    }

    fn accepted(&self) {
        validate(&self.batch.as_ref()).unwrap();
    }

    fn refused(&self, text: &str) {
        let error = validate(&self.batch.as_ref()).unwrap_err().to_string();
        assert!(error.contains(text), "{error:?} does not say {text:?}");
    }
}

/// One instruction on fresh operands.
fn single(opcode: Opcode, param: u16, operands: impl Fn(&mut Builder) -> Vec<Operand>) -> Builder {
    let mut builder = Builder::default();
    let operands = operands(&mut builder);
    builder.run(opcode, param, &operands);
    builder
}

/// A batch with every kind of instruction, an origin and a partition.
fn everything() -> Builder {
    let mut b = Builder::default();
    let (x, y) = (b.array(DType::F64, &[4, 5]), b.array(DType::F64, &[4, 5]));
    let mask = b.array(DType::Bool, &[4, 5]);
    let row = b.view(1, 0, &[4, 5], &[0, 1]);
    let half = b.constant(0.5f64);
    let sums = b.array(DType::F64, &[4]);
    let total = b.array(DType::F64, &[]);
    let numbers = b.index(&[4, 5]);
    let key = b.constant(17u64);
    let places = b.array(DType::I64, &[3]);
    let picked = b.array(DType::F64, &[3]);
    let chosen = b.array(DType::Bool, &[3]);
    b.run(Opcode::Add, 0, &[x, row, half]);
    b.run(Opcode::Multiply, 0, &[x, x, y]);
    b.run(Opcode::Less, 0, &[mask, x, y]);
    b.run(Opcode::Where, 0, &[x, mask, y, half]);
    b.run(Opcode::Powi, 3, &[y, x]);
    b.run(Opcode::AddReduce, 0b10, &[sums, x]);
    b.run(Opcode::MaximumReduce, 0b11, &[total, x]);
    b.run(Opcode::AddAccumulate, 0b01, &[x, x]);
    b.run(Opcode::Range, 0, &[x, numbers]);
    b.run(Opcode::Random, 0, &[x, numbers, key]);
    b.run(Opcode::Gather, 0, &[picked, x, places]);
    b.run(Opcode::Scatter, 0, &[x, picked, places]);
    b.run(Opcode::CondScatter, 0, &[x, half, places, chosen]);
    b.run(Opcode::Sync, 0, &[x]);
    b.run(Opcode::Free, 0, &[y]);
    b.run(Opcode::Discard, 0, &[y]);
    b.run(Opcode::Nop, 0, &[]);
    let (file, file_len) = b.batch.push_string("heat.c");
    b.batch.origins.push(Origin { file, file_len, line: 42 });
    b.batch.instrs[1].origin = 1;
    // Alone, then two with an array between them that needs no memory, and one that reads and writes a renamed array.
    let alone = b.batch.instrs.len() as u32;
    (0..alone).for_each(|instr| b.batch.push_block(&[instr], &[]));
    let (between, from, renamed) =
        (b.array(DType::F64, &[4, 5]), b.array(DType::F64, &[4, 5]), b.array(DType::F64, &[4, 5]));
    let base = |b: &Builder, array: Operand| b.batch.views[array.as_view().unwrap() as usize].base;
    let (inner, alias, outer) = (base(&b, between), base(&b, from), base(&b, renamed));
    b.batch.bases[inner as usize].flags = base_flags::BORN | base_flags::DIES;
    b.run(Opcode::Copy, 0, &[between, half]);
    b.run(Opcode::Add, 0, &[x, x, between]);
    b.batch.push_block(&[alone, alone + 1], &[inner]);
    b.run(Opcode::Sqrt, 0, &[x, renamed]);
    b.run(Opcode::Copy, 0, &[renamed, from]);
    b.batch.push_block(&[alone + 2, alone + 3], &[]);
    b.batch.push_rename(outer, &[], Some((alias, renamed.as_view().unwrap())));
    b
}

#[test]
fn legal_batches_pass() {
    everything().accepted();
    Builder::default().accepted();
    single(Opcode::AddReduce, 0, |b| vec![b.array(DType::I8, &[]), b.array(DType::I8, &[])]).accepted();
    single(Opcode::Copy, 0, |b| vec![b.array(DType::C64, &[0, 3]), b.array(DType::I8, &[0, 3])]).accepted();
}

#[test]
fn faults_name_instruction_operand_and_origin() {
    let mut b = everything();
    let wrong = b.array(DType::F64, &[5, 4]);
    b.batch.instrs[1].operands[2] = wrong;
    b.refused("heat.c:42: instruction 1 (multiply), operand 2: its shape [5, 4] differs from the output's, [4, 5]");
}

#[test]
fn wrong_forms_are_refused() {
    use Opcode as O;
    let f = DType::F64;
    let two = |b: &mut Builder| vec![b.array(f, &[3]), b.array(f, &[3])];
    single(Opcode(79), 0, two).refused("there is no opcode 79");
    single(O::Add, 0, two).refused("3 operands with 1 outputs are needed, but there are 2 with 1");
    single(O::Floor, 1, two).refused("its parameter is 1 instead of 0");
    single(O::Sin, 2, two).refused("its parameter is 2 instead of 0 or 1");
    single(O::Sin, 1, two).accepted();
    single(O::Powi, 6, two).refused("the exponent 6");
    single(O::Sync, 0, |_| vec![]).refused("1 operands with 0 outputs are needed");
    single(O::Sync, 0, |b| vec![b.index(&[2])]).refused("a view of a base is needed");
    single(Opcode(O::FIRST_EXTENSION), 0, two).refused("has no name");
    single(O::Sin, 0, |b| vec![b.array(f, &[3]), b.array(DType::F32, &[3])]).refused("the types f64 ← f32");
    single(O::Sin, 0, |b| vec![b.constant(1.0), b.array(f, &[3])]).refused("an output must be a view");
    single(O::Sin, 0, |b| vec![b.array(f, &[3]), b.index(&[3])]).refused("operand 1: it is an index view");
    single(O::Sin, 0, |b| vec![b.array(f, &[3]), Operand::view(9)]).refused("view 9 does not exist");
    single(O::Sin, 0, |b| vec![b.array(f, &[3]), Operand::constant(9)]).refused("constant 9 does not exist");
    single(O::Range, 0, two).refused("an index view is needed");
    single(O::Random, 0, |b| vec![b.array(f, &[3]), b.index(&[3]), b.constant(1.0)]).refused("an integer constant");
    single(O::AddReduce, 1, |b| vec![b.array(f, &[]), b.constant(1.0)]).refused("a view is needed, not a constant");
}

#[test]
fn wrong_axes_and_shapes_are_refused() {
    use Opcode as O;
    let f = DType::F64;
    single(O::AddReduce, 0b01, |b| vec![b.array(f, &[3]), b.array(f, &[3, 4])]).refused("axes kept, [4]");
    single(O::AddReduce, 0b100, |b| vec![b.array(f, &[3]), b.array(f, &[3, 4])]).refused("not all below rank 2");
    single(O::AddReduce, 0, |b| vec![b.array(f, &[3]), b.array(f, &[3])]).refused("no axes");
    single(O::AddAccumulate, 0b11, |b| vec![b.array(f, &[3, 4]), b.array(f, &[3, 4])]).refused("not exactly one");
    let index = |b: &mut Builder| b.array(DType::I64, &[3]);
    single(O::Gather, 0, |b| vec![b.array(f, &[2]), b.array(f, &[9]), index(b)]).refused("operand 2: its shape [3]");
    single(O::Scatter, 0, |b| vec![b.array(f, &[9]), b.array(f, &[2]), index(b)]).refused("operand 1: its shape [2]");
}

#[test]
fn wrong_orders_are_refused() {
    use Opcode as O;
    let f = DType::F64;
    let ordered = |opcode: O, param: u16, kept: &[i64], order: u16| {
        let mut b = single(opcode, param, |b| vec![b.array(f, kept), b.array(f, &[3, 4])]);
        b.batch.instrs[0].order = order;
        b
    };
    // Two axes have eight codes: two orders, and two directions each.
    (0..8).for_each(|order| ordered(O::AddReduce, 0b11, &[], order).accepted());
    ordered(O::AddReduce, 0b11, &[], 8).refused("the order 8 is none of rank 2");
    ordered(O::AddReduce, 0b10, &[3], 0b110).accepted();
    ordered(O::AddReduce, 0b10, &[3], 0b101).refused("walks kept axes backward, 0b1");
    ordered(O::AddAccumulate, 0b10, &[3, 4], 4).refused("only reductions have one");
    // Fixed trees have codes of their own.
    (0..8).for_each(|order| ordered(O::AddReduce, 0b11, &[], FIXED + order).accepted());
    ordered(O::AddReduce, 0b11, &[], FIXED + 8).refused("is none of rank 2");
    ordered(O::AddAccumulate, 0b10, &[3, 4], FIXED).accepted();
    ordered(O::AddAccumulate, 0b10, &[3, 4], FIXED + 4).refused("only reductions have one");
    let mut b = single(O::Sync, 0, |b| vec![b.array(f, &[3])]);
    b.batch.instrs[0].order = 1;
    b.refused("its order 1 instead of 0");
}

#[test]
fn overlapping_and_repeated_outputs_are_refused() {
    use Opcode as O;
    let shifted = |b: &mut Builder, from: i64| {
        let base = b.base(DType::F64, 10);
        vec![b.view(base, 1, &[9], &[1]), b.view(base, from, &[9], &[1])]
    };
    single(O::Sin, 0, |b| shifted(b, 0)).refused("operand 1: it overlaps output 0");
    single(O::Sin, 0, |b| shifted(b, 1)).accepted();
    single(O::Sin, 0, |b| {
        let base = b.base(DType::F64, 4);
        vec![b.view(base, 0, &[3, 4], &[0, 1]), b.array(DType::F64, &[3, 4])]
    })
    .refused("may hit one element twice");
    single(O::Gather, 0, |b| {
        let (x, index) = (b.array(DType::F64, &[3]), b.array(DType::I64, &[3]));
        vec![x, x, index]
    })
    .refused("operand 1: it is the view of output 0");
}

#[test]
fn discarded_bases_are_gone() {
    let mut b = everything();
    let y = b.batch.instrs[14].operands[0];
    b.batch.blocks.clear();
    b.run(Opcode::Sync, 0, &[y]);
    b.refused("base 1 was discarded before");
}

#[test]
fn wrong_tables_are_refused() {
    let change = |change: &dyn Fn(&mut Batch), text: &str| {
        let mut b = everything();
        change(&mut b.batch);
        b.refused(text);
    };
    change(&|batch| batch.bases[2].dtype = 13, "base 2: there is no element type 13");
    change(&|batch| batch.bases[2].id = 1, "two bases have the identity 1");
    change(&|batch| batch.bases[0].len = i64::MAX, "more than 72057594037927936 bytes");
    change(&|batch| batch.bases[0].len = 19, "it reaches elements 0 to 19 of base 0, which has 19");
    change(&|batch| batch.views[0].rank = 17, "view 0: rank 17");
    change(&|batch| batch.views[0].dims = u32::MAX, "outside the pool");
    change(&|batch| batch.views[0].len = 3, "it claims 3 elements");
    change(&|batch| batch.views[0].base = 99, "base 99 does not exist");
    change(&|batch| batch.views[0].start = -1, "elements -1 to 18");
    change(&|batch| batch.dims[2] = i64::MAX, "overflow");
    change(&|batch| batch.dims[0] = -4, "extent -4 is negative");
    change(&|batch| batch.constants[0].dtype = 200, "no element type 200");
    change(&|batch| batch.strings[0] = 0xff, "not UTF-8");
    change(&|batch| batch.origins[0].file_len = 7, "outside the pool");
    change(&|batch| batch.instrs[0].origin = 2, "origin 2 does not exist");
    change(&|batch| batch.block_instrs[0] = 1, "instruction 1 is in two places");
    change(&|batch| batch.blocks[1].instr_count -= 1, "is in no block");
    change(&|batch| batch.contracted[0] = 50, "base 50 does not exist");
    change(&|batch| batch.renames[0].uncovered_count = 5, "outside the table");
    change(&|batch| batch.renames[0].alias = 0, "cannot be an alias");
    // Errors that only the rules of kernels find.
    let last = |batch: &mut Batch, back: usize| batch.blocks.len() - back;
    change(&|batch| batch.blocks.swap(0, 1), "instructions 0 and 1 are in the wrong order");
    change(&|batch| batch.bases[batch.contracted[0] as usize].flags = 0, "contracted base");
    change(&|batch| batch.contracted[0] = 0, "contracted base 0 has flags");
    change(
        &|batch| {
            let at = last(batch, 2);
            batch.block_instrs.swap(batch.blocks[at].instrs as usize, batch.blocks[at].instrs as usize + 1);
        },
        "are in the wrong order",
    );
    change(&|batch| batch.renames[0].base = 2, "2");
}

/// The next number of a splitmix generator.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    crate::hash::hash_words(&[*state]) as u64
}

#[test]
fn hostile_tables_never_panic() {
    let mut state = 1;
    let legal = everything().batch;
    let mut refused = 0;
    for _ in 0..20_000 {
        let mut batch = legal.clone();
        for _ in 0..1 + next(&mut state) % 3 {
            let (at, bits) = (next(&mut state) as usize, next(&mut state));
            let wild = if bits & 1 == 0 { bits } else { 1 << (bits >> 32 & 63) };
            let pick = |length: usize| at % length;
            let (views, dims, instrs) = (pick(batch.views.len()), pick(batch.dims.len()), pick(batch.instrs.len()));
            match bits >> 8 & 15 {
                0 => batch.bases[pick(8)].len = wild as i64,
                1 => batch.bases[pick(8)].dtype = wild as u8,
                2 => batch.views[views].base = wild as u32,
                3 => batch.views[views].rank = wild as u32,
                4 => batch.views[views].start = wild as i64,
                5 => batch.views[views].dims ^= wild as u32,
                6 | 7 => batch.dims[dims] = wild as i64,
                8 => batch.instrs[instrs].opcode = Opcode(wild as u16),
                9 => batch.instrs[instrs].param ^= wild as u16,
                10 => batch.instrs[instrs].count = wild as u8,
                11 => batch.instrs[instrs].outputs = wild as u8,
                12 => batch.instrs[instrs].operands[at >> 8 & 7] = Operand(wild as u32),
                13 => batch.blocks[pick(2)].instrs = wild as u32,
                14 if wild & 2 == 0 => batch.instrs[instrs].order = wild as u16,
                14 => batch.renames[0].alias_view = wild as u32,
                _ => batch.strings[pick(6)] = wild as u8,
            }
        }
        refused += usize::from(validate(&batch.as_ref()).is_err_and(|error| !error.to_string().is_empty()));
    }
    assert!(refused > 10_000);
}

#[test]
fn attributes_of_methods_are_in_their_table_once_each() {
    let call = |spoil: fn(&mut Batch)| {
        let mut builder = Builder::default();
        let array = builder.array(DType::F64, &[3]);
        let opcode = Opcode(Opcode::FIRST_EXTENSION);
        let (name, name_len) = builder.batch.push_string("sort");
        builder.batch.extensions.push(crate::Extension { opcode, reserved: 0, name, name_len });
        builder.run(opcode, 0, &[array, array]);
        builder.batch.push_attribute("axis", 1);
        builder.batch.push_attribute("stable", 0);
        spoil(&mut builder.batch);
        builder
    };
    call(|_| {}).accepted();
    call(|batch| batch.instrs[0].param = 3).refused("attributes 0 and 3 in all lie outside the table of 2");
    call(|batch| batch.instrs[0].attributes = 1).refused("attributes 1 and 2 in all lie outside the table of 2");
    call(|batch| batch.attributes[1] = batch.attributes[0]).refused("attribute 'axis' is there twice");
    call(|batch| batch.attributes[1].name_len = 0).refused("an attribute has no name");
    call(|batch| batch.attributes[1].name = 1000).refused("attribute 1: its name lies outside the pool");
    let nop = Instr { attributes: 1, ..Instr::new(Opcode::Nop, &[]) };
    let mut builder = call(|_| {});
    builder.batch.push_instr(nop);
    builder.refused("nop has no attributes");
}
