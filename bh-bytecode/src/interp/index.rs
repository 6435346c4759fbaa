//! Gather and scatter.

use super::Step;
use crate::dtype::DType;
use crate::element::Element;
use crate::scalar::Arithmetic;
use crate::truth::Truth;

impl Step<'_, '_> {
    /// The positions that operand `at` names among `length` elements, and `None` where the mask is false, whose indices
    /// are not looked at.
    fn positions(&mut self, at: usize, length: usize, mask: Option<&[Truth]>) -> Result<Vec<Option<usize>>, String> {
        let signed = self.batch.dtype(self.instr.operands[at]) == Some(DType::I64);
        let indices: Vec<i128> = if signed {
            self.load::<i64>(at, at)?.into_iter().map(i128::from).collect()
        } else {
            self.load::<u64>(at, at)?.into_iter().map(i128::from).collect()
        };
        let position = |(place, &index): (usize, &i128)| {
            if mask.is_some_and(|mask| !mask[place].get()) {
                return Ok(None);
            }
            let from_start = if index < 0 { index + length as i128 } else { index };
            match usize::try_from(from_start) {
                Ok(position) if position < length => Ok(Some(position)),
                _ => Err(format!("index {index} at position {place} is out of range for {length} elements")),
            }
        };
        indices.iter().enumerate().map(position).collect()
    }

    /// out[i] = source.flat[index[i]]
    pub(super) fn gather<T: Element>(&mut self) -> Result<(), String> {
        let source = self.load::<T>(1, 1)?;
        let positions = self.positions(2, source.len(), None)?;
        let values: Vec<T> = positions.into_iter().flatten().map(|position| source[position]).collect();
        self.store(&values)
    }

    /// out.flat[index[i]] = value[i], where the mask, if there is one, is true.
    pub(super) fn scatter<T: Element>(&mut self) -> Result<(), String> {
        self.scatter_with::<T>(|_, value| value)
    }

    /// out.flat[index[i]] += value[i]
    pub(super) fn scatter_add<T: Arithmetic>(&mut self) -> Result<(), String> {
        self.scatter_with::<T>(T::add)
    }

    fn scatter_with<T: Element>(&mut self, combine: fn(T, T) -> T) -> Result<(), String> {
        let mut target = self.load::<T>(0, 0)?;
        let values = self.load::<T>(1, 2)?;
        let mask = if self.instr.count > 3 { Some(self.load::<Truth>(3, 2)?) } else { None };
        let positions = self.positions(2, target.len(), mask.as_deref())?;
        for (position, value) in positions.into_iter().zip(values) {
            if let Some(position) = position {
                target[position] = combine(target[position], value);
            }
        }
        self.store(&target)
    }
}
