//! Arithmetic, comparisons, conversions, selections and calls.

use super::{Builder, Element, Kind, Value, built};
use inkwell::llvm_sys::core::LLVMBuildFreeze;
use inkwell::types::BasicMetadataTypeEnum;
use inkwell::values::{
    AsValueRef, BasicMetadataValueEnum, BasicValue, BasicValueEnum, CallSiteValue, FastMathFlags,
    InstructionOpcode as Instruction,
};
use inkwell::{FloatPredicate, IntPredicate};

/// The condition of a comparison.
#[derive(Clone, Copy)]
pub(crate) enum Predicate {
    Float(FloatPredicate),
    Integer(IntPredicate),
}

impl From<FloatPredicate> for Predicate {
    fn from(predicate: FloatPredicate) -> Predicate {
        Predicate::Float(predicate)
    }
}

impl From<IntPredicate> for Predicate {
    fn from(predicate: IntPredicate) -> Predicate {
        Predicate::Integer(predicate)
    }
}

/// A function for each operation of two operands: integers and floats have instructions of their own.
macro_rules! binary {
    ($($name:ident: $integer:ident $float:ident;)*) => {
        impl<'c> Builder<'c> {
            $(pub(crate) fn $name(&self, a: Value<'c>, b: Value<'c>) -> Value<'c> {
                let float = a.kind.element.is_float();
                self.binary(if float { Instruction::$float } else { Instruction::$integer }, a, b)
            })*
        }
    };
}
binary! {
    add: Add FAdd;
    sub: Sub FSub;
    mul: Mul FMul;
    div: SDiv FDiv;
    and: And And;
    or: Or Or;
    xor: Xor Xor;
    shl: Shl Shl;
    lshr: LShr LShr;
    ashr: AShr AShr;
}

