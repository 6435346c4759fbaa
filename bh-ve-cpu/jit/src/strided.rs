//! Elements that do not follow each other in memory: where they are, and reading every second, third or fourth one in whole
//! vectors.

use crate::kernel::{At, Kernel};
use crate::writer::{Value, lanes, memory, packed};
use bh_bytecode::DType;
use bh_fuser::lower::SlotMode;
use bh_jit_abi::{Level, SlotForm, Stride};

impl Kernel<'_> {
    /// The distance of a strided slot's elements in bytes, if that is a part of the code.
    pub(crate) fn pitch(&self, slot: usize) -> Option<usize> {
        let form = self.request.slots[slot];
        Some(usize::from(form.stride.step()?) * form.dtype.size())
    }

    /// The address of a strided vector's first lane.
    pub(crate) fn strided_address(&mut self, slot: usize, at: &At) -> Value {
        let (base, row, between) = self.place(slot, at.row);
        let position = self.position(base, row);
        let element = self.writer.value(format_args!("add i64 {}, {}", at.element, at.offset));
        let distance = match self.pitch(slot) {
            Some(pitch) => self.writer.value(format_args!("mul i64 {element}, {pitch}")),
            None => self.writer.value(format_args!("mul i64 {element}, %s{slot}")),
        };
        let address = self.writer.value(format_args!("getelementptr i8, ptr {position}, i64 {distance}"));
        let kind = memory(self.request.slots[slot].dtype);
        match between {
            0 => address,
            _ => self.writer.value(format_args!("getelementptr {kind}, ptr {address}, i64 {between}")),
        }
    }

    /// The addresses of its lanes, as a vector.
    fn lane_addresses(&mut self, slot: usize, first: Value, width: u16) -> Value {
        let distances = match self.pitch(slot) {
            Some(pitch) => {
                let lanes: Vec<String> = (0..usize::from(width)).map(|lane| format!("i64 {}", lane * pitch)).collect();
                format!("<{}>", lanes.join(", "))
            }
            None => format!("%l{slot}.w{width}"),
        };
        self.writer.value(format_args!("getelementptr i8, ptr {first}, <{width} x i64> {distances}"))
    }

    /// The addresses of the real or of the imaginary parts of its lanes.
    pub(crate) fn part_addresses(&mut self, slot: usize, first: Value, number: u16, width: u16) -> Value {
        let distance = self.request.slots[slot].dtype.real_part().size() * usize::from(number);
        let first = match distance {
            0 => first,
            _ => self.writer.value(format_args!("getelementptr i8, ptr {first}, i64 {distance}")),
        };
        self.lane_addresses(slot, first, width)
    }

    /// The address of one of them.
    pub(crate) fn lane_address(&mut self, slot: usize, first: Value, lane: u16) -> Value {
        if let Some(pitch) = self.pitch(slot) {
            let distance = pitch * usize::from(lane);
            return self.writer.value(format_args!("getelementptr i8, ptr {first}, i64 {distance}"));
        }
        let distance = self.writer.value(format_args!("mul i64 %s{slot}, {lane}"));
        self.writer.value(format_args!("getelementptr i8, ptr {first}, i64 {distance}"))
    }

    /// Reads a sparse vector: vectors of what lies in memory one after the other, and the lanes of these that it has. If all
    /// lanes count, at least one more element must follow in the row, so that what lies between it and the last lane is there.
    pub(crate) fn load_sparse(&mut self, slot: u16, at: &At) -> Value {
        let form = self.request.slots[usize::from(slot)];
        let (dtype, step) = (form.dtype, form.stride.step().unwrap_or(1));
        let (base, row, between) = self.place(slot.into(), at.row);
        let bytes = if self.request.level == Level::Avx512 { 64 } else { 32 };
        let width = at.width.min(bytes / dtype.size() as u16);
        let first = self.strided_address(base, at);
        let parts = (0..at.width * step).step_by((width * step).into()).map(|part| {
            let begins = (part..part + width * step).step_by(width.into());
            let windows: Vec<Value> =
                begins.map(|begin| self.window((base, row, begin), (dtype, step), first, (width, at))).collect();
            self.choose(&windows, width, (between as u16, step), dtype)
        });
        let parts: Vec<Value> = parts.collect();
        let all = self.writer.join(memory(dtype), width, &parts);
        self.unpack(dtype, all, at.width)
    }

    /// Reads a vector of which each element, or several of them, come again and again. Vectors begin at multiples of their
    /// width, which is a power of two as well.
    pub(crate) fn load_repeated(&mut self, slot: u16, at: &At) -> Value {
        let SlotForm { dtype, stride, .. } = self.request.slots[usize::from(slot)];
        let (width, repeat, kind) = (at.width, u16::from(self.request.repeat), memory(dtype));
        let (position, is_cycle) = (self.position(slot.into(), at.row.into()), stride == Stride::Cycle);
        let element = self.writer.value(format_args!("add i64 {}, {}", at.element, at.offset));
        let element = match is_cycle {
            true => self.writer.value(format_args!("and i64 {element}, {}", repeat - 1)),
            false => self.writer.value(format_args!("lshr i64 {element}, {}", repeat.trailing_zeros())),
        };
        let address = self.writer.value(format_args!("getelementptr {kind}, ptr {position}, i64 {element}"));
        let count = if is_cycle { repeat.min(width) } else { (width / repeat).max(1) };
        // All of a cycle are there, and of what is repeated those that lanes that count are made of.
        let mask = at.mask.filter(|_| !is_cycle && count > 1).map(|mask| {
            let (order, kind) = (lanes((0..count).map(|lane| lane * repeat)), format!("<{width} x i1>"));
            self.writer.value(format_args!("shufflevector {kind} {mask}, {kind} poison, {order}"))
        });
        let loaded = self.load_packed(dtype, address, count, mask);
        let (order, kind) = (
            lanes((0..width).map(|lane| if is_cycle { lane % count } else { lane * count / width })),
            packed(dtype, count),
        );
        let all = self.writer.value(format_args!("shufflevector {kind} {loaded}, {kind} poison, {order}"));
        self.unpack(dtype, all, width)
    }

    /// Reads a vector of neighbours that begins at an element of memory, once for all that choose from it.
    fn window(
        &mut self,
        (base, row, begin): (usize, i64, u16),
        (dtype, step): (DType, u16),
        first: Value,
        (width, at): (u16, &At),
    ) -> Value {
        let place = (base as u16, row, i64::from(begin));
        let same = |&&(slot, row, element, _): &&(u16, i64, i64, Value)| (slot, row, element) == place;
        if let Some(&(.., known)) = self.loads.iter().find(same) {
            return known;
        }
        let mask = at.mask.map(|mask| {
            // What lies before the last lane that counts, of the slots that begin here: the lane after each element.
            let slots = self.request.slots.iter().filter(|slot| slot.mode == SlotMode::Read);
            let near = slots.filter_map(|slot| slot.near).filter(|near| usize::from(near.slot) == base);
            let furthest = near.map(|near| near.distance).max().unwrap_or(0) as u16;
            let lane = |element: u16| element.saturating_sub(furthest).div_ceil(step).min(at.width);
            let (order, kind) = (lanes((begin..begin + width).map(lane)), format!("<{} x i1>", at.width));
            self.writer.value(format_args!("shufflevector {kind} {mask}, {kind} zeroinitializer, {order}"))
        });
        let address = self.writer.value(format_args!("getelementptr {}, ptr {first}, i64 {begin}", memory(dtype)));
        let loaded = self.load_packed(dtype, address, width, mask);
        self.loads.push((place.0, place.1, place.2, loaded));
        loaded
    }

    /// The elements of some windows of `width` that lie `step` apart from element `begin` on.
    fn choose(&mut self, windows: &[Value], width: u16, (begin, step): (u16, u16), dtype: DType) -> Value {
        let kind = packed(dtype, width);
        let mut chosen = windows[0];
        for (window, &value) in (1..).zip(&windows[1..]) {
            let order = (0..width).map(|lane| {
                let element = begin + lane * step;
                match element / width {
                    of if of == window => format!("i32 {}", width + element % width),
                    0 if window == 1 => format!("i32 {element}"),
                    of if of < window => format!("i32 {lane}"),
                    _ => "i32 poison".to_owned(),
                }
            });
            let order = format!("<{width} x i32> <{}>", order.collect::<Vec<String>>().join(", "));
            chosen = self.writer.value(format_args!("shufflevector {kind} {chosen}, {kind} {value}, {order}"));
        }
        chosen
    }
}

#[cfg(test)]
mod tests {
    use bh_fuser::lower::{Arg, SlotMode, Step};
    use bh_jit_abi::{Level, Near, Stride};

    #[test]
    fn what_alternates_in_memory_is_read_once() {
        let modes = [SlotMode::Read, SlotMode::Read, SlotMode::Write];
        let steps = vec![
            Step::Load { slot: 0 },
            Step::Load { slot: 1 },
            Step::Store { slot: 2, arg: Arg::Value(0) },
            Step::Store { slot: 2, arg: Arg::Value(1) },
        ];
        let loads = |near| {
            let mut request = crate::request(Level::Avx512, &modes, steps.clone());
            for slot in &mut request.slots[..2] {
                slot.stride = Stride::Two;
            }
            request.slots[1].near = near;
            crate::text(&request).unwrap().matches(" = load <8 x double>").count()
        };
        assert_eq!(2 * loads(Some(Near { slot: 0, rows: 0, distance: 1 })), loads(None));
    }
}
