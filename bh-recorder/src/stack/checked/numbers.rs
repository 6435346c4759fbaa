//! The check `nan`: no result is worse than what it is made of. NaN is worse than an infinity, and that than a finite
//! number.

use super::elements::{index_text, visit};
use super::name;
use crate::stack::backend::Backend;
use bh_bytecode::{BatchRef, DType, Instr, Kind, Opcode, Operand, base_flags, c64, c128};
use bh_core::abi::status;
use bh_core::error::{Error, Result};

/// How bad a number is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    Finite,
    Infinite,
    Nan,
}

impl Class {
    fn of(value: f64) -> Class {
        match value {
            value if value.is_nan() => Class::Nan,
            value if value.is_infinite() => Class::Infinite,
            _ => Class::Finite,
        }
    }
}

/// Classes of the elements of an array in C order, or one for all.
#[derive(Debug, PartialEq)]
enum Classes {
    All(Class),
    Each(Vec<Class>),
}

impl Classes {
    fn worst(&self) -> Class {
        match self {
            Classes::All(class) => *class,
            Classes::Each(classes) => classes.iter().copied().max().unwrap_or(Class::Finite),
        }
    }

    /// Element by element, the worse of both.
    fn or(self, other: Classes) -> Classes {
        match (self, other) {
            (Classes::All(a), Classes::All(b)) => Classes::All(a.max(b)),
            (Classes::All(a), Classes::Each(b)) | (Classes::Each(b), Classes::All(a)) => {
                Classes::Each(b.into_iter().map(|b| b.max(a)).collect())
            }
            (Classes::Each(a), Classes::Each(b)) => {
                Classes::Each(a.into_iter().zip(b).map(|(a, b)| a.max(b)).collect())
            }
        }
    }
}

/// How bad each element of an operation's results may be.
pub(super) struct Limit(Classes);

impl Limit {
    /// The limit that the inputs of the batch's operation set, before it runs; `None` if it only moves numbers.
    pub(super) fn of(backend: &mut dyn Backend, batch: &BatchRef<'_>) -> Option<Limit> {
        let instr = operation(batch)?;
        let mut inputs = instr.inputs().iter().filter(|operand| !is_index_view(batch, **operand));
        let classes = match instr.opcode.kind() {
            Kind::Elementwise => {
                let limit = Classes::All(Class::Finite);
                inputs.fold(limit, |limit, &operand| limit.or(classes(backend, batch, operand)))
            }
            Kind::Reduction | Kind::Accumulate => {
                let &input = inputs.next()?;
                // Of a contraction, the products are as bad as either factor.
                let found = inputs
                    .fold(classes(backend, batch, input), |found, &other| found.or(classes(backend, batch, other)));
                let shape = input.as_view().map_or(&[][..], |view| batch.shape(view));
                let limit = match found {
                    Classes::All(class) => Classes::All(class),
                    Classes::Each(all) if instr.opcode.kind() == Kind::Reduction => {
                        Classes::Each(folded(&all, shape, instr.param))
                    }
                    Classes::Each(all) => Classes::Each(running(all, shape, instr.param)),
                };
                // The extreme of no element is an infinity.
                let of_none = if instr.opcode.unmasked().is_some() { Class::Infinite } else { Class::Finite };
                limit.or(Classes::All(of_none))
            }
            Kind::Generator => Classes::All(Class::Finite),
            // Gathers and the other scatters move numbers.
            Kind::Index if instr.opcode == Opcode::ScatterAdd => {
                let added = classes(backend, batch, instr.operands[1]).worst();
                classes(backend, batch, instr.operands[0]).or(Classes::All(added))
            }
            Kind::Index | Kind::System => return None,
            Kind::Extension => {
                let worst = inputs.map(|&operand| classes(backend, batch, operand).worst()).max();
                Classes::All(worst.unwrap_or(Class::Finite))
            }
        };
        Some(Limit(classes))
    }

    /// Compares the results with the limit, after the operation ran.
    pub(super) fn check(&self, backend: &mut dyn Backend, batch: &BatchRef<'_>) -> Result<()> {
        let Some(instr) = operation(batch) else { return Ok(()) };
        for view in instr.outputs().iter().filter_map(|operand| operand.as_view()) {
            let mut first: Option<(usize, String, Class)> = None;
            let (mut position, mut count) = (0usize, 0u64);
            let seen = each_class(backend, batch, view, &mut |class, value| {
                let limit = match &self.0 {
                    Classes::All(limit) => *limit,
                    Classes::Each(limits) => limits.get(position).copied().unwrap_or(Class::Nan),
                };
                if class > limit {
                    count += 1;
                    first.get_or_insert_with(|| (position, value(), class));
                }
                position += 1;
            });
            if let (Some(()), Some((position, value, class))) = (seen, first) {
                let made_of = match class {
                    Class::Nan => "but no NaN went into it",
                    _ => "but only finite numbers went into it",
                };
                let text = format!(
                    "{}: element {} of the result is {value}, {made_of}; elements like that: {count}",
                    name(batch, instr),
                    index_text(batch.shape(view), position),
                );
                return Err(Error::new(status::EXECUTION, text));
            }
        }
        Ok(())
    }
}

