//! The opcode enum and all queries about opcodes, expanded from the table.

use crate::compare::FUNCTIONS;
use crate::dtype::{DType, TypeSet};
use crate::for_each_opcode;
use std::fmt;

/// The parameter of a function with variants, if its bits are to be the same on all engines.
pub const SAME_BITS: u16 = 1;

/// The family of an opcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// One output element from the input elements at the same place.
    Elementwise,
    /// Folds the axes in `Instr::param` (a bit mask).
    Reduction,
    /// Running fold along the one axis in `Instr::param` (a bit mask with one bit).
    Accumulate,
    /// Output from an index view.
    Generator,
    /// Gather and scatter.
    Index,
    /// Data management; one operand, a view of the base.
    System,
    /// A method registered at run time.
    Extension,
}

impl Kind {
    /// May an output be an input too, view for view? Then an element is read before it is written. (Of an extension method
    /// only its author knows, so it is not refused.)
    pub fn works_in_place(self) -> bool {
        matches!(self, Kind::Elementwise | Kind::Accumulate | Kind::Extension)
    }
}

/// How the types of an opcode's operands relate; see the opcode table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signature {
    /// T,… → T
    Same,
    /// T,… → bool
    Test,
    /// T → T; complex → its real type
    Abs,
    /// complex → its real type
    Part,
    /// any → any, but not complex → non-complex
    Cast,
    /// bool,T,T → T
    Select,
    /// T → T over fewer axes
    Reduce,
    /// T, bool → T over fewer axes
    Masked,
    /// T, T → T over fewer axes
    Product,
    /// index view → T
    Index,
    /// index view, key → T
    Random,
    /// T, index → T
    Gather,
    /// T, index → T (in place)
    Scatter,
    /// T, index, bool → T (in place)
    ScatterMask,
    /// no types
    System,
    /// decided by the method
    Extension,
}

macro_rules! kind_of {
    ($kind:ident) => {
        Kind::$kind
    };
}

macro_rules! signature_of {
    (same) => {
        Signature::Same
    };
    (test) => {
        Signature::Test
    };
    (abs) => {
        Signature::Abs
    };
    (part) => {
        Signature::Part
    };
    (cast) => {
        Signature::Cast
    };
    (select) => {
        Signature::Select
    };
    (reduce) => {
        Signature::Reduce
    };
    (masked) => {
        Signature::Masked
    };
    (product) => {
        Signature::Product
    };
    (index) => {
        Signature::Index
    };
    (random) => {
        Signature::Random
    };
    (gather) => {
        Signature::Gather
    };
    (scatter) => {
        Signature::Scatter
    };
    (scatter_mask) => {
        Signature::ScatterMask
    };
    (system) => {
        Signature::System
    };
}

macro_rules! set_of {
    (NONE) => {
        TypeSet(0)
    };
    ($set:ident) => {
        TypeSet::$set
    };
}