/// A function for each conversion to another element.
macro_rules! conversions {
    ($($name:ident: $instruction:ident;)*) => {
        impl<'c> Builder<'c> {
            $(pub(crate) fn $name(&self, a: Value<'c>, to: Element) -> Value<'c> {
                self.convert(Instruction::$instruction, a, a.kind.with(to))
            })*
        }
    };
}
conversions! {
    truncate: Trunc;
    extend: ZExt;
    sign_extend: SExt;
    widen: FPExt;
    narrow: FPTrunc;
    signed_to_float: SIToFP;
    unsigned_to_float: UIToFP;
    float_to_signed: FPToSI;
    float_to_unsigned: FPToUI;
}

impl<'c> Builder<'c> {
    fn binary(&self, instruction: Instruction, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        debug_assert_eq!(a.kind, b.kind, "{instruction:?}");
        self.made(built(self.instructions.build_binop(instruction, a.raw, b.raw, "")), a.kind)
    }

    fn convert(&self, instruction: Instruction, a: Value<'c>, kind: Kind) -> Value<'c> {
        self.made(built(self.instructions.build_cast(instruction, a.raw, kind.llvm(self.context), "")), kind)
    }

    /// The same bits as another type.
    pub(crate) fn bitcast(&self, a: Value<'c>, kind: Kind) -> Value<'c> {
        let raw = built(self.instructions.build_cast(Instruction::BitCast, a.raw, kind.llvm(self.context), ""));
        Value { raw, kind }
    }

    /// The bits of a vector of them as one integer.
    pub(crate) fn any(&self, bits: Value<'c>) -> Value<'c> {
        let width = std::num::NonZeroU32::new(bits.lanes().into()).expect("vectors have lanes");
        let kind = self.context.custom_width_int_type(width).expect("LLVM has integers of any size");
        let integer = built(self.instructions.build_cast(Instruction::BitCast, bits.raw, kind, "")).into_int_value();
        let any = self.instructions.build_int_compare(IntPredicate::NE, integer, kind.const_zero(), "");
        self.made(built(any), Kind::BIT)
    }

    /// A value that is the same at all its uses.
    pub(crate) fn freeze(&self, a: Value<'c>) -> Value<'c> {
        // SAFETY: both are of the module that is built, and the builder is in a block of it.
        let raw = unsafe {
            BasicValueEnum::new(LLVMBuildFreeze(self.instructions.as_mut_ptr(), a.raw.as_value_ref(), c"".as_ptr()))
        };
        Value { raw, kind: a.kind }
    }

    /// A float operation that may be carried out in another way if results may differ by rounding.
    pub(crate) fn relaxed(&self, relaxed: bool, value: Value<'c>) -> Value<'c> {
        if let Some(instruction) = value.raw.as_instruction_value().filter(|_| relaxed && value.kind.element.is_float())
        {
            let flags = FastMathFlags::AllowReassoc
                | FastMathFlags::NoSignedZeros
                | FastMathFlags::AllowReciprocal
                | FastMathFlags::AllowContract
                | FastMathFlags::ApproxFunc;
            instruction.set_fast_math_flags(flags).expect("it is an operation of floats");
        }
        value
    }

    pub(crate) fn neg(&self, a: Value<'c>) -> Value<'c> {
        let raw: BasicValueEnum = match a.raw {
            BasicValueEnum::FloatValue(a) => built(self.instructions.build_float_neg(a, "")).into(),
            _ => built(self.instructions.build_float_neg(a.vector(), "")).into(),
        };
        self.made(raw, a.kind)
    }

    /// The other bits.
    pub(crate) fn not(&self, a: Value<'c>) -> Value<'c> {
        self.xor(a, self.splat(a.kind, -1))
    }

    /// Asks for each lane.
    pub(crate) fn compare(&self, predicate: impl Into<Predicate>, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        debug_assert_eq!(a.kind, b.kind);
        let raw: BasicValueEnum = match (predicate.into(), a.raw, b.raw) {
            (Predicate::Integer(predicate), BasicValueEnum::IntValue(a), BasicValueEnum::IntValue(b)) => {
                built(self.instructions.build_int_compare(predicate, a, b, "")).into()
            }
            (Predicate::Integer(predicate), ..) => {
                built(self.instructions.build_int_compare(predicate, a.vector(), b.vector(), "")).into()
            }
            (Predicate::Float(predicate), BasicValueEnum::FloatValue(a), BasicValueEnum::FloatValue(b)) => {
                built(self.instructions.build_float_compare(predicate, a, b, "")).into()
            }
            (Predicate::Float(predicate), ..) => {
                built(self.instructions.build_float_compare(predicate, a.vector(), b.vector(), "")).into()
            }
        };
        self.made(raw, a.kind.with(Element::Bit))
    }

    /// `a` where the condition holds, else `b`.
    pub(crate) fn select(&self, condition: Value<'c>, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        debug_assert_eq!(a.kind, b.kind);
        let raw = match condition.raw {
            BasicValueEnum::IntValue(condition) => self.instructions.build_select(condition, a.raw, b.raw, ""),
            _ => self.instructions.build_select(condition.vector(), a.raw, b.raw, ""),
        };
        self.made(built(raw), a.kind)
    }

    /// Calls an intrinsic function that exists for each type: the name without that of the type, which is the first
    /// argument's and the result's.
    pub(crate) fn intrinsic(&self, name: &str, arguments: &[Value<'c>]) -> Value<'c> {
        let kind = arguments[0].kind;
        self.call(&format!("llvm.{name}.{}", kind.suffix()), kind, arguments)
    }

    /// Calls an intrinsic function by its whole name.
    pub(crate) fn call(&self, name: &str, result: Kind, arguments: &[Value<'c>]) -> Value<'c> {
        let raw = self.call_site(name, Some(result), arguments).try_as_basic_value().basic();
        self.made(raw.expect("the function has a result"), result)
    }

    /// Calls one without a result.
    pub(crate) fn call_void(&self, name: &str, arguments: &[Value<'c>]) {
        self.call_site(name, None, arguments);
    }

    fn call_site(&self, name: &str, result: Option<Kind>, arguments: &[Value<'c>]) -> CallSiteValue<'c> {
        let function = self.module.get_function(name).unwrap_or_else(|| {
            let types: Vec<BasicMetadataTypeEnum> =
                arguments.iter().map(|argument| argument.kind.llvm(self.context).into()).collect();
            let function = match result.map(|kind| kind.llvm(self.context)) {
                None => self.context.void_type().fn_type(&types, false),
                Some(kind) => inkwell::types::BasicType::fn_type(&kind, &types, false),
            };
            self.module.add_function(name, function, None)
        });
        let arguments: Vec<BasicMetadataValueEnum> = arguments.iter().map(|argument| argument.raw.into()).collect();
        built(self.instructions.build_direct_call(function, &arguments, ""))
    }

    /// Calls a function of the process, which has no result.
    pub(crate) fn call_pointer(&self, function: Value<'c>, arguments: &[Value<'c>]) {
        let types: Vec<BasicMetadataTypeEnum> =
            arguments.iter().map(|argument| argument.kind.llvm(self.context).into()).collect();
        let kind = self.context.void_type().fn_type(&types, false);
        let arguments: Vec<BasicMetadataValueEnum> = arguments.iter().map(|argument| argument.raw.into()).collect();
        built(self.instructions.build_indirect_call(kind, function.pointer(), &arguments, ""));
    }

    /// a·b + c, rounded once.
    pub(crate) fn multiply_add(&self, a: Value<'c>, b: Value<'c>, c: Value<'c>) -> Value<'c> {
        self.intrinsic("fma", &[a, b, c])
    }
}
