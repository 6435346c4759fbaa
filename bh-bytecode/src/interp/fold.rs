//! Reductions, masked ones and sums of products among them, and accumulates: sequential folds in C order.

use super::extended::Widened;
use super::{Step, offsets};
use crate::element::Element;
use crate::truth::Truth;

/// A fold: where it starts, how it takes one more element, and what it gives.
pub(super) struct Accumulator<T, A> {
    start: A,
    step: fn(A, T) -> A,
    finish: fn(A) -> T,
    /// How the magnitudes of elements combine, if the result may be inexact.
    magnitude: Option<Magnitude<T>>,
}

struct Magnitude<T> {
    start: f64,
    step: fn(f64, f64) -> f64,
    of: fn(T) -> Option<f64>,
}

/// A sum in extended precision.
pub(super) fn sum<T: Widened>() -> Accumulator<T, T::Wide> {
    let magnitude = Magnitude { start: 0.0, step: |a, b| a + b, of: T::magnitude };
    Accumulator {
        start: T::ZERO.widen(),
        step: |sum, value| value.add_to(sum),
        finish: T::narrow,
        magnitude: T::ONE.magnitude().map(|_| magnitude),
    }
}

/// A product in extended precision.
pub(super) fn product<T: Widened>() -> Accumulator<T, T::Wide> {
    // Small factors are left out: another order of the products may overflow, or lose digits, before they come.
    let magnitude = Magnitude { start: 1.0, step: |a, b| if b < 1.0 { a } else { a * b }, of: T::magnitude };
    Accumulator {
        start: T::ONE.widen(),
        step: |product, value| value.multiply_to(product),
        finish: T::narrow,
        magnitude: T::ONE.magnitude().map(|_| magnitude),
    }
}

/// A fold in the type itself.
pub(super) fn plain<T>(neutral: T, step: fn(T, T) -> T) -> Accumulator<T, T> {
    Accumulator { start: neutral, step, finish: |value| value, magnitude: None }
}

impl Step<'_, '_> {
    /// For each element of operand 1 in C order, the number of the fold it belongs to, and the number of folds.
    fn folds(&self) -> (Vec<usize>, usize) {
        let shape = self.shape(1);
        let mut stride = vec![0; shape.len()];
        let mut folds = 1;
        for dim in (0..shape.len()).rev() {
            if self.instr.param >> dim & 1 == 0 {
                stride[dim] = folds;
                folds *= shape[dim];
            }
        }
        (offsets(0, shape, &stride).map(|fold| fold as usize).collect(), folds as usize)
    }

    /// Folds the axes in the parameter.
    pub(super) fn reduce<T: Element, A: Copy>(&mut self, accumulator: Accumulator<T, A>) -> Result<(), String> {
        let (mut fold_of, folds) = self.folds();
        let mut state = vec![accumulator.start; folds];
        let mut values = self.load::<T>(1, 1)?;
        if self.instr.count > 2 {
            // Elements outside of the mask are in no fold.
            let mask = self.load::<Truth>(2, 1)?;
            let chosen = |at: &usize| mask.get(*at) == Some(&Truth::TRUE);
            let places: Vec<usize> = (0..values.len()).filter(chosen).collect();
            fold_of = places.iter().map(|&at| fold_of[at]).collect();
            values = places.iter().map(|&at| values[at]).collect();
        }
        for (&fold, &value) in fold_of.iter().zip(&values) {
            state[fold] = (accumulator.step)(state[fold], value);
        }
        if let Some(magnitude) = &accumulator.magnitude {
            let mut total = vec![magnitude.start; folds];
            for (&fold, &value) in fold_of.iter().zip(&values) {
                total[fold] = (magnitude.step)(total[fold], (magnitude.of)(value).unwrap_or(0.0));
            }
            self.note(total);
        }
        let results: Vec<T> = state.into_iter().map(accumulator.finish).collect();
        self.store(&results)
    }

    /// Adds up the products of operands 1 and 2 along the axes in the parameter.
    pub(super) fn contract<T: Widened>(&mut self) -> Result<(), String> {
        let (fold_of, folds) = self.folds();
        let (left, right) = (self.load::<T>(1, 1)?, self.load::<T>(2, 1)?);
        let (mut state, mut total) = (vec![T::ZERO.widen(); folds], vec![0.0; folds]);
        for ((&fold, a), b) in fold_of.iter().zip(&left).zip(&right) {
            state[fold] = T::add_wide(state[fold], b.multiply_to(a.widen()));
            total[fold] += a.magnitude().unwrap_or(0.0) * b.magnitude().unwrap_or(0.0);
        }
        if T::ONE.magnitude().is_some() {
            self.note(total);
        }
        let results: Vec<T> = state.into_iter().map(T::narrow).collect();
        self.store(&results)
    }

    /// Folds along the axis in the parameter and keeps every step.
    pub(super) fn accumulate<T: Element, A: Copy>(&mut self, accumulator: Accumulator<T, A>) -> Result<(), String> {
        let (fold_of, folds) = self.folds();
        let mut state = vec![accumulator.start; folds];
        let values = self.load::<T>(1, 1)?;
        let mut results = Vec::with_capacity(values.len());
        for (&fold, &value) in fold_of.iter().zip(&values) {
            state[fold] = (accumulator.step)(state[fold], value);
            results.push((accumulator.finish)(state[fold]));
        }
        if let Some(magnitude) = &accumulator.magnitude {
            let mut total = vec![magnitude.start; folds];
            let mut steps = Vec::with_capacity(values.len());
            for (&fold, &value) in fold_of.iter().zip(&values) {
                total[fold] = (magnitude.step)(total[fold], (magnitude.of)(value).unwrap_or(0.0));
                steps.push(total[fold]);
            }
            self.note(steps);
        }
        self.store(&results)
    }

    fn note(&mut self, magnitudes: Vec<f64>) {
        if let Some(all) = &mut self.magnitudes {
            all.insert(self.index, magnitudes);
        }
    }
}