macro_rules! define_opcodes {
    ($(($variant:ident, $name:literal, $code:literal, $kind:ident, $inputs:literal, $signature:ident $set:ident, $scalar:ident, $neutral:ident, $cost:literal, $expression:literal, [$csharp:literal, $numpy:literal, $minimatlab:literal], $doc:literal)),* $(,)?) => {
        /// An operation of the vector bytecode. Extension methods have numbers from [`Opcode::FIRST_EXTENSION`] on.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(transparent)]
        pub struct Opcode(pub u16);

        #[allow(non_upper_case_globals, reason = "opcodes read like enum variants")]
        #[allow(rustdoc::broken_intra_doc_links, reason = "the table writes out[i] for elements")]
        impl Opcode {
            $(#[doc = $doc] pub const $variant: Opcode = Opcode($code);)*

            /// All opcodes of the table, in its order.
            pub const ALL: &[Opcode] = &[$(Opcode::$variant),*];
        }

        /// One row of the table, without its scalar function.
        #[derive(Clone, Copy, Debug)]
        pub struct Info {
            /// The opcode.
            pub opcode: Opcode,
            /// The name in lower case.
            pub name: &'static str,
            /// The family.
            pub kind: Kind,
            /// The number of inputs, index views and keys included.
            pub inputs: u8,
            /// How types relate.
            pub signature: Signature,
            /// The legal types.
            pub types: TypeSet,
            /// The name of the scalar function in [`crate::scalar`].
            pub scalar: &'static str,
            /// The name of the neutral element.
            pub neutral: &'static str,
            /// How many vectorised additions one takes, roughly.
            pub cost: u32,
            /// The C-like expression.
            pub expression: &'static str,
            /// Its name in C#, or nothing.
            pub csharp: &'static str,
            /// The universal function of NumPy that it is, or nothing.
            pub numpy: &'static str,
            /// Its name in MiniMatlab, or nothing.
            pub minimatlab: &'static str,
            /// Its result, in words.
            pub doc: &'static str,
        }

        static TABLE: &[Info] = &[$(Info {
            opcode: Opcode::$variant,
            name: $name,
            kind: kind_of!($kind),
            inputs: $inputs,
            signature: signature_of!($signature),
            types: set_of!($set),
            scalar: stringify!($scalar),
            neutral: stringify!($neutral),
            cost: $cost,
            expression: $expression,
            csharp: $csharp,
            numpy: $numpy,
            minimatlab: $minimatlab,
            doc: $doc,
        }),*];

        /// Row numbers by code, or `u8::MAX`.
        static BY_CODE: [u8; 256] = {
            let mut by_code = [u8::MAX; 256];
            let mut row = 0u8;
            $(
                by_code[$code] = row;
                row += 1;
            )*
            let _ = row;
            by_code
        };
    };
}
for_each_opcode!(define_opcodes);

static EXTENSION: Info = Info {
    opcode: Opcode(Opcode::FIRST_EXTENSION),
    name: "extension",
    kind: Kind::Extension,
    inputs: 0,
    signature: Signature::Extension,
    types: TypeSet::ALL,
    scalar: "none",
    neutral: "none",
    cost: 1,
    expression: "",
    csharp: "",
    numpy: "",
    minimatlab: "",
    doc: "A method registered at run time.",
};

impl Opcode {
    /// The first number of the opcodes that are handed out to extension methods.
    pub const FIRST_EXTENSION: u16 = 0x4000;

    /// The opcode with this number, if it exists or may be an extension method's.
    pub fn from_code(code: u16) -> Option<Opcode> {
        let known = code >= Self::FIRST_EXTENSION || (code < 256 && BY_CODE[code as usize] != u8::MAX);
        known.then_some(Opcode(code))
    }

    /// The opcode with this name in lower case.
    pub fn from_name(name: &str) -> Option<Opcode> {
        TABLE.iter().find(|info| info.name == name).map(|info| info.opcode)
    }

    /// The opcode's row of the table. Extension methods share one row.
    #[inline]
    pub fn info(self) -> &'static Info {
        match BY_CODE.get(self.0 as usize) {
            Some(&row) if row != u8::MAX => &TABLE[row as usize],
            _ => &EXTENSION,
        }
    }

    /// The operation of one operand that MiniMatlab calls so.
    pub fn from_minimatlab(name: &str) -> Option<Opcode> {
        TABLE
            .iter()
            .find(|info| info.inputs == 1 && info.minimatlab == name && !name.is_empty())
            .map(|info| info.opcode)
    }

    /// The name in lower case; `extension` for extension methods.
    pub fn name(self) -> &'static str {
        self.info().name
    }

    /// The family.
    #[inline]
    pub fn kind(self) -> Kind {
        self.info().kind
    }

    /// Is it a data-management instruction?
    #[inline]
    pub fn is_system(self) -> bool {
        self.kind() == Kind::System
    }

    /// Is it an extension method's?
    #[inline]
    pub fn is_extension(self) -> bool {
        self.0 >= Self::FIRST_EXTENSION
    }

    /// Does it read its output operand too (scatters)?
    #[inline]
    pub fn reads_output(self) -> bool {
        matches!(self.info().signature, Signature::Scatter | Signature::ScatterMask)
    }

    /// For a reduction or an accumulate, the elementwise opcode that combines two elements: `Add` for `AddReduce`.
    pub fn combiner(self) -> Option<Opcode> {
        let info = self.info();
        if !matches!(info.kind, Kind::Reduction | Kind::Accumulate) {
            return None;
        }
        let covers = |row: &&Info| {
            row.kind == Kind::Elementwise && row.scalar == info.scalar && row.types.0 & info.types.0 == info.types.0
        };
        TABLE.iter().find(covers).map(|row| row.opcode)
    }

    /// For a masked reduction, the reduction of all elements: `AddReduce` for `MaskedAddReduce`.
    pub fn unmasked(self) -> Option<Opcode> {
        let info = self.info();
        let plain =
            |row: &&Info| row.signature == Signature::Reduce && row.scalar == info.scalar && row.types == info.types;
        (info.signature == Signature::Masked).then(|| TABLE.iter().find(plain).map(|row| row.opcode))?
    }

    /// The reduction of one input that folds what a reduction of two makes of them: `AddReduce` for `Contract`; of one input, itself.
    pub fn fold_of_one(self) -> Opcode {
        if self == Opcode::Contract { Opcode::AddReduce } else { self.unmasked().unwrap_or(self) }
    }

    /// For a reduction of all elements, the one of those that a mask chooses, if there is one.
    pub fn masked(self) -> Option<Opcode> {
        TABLE.iter().map(|row| row.opcode).find(|opcode| opcode.unmasked() == Some(self))
    }

    /// May an elementwise operation have this parameter? The exponent of POWI; of COPY the rule for floats beyond an integer
    /// type: 0 they saturate, 1 as NumPy's on x86-64, 2 as NumPy's on AArch64; of functions with variants, [`SAME_BITS`] or 0; else 0.
    pub fn takes_param(self, param: u16) -> bool {
        match self {
            Opcode::Powi => (2..=5).contains(&param),
            Opcode::Copy => param <= 2,
            _ => param == 0 || param == SAME_BITS && self.has_variants(),
        }
    }

    /// Do engines compute this function of floats or complex numbers each in a way of its own, with bits of its own? Sums at indices
    /// are among them: ranks may add sums of shares.
    pub fn has_variants(self) -> bool {
        let others = [Opcode::Absolute, Opcode::Sign, Opcode::Sqrt, Opcode::Erfc, Opcode::ScatterAdd];
        others.contains(&self) || FUNCTIONS.contains(&self)
    }

    /// Are these operand types legal? Index views and keys have no type and are left out of `inputs`.
    pub fn check_types(self, output: DType, inputs: &[DType]) -> bool {
        let info = self.info();
        let legal = |dtype: DType| info.types.contains(dtype);
        match (info.signature, inputs) {
            (Signature::Same, inputs) => {
                inputs.len() == info.inputs as usize && legal(output) && inputs.iter().all(|&input| input == output)
            }
            (Signature::Test, inputs) => {
                output == DType::Bool
                    && inputs.len() == info.inputs as usize
                    && inputs.iter().all(|&input| input == inputs[0] && legal(input))
            }
            (Signature::Abs | Signature::Part, &[input]) => legal(input) && output == input.real_part(),
            (Signature::Cast, &[input]) => !input.is_complex() || output.is_complex(),
            (Signature::Select, &[mask, a, b]) => mask == DType::Bool && a == output && b == output,
            (Signature::Reduce, &[input]) => legal(input) && output == input,
            (Signature::Masked, &[input, mask]) => legal(input) && output == input && mask == DType::Bool,
            (Signature::Product, &[a, b]) => legal(a) && output == a && output == b,
            (Signature::Index | Signature::Random, &[]) => legal(output),
            (Signature::Gather | Signature::Scatter, &[value, index]) => {
                value == output && TypeSet::INDEX.contains(index)
            }
            (Signature::ScatterMask, &[value, index, mask]) => {
                value == output && TypeSet::INDEX.contains(index) && mask == DType::Bool
            }
            (Signature::System, &[]) | (Signature::Extension, _) => true,
            _ => false,
        }
    }
}