fn operation<'a>(batch: &BatchRef<'a>) -> Option<&'a Instr> {
    batch.instrs.iter().find(|instr| !instr.opcode.is_system())
}

fn is_index_view(batch: &BatchRef<'_>, operand: Operand) -> bool {
    operand.as_view().is_some_and(|view| batch.base_of(view).is_none())
}

/// The classes of an operand's elements. Whatever was never written, or lost, may be anything.
fn classes(backend: &mut dyn Backend, batch: &BatchRef<'_>, operand: Operand) -> Classes {
    let Some(view) = operand.as_view() else {
        let constant = operand.as_constant().and_then(|index| batch.constants.get(index as usize));
        let value = constant.and_then(|constant| constant.cast(DType::C128).value::<c128>()).unwrap_or_default();
        return Classes::All(Class::of(value.re).max(Class::of(value.im)));
    };
    if batch.base_of(view).is_some_and(|base| base.has(base_flags::BORN)) {
        return Classes::All(Class::Nan);
    }
    let mut all = Vec::new();
    match each_class(backend, batch, view, &mut |class, _| all.push(class)) {
        Some(()) if all.iter().all(|&class| class == Class::Finite) => Classes::All(Class::Finite),
        Some(()) => Classes::Each(all),
        None => Classes::All(Class::Nan),
    }
}

/// Calls `each` with the class and the text of every element of a view in C order.
fn each_class(
    backend: &mut dyn Backend,
    batch: &BatchRef<'_>,
    view: u32,
    each: &mut dyn FnMut(Class, &dyn Fn() -> String),
) -> Option<()> {
    match batch.base_of(view)?.dtype() {
        DType::F32 => visit::<f32>(backend, batch, view, |x| each(Class::of(x.into()), &|| text(x.into()))),
        DType::F64 => visit::<f64>(backend, batch, view, |x| each(Class::of(x), &|| text(x))),
        DType::C64 => visit::<c64>(backend, batch, view, |z| {
            let (re, im) = (f64::from(z.re), f64::from(z.im));
            each(Class::of(re).max(Class::of(im)), &|| format!("({}, {})", text(re), text(im)));
        }),
        DType::C128 => visit::<c128>(backend, batch, view, |z| {
            each(Class::of(z.re).max(Class::of(z.im)), &|| format!("({}, {})", text(z.re), text(z.im)));
        }),
        // Other types have finite numbers only.
        _ => Some(()),
    }
}

/// A number as NumPy writes it.
fn text(value: f64) -> String {
    if value.is_nan() { "nan".into() } else { value.to_string() }
}

/// The worst class of what each element of a reduction is made of.
fn folded(all: &[Class], shape: &[i64], axes: u16) -> Vec<Class> {
    let kept = |axis: usize| axes >> axis & 1 == 0;
    let count: i64 = (0..shape.len()).filter(|&axis| kept(axis)).map(|axis| shape[axis]).product();
    let mut worst = vec![Class::Finite; count as usize];
    for (position, &class) in all.iter().enumerate() {
        let (mut rest, mut target, mut step) = (position as i64, 0, 1);
        for (axis, &extent) in shape.iter().enumerate().rev() {
            if kept(axis) {
                target += rest % extent * step;
                step *= extent;
            }
            rest /= extent;
        }
        let worst = &mut worst[target as usize];
        *worst = (*worst).max(class);
    }
    worst
}

/// The worst class of what each element of an accumulate is made of.
fn running(mut all: Vec<Class>, shape: &[i64], axes: u16) -> Vec<Class> {
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

    #[test]
    fn folds_keep_the_worst() {
        let all = [Finite, Nan, Finite, Infinite, Finite, Finite];
        assert_eq!(folded(&all, &[2, 3], 0b01), [Infinite, Nan, Finite]);
        assert_eq!(folded(&all, &[2, 3], 0b10), [Nan, Infinite]);
        assert_eq!(folded(&all, &[2, 3], u16::MAX), [Nan]);
        assert_eq!(running(all.to_vec(), &[2, 3], 0b10), [Finite, Nan, Nan, Infinite, Infinite, Infinite]);
        assert_eq!(running(all.to_vec(), &[2, 3], 0b01), [Finite, Nan, Finite, Infinite, Nan, Finite]);
    }

    #[test]
    fn the_worse_of_two_operands_counts() {
        let each = |classes: &[Class]| Classes::Each(classes.to_vec());
        assert_eq!(each(&[Finite, Nan]).or(Classes::All(Infinite)), each(&[Infinite, Nan]));
        assert_eq!(each(&[Finite, Nan]).or(each(&[Infinite, Finite])), each(&[Infinite, Nan]));
        assert_eq!(Classes::All(Finite).or(Classes::All(Nan)), Classes::All(Nan));
    }
}
