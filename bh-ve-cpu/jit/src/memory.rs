//! Reading and writing memory in the code of a kernel: slots, buffers, lanes and the elements that folds fill.

use crate::kernel::{At, Kernel};
use crate::operations::Operation;
use crate::writer::{Value, element, memory};
use bh_bytecode::DType;
use bh_fuser::lower::SlotMode;
use bh_jit_abi::{Fetch, Folds, SlotForm, Stride};
use std::fmt::Display;

/// How far ahead memory is fetched, in bytes of a row: at least, and at most. What is on its way must leave the nearest cache
/// room for what is in use: D3Q19, which reads 19 rows, lost 5% with all of them a kilobyte ahead.
const PREFETCH: std::ops::RangeInclusive<usize> = 256..=1024;
/// Bytes on their way, for all rows.
const FETCHED: usize = 8 << 10;
/// So many rows are fetched into the second-level cache: D3Q19 takes 5% less time than with the nearest one, the 27-point
/// stencil 7%; few rows take more.
const MANY: usize = 8;
/// How far ahead memory is fetched where it is one row only: as far as it comes in the time between two calls.
const FETCHED_ALONE: usize = 4 << 10;

impl Kernel<'_> {
    /// The numbers of an index view.
    pub(crate) fn number(&mut self, slot: u16, at: &At) -> Value {
        let (width, position) = (at.width, self.position(slot.into(), at.row.into()));
        let element = self.writer.value(format_args!("add i64 {}, {}", at.element, at.offset));
        let distance = self.writer.value(format_args!("mul i64 {element}, %s{slot}"));
        let first = self.writer.value(format_args!("add i64 {position}, {distance}"));
        let first = self.writer.broadcast("i64", width, first);
        self.writer.value(format_args!("add <{width} x i64> {first}, %l{slot}.w{width}"))
    }

    /// Where a dense slot's elements are in a row: the slot whose position leads there, the row from that, and the distance
    /// in elements.
    fn place(&self, slot: usize, row: u16) -> (usize, i64, i64) {
        self.request.slots[slot].near.map_or((slot, row.into(), 0), |near| {
            (near.slot.into(), i64::from(row) + i64::from(near.rows), near.distance.into())
        })
    }

    /// The address of element `element` (and some) of a dense slot in a row.
    pub(crate) fn unit_address(&mut self, slot: usize, row: u16, element: &str, offset: i64) -> Value {
        let (base, row, distance) = self.place(slot, row);
        let (kind, position) = (memory(self.request.slots[slot].dtype), self.position(base, row));
        let address = self.writer.value(format_args!("getelementptr {kind}, ptr {position}, i64 {element}"));
        match offset + distance {
            0 => address,
            distance => self.writer.value(format_args!("getelementptr {kind}, ptr {address}, i64 {distance}")),
        }
    }

    /// The address of a strided vector's first lane.
    fn strided_address(&mut self, slot: usize, at: &At) -> Value {
        let position = self.position(slot, at.row.into());
        let element = self.writer.value(format_args!("add i64 {}, {}", at.element, at.offset));
        let distance = self.writer.value(format_args!("mul i64 {element}, %s{slot}"));
        self.writer.value(format_args!("getelementptr i8, ptr {position}, i64 {distance}"))
    }

    /// The addresses of its lanes, as a vector.
    fn lane_addresses(&mut self, slot: usize, first: Value, width: u16) -> Value {
        self.writer.value(format_args!("getelementptr i8, ptr {first}, <{width} x i64> %l{slot}.w{width}"))
    }

    /// The address of one of them.
    fn lane_address(&mut self, slot: usize, first: Value, lane: u16) -> Value {
        let distance = self.writer.value(format_args!("mul i64 %s{slot}, {lane}"));
        self.writer.value(format_args!("getelementptr i8, ptr {first}, i64 {distance}"))
    }

    /// The slots for which something is fetched.
    pub(crate) fn fetching(&self) -> Vec<usize> {
        let fetches = |slot: &SlotForm| {
            slot.mode == SlotMode::Read
                && slot.stride == Stride::Unit
                && slot.near.is_none()
                && slot.fetch != Fetch::Nothing
        };
        let slots = self.request.slots.iter().enumerate();
        slots.filter(|(_, slot)| fetches(slot)).map(|(at, _)| at).collect()
    }

    /// Fetches what the rows, or others, will read later, which the machine does not foresee far enough alone: the rows that
    /// no earlier ones have read.
    pub(crate) fn prefetch(&mut self, at: &At) {
        if at.segment > 0 || at.mask.is_some() || at.width == 1 {
            return;
        }
        let bases = self.fetching();
        let along = bases.iter().filter(|&&slot| self.request.slots[slot].fetch == Fetch::Along);
        let rows = along.count() * usize::from(self.rows.count);
        let ahead = match rows {
            1 => FETCHED_ALONE,
            _ => (FETCHED / rows.max(1) / 64 * 64).clamp(*PREFETCH.start(), *PREFETCH.end()),
        };
        for base in bases {
            let near = self.request.slots.iter().filter_map(|slot| slot.near);
            let furthest = near.filter(|near| usize::from(near.slot) == base).map(|near| i64::from(near.rows));
            let furthest = furthest.fold(0, i64::max);
            let size = self.request.slots[base].dtype.size();
            let vector = size * usize::from(at.width);
            if vector < 64 && !(usize::from(at.offset) * size).is_multiple_of(64) {
                continue;
            }
            for row in 0..i64::from(self.rows.count) {
                let position = self.position(base, row + furthest);
                let kind = memory(self.request.slots[base].dtype);
                let address =
                    self.writer.value(format_args!("getelementptr {kind}, ptr {position}, i64 {}", at.element));
                let offset = usize::from(at.offset) * size;
                // What is far away is for the second-level cache.
                let (distance, address, near) = match self.request.slots[base].fetch {
                    Fetch::Beyond => {
                        (offset, self.writer.value(format_args!("getelementptr i8, ptr {address}, i64 %h{base}")), 2)
                    }
                    // Many rows on their way leave the nearest cache to what is in use.
                    _ => (ahead + offset, address, if rows < MANY { 3 } else { 2 }),
                };
                for line in (distance..distance + vector).step_by(64) {
                    let address = self.writer.value(format_args!("getelementptr i8, ptr {address}, i64 {line}"));
                    let arguments: [(&str, &dyn Display); 4] =
                        [("ptr", &address), ("i32", &0), ("i32", &near), ("i32", &1)];
                    self.writer.intrinsic_line("llvm.prefetch.p0", &arguments);
                }
            }
        }
    }

    pub(crate) fn buffer_address(&mut self, buffer: u16, dtype: DType, at: &At) -> Value {
        let kind = memory(dtype);
        let address = self.writer.value(format_args!("getelementptr {kind}, ptr %buffer{buffer}, i64 {}", at.index));
        self.writer.value(format_args!("getelementptr {kind}, ptr {address}, i64 {}", at.offset))
    }

    pub(crate) fn load(&mut self, slot: u16, at: &At) -> Value {
        let form = self.request.slots[usize::from(slot)];
        let (width, size, kind) = (at.width, form.dtype.size(), memory(form.dtype));
        let vector = format!("<{width} x {kind}>");
        let suffix = format!("v{width}{}", short(form.dtype));
        let loaded = match form.stride {
            Stride::Zero => return self.invariant(slot, width, at.row),
            Stride::Unit => {
                let (base, row, distance) = self.place(slot.into(), at.row);
                let place = (base as u16, row, distance);
                let same = |&&(slot, row, element, _): &&(u16, i64, i64, Value)| (slot, row, element) == place;
                if let Some(&(.., known)) = self.loads.iter().find(same) {
                    return known;
                }
                let address = self.unit_address(usize::from(slot), at.row, &at.element, at.offset.into());
                let loaded = match at.mask {
                    None => self.writer.value(format_args!("load {vector}, ptr {address}, align {size}")),
                    Some(mask) => self.writer.intrinsic(
                        &format!("llvm.masked.load.{suffix}.p0"),
                        &vector,
                        &[
                            ("ptr", &address),
                            ("i32", &format_args!("{size}")),
                            (&format!("<{width} x i1>"), &mask),
                            (&vector, &"zeroinitializer"),
                        ],
                    ),
                };
                let loaded = self.truth(form.dtype, loaded, width);
                self.loads.push((base as u16, row, distance, loaded));
                return loaded;
            }
            Stride::Other => {
                let first = self.strided_address(slot.into(), at);
                if let Some(mask) = at.mask {
                    let lanes = self.lane_addresses(slot.into(), first, width);
                    self.writer.intrinsic(
                        &format!("llvm.masked.gather.{suffix}.v{width}p0"),
                        &vector,
                        &[
                            (&format!("<{width} x ptr>"), &lanes),
                            ("i32", &format_args!("{size}")),
                            (&format!("<{width} x i1>"), &mask),
                            (&vector, &"zeroinitializer"),
                        ],
                    )
                } else {
                    // Faster than the processor's own instruction, on some by far.
                    let mut all = "poison".to_owned();
                    for lane in 0..width {
                        let address = self.lane_address(slot.into(), first, lane);
                        let one = self.writer.value(format_args!("load {kind}, ptr {address}, align {size}"));
                        let with = format_args!("insertelement {vector} {all}, {kind} {one}, i32 {lane}");
                        all = self.writer.value(with).to_string();
                    }
                    self.writer.value(format_args!("freeze {vector} {all}"))
                }
            }
        };
        self.truth(form.dtype, loaded, width)
    }

    /// Truth values are bytes in memory and bits in registers.
    pub(crate) fn truth(&mut self, dtype: DType, loaded: Value, width: u16) -> Value {
        if dtype != DType::Bool {
            return loaded;
        }
        self.writer.value(format_args!("icmp ne <{width} x i8> {loaded}, zeroinitializer"))
    }

    pub(crate) fn bytes(&mut self, dtype: DType, value: Value, width: u16) -> Value {
        if dtype != DType::Bool {
            return value;
        }
        self.writer.value(format_args!("zext <{width} x i1> {value} to <{width} x i8>"))
    }

    pub(crate) fn store(&mut self, slot: usize, value: Value, at: &At) {
        let form = self.request.slots[slot];
        if let Some(buffer) = self.plan.slot_buffers[slot] {
            return self.store_buffer(buffer, form.dtype, value, at);
        }
        let (width, size) = (at.width, form.dtype.size());
        let vector = format!("<{width} x {}>", memory(form.dtype));
        let suffix = format!("v{width}{}", short(form.dtype));
        let value = self.bytes(form.dtype, value, width);
        if form.stride == Stride::Unit {
            let address = self.unit_address(slot, at.row, &at.element, at.offset.into());
            match at.mask {
                None => self.writer.line(format_args!("store {vector} {value}, ptr {address}, align {size}")),
                Some(mask) => self.writer.intrinsic_line(
                    &format!("llvm.masked.store.{suffix}.p0"),
                    &[
                        (&vector, &value),
                        ("ptr", &address),
                        ("i32", &format_args!("{size}")),
                        (&format!("<{width} x i1>"), &mask),
                    ],
                ),
            }
            return;
        }
        let first = self.strided_address(slot, at);
        if let Some(mask) = at.mask {
            let lanes = self.lane_addresses(slot, first, width);
            self.writer.intrinsic_line(
                &format!("llvm.masked.scatter.{suffix}.v{width}p0"),
                &[
                    (&vector, &value),
                    (&format!("<{width} x ptr>"), &lanes),
                    ("i32", &format_args!("{size}")),
                    (&format!("<{width} x i1>"), &mask),
                ],
            );
        } else {
            for lane in 0..width {
                let address = self.lane_address(slot, first, lane);
                let one = self.writer.value(format_args!("extractelement {vector} {value}, i32 {lane}"));
                self.writer.line(format_args!("store {} {one}, ptr {address}, align {size}", memory(form.dtype)));
            }
        }
    }

    pub(crate) fn store_buffer(&mut self, buffer: u16, dtype: DType, value: Value, at: &At) {
        let address = self.buffer_address(buffer, dtype, at).to_string();
        self.store_vector(dtype, &address, 0, at.width, value);
    }

    /// Reads a dense vector, `offset` elements from an address.
    pub(crate) fn load_vector(&mut self, dtype: DType, address: &str, offset: u16, width: u16) -> Value {
        let kind = memory(dtype);
        let from = self.writer.value(format_args!("getelementptr {kind}, ptr {address}, i64 {offset}"));
        let loaded = self.writer.value(format_args!("load <{width} x {kind}>, ptr {from}, align {}", dtype.size()));
        self.truth(dtype, loaded, width)
    }

    /// Writes a dense vector, `offset` elements from an address.
    pub(crate) fn store_vector(&mut self, dtype: DType, address: &str, offset: u16, width: u16, value: Value) {
        let kind = memory(dtype);
        let value = self.bytes(dtype, value, width);
        let to = self.writer.value(format_args!("getelementptr {kind}, ptr {address}, i64 {offset}"));
        self.writer.line(format_args!("store <{width} x {kind}> {value}, ptr {to}, align {}", dtype.size()));
    }

    /// Folds vectors, one after the other, into the same lanes or elements.
    pub(crate) fn fold(&mut self, fold: usize, operation: Operation, values: &[Value], at: &At) -> Result<(), String> {
        let (width, dtype) = (at.width, operation.input);
        let unknown = || format!("folding with {} of {dtype}", operation.opcode);
        if let Some(vector) = at.register {
            let row = usize::from(at.row);
            for &value in values {
                let sum = self.sums[row][fold][vector];
                self.sums[row][fold][vector] =
                    operation.write(&mut self.writer, [sum, value, value]).ok_or_else(unknown)?;
            }
            return Ok(());
        }
        let (kind, accumulator) = (memory(dtype), self.accumulator(fold, at.row));
        let address = if self.request.folds == Folds::Lanes {
            let index = self.writer.value(format_args!("add i64 {}, {}", at.index, at.offset));
            let lane = self.writer.value(format_args!("and i64 {index}, 31"));
            self.writer.value(format_args!("getelementptr {kind}, ptr {accumulator}, i64 {lane}"))
        } else {
            let element = self.writer.value(format_args!("add i64 {}, {}", at.element, at.offset));
            self.writer.value(format_args!("getelementptr {kind}, ptr {accumulator}, i64 {element}"))
        };
        let (vector, size) = (format!("<{width} x {kind}>"), dtype.size());
        let masked = at.mask.filter(|_| self.request.folds != Folds::Lanes);
        let loaded = match masked {
            None => self.writer.value(format_args!("load {vector}, ptr {address}, align {size}")),
            Some(mask) => self.writer.intrinsic(
                &format!("llvm.masked.load.v{width}{}.p0", short(dtype)),
                &vector,
                &[
                    ("ptr", &address),
                    ("i32", &format_args!("{size}")),
                    (&format!("<{width} x i1>"), &mask),
                    (&vector, &"zeroinitializer"),
                ],
            ),
        };
        let before = self.truth(dtype, loaded, width);
        let mut after = before;
        for &value in values {
            after = operation.write(&mut self.writer, [after, value, value]).ok_or_else(unknown)?;
        }
        if let (Some(mask), None) = (at.mask, masked) {
            let kind = format!("<{width} x {}>", element(dtype));
            after = self.writer.value(format_args!("select <{width} x i1> {mask}, {kind} {after}, {kind} {before}"));
        }
        let after = self.bytes(dtype, after, width);
        match masked {
            None => self.writer.line(format_args!("store {vector} {after}, ptr {address}, align {size}")),
            Some(mask) => self.writer.intrinsic_line(
                &format!("llvm.masked.store.v{width}{}.p0", short(dtype)),
                &[
                    (&vector, &after),
                    ("ptr", &address),
                    ("i32", &format_args!("{size}")),
                    (&format!("<{width} x i1>"), &mask),
                ],
            ),
        }
        Ok(())
    }
}

/// The name of a type within those of intrinsic functions.
fn short(dtype: DType) -> &'static str {
    match memory(dtype) {
        "float" => "f32",
        "double" => "f64",
        other => other,
    }
}
