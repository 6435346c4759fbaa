//! Printing of batches. Works on any tables: what lies outside them prints as `?`.

use crate::batch::{Attribute, Base, BatchRef, Block, Constant, Instr, NO_BASE, Operand, Rename, ViewRec, base_flags};
use crate::complex::{c64, c128};
use crate::dtype::DType;
use crate::opcode::{Kind, Opcode};
use crate::order::AxisOrder;
use crate::view::MAX_RANK;
use crate::with_dtype;
use std::fmt::{self, Display, Write};

/// The names of base flags.
pub(super) const FLAGS: [(u32, &str); 4] = [
    (base_flags::PINNED, "pinned"),
    (base_flags::BORN, "born"),
    (base_flags::DIES, "dies"),
    (base_flags::LIVE_OUT, "live_out"),
];

/// The text form of a batch.
pub fn print(batch: &BatchRef) -> String {
    batch.to_string()
}

impl Display for BatchRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("bh batch 1\n")?;
        for (index, base) in self.bases.iter().enumerate() {
            print_base(f, index, base)?;
        }
        for (index, view) in self.views.iter().enumerate() {
            print_view(f, self, index, view)?;
        }
        for (index, constant) in self.constants.iter().enumerate() {
            writeln!(f, "const c{index} = {}", constant)?;
        }
        for (index, origin) in self.origins.iter().enumerate() {
            writeln!(f, "origin o{} = {:?}:{}", index + 1, self.text(origin.file, origin.file_len), origin.line)?;
        }
        for extension in self.extensions {
            let name = self.text(extension.name, extension.name_len);
            writeln!(f, "extension x{} = {name:?}", extension.opcode.0)?;
        }
        for (index, instr) in self.instrs.iter().enumerate() {
            writeln!(f, "i{index}: {}", InstrText(self, instr))?;
        }
        for block in self.blocks {
            print_block(f, self, block)?;
        }
        Ok(())
    }
}

impl BatchRef<'_> {
    /// A string of the pool, or `?`.
    fn text(&self, offset: u32, len: u32) -> &str {
        let bytes = self.strings.get(offset as usize..).and_then(|strings| strings.get(..len as usize));
        bytes.and_then(|bytes| std::str::from_utf8(bytes).ok()).unwrap_or("?")
    }
}

fn print_base(f: &mut fmt::Formatter<'_>, index: usize, base: &Base) -> fmt::Result {
    write!(f, "base b{index} = {}[{}] id {}", TypeText(base.dtype), base.len, base.id)?;
    if base.row_hint != 0 {
        write!(f, " row {}", base.row_hint)?;
    }
    for (flag, name) in FLAGS {
        if base.has(flag) {
            write!(f, " {name}")?;
        }
    }
    f.write_char('\n')
}

fn print_view(f: &mut fmt::Formatter<'_>, batch: &BatchRef, index: usize, view: &ViewRec) -> fmt::Result {
    write!(f, "view v{index} = ")?;
    match view.base {
        NO_BASE => f.write_str("index")?,
        base => write!(f, "b{base}")?,
    }
    write!(f, " at {} [", view.start)?;
    let rank = view.rank as usize;
    let dims = rank.checked_mul(2).and_then(|count| batch.dims.get(view.dims as usize..)?.get(..count));
    match dims {
        None => f.write_char('?')?,
        Some(dims) => {
            for dim in 0..rank {
                let separator = if dim > 0 { ", " } else { "" };
                write!(f, "{separator}{}:{}", dims[dim], dims[rank + dim])?;
            }
        }
    }
    f.write_str("]\n")
}

/// An element type by its discriminant.
struct TypeText(u8);

impl Display for TypeText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match DType::from_code(self.0) {
            Some(dtype) => f.write_str(dtype.name()),
            None => write!(f, "type#{}", self.0),
        }
    }
}

/// Its type and its value.
impl Display for Constant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        TypeText(self.dtype).fmt(f)?;
        f.write_char(' ')?;
        let single = |f: &mut fmt::Formatter<'_>, value: f32| match value.is_nan() {
            true => write!(f, "{:#x}", value.to_bits()),
            false => write!(f, "{value:?}"),
        };
        let double = |f: &mut fmt::Formatter<'_>, value: f64| match value.is_nan() {
            true => write!(f, "{:#x}", value.to_bits()),
            false => write!(f, "{value:?}"),
        };
        match DType::from_code(self.dtype) {
            None => f.write_char('?'),
            Some(DType::F32) => single(f, self.value().unwrap_or_default()),
            Some(DType::F64) => double(f, self.value().unwrap_or_default()),
            Some(DType::C64) => {
                let value: c64 = self.value().unwrap_or_default();
                single(f, value.re)?;
                f.write_char(' ')?;
                single(f, value.im)
            }
            Some(DType::C128) => {
                let value: c128 = self.value().unwrap_or_default();
                double(f, value.re)?;
                f.write_char(' ')?;
                double(f, value.im)
            }
            Some(dtype) => with_dtype!(dtype, T => write!(f, "{:?}", self.value::<T>().unwrap_or_default())),
        }
    }
}

/// An operand by its place in its table.
struct OperandText(Operand);

