//! Element types.

use std::fmt;

/// The type of an array's elements. The discriminants cross the C ABI and are stored in dumped batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum DType {
    /// A truth value, one byte: 0 is false, and any other byte true. Results of bh are 0 or 1.
    Bool = 0,
    /// 8-bit signed integer.
    I8 = 1,
    /// 16-bit signed integer.
    I16 = 2,
    /// 32-bit signed integer.
    I32 = 3,
    /// 64-bit signed integer.
    I64 = 4,
    /// 8-bit unsigned integer.
    U8 = 5,
    /// 16-bit unsigned integer.
    U16 = 6,
    /// 32-bit unsigned integer.
    U32 = 7,
    /// 64-bit unsigned integer.
    U64 = 8,
    /// IEEE binary32.
    F32 = 9,
    /// IEEE binary64.
    F64 = 10,
    /// Complex of two binary32.
    C64 = 11,
    /// Complex of two binary64.
    C128 = 12,
}

/// A set of element types, one bit per [`DType`] discriminant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypeSet(pub u16);

impl TypeSet {
    /// bool only.
    pub const BOOL: TypeSet = TypeSet(1);
    /// Signed integers.
    pub const SIGNED: TypeSet = TypeSet(0b1_1110);
    /// Unsigned integers.
    pub const UNSIGNED: TypeSet = TypeSet(0b1_1110_0000);
    /// All integers.
    pub const INT: TypeSet = TypeSet(Self::SIGNED.0 | Self::UNSIGNED.0);
    /// Real floating-point types.
    pub const FLOAT: TypeSet = TypeSet(0b110_0000_0000);
    /// Complex types.
    pub const COMPLEX: TypeSet = TypeSet(0b1_1000_0000_0000);
    /// Integers and floats.
    pub const REAL: TypeSet = TypeSet(Self::INT.0 | Self::FLOAT.0);
    /// Everything but bool.
    pub const NUMERIC: TypeSet = TypeSet(Self::REAL.0 | Self::COMPLEX.0);
    /// Everything but complex.
    pub const ORDERED: TypeSet = TypeSet(Self::BOOL.0 | Self::REAL.0);
    /// bool and integers.
    pub const BITS: TypeSet = TypeSet(Self::BOOL.0 | Self::INT.0);
    /// Floats and complex.
    pub const INEXACT: TypeSet = TypeSet(Self::FLOAT.0 | Self::COMPLEX.0);
    /// Signed integers, floats and complex.
    pub const SIGNED_NUMERIC: TypeSet = TypeSet(Self::SIGNED.0 | Self::INEXACT.0);
    /// All thirteen types.
    pub const ALL: TypeSet = TypeSet(0x1fff);
    /// Types that hold raw random bits or uniform random numbers.
    pub const RANDOM: TypeSet = TypeSet((1 << DType::U32 as u16) | (1 << DType::U64 as u16) | Self::FLOAT.0);
    /// Index types of gather and scatter.
    pub const INDEX: TypeSet = TypeSet((1 << DType::I64 as u16) | (1 << DType::U64 as u16));

    /// Is `dtype` in the set?
    pub const fn contains(self, dtype: DType) -> bool {
        self.0 >> (dtype as u16) & 1 == 1
    }

    /// The members, in the order of their discriminants.
    pub fn iter(self) -> impl Iterator<Item = DType> {
        DType::ALL.into_iter().filter(move |&dtype| self.contains(dtype))
    }
}

impl DType {
    /// All types, in the order of their discriminants.
    pub const ALL: [DType; 13] = [
        DType::Bool,
        DType::I8,
        DType::I16,
        DType::I32,
        DType::I64,
        DType::U8,
        DType::U16,
        DType::U32,
        DType::U64,
        DType::F32,
        DType::F64,
        DType::C64,
        DType::C128,
    ];

    /// The type with the given discriminant.
    pub const fn from_code(code: u8) -> Option<DType> {
        if (code as usize) < Self::ALL.len() { Some(Self::ALL[code as usize]) } else { None }
    }

    /// Bytes per element.
    pub const fn size(self) -> usize {
        match self {
            DType::Bool | DType::I8 | DType::U8 => 1,
            DType::I16 | DType::U16 => 2,
            DType::I32 | DType::U32 | DType::F32 => 4,
            DType::I64 | DType::U64 | DType::F64 | DType::C64 => 8,
            DType::C128 => 16,
        }
    }

    /// The short name, as in the text form of batches: `f64`.
    pub const fn name(self) -> &'static str {
        match self {
            DType::Bool => "bool",
            DType::I8 => "i8",
            DType::I16 => "i16",
            DType::I32 => "i32",
            DType::I64 => "i64",
            DType::U8 => "u8",
            DType::U16 => "u16",
            DType::U32 => "u32",
            DType::U64 => "u64",
            DType::F32 => "f32",
            DType::F64 => "f64",
            DType::C64 => "c64",
            DType::C128 => "c128",
        }
    }

    /// NumPy's name of the type: `float64`.
    pub const fn numpy_name(self) -> &'static str {
        match self {
            DType::Bool => "bool",
            DType::I8 => "int8",
            DType::I16 => "int16",
            DType::I32 => "int32",
            DType::I64 => "int64",
            DType::U8 => "uint8",
            DType::U16 => "uint16",
            DType::U32 => "uint32",
            DType::U64 => "uint64",
            DType::F32 => "float32",
            DType::F64 => "float64",
            DType::C64 => "complex64",
            DType::C128 => "complex128",
        }
    }

    /// The type with the given short name.
    pub fn from_name(name: &str) -> Option<DType> {
        Self::ALL.into_iter().find(|dtype| dtype.name() == name)
    }

    /// Is it a floating-point type (real)?
    pub const fn is_float(self) -> bool {
        TypeSet::FLOAT.contains(self)
    }

    /// Is it a complex type?
    pub const fn is_complex(self) -> bool {
        TypeSet::COMPLEX.contains(self)
    }

    /// Is it an integer type (bool excluded)?
    pub const fn is_int(self) -> bool {
        TypeSet::INT.contains(self)
    }

    /// Is it a signed integer type?
    pub const fn is_signed_int(self) -> bool {
        TypeSet::SIGNED.contains(self)
    }

    /// The type of the parts of a complex type; any other type is returned as it is.
    pub const fn real_part(self) -> DType {
        match self {
            DType::C64 => DType::F32,
            DType::C128 => DType::F64,
            other => other,
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
