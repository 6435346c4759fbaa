//! Building a function: typed values and vectors over LLVM's instruction builder.
//!
//! Code runs as it is built: no optimising passes follow. So constants in vectors are *frozen*: LLVM treats these as values of their
//! own, which are in registers before a loop begins.

mod instructions;
mod memory;
mod value;
mod vectors;

pub(crate) use instructions::Predicate;
pub(crate) use value::{Element, Kind, Number, Phi, Value, parts};

use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::basic_block::BasicBlock;
use inkwell::builder::{Builder as Instructions, BuilderError};
use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::values::{BasicValueEnum, FunctionValue, InstructionValue, MetadataValue};
use std::cell::Cell;

/// Instructions without a jump within.
pub(crate) type Block<'c> = BasicBlock<'c>;

/// Which way a branch mostly goes.
#[derive(Clone, Copy)]
pub(crate) enum Mostly {
    /// To the first block.
    Taken,
    /// To the second one.
    Passed,
}

/// Builds one function of a module.
pub(crate) struct Builder<'c> {
    context: &'c Context,
    module: Module<'c>,
    instructions: Instructions<'c>,
    function: FunctionValue<'c>,
    /// Instructions with a result, without those that only see it as another type or freeze it.
    count: Cell<usize>,
}

/// Instructions are built at the end of a block, from values that fit.
fn built<T>(result: Result<T, BuilderError>) -> T {
    result.expect("the block and the values fit the instruction")
}

impl<'c> Builder<'c> {
    /// Begins a module with one function, which takes a pointer, in its first block.
    pub(crate) fn new(context: &'c Context, name: &str) -> Builder<'c> {
        let module = context.create_module(name);
        let pointer = Kind::POINTER.llvm(context);
        let function = module.add_function(name, context.void_type().fn_type(&[pointer.into()], false), None);
        let instructions = context.create_builder();
        instructions.position_at_end(context.append_basic_block(function, "entry"));
        Builder { context, module, instructions, function, count: Cell::new(0) }
    }

    /// The module, when all is built.
    pub(crate) fn finish(self) -> Module<'c> {
        debug_assert!(self.module.verify().is_ok(), "{:?}\n{}", self.module.verify(), self.module.to_string());
        self.module
    }

    /// How many instructions were built, roughly.
    pub(crate) fn count(&self) -> usize {
        self.count.get()
    }

    /// The function's argument.
    pub(crate) fn argument(&self) -> Value<'c> {
        let raw = self.function.get_first_param().expect("the function has an argument");
        for attribute in ["nocapture", "readonly"] {
            self.function.add_attribute(AttributeLoc::Param(0), self.attribute(attribute, 0));
        }
        Value { raw, kind: Kind::POINTER }
    }

    /// Gives the function an attribute that LLVM knows by number.
    pub(crate) fn set_attribute(&self, name: &str, value: u64) {
        self.function.add_attribute(AttributeLoc::Function, self.attribute(name, value));
    }

    /// Gives it one with a text.
    pub(crate) fn set_text_attribute(&self, name: &str, text: &str) {
        self.function.add_attribute(AttributeLoc::Function, self.context.create_string_attribute(name, text));
    }

    fn attribute(&self, name: &str, value: u64) -> Attribute {
        self.context.create_enum_attribute(Attribute::get_named_enum_kind_id(name), value)
    }

    /// A block that has not begun.
    pub(crate) fn block(&self, name: &str) -> Block<'c> {
        self.context.append_basic_block(self.function, name)
    }

    /// Some of them.
    pub(crate) fn blocks<const N: usize>(&self, names: [&str; N]) -> [Block<'c>; N] {
        names.map(|name| self.block(name))
    }

    /// Begins a block, after all that have begun.
    pub(crate) fn begin(&self, block: Block<'c>) {
        let last = self.function.get_last_basic_block().filter(|last| *last != block);
        if let Some(last) = last {
            block.move_after(last).expect("both are blocks of the function");
        }
        self.instructions.position_at_end(block);
    }

    /// The block that is being built.
    pub(crate) fn current(&self) -> Block<'c> {
        self.instructions.get_insert_block().expect("a block is being built")
    }

    pub(crate) fn jump(&self, to: Block<'c>) {
        built(self.instructions.build_unconditional_branch(to));
    }

    pub(crate) fn branch(&self, condition: Value<'c>, (yes, no): (Block<'c>, Block<'c>)) {
        built(self.instructions.build_conditional_branch(condition.integer(), yes, no));
    }

    /// A branch that mostly goes one way.
    pub(crate) fn branch_mostly(&self, mostly: Mostly, condition: Value<'c>, (yes, no): (Block<'c>, Block<'c>)) {
        let branch = built(self.instructions.build_conditional_branch(condition.integer(), yes, no));
        let weights = match mostly {
            Mostly::Taken => [10_000, 1],
            Mostly::Passed => [1, 10_000],
        };
        let [yes, no] = weights.map(|weight| self.context.i32_type().const_int(weight, false).into());
        let name = self.context.metadata_string("branch_weights").into();
        self.annotate(branch, "prof", self.context.metadata_node(&[name, yes, no]));
    }

    fn annotate(&self, instruction: InstructionValue<'c>, kind: &str, node: MetadataValue<'c>) {
        let kind = self.context.get_kind_id(kind);
        instruction.set_metadata(node, kind).expect("a node is metadata of instructions");
    }

    pub(crate) fn end(&self) {
        built(self.instructions.build_return(None));
    }

    /// A value that comes from these blocks; more can be added.
    pub(crate) fn phi(&self, kind: Kind, from: &[(Value<'c>, Block<'c>)]) -> Phi<'c> {
        let raw = built(self.instructions.build_phi(kind.llvm(self.context), ""));
        let phi = Phi { raw, value: self.made(raw.as_basic_value(), kind) };
        from.iter().for_each(|&(value, block)| phi.add(value, block));
        phi
    }

    /// A value of either block.
    pub(crate) fn either(&self, one: (Value<'c>, Block<'c>), other: (Value<'c>, Block<'c>)) -> Value<'c> {
        self.phi(one.0.kind, &[one, other]).value
    }

    /// A value that has a name in the code's text.
    pub(crate) fn named(&self, name: &str, value: Value<'c>) -> Value<'c> {
        value.raw.set_name(name);
        value
    }

    /// The result of an instruction.
    fn made(&self, raw: impl Into<BasicValueEnum<'c>>, kind: Kind) -> Value<'c> {
        self.count.set(self.count.get() + 1);
        Value { raw: raw.into(), kind }
    }
}

impl<'c> Phi<'c> {
    /// Adds a block from which control comes.
    pub(crate) fn add(&self, value: Value<'c>, block: Block<'c>) {
        debug_assert_eq!(value.kind, self.value.kind);
        self.raw.add_incoming(&[(&value.raw, block)]);
    }
}