impl Display for OperandText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0.as_view(), self.0.as_constant()) {
            (Some(view), _) => write!(f, "v{view}"),
            (_, Some(constant)) => write!(f, "c{constant}"),
            _ => f.write_char('_'),
        }
    }
}

/// An instruction without its label.
struct InstrText<'a>(&'a BatchRef<'a>, &'a Instr);

impl Display for InstrText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let InstrText(batch, instr) = *self;
        let operands = instr.operands.get(..instr.count as usize).unwrap_or(&instr.operands);
        let (outputs, inputs) = operands.split_at((instr.outputs as usize).min(operands.len()));
        print_operands(f, outputs)?;
        if !outputs.is_empty() {
            f.write_str(" = ")?;
        }
        match instr.opcode {
            opcode if opcode.is_extension() => write!(f, "x{}", opcode.0)?,
            opcode => f.write_str(opcode.name())?,
        }
        match instr.opcode.is_extension() {
            true => print_attributes(f, batch, instr)?,
            false => print_param(f, instr)?,
        }
        print_order(f, batch, instr)?;
        if !inputs.is_empty() {
            f.write_char(' ')?;
        }
        print_operands(f, inputs)?;
        if instr.origin != 0 { write!(f, " @o{}", instr.origin) } else { Ok(()) }
    }
}

fn print_operands(f: &mut fmt::Formatter<'_>, operands: &[Operand]) -> fmt::Result {
    for (at, &operand) in operands.iter().enumerate() {
        let separator = if at > 0 { ", " } else { "" };
        write!(f, "{separator}{}", OperandText(operand))?;
    }
    Ok(())
}

fn print_param(f: &mut fmt::Formatter<'_>, instr: &Instr) -> fmt::Result {
    let param = instr.param;
    if matches!(instr.opcode.kind(), Kind::Reduction | Kind::Accumulate) {
        let axes: Vec<String> = (0..16).filter(|axis| param >> axis & 1 == 1).map(|axis| axis.to_string()).collect();
        write!(f, " axes({})", axes.join(","))
    } else if instr.opcode == Opcode::Powi {
        write!(f, " exponent({param})")
    } else if param != 0 {
        write!(f, " param({param})")
    } else {
        Ok(())
    }
}

/// The attributes of a use of an extension method.
fn print_attributes(f: &mut fmt::Formatter<'_>, batch: &BatchRef, instr: &Instr) -> fmt::Result {
    if instr.param == 0 {
        return Ok(());
    }
    let attributes = range(batch.attributes, instr.attributes, u32::from(instr.param));
    if attributes.is_empty() {
        return write!(f, " with(?{})", instr.param);
    }
    let text =
        |attribute: &Attribute| format!("{:?}: {}", batch.text(attribute.name, attribute.name_len), attribute.value);
    write!(f, " with({})", attributes.iter().map(text).collect::<Vec<_>>().join(", "))
}

/// The axes as a fold takes them, outermost first, with a sign before those that it walks backward.
fn print_order(f: &mut fmt::Formatter<'_>, batch: &BatchRef, instr: &Instr) -> fmt::Result {
    if instr.order == 0 {
        return Ok(());
    }
    let input = instr.operands[1].as_view().and_then(|view| batch.views.get(view as usize));
    let rank = input.map(|view| view.rank as usize).filter(|&rank| rank <= MAX_RANK);
    let Some(order) = rank.and_then(|rank| AxisOrder::decode(instr.order, rank)) else {
        return write!(f, " order(?{})", instr.order);
    };
    let sign = |axis: &u8| if order.backward() >> axis & 1 == 1 { "-" } else { "" };
    let axes: Vec<String> = order.axes().iter().map(|axis| format!("{}{axis}", sign(axis))).collect();
    let tree = if order.is_fixed() { "fixed_order" } else { "order" };
    write!(f, " {tree}({})", axes.join(","))
}

/// A range of a table; empty if it lies outside.
fn range<T>(table: &[T], first: u32, count: u32) -> &[T] {
    table.get(first as usize..).and_then(|table| table.get(..count as usize)).unwrap_or(&[])
}

fn print_block(f: &mut fmt::Formatter<'_>, batch: &BatchRef, block: &Block) -> fmt::Result {
    f.write_str("block")?;
    for instr in range(batch.block_instrs, block.instrs, block.instr_count) {
        write!(f, " i{instr}")?;
    }
    let contracted = range(batch.contracted, block.contracted, block.contracted_count);
    if !contracted.is_empty() {
        f.write_str(" contracted")?;
    }
    for base in contracted {
        write!(f, " b{base}")?;
    }
    f.write_char('\n')?;
    for rename in range(batch.renames, block.renames, block.rename_count) {
        print_rename(f, batch, rename)?;
    }
    Ok(())
}

fn print_rename(f: &mut fmt::Formatter<'_>, batch: &BatchRef, rename: &Rename) -> fmt::Result {
    write!(f, "rename b{}", rename.base)?;
    let uncovered = range(batch.rename_views, rename.uncovered, rename.uncovered_count);
    if !uncovered.is_empty() {
        f.write_str(" uncovered")?;
    }
    for view in uncovered {
        write!(f, " v{view}")?;
    }
    if rename.alias != NO_BASE {
        write!(f, " alias b{} v{}", rename.alias, rename.alias_view)?;
    }
    f.write_char('\n')
}
