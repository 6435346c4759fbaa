//! One operation of a block.

use super::Frame;
use crate::program::{Op, Place, RowStride, SUM_TERMS};
use std::mem::MaybeUninit;

impl Frame<'_> {
    #[inline]
    pub(super) fn at(&self, place: Place) -> *mut u8 {
        self.table[place as usize]
    }

    /// # Safety
    /// All places must be valid for `count` elements in `steps` steps.
    #[inline]
    pub(super) unsafe fn op(&self, op: &Op, steps: usize, count: usize) {
        // SAFETY: promised by the caller.
        unsafe {
            match *op {
                Op::Prim { run, dst, args } => {
                    run(count, self.at(dst), self.at(args[0]), self.at(args[1]), self.at(args[2]));
                }
                Op::Sum { run, dst, first, count: terms, single } => {
                    let mut pointers = [const { MaybeUninit::uninit() }; SUM_TERMS];
                    let list = &self.program.terms[first as usize..][..terms as usize];
                    for (pointer, &term) in pointers.iter_mut().zip(list) {
                        pointer.write(self.at(term).cast_const());
                    }
                    let single = single.map_or(std::ptr::null(), |place| self.at(place).cast_const());
                    run(count, self.at(dst), pointers.as_ptr().cast(), list.len(), single);
                }
                Op::Copy { dst, src, size } => std::ptr::copy(self.at(src), self.at(dst), count * size),
                Op::Stream { run, dst, src, size } => run(count * size, self.at(dst), self.at(src)),
                Op::Load { run, dst, slot, stride, size } => {
                    let (mut dst, row) = (self.at(dst), count / steps);
                    self.rows(slot, stride, steps, count, |src, elements| {
                        run(elements, dst, src, stride.inner);
                        dst = dst.wrapping_add(row * size);
                    });
                }
                Op::Repeat { run, dst, slot, stride } => run(steps, count / steps, self.at(dst), self.at(slot), stride),
                Op::Store { run, slot, src, stride, size } => {
                    let (mut src, row) = (self.at(src), count / steps);
                    self.rows(slot, stride, steps, count, |dst, elements| {
                        run(elements, dst, src, stride.inner);
                        src = src.wrapping_add(row * size);
                    });
                }
                Op::Fill { run, dst, slot } => run(count, self.at(dst), self.at(slot)),
                Op::Range { run, dst, slot, stride, size } => {
                    let (mut dst, row) = (self.at(dst), count / steps);
                    self.rows(slot, stride, steps, count, |number, elements| {
                        run(elements, dst, number.addr() as i64, stride.inner as i64);
                        dst = dst.wrapping_add(row * size);
                    });
                }
                Op::Random { run, dst, slot, key, stride, size } => {
                    let key = self.at(key).cast::<u64>().read_unaligned() as u32;
                    let (mut dst, row) = (self.at(dst), count / steps);
                    self.rows(slot, stride, steps, count, |number, elements| {
                        run(elements, dst, number.addr() as i64, stride.inner as i64, key);
                        dst = dst.wrapping_add(row * size);
                    });
                }
                Op::Gather { dst, index, gather, form, instr } => {
                    let source = &self.program.gathers[gather as usize];
                    let data = self.binding.gathers[gather as usize];
                    let (index, dst) = (self.at(index), self.at(dst));
                    let result = crate::run::gather::gather(source, data, form, (count, count / steps), index, dst);
                    if let Err(index) = result {
                        self.binding.failure.index(instr, index, source.len);
                    }
                }
            }
        }
    }

    /// Calls `f` with the position and length of each run of elements with one stride: once, or once per row.
    #[inline]
    fn rows(&self, slot: Place, stride: RowStride, steps: usize, count: usize, mut f: impl FnMut(*mut u8, usize)) {
        let mut position = self.at(slot);
        if !self.program.geometry.spans() {
            return f(position, count);
        }
        for _ in 0..steps {
            f(position, count / steps);
            position = position.wrapping_offset(stride.outer);
        }
    }
}
