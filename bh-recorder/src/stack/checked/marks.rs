//! How bad the elements of operands are, and where that comes from: what the checks of numbers compare.

use super::elements::visit;
use crate::stack::backend::Backend;
use bh_bytecode::{BatchRef, Constant, DType, Instr, Kind, Opcode, Operand, Truth, base_flags, c64, c128};
use std::collections::HashMap;
use std::fmt::Display;

/// How bad a number is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Class {
    Finite,
    Infinite,
    Nan,
}

impl Class {
    pub(super) fn of(value: f64) -> Class {
        match value {
            value if value.is_nan() => Class::Nan,
            value if value.is_infinite() => Class::Infinite,
            _ => Class::Finite,
        }
    }
}

/// How bad an element is, and the number of the event that made it so, counted from 1; 0 if none is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Mark {
    pub(super) class: Class,
    pub(super) event: u32,
}

impl Mark {
    pub(super) const FINE: Mark = Mark { class: Class::Finite, event: 0 };

    /// Without a known event.
    pub(super) fn of(class: Class) -> Mark {
        Mark { class, event: 0 }
    }
}

/// Marks of the elements of an array in C order, or one for all.
#[derive(Debug, PartialEq)]
pub(super) enum Marks {
    All(Mark),
    Each(Vec<Mark>),
}

impl Marks {
    fn worst(&self) -> Mark {
        match self {
            Marks::All(mark) => *mark,
            Marks::Each(marks) => marks.iter().copied().max().unwrap_or(Mark::FINE),
        }
    }

    /// The mark of the element at a position in C order. Elements beyond the marks may be anything.
    pub(super) fn at(&self, position: usize) -> Mark {
        match self {
            Marks::All(mark) => *mark,
            Marks::Each(marks) => marks.get(position).copied().unwrap_or(Mark::of(Class::Nan)),
        }
    }

    /// Element by element, the worse of both.
    fn or(self, other: Marks) -> Marks {
        match (self, other) {
            (Marks::All(a), Marks::All(b)) => Marks::All(a.max(b)),
            (Marks::All(a), Marks::Each(b)) | (Marks::Each(b), Marks::All(a)) => {
                Marks::Each(b.into_iter().map(|b| b.max(a)).collect())
            }
            (Marks::Each(a), Marks::Each(b)) => Marks::Each(a.into_iter().zip(b).map(|(a, b)| a.max(b)).collect()),
        }
    }

    /// Element by element, of the first where the mask holds, else of the second.
    fn choice(mask: &[bool], yes: &Marks, no: &Marks) -> Marks {
        let chosen = |(position, &holds): (usize, &bool)| if holds { yes.at(position) } else { no.at(position) };
        Marks::Each(mask.iter().enumerate().map(chosen).collect())
    }
}

/// The events of the elements of bases, by their offsets; bases without known events are missing.
pub(super) type Events = HashMap<u64, Vec<u32>>;

/// How bad each element of an operation's results may be: what the inputs of the batch's operation allow, before it runs; `None`
/// without an operation.
pub(super) fn allowed(backend: &mut dyn Backend, batch: &BatchRef<'_>, events: &Events) -> Option<Marks> {
    let instr = operation(batch)?;
    let mut marks = |operand: Operand| marks(backend, batch, operand, events);
    let mut inputs = instr.inputs().iter().copied().filter(|operand| !is_index_view(batch, *operand));
    Some(match instr.opcode.kind() {
        Kind::Elementwise if instr.opcode == Opcode::Where => {
            let (yes, no) = (marks(instr.operands[2]), marks(instr.operands[3]));
            let mut mask = Vec::new();
            let seen = instr.operands[1]
                .as_view()
                .and_then(|view| visit::<Truth>(backend, batch, view, |_, holds| mask.push(holds.get())));
            if seen.is_some() { Marks::choice(&mask, &yes, &no) } else { yes.or(no) }
        }
        Kind::Elementwise => inputs.fold(Marks::All(Mark::FINE), |all, operand| all.or(marks(operand))),
        Kind::Reduction | Kind::Accumulate => {
            let input = inputs.next()?;
            // Of a contraction, the products are as bad as either factor.
            let found = inputs.fold(marks(input), |found, other| found.or(marks(other)));
            let shape = input.as_view().map_or(&[][..], |view| batch.shape(view));
            let limit = match found {
                Marks::All(mark) => Marks::All(mark),
                Marks::Each(all) if instr.opcode.kind() == Kind::Reduction => {
                    Marks::Each(folded(&all, shape, instr.param))
                }
                Marks::Each(all) => Marks::Each(running(all, shape, instr.param)),
            };
            // The extreme of no element is an infinity.
            let of_none = if instr.opcode.unmasked().is_some() { Class::Infinite } else { Class::Finite };
            limit.or(Marks::All(Mark::of(of_none)))
        }
        Kind::Generator => Marks::All(Mark::FINE),
        Kind::Index => {
            let value = marks(instr.operands[1]).worst();
            // Gathers and the other scatters move numbers.
            let value = if instr.opcode == Opcode::ScatterAdd { value } else { value.max(Mark::of(Class::Nan)) };
            let is_changed = instr.opcode != Opcode::Gather;
            if is_changed { marks(instr.operands[0]).or(Marks::All(value)) } else { Marks::All(value) }
        }
        Kind::System => return None,
        Kind::Extension => {
            let worst = inputs.map(|operand| marks(operand).worst()).max();
            Marks::All(worst.unwrap_or(Mark::FINE))
        }
    })
}

