//! Elements of tables at subscripts, which differ from lane to lane. Those that are not there are noted, and all loops end.

use crate::builder::{Builder, Element, Kind, Mostly, Value, parts};
use crate::complex::broadcast;
use crate::memory::{load_packed, unpack};
use bh_bytecode::DType;
use bh_jit_abi::{FAILURE_AT, FAILURE_LANES, Failure};
use bh_scalar::{Load, Program};
use inkwell::IntPredicate as Int;
use std::mem::offset_of;

/// The tables of a program.
pub(super) struct Tables<'c> {
    all: Vec<Table<'c>>,
    /// Where a failure is noted.
    failure: Value<'c>,
}

struct Table<'c> {
    dtype: DType,
    data: Value<'c>,
    /// Of each dimension, in all lanes: its extent and its stride in bytes.
    dimensions: Vec<[Value<'c>; 2]>,
}

impl<'c> Table<'c> {
    /// Reads elements at distances in the lanes of a mask. In most loops they are neighbours or one element for all, which takes
    /// a fraction of the time.
    fn read(&self, b: &Builder<'c>, distances: Value<'c>, mask: Value<'c>) -> Value<'c> {
        let (dtype, width) = (self.dtype, mask.lanes());
        let first = b.extract(distances, b.constant(Kind::I32, 0));
        let apart = b.sub(distances, b.broadcast(first, width));
        let steps = b.numbers(Element::I64, (0..i64::from(width)).map(|lane| lane * dtype.size() as i64));
        let start = b.byte(self.data, first);
        let [neighbours, others, join] = b.blocks(["neighbours", "others", "read"]);
        b.branch(b.any(b.compare(Int::NE, apart, steps)), (others, neighbours));
        b.begin(neighbours);
        let together = unpack(b, dtype, load_packed(b, dtype, start, width, Some(mask)));
        b.jump(join);
        b.begin(others);
        let spread = self.read_others(b, (distances, apart, start), mask);
        let end = b.current();
        b.jump(join);
        b.begin(join);
        b.either((together, neighbours), (spread, end))
    }

    /// Reads one element for all lanes, or elements that lie anywhere.
    fn read_others(
        &self,
        b: &Builder<'c>,
        (distances, apart, start): (Value<'c>, Value<'c>, Value<'c>),
        mask: Value<'c>,
    ) -> Value<'c> {
        let (dtype, width) = (self.dtype, mask.lanes());
        let [same, one, anywhere, join] = b.blocks(["same", "one", "anywhere", "found"]);
        b.branch(b.any(b.compare(Int::NE, apart, b.zero(apart.kind))), (anywhere, same));
        b.begin(same);
        // Where no lane counts, there may be no such element.
        b.branch(b.any(mask), (one, anywhere));
        b.begin(one);
        let element = broadcast(b, dtype, width, b.load(Kind::single(dtype), start, 1));
        // Complex numbers are in the order of registers by that.
        let element = if dtype.is_complex() { element } else { unpack(b, dtype, element) };
        b.jump(join);
        b.begin(anywhere);
        let part = dtype.real_part();
        let gathered = (0..parts(dtype)).map(|number| {
            let first = b.byte(self.data, b.index(i64::from(number) * part.size() as i64));
            b.gather(Kind::memory(part, width), b.bytes(first, distances), 1, mask)
        });
        let gathered = match gathered.collect::<Vec<Value>>()[..] {
            [re, im] => b.concatenate(re, im),
            [all, ..] => unpack(b, dtype, all),
            [] => element,
        };
        b.jump(join);
        b.begin(join);
        b.either((element, one), (gathered, anywhere))
    }
}

impl<'c> Tables<'c> {
    /// Reads where tables are and their extents and strides.
    pub(super) fn new(
        b: &Builder<'c>,
        program: &Program,
        width: u16,
        (slots, numbers, scratch): (Value<'c>, Value<'c>, Value<'c>),
    ) -> Tables<'c> {
        let mut place = 0;
        let number = |at: usize| {
            let address = b.byte(numbers, b.index(8 * at as i64));
            b.broadcast(b.load(Kind::I64, address, 8), width)
        };
        let first = program.inputs + program.outputs;
        let all = program.tables.iter().enumerate().map(|(at, table)| {
            let data = b.load(Kind::POINTER, b.byte(slots, b.index(8 * (first + at) as i64)), 8);
            let dimensions = (place..place + table.rank).map(|at| [number(at), number(at + table.rank)]).collect();
            place += 2 * table.rank;
            Table { dtype: table.dtype, data, dimensions }
        });
        Tables { all: all.collect(), failure: b.byte(scratch, b.index(FAILURE_AT as i64)) }
    }

    /// Reads an element in each lane of a mask. `turns`: where the turns are that are left to loops.
    pub(super) fn load(
        &self,
        b: &Builder<'c>,
        load: &Load,
        subscripts: &[Value<'c>],
        (active, turns): (Value<'c>, Value<'c>),
    ) -> Value<'c> {
        let (table, width) = (&self.all[usize::from(load.table)], active.lanes());
        let zero = b.zero(Kind::vector(Element::I64, width));
        let (mut distances, mut fits, mut inside) = (zero, active, Vec::new());
        for (&subscript, &[extent, stride]) in subscripts.iter().zip(&table.dimensions) {
            let from_end = b.compare(Int::SLT, subscript, zero);
            let place = b.select(from_end, b.add(subscript, extent), subscript);
            let is_inside = b.compare(Int::ULT, place, extent);
            distances = b.add(distances, b.mul(place, stride));
            fits = b.and(fits, is_inside);
            inside.push(is_inside);
        }
        self.check(b, load, (subscripts, &inside), (active, fits, turns));
        table.read(b, distances, fits)
    }

    /// Notes the first failure, and leaves no turns to loops.
    fn check(
        &self,
        b: &Builder<'c>,
        load: &Load,
        (subscripts, inside): (&[Value<'c>], &[Value<'c>]),
        (active, fits, turns): (Value<'c>, Value<'c>, Value<'c>),
    ) {
        let wrong = b.and(active, b.not(fits));
        let [outside, noted, join] = b.blocks(["outside", "noted", "inside"]);
        b.branch_mostly(Mostly::Passed, b.any(wrong), (outside, join));
        b.begin(outside);
        b.store(b.index(-1), turns, 8);
        let before = b.load(Kind::I64, self.failure, 8);
        b.branch(b.compare(Int::EQ, before, b.index(0)), (noted, join));
        b.begin(noted);
        let kind = Kind::vector(Element::I64, active.lanes());
        let (mut dimensions, mut values) = (b.zero(kind), subscripts[0]);
        for (at, (&subscript, &is_inside)) in subscripts.iter().zip(inside).enumerate().rev() {
            let here = b.splat(kind, at as i64);
            dimensions = b.select(is_inside, dimensions, here);
            values = b.select(is_inside, values, subscript);
        }
        let lanes = b.extend(wrong, Element::I64);
        for (place, value) in [
            (offset_of!(Failure, lanes), lanes),
            (offset_of!(Failure, subscripts), values),
            (offset_of!(Failure, dimensions), dimensions),
        ] {
            debug_assert!(usize::from(value.lanes()) <= FAILURE_LANES);
            b.store(value, b.byte(self.failure, b.index(place as i64)), 8);
        }
        b.store(b.index(i64::from(load.table) + 1), self.failure, 8);
        b.jump(join);
        b.begin(join);
    }
}
