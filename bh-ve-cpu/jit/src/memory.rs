//! Reading and writing memory in the code of a kernel: slots, buffers, lanes and the elements that folds fill.

use crate::complex;
use crate::kernel::{At, Kernel, Rows};
use crate::loops::LINE;
use crate::operations::Operation;
use crate::writer::{Value, lanes, memory, packed, parts, suffix, vector};
use bh_bytecode::{DType, Opcode};
use bh_fuser::lower::SlotMode;
use bh_jit_abi::{Fetch, SlotForm, Stride};
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
    pub(crate) fn place(&self, slot: usize, row: u16) -> (usize, i64, i64) {
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

    /// How many rows are fetched along themselves.
    fn fetched_rows(&self) -> usize {
        let along = |&slot: &usize| self.request.slots[slot].fetch == Fetch::Along;
        self.fetching().into_iter().filter(along).count() * usize::from(self.rows.count)
    }

    /// How far ahead of what is read they are fetched, in bytes.
    fn fetched_ahead(&self) -> usize {
        match self.fetched_rows() {
            1 => FETCHED_ALONE,
            rows => (FETCHED / rows.max(1) / LINE * LINE).clamp(*PREFETCH.start(), *PREFETCH.end()),
        }
    }

    /// The slots for which the rows after those side by side are fetched: what lies behind the end of a row is the row beside
    /// it, which is there already. Few rows the machine foresees, and short loops are better without finding them.
    fn fetching_next(&self) -> Vec<usize> {
        if self.rows.count == 1 || self.fetched_rows() < MANY {
            return Vec::new();
        }
        self.fetching().into_iter().filter(|&slot| self.request.slots[slot].fetch == Fetch::Along).collect()
    }

    /// Finds from which element on the next rows are fetched, and how far these are away.
    pub(crate) fn place_fetched(&mut self) {
        let Rows { name, count } = self.rows;
        for slot in self.fetching_next() {
            let size = self.request.slots[slot].dtype.size();
            let most = self.fetched_ahead() / size;
            let is_long = self.writer.value(format_args!("icmp sgt i64 %count, {most}"));
            let elements = self.writer.value(format_args!("select i1 {is_long}, i64 {most}, i64 %count"));
            self.writer.line(format_args!("%turn{slot}.{name} = sub i64 %count, {elements}"));
            self.writer.line(format_args!("%along{slot}.{name} = mul i64 {elements}, {size}"));
            let group = self.writer.value(format_args!("mul i64 %o{slot}, {count}"));
            let back = self.writer.value(format_args!("mul i64 %turn{slot}.{name}, {size}"));
            self.writer.line(format_args!("%next{slot}.{name} = sub i64 {group}, {back}"));
        }
    }

    /// How far from a row's begin that lies which is fetched while an element is read: further along the row, or along the
    /// row that comes when those beside each other are done.
    fn next_group(&mut self, slot: usize, at: &At) -> Value {
        let (name, size) = (self.rows.name, self.request.slots[slot].dtype.size());
        let turns = self.writer.value(format_args!("icmp sge i64 {}, %turn{slot}.{name}", at.element));
        let further =
            self.writer.value(format_args!("select i1 {turns}, i64 %next{slot}.{name}, i64 %along{slot}.{name}"));
        let here = self.writer.value(format_args!("mul i64 {}, {size}", at.element));
        self.writer.value(format_args!("add i64 {here}, {further}"))
    }

    /// Fetches what the rows, or others, will read later, which the machine does not foresee far enough alone: the rows that
    /// no earlier ones have read.
    pub(crate) fn prefetch(&mut self, at: &At) {
        if at.segment > 0 || at.mask.is_some() || at.width == 1 {
            return;
        }
        let (rows, ahead, after) = (self.fetched_rows(), self.fetched_ahead(), self.fetching_next());
        for base in self.fetching() {
            let near = self.request.slots.iter().filter_map(|slot| slot.near);
            let furthest = near.filter(|near| usize::from(near.slot) == base).map(|near| i64::from(near.rows));
            let furthest = furthest.fold(0, i64::max);
            let size = self.request.slots[base].dtype.size();
            let vector = size * usize::from(at.width);
            if vector < 64 && !(usize::from(at.offset) * size).is_multiple_of(64) {
                continue;
            }
            let fetch = self.request.slots[base].fetch;
            let next = after.contains(&base).then(|| self.next_group(base, at));
            // `next` says how far already.
            let ahead = if next.is_some() { 0 } else { ahead };
            for row in 0..i64::from(self.rows.count) {
                let position = self.position(base, row + furthest);
                let kind = memory(self.request.slots[base].dtype);
                let offset = usize::from(at.offset) * size;
                let address = match next {
                    Some(next) => self.writer.value(format_args!("getelementptr i8, ptr {position}, i64 {next}")),
                    None => self.writer.value(format_args!("getelementptr {kind}, ptr {position}, i64 {}", at.element)),
                };
                // What is far away is for the second-level cache.
                let (distance, address, near) = match fetch {
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
        let width = at.width;
        match form.stride {
            Stride::Zero => self.invariant(slot, width, at.row),
            Stride::Unit => {
                let (base, row, distance) = self.place(slot.into(), at.row);
                let place = (base as u16, row, distance);
                let same = |&&(slot, row, element, _): &&(u16, i64, i64, Value)| (slot, row, element) == place;
                if let Some(&(.., known)) = self.loads.iter().find(same) {
                    return known;
                }
                let address = self.unit_address(usize::from(slot), at.row, &at.element, at.offset.into());
                let loaded = self.load_packed(form.dtype, address, width, at.mask);
                let loaded = self.unpack(form.dtype, loaded, width);
                self.loads.push((base as u16, row, distance, loaded));
                loaded
            }
            Stride::Again | Stride::Cycle => self.load_repeated(slot, at),
            Stride::Two | Stride::Three | Stride::Four if width > 1 => self.load_sparse(slot, at),
            Stride::Two | Stride::Three | Stride::Four | Stride::Other => {
                let first = self.strided_address(slot.into(), at);
                match at.mask {
                    Some(mask) => self.gather(slot.into(), first, mask, width),
                    None => self.load_lanes(slot.into(), first, width),
                }
            }
        }
    }

    /// Reads the lanes of a strided vector that a mask says.
    fn gather(&mut self, slot: usize, first: Value, mask: Value, width: u16) -> Value {
        let dtype = self.request.slots[slot].dtype;
        let part = dtype.real_part();
        let vector = packed(part, width);
        let gathered = (0..parts(dtype)).map(|number| {
            let lanes = self.part_addresses(slot, first, number, width);
            self.writer.intrinsic(
                &format!("llvm.masked.gather.{}.v{width}p0", suffix(part, width)),
                &vector,
                &[
                    (&format!("<{width} x ptr>"), &lanes),
                    ("i32", &format_args!("{}", part.size())),
                    (&format!("<{width} x i1>"), &mask),
                    (&vector, &"zeroinitializer"),
                ],
            )
        });
        match gathered.collect::<Vec<Value>>()[..] {
            [re, im] => complex::join(&mut self.writer, dtype, width, [re, im]),
            [all, ..] => self.unpack(dtype, all, width),
            [] => first,
        }
    }

    /// Reads all lanes of a strided vector, one after the other: faster than the processor's own instruction, on some by
    /// far.
    fn load_lanes(&mut self, slot: usize, first: Value, width: u16) -> Value {
        let dtype = self.request.slots[slot].dtype;
        let (kind, align) = (lane(dtype), dtype.real_part().size());
        let ones: Vec<Value> = (0..width)
            .map(|lane| {
                let address = self.lane_address(slot, first, lane);
                self.writer.value(format_args!("load {kind}, ptr {address}, align {align}"))
            })
            .collect();
        if dtype == DType::C128 {
            let all = complex::gather(&mut self.writer, dtype, ones);
            return self.unpack(dtype, all, width);
        }
        let mut all = "poison".to_owned();
        for (lane, one) in ones.into_iter().enumerate() {
            let with = format_args!("insertelement <{width} x {kind}> {all}, {kind} {one}, i32 {lane}");
            all = self.writer.value(with).to_string();
        }
        let all = self.writer.value(format_args!("freeze <{width} x {kind}> {all}"));
        let all = match dtype {
            DType::C64 => {
                self.writer.value(format_args!("bitcast <{width} x {kind}> {all} to {}", packed(dtype, width)))
            }
            _ => all,
        };
        self.unpack(dtype, all, width)
    }

    /// From memory to registers: truth values are bytes in memory and bits in registers, and parts of complex numbers
    /// alternate in memory.
    pub(crate) fn unpack(&mut self, dtype: DType, loaded: Value, width: u16) -> Value {
        match dtype {
            DType::Bool => self.writer.value(format_args!("icmp ne <{width} x i8> {loaded}, zeroinitializer")),
            DType::C64 | DType::C128 => complex::unpack(&mut self.writer, dtype, width, loaded),
            _ => loaded,
        }
    }

    /// From registers to memory.
    pub(crate) fn pack(&mut self, dtype: DType, value: Value, width: u16) -> Value {
        match dtype {
            DType::Bool => self.writer.value(format_args!("zext <{width} x i1> {value} to <{width} x i8>")),
            DType::C64 | DType::C128 => complex::pack(&mut self.writer, dtype, width, value),
            _ => value,
        }
    }

    /// Reads neighbours in memory, as they are there; with a mask those that count.
    pub(crate) fn load_packed(&mut self, dtype: DType, address: Value, width: u16, mask: Option<Value>) -> Value {
        let (vector, align) = (packed(dtype, width), dtype.real_part().size());
        let Some(mask) = mask else {
            return self.writer.value(format_args!("load {vector}, ptr {address}, align {align}"));
        };
        let (mask, kind) = self.mask_of(dtype, mask, width);
        self.writer.intrinsic(
            &format!("llvm.masked.load.{}.p0", suffix(dtype, width)),
            &vector,
            &[("ptr", &address), ("i32", &format_args!("{align}")), (&kind, &mask), (&vector, &"zeroinitializer")],
        )
    }

    /// Writes neighbours to memory.
    fn store_packed(&mut self, dtype: DType, value: Value, address: Value, width: u16, mask: Option<Value>) {
        let (vector, align) = (packed(dtype, width), dtype.real_part().size());
        let Some(mask) = mask else {
            return self.writer.line(format_args!("store {vector} {value}, ptr {address}, align {align}"));
        };
        let (mask, kind) = self.mask_of(dtype, mask, width);
        self.writer.intrinsic_line(
            &format!("llvm.masked.store.{}.p0", suffix(dtype, width)),
            &[(&vector, &value), ("ptr", &address), ("i32", &format_args!("{align}")), (&kind, &mask)],
        );
    }

    /// The mask of what elements consist of in memory, and its type.
    fn mask_of(&mut self, dtype: DType, mask: Value, width: u16) -> (Value, String) {
        let mask = if dtype.is_complex() { complex::mask_of_parts(&mut self.writer, width, mask) } else { mask };
        (mask, vector(DType::Bool, width * parts(dtype)))
    }

    pub(crate) fn store(&mut self, slot: usize, value: Value, at: &At) {
        let form = self.request.slots[slot];
        if let Some(buffer) = self.plan.slot_buffers[slot] {
            return self.store_buffer(buffer, form.dtype, value, at);
        }
        let (dtype, width) = (form.dtype, at.width);
        if form.stride == Stride::Unit {
            let value = self.pack(dtype, value, width);
            let address = self.unit_address(slot, at.row, &at.element, at.offset.into());
            if at.mask.is_none() && self.in_lines && self.plan.streams[slot] {
                let (vector, align) = (packed(dtype, width), LINE.min(dtype.size() * usize::from(width)));
                let line = format!("store {vector} {value}, ptr {address}, align {align}, !nontemporal !1");
                return self.writer.line(line);
            }
            return self.store_packed(dtype, value, address, width, at.mask);
        }
        let first = self.strided_address(slot, at);
        match at.mask {
            Some(mask) => self.scatter(slot, value, first, mask, width),
            None => self.store_lanes(slot, value, first, width),
        }
    }

    /// Writes the lanes of a strided vector that a mask says.
    fn scatter(&mut self, slot: usize, value: Value, first: Value, mask: Value, width: u16) {
        let dtype = self.request.slots[slot].dtype;
        let part = dtype.real_part();
        let values = if dtype.is_complex() {
            complex::split(&mut self.writer, dtype, width, value).to_vec()
        } else {
            vec![self.pack(dtype, value, width)]
        };
        for (number, value) in (0..).zip(values) {
            let lanes = self.part_addresses(slot, first, number, width);
            self.writer.intrinsic_line(
                &format!("llvm.masked.scatter.{}.v{width}p0", suffix(part, width)),
                &[
                    (&packed(part, width), &value),
                    (&format!("<{width} x ptr>"), &lanes),
                    ("i32", &format_args!("{}", part.size())),
                    (&format!("<{width} x i1>"), &mask),
                ],
            );
        }
    }

    /// Writes all lanes of a strided vector, one after the other.
    fn store_lanes(&mut self, slot: usize, value: Value, first: Value, width: u16) {
        let dtype = self.request.slots[slot].dtype;
        let (kind, align) = (lane(dtype), dtype.real_part().size());
        let value = self.pack(dtype, value, width);
        let whole = packed(dtype, width);
        let value = match dtype {
            DType::C64 => self.writer.value(format_args!("bitcast {whole} {value} to <{width} x {kind}>")),
            _ => value,
        };
        for lane in 0..width {
            let address = self.lane_address(slot, first, lane);
            let one = match dtype {
                DType::C128 => {
                    let order = lanes(2 * lane..2 * lane + 2);
                    self.writer.value(format_args!("shufflevector {whole} {value}, {whole} poison, {order}"))
                }
                _ => self.writer.value(format_args!("extractelement <{width} x {kind}> {value}, i32 {lane}")),
            };
            self.writer.line(format_args!("store {kind} {one}, ptr {address}, align {align}"));
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
        let loaded = self.load_packed(dtype, from, width, None);
        self.unpack(dtype, loaded, width)
    }

    /// Writes a dense vector, `offset` elements from an address.
    pub(crate) fn store_vector(&mut self, dtype: DType, address: &str, offset: u16, width: u16, value: Value) {
        let kind = memory(dtype);
        let value = self.pack(dtype, value, width);
        let to = self.writer.value(format_args!("getelementptr {kind}, ptr {address}, i64 {offset}"));
        self.store_packed(dtype, value, to, width, None);
    }

    /// Folds vectors, one after the other, into the same lanes or elements.
    pub(crate) fn fold(&mut self, fold: usize, operation: Operation, values: &[Value], at: &At) -> Result<(), String> {
        let (width, dtype) = (at.width, operation.input);
        let unknown = || format!("folding with {} of {dtype}", operation.opcode);
        if let Some(vector) = at.register {
            let row = usize::from(at.row);
            for &value in values {
                let sum = self.sums[row][fold][vector];
                let mut after = operation.write(&mut self.writer, [sum, value, value]).ok_or_else(unknown)?;
                if let Some(mask) = at.mask {
                    let chosen = Operation { opcode: Opcode::Where, ..operation };
                    after = chosen.write(&mut self.writer, [mask, after, sum]).ok_or_else(unknown)?;
                }
                self.sums[row][fold][vector] = after;
            }
            return Ok(());
        }
        let (kind, accumulator) = (memory(dtype), self.accumulator(fold, at.row));
        let address = if self.request.folds.has_lanes() {
            let index = self.writer.value(format_args!("add i64 {}, {}", at.index, at.offset));
            let lane = self.writer.value(format_args!("and i64 {index}, 31"));
            self.writer.value(format_args!("getelementptr {kind}, ptr {accumulator}, i64 {lane}"))
        } else {
            let element = self.writer.value(format_args!("add i64 {}, {}", at.element, at.offset));
            self.writer.value(format_args!("getelementptr {kind}, ptr {accumulator}, i64 {element}"))
        };
        let masked = at.mask.filter(|_| !self.request.folds.has_lanes());
        let loaded = self.load_packed(dtype, address, width, masked);
        let before = self.unpack(dtype, loaded, width);
        let mut after = before;
        for &value in values {
            after = operation.write(&mut self.writer, [after, value, value]).ok_or_else(unknown)?;
        }
        if let (Some(mask), None) = (at.mask, masked) {
            let chosen = Operation { opcode: Opcode::Where, ..operation };
            after = chosen.write(&mut self.writer, [mask, after, before]).ok_or_else(unknown)?;
        }
        let after = self.pack(dtype, after, width);
        self.store_packed(dtype, after, address, width, masked);
        Ok(())
    }
}

/// The type that a lane of a strided vector is read and written as.
fn lane(dtype: DType) -> String {
    match dtype {
        DType::C64 => "double".to_owned(),
        _ => complex::single(dtype),
    }
}