impl fmt::Debug for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_extension() { write!(f, "extension#{}", self.0) } else { f.write_str(self.name()) }
    }
}

impl fmt::Display for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn codes_and_names_are_unique_and_found() {
        let mut codes = HashSet::new();
        let mut names = HashSet::new();
        for &opcode in Opcode::ALL {
            let info = opcode.info();
            assert_eq!(info.opcode, opcode);
            assert!(codes.insert(opcode.0) && names.insert(info.name), "{opcode} occurs twice");
            assert_eq!(Opcode::from_code(opcode.0), Some(opcode));
            assert_eq!(Opcode::from_name(info.name), Some(opcode));
        }
        assert_eq!(Opcode::from_code(0), None);
        assert!(Opcode(Opcode::FIRST_EXTENSION + 1).is_extension());
    }

    #[test]
    fn reductions_and_accumulates_have_combiners_and_neutral_elements() {
        for &opcode in Opcode::ALL {
            let info = opcode.info();
            let folds = matches!(info.kind, Kind::Reduction | Kind::Accumulate);
            assert_eq!(opcode.combiner().is_some(), folds, "{opcode}");
            assert_eq!(info.neutral != "none", folds, "{opcode}");
            if let Some(combiner) = opcode.combiner() {
                assert!(info.types.iter().all(|dtype| combiner.check_types(dtype, &[dtype, dtype])), "{opcode}");
            }
        }
        assert_eq!(Opcode::AddReduce.combiner(), Some(Opcode::Add));
        assert_eq!(Opcode::LogicalAndReduce.combiner(), Some(Opcode::LogicalAnd));
        assert_eq!(Opcode::BitwiseXorReduce.combiner(), Some(Opcode::BitwiseXor));
        assert_eq!(Opcode::MaskedMinimumReduce.combiner(), Some(Opcode::Minimum));
        assert_eq!(Opcode::MaskedMinimumReduce.unmasked(), Some(Opcode::MinimumReduce));
        assert_eq!(Opcode::Contract.combiner(), Some(Opcode::Add));
        let folds = [Opcode::Contract, Opcode::MaskedAddReduce, Opcode::AddReduce].map(Opcode::fold_of_one);
        assert_eq!(folds, [Opcode::AddReduce; 3]);
        assert_eq!((Opcode::AddReduce.masked(), Opcode::AddReduce.unmasked()), (Some(Opcode::MaskedAddReduce), None));
    }

    #[test]
    fn front_ends_call_each_operation_by_a_name_of_its_own() {
        for name_of in [|info: &Info| info.csharp, |info: &Info| info.numpy, |info: &Info| info.minimatlab] {
            let names: Vec<&str> =
                Opcode::ALL.iter().map(|opcode| name_of(opcode.info())).filter(|n| !n.is_empty()).collect();
            assert!(names.len() > 20 && names.iter().collect::<HashSet<_>>().len() == names.len(), "{names:?}");
        }
        assert_eq!(Opcode::from_minimatlab("fix"), Some(Opcode::Trunc));
        assert_eq!((Opcode::from_minimatlab("trunc"), Opcode::from_minimatlab("")), (None, None));
    }

    #[test]
    fn expressions_mention_every_input() {
        for info in Opcode::ALL.iter().map(|opcode| opcode.info()) {
            if info.kind == Kind::Elementwise {
                for input in 0..info.inputs {
                    assert!(info.expression.contains(&format!("{{{input}}}")), "{}", info.name);
                }
            }
        }
    }

    #[test]
    fn types_are_checked() {
        use DType::*;
        assert!(Opcode::Add.check_types(F32, &[F32, F32]));
        assert!(!Opcode::Add.check_types(F32, &[F32, F64]) && !Opcode::Add.check_types(F32, &[F32]));
        assert!(!Opcode::Subtract.check_types(Bool, &[Bool, Bool]));
        assert!(Opcode::Less.check_types(Bool, &[I8, I8]) && !Opcode::Less.check_types(I8, &[I8, I8]));
        assert!(Opcode::Absolute.check_types(F32, &[C64]) && Opcode::Absolute.check_types(U8, &[U8]));
        assert!(Opcode::Copy.check_types(C64, &[F64]) && !Opcode::Copy.check_types(F64, &[C64]));
        assert!(Opcode::Where.check_types(I8, &[Bool, I8, I8]) && !Opcode::Where.check_types(I8, &[I8, I8, I8]));
        assert!(Opcode::Gather.check_types(C64, &[C64, U64]) && !Opcode::Gather.check_types(C64, &[C64, I32]));
        assert!(Opcode::CondScatter.check_types(F32, &[F32, I64, Bool]));
        assert!(Opcode::Range.check_types(I8, &[]) && !Opcode::Range.check_types(C64, &[]));
    }
}