/// The batch's operation.
pub(super) fn operation<'a>(batch: &BatchRef<'a>) -> Option<&'a Instr> {
    batch.instrs.iter().find(|instr| !instr.opcode.is_system())
}

fn is_index_view(batch: &BatchRef<'_>, operand: Operand) -> bool {
    operand.as_view().is_some_and(|view| batch.base_of(view).is_none())
}

/// The marks of an operand's elements. Elements that were never written, or lost, may be anything.
fn marks(backend: &mut dyn Backend, batch: &BatchRef<'_>, operand: Operand, events: &Events) -> Marks {
    let Some(view) = operand.as_view() else {
        let constant = operand.as_constant().and_then(|index| batch.constants.get(index as usize));
        let value = constant.and_then(|constant| constant.cast(DType::C128).value::<c128>()).unwrap_or_default();
        return Marks::All(Mark::of(Class::of(value.re).max(Class::of(value.im))));
    };
    let base = batch.base_of(view);
    if base.is_some_and(|base| base.has(base_flags::BORN)) {
        return Marks::All(Mark::of(Class::Nan));
    }
    let events = base.and_then(|base| events.get(&base.id));
    let event = |offset: i64| events.and_then(|events| events.get(offset as usize)).copied().unwrap_or_default();
    let mut all = Vec::new();
    match each_class(backend, batch, view, &mut |offset, class, _| all.push(Mark { class, event: event(offset) })) {
        Some(()) if all.iter().all(|mark| mark.class == Class::Finite) => Marks::All(Mark::FINE),
        Some(()) => Marks::Each(all),
        None => Marks::All(Mark::of(Class::Nan)),
    }
}

/// Receives an element: its offset, its class, and a function that makes its text.
type Each<'a> = dyn FnMut(i64, Class, &dyn Fn() -> String) + 'a;

/// Calls `each` with the offset, the class and the text of every element of a view in C order.
pub(super) fn each_class(
    backend: &mut dyn Backend,
    batch: &BatchRef<'_>,
    view: u32,
    each: &mut Each<'_>,
) -> Option<()> {
    match batch.base_of(view)?.dtype() {
        DType::F32 => visit::<f32>(backend, batch, view, |at, x| each(at, Class::of(x.into()), &|| text(x))),
        DType::F64 => visit::<f64>(backend, batch, view, |at, x| each(at, Class::of(x), &|| text(x))),
        DType::C64 => visit::<c64>(backend, batch, view, |at, z| {
            let (re, im) = (f64::from(z.re), f64::from(z.im));
            each(at, Class::of(re).max(Class::of(im)), &|| format!("({}, {})", text(z.re), text(z.im)));
        }),
        DType::C128 => visit::<c128>(backend, batch, view, |at, z| {
            each(at, Class::of(z.re).max(Class::of(z.im)), &|| format!("({}, {})", text(z.re), text(z.im)));
        }),
        // Other types have finite numbers only.
        _ => Some(()),
    }
}

