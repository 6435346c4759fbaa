//! Elements of arrays whose data is at hand, wherever they lie.

use crate::array::Array;
use bh_bytecode::View;
use bh_recorder::Hand;

/// Calls a function whose parameter is a word as large as an element.
macro_rules! sized {
    ($dtype:expr, $function:ident($($argument:expr),*)) => {
        match $dtype.size() {
            1 => $function::<u8>($($argument),*),
            2 => $function::<u16>($($argument),*),
            4 => $function::<u32>($($argument),*),
            8 => $function::<u64>($($argument),*),
            _ => $function::<[u64; 2]>($($argument),*),
        }
    };
}

/// The elements of an array: the address of the first one, how many there are, and where they lie from it.
#[derive(Clone, Copy)]
pub struct Strided<'a> {
    pub data: *const u8,
    pub view: &'a View,
}

impl<'a> Strided<'a> {
    /// An array's elements, as long as the hand is held.
    pub fn of(hand: &Hand<'_>, array: &'a Array) -> Option<Strided<'a>> {
        Some(Strided { data: hand.data(array.id)?, view: &array.view })
    }

    /// The elements' addresses in C order.
    pub fn addresses<T>(self) -> impl Iterator<Item = *const T> {
        let (shape, stride) = (self.view.shape(), self.view.stride());
        let rank = shape.len();
        let (inner, step) = if rank == 0 { (1, 0) } else { (shape[rank - 1], stride[rank - 1] as isize) };
        let outer = &shape[..rank.saturating_sub(1)];
        let rows = if self.view.is_empty() { 0 } else { outer.iter().product() };
        (0..rows).flat_map(move |row: i64| {
            let (mut rest, mut offset) = (row, 0);
            for (extent, stride) in outer.iter().zip(stride).rev() {
                offset += rest % extent * stride;
                rest /= extent;
            }
            let first = self.data.cast::<T>().wrapping_offset(offset as isize);
            (0..inner as isize).map(move |index| first.wrapping_offset(index * step))
        })
    }

    /// The elements of a vector without gaps.
    pub fn slice<T>(&self) -> Option<&[T]> {
        let dense = self.view.rank() == 1 && (self.view.stride()[0] == 1 || self.view.len() <= 1);
        let fits = dense && self.data.cast::<T>().is_aligned();
        // SAFETY: the elements lie there, one after the other, and stay as they are while the hand is held.
        fits.then(|| unsafe { std::slice::from_raw_parts(self.data.cast::<T>(), self.view.len() as usize) })
    }
}

/// Is the array one whose data may be at hand?
pub fn is_plain(array: &Array) -> bool {
    array.link.is_none() && crate::shortcut::taken()
}

pub(crate) use sized;