/// A number as NumPy writes it.
pub(super) fn text(value: impl Display) -> String {
    let text = value.to_string();
    if text == "NaN" { "nan".into() } else { text }
}

/// A value as NumPy writes it.
pub(super) fn number(constant: Constant) -> String {
    match constant.dtype() {
        DType::Bool => if constant.to::<Truth>().get() { "True" } else { "False" }.into(),
        DType::F32 => text(constant.to::<f32>()),
        DType::F64 => text(constant.to::<f64>()),
        DType::C64 => {
            let value = constant.to::<c64>();
            format!("({}, {})", text(value.re), text(value.im))
        }
        DType::C128 => {
            let value = constant.to::<c128>();
            format!("({}, {})", text(value.re), text(value.im))
        }
        DType::U64 => constant.to::<u64>().to_string(),
        _ => constant.to::<i64>().to_string(),
    }
}

/// The worst mark of what each element of a reduction is made of.
fn folded(all: &[Mark], shape: &[i64], axes: u16) -> Vec<Mark> {
    let kept = (0..shape.len()).filter(|&axis| axes >> axis & 1 == 0);
    let count: i64 = kept.map(|axis| shape[axis]).product();
    let mut worst = vec![Mark::FINE; count as usize];
    for (&mark, target) in all.iter().zip(targets(shape, axes)) {
        worst[target] = worst[target].max(mark);
    }
    worst
}

/// For each element of a reduction's input in C order, the place of its result.
pub(super) fn targets(shape: &[i64], axes: u16) -> impl Iterator<Item = usize> + '_ {
    let count: i64 = shape.iter().product();
    (0..count).map(move |position| {
        let (mut rest, mut target, mut step) = (position, 0, 1);
        for (axis, &extent) in shape.iter().enumerate().rev() {
            if axes >> axis & 1 == 0 {
                target += rest % extent * step;
                step *= extent;
            }
            rest /= extent;
        }
        target as usize
    })
}

/// The worst mark of what each element of an accumulate is made of.
fn running(mut all: Vec<Mark>, shape: &[i64], axes: u16) -> Vec<Mark> {
    let axis = axes.trailing_zeros() as usize;
    let step: i64 = shape.get(axis + 1..).unwrap_or_default().iter().product();
    let extent = shape.get(axis).copied().unwrap_or(1);
    for position in 0..all.len() {
        if position as i64 / step.max(1) % extent.max(1) > 0 {
            all[position] = all[position].max(all[position - step as usize]);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::Class::{Finite, Infinite, Nan};
    use super::*;

    fn each(classes: &[Class]) -> Vec<Mark> {
        classes.iter().map(|&class| Mark::of(class)).collect()
    }

    #[test]
    fn folds_keep_the_worst() {
        let all = each(&[Finite, Nan, Finite, Infinite, Finite, Finite]);
        assert_eq!(folded(&all, &[2, 3], 0b01), each(&[Infinite, Nan, Finite]));
        assert_eq!(folded(&all, &[2, 3], 0b10), each(&[Nan, Infinite]));
        assert_eq!(folded(&all, &[2, 3], u16::MAX), each(&[Nan]));
        let along = each(&[Finite, Nan, Nan, Infinite, Infinite, Infinite]);
        assert_eq!(running(all.clone(), &[2, 3], 0b10), along);
        assert_eq!(running(all, &[2, 3], 0b01), each(&[Finite, Nan, Finite, Infinite, Nan, Finite]));
    }

    #[test]
    fn the_worse_of_two_operands_counts() {
        let marks = |classes: &[Class]| Marks::Each(each(classes));
        assert_eq!(marks(&[Finite, Nan]).or(Marks::All(Mark::of(Infinite))), marks(&[Infinite, Nan]));
        assert_eq!(marks(&[Finite, Nan]).or(marks(&[Infinite, Finite])), marks(&[Infinite, Nan]));
        assert_eq!(Marks::All(Mark::FINE).or(Marks::All(Mark::of(Nan))), Marks::All(Mark::of(Nan)));
    }

    #[test]
    fn a_choice_has_the_marks_of_what_is_chosen() {
        let (yes, no) = (Marks::All(Mark::of(Nan)), Marks::Each(each(&[Finite, Infinite])));
        assert_eq!(Marks::choice(&[true, false], &yes, &no), Marks::Each(each(&[Nan, Infinite])));
    }
}
