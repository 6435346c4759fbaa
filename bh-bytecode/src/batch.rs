//! Batches: flat, pointer-free tables of bases, views, instructions, constants and origins, and the kernel partition
//! that the fuser adds.
//!
//! [`Batch`] owns the tables; [`BatchRef`] borrows them and is what crosses component boundaries. Every record is
//! `#[repr(C)]`, so dumping, hashing and sending a batch are copies of plain bytes.

use crate::dtype::DType;
use crate::opcode::Opcode;
use crate::view::View;

/// The `base` of an index view, which addresses no memory.
pub const NO_BASE: u32 = u32::MAX;

/// The slot of a base that lives in one batch only.
pub const NO_SLOT: u32 = u32::MAX;

/// The most operands of one instruction.
pub const MAX_OPERANDS: usize = 8;

/// Access modes of `map` and `acquire`, combined by or.
pub mod access {
    /// The current values are needed.
    pub const READ: u32 = 1;
    /// They will change.
    pub const WRITE: u32 = 2;
    /// None of the current values is needed: all will be overwritten. Clears poison.
    pub const DISCARD: u32 = 4;
    /// With READ alone: the content stays as it is while the loan lasts, whatever is written to the base meanwhile.
    pub const STABLE: u32 = 8;
}

/// Flags of [`Base::flags`].
pub mod base_flags {
    /// The buffer is the user's or exported: it never moves.
    pub const PINNED: u32 = 1;
    /// No data existed before this batch.
    pub const BORN: u32 = 2;
    /// The batch drops the base or its data.
    pub const DIES: u32 = 4;
    /// The data may be read after this batch.
    pub const LIVE_OUT: u32 = 8;
}

/// A flat array that views look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Base {
    /// Identity, never reused within a context.
    pub id: u64,
    /// Elements.
    pub len: i64,
    /// Elements per outermost index of the view that first writes the base; 0 if unknown.
    pub row_hint: i64,
    /// Element type, a [`DType`] discriminant.
    pub dtype: u8,
    /// Zero.
    pub reserved: [u8; 3],
    /// Bits of [`base_flags`].
    pub flags: u32,
}

/// Bytes of a base, at most: what processors address. Rounding to pages and sums over some arrays fit 64 bits.
pub const MAX_BASE_BYTES: u64 = 1 << 56;

/// The bytes of `len` elements of a base; `None` if `len` is negative or the bytes are more than [`MAX_BASE_BYTES`].
#[inline]
pub fn base_bytes(dtype: DType, len: i64) -> Option<u64> {
    let bytes = u64::try_from(len).ok()?.checked_mul(dtype.size() as u64)?;
    (bytes <= MAX_BASE_BYTES).then_some(bytes)
}

impl Base {
    /// A base without flags.
    ///
    /// # Panics
    /// Where [`Base::checked`] has none. For lengths that the program itself chose.
    pub fn new(id: u64, dtype: DType, len: i64) -> Base {
        Base::checked(id, dtype, len).expect("the base's bytes fit")
    }

    /// A base without flags; `None` if [`base_bytes`] has no bytes for it.
    #[inline]
    pub fn checked(id: u64, dtype: DType, len: i64) -> Option<Base> {
        base_bytes(dtype, len)?;
        Some(Base { id, len, row_hint: 0, dtype: dtype as u8, reserved: [0; 3], flags: 0 })
    }

    /// The element type. Validated batches hold only legal discriminants.
    #[inline]
    pub fn dtype(&self) -> DType {
        DType::from_code(self.dtype).unwrap_or(DType::Bool)
    }

    /// Is a flag of [`base_flags`] set?
    #[inline]
    pub fn has(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }

    /// Bytes of the whole base. A base that neither [`Base::checked`] made nor validation saw may have more than
    /// `MAX_BASE_BYTES`, which is returned then.
    #[inline]
    pub fn bytes(&self) -> u64 {
        base_bytes(self.dtype(), self.len).unwrap_or(MAX_BASE_BYTES)
    }
}

/// A view in a batch's table; its extents and strides are `dims[dims_start..][..2 * rank]`, extents first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct ViewRec {
    /// Index of the base in the batch, or [`NO_BASE`] for an index view.
    pub base: u32,
    /// Dimensions.
    pub rank: u32,
    /// Offset of element (0,…,0).
    pub start: i64,
    /// Number of elements.
    pub len: i64,
    /// Where its dimensions begin in the pool.
    pub dims: u32,
    /// Zero.
    pub reserved: u32,
}

/// An operand: the index of a view, or of a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Operand(pub u32);

impl Operand {
    /// No operand.
    pub const NONE: Operand = Operand(u32::MAX);
    const CONSTANT: u32 = 1 << 31;

    /// The view with this index.
    pub const fn view(index: u32) -> Operand {
        Operand(index)
    }

    /// The constant with this index.
    pub const fn constant(index: u32) -> Operand {
        Operand(index | Self::CONSTANT)
    }

    /// The view's index, if it is a view.
    #[inline]
    pub const fn as_view(self) -> Option<u32> {
        if self.0 & Self::CONSTANT == 0 { Some(self.0) } else { None }
    }

    /// The constant's index, if it is a constant.
    #[inline]
    pub const fn as_constant(self) -> Option<u32> {
        if self.0 & Self::CONSTANT != 0 && self.0 != u32::MAX { Some(self.0 & !Self::CONSTANT) } else { None }
    }
}

impl Default for Operand {
    fn default() -> Operand {
        Operand::NONE
    }
}

/// One instruction; operands are outputs first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Instr {
    /// An [`Opcode`] number.
    pub opcode: Opcode,
    /// Reductions and accumulates: bit mask of axes of the input. POWI: the exponent. COPY: the rule for floats
    /// beyond an integer type, see [`Opcode::takes_param`]. Functions that engines
    /// compute each in a way of its own, and SCATTER_ADD: 1 if their bits are to be the same on all engines. Extension methods:
    /// the number of attributes. Else 0.
    pub param: u16,
    /// Operands in use.
    pub count: u8,
    /// How many of them are outputs (1, or 0 for none; extension methods may have more).
    pub outputs: u8,
    /// Reductions: in which order they take the elements of the input; 0 is C order. Folds of equal order give equal
    /// bits on one engine; an engine that groups elements in a way of its own may ignore it, unless it is 0xC000 or more: the
    /// order of a fixed tree, which all engines have or refuse. Accumulates: 0, or 0xC000 for a fixed tree. Else 0.
    pub order: u16,
    /// Index into the origins plus one, or 0 if unknown.
    pub origin: u32,
    /// The operands; unused places hold [`Operand::NONE`].
    pub operands: [Operand; MAX_OPERANDS],
    /// Extension methods: where their attributes begin in the table; `param` counts them. Else 0.
    pub attributes: u32,
}

impl Instr {
    /// An instruction with one output, or none for data management.
    pub fn new(opcode: Opcode, operands: &[Operand]) -> Instr {
        let mut all = [Operand::NONE; MAX_OPERANDS];
        all[..operands.len()].copy_from_slice(operands);
        let outputs = u8::from(!opcode.is_system());
        Instr {
            opcode,
            param: 0,
            count: operands.len() as u8,
            outputs,
            order: 0,
            origin: 0,
            operands: all,
            attributes: 0,
        }
    }

    /// All operands, outputs first.
    #[inline]
    pub fn operands(&self) -> &[Operand] {
        &self.operands[..self.count as usize]
    }

    /// All operands, to be changed.
    #[inline]
    pub fn operands_mut(&mut self) -> &mut [Operand] {
        &mut self.operands[..self.count as usize]
    }

    /// The outputs. Data management has none, although its one operand names the base.
    #[inline]
    pub fn outputs(&self) -> &[Operand] {
        &self.operands[..self.outputs as usize]
    }

    /// The inputs.
    #[inline]
    pub fn inputs(&self) -> &[Operand] {
        &self.operands[self.outputs as usize..self.count as usize]
    }
}

/// A scalar of any element type: its bytes in the machine's order, zero-padded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Constant {
    /// The value's bytes.
    pub bits: [u64; 2],
    /// A [`DType`] discriminant.
    pub dtype: u8,
    /// Zero.
    pub reserved: [u8; 7],
}

/// Where in the user's program an instruction was recorded; the file name lies in the string pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Origin {
    /// Byte offset of the file name.
    pub file: u32,
    /// Bytes of the file name.
    pub file_len: u32,
    /// Line, from 1; 0 if unknown.
    pub line: u32,
}

/// An extension method that the batch uses; its name lies in the string pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Extension {
    /// The number assigned by the host.
    pub opcode: Opcode,
    /// Zero.
    pub reserved: u16,
    /// Byte offset of the name.
    pub name: u32,
    /// Bytes of the name.
    pub name_len: u32,
}

/// A setting of one use of an extension method, an axis or a flag; its name lies in the string pool. Attributes are part
/// of a batch's structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Attribute {
    /// The value.
    pub value: i64,
    /// Byte offset of the name.
    pub name: u32,
    /// Bytes of the name.
    pub name_len: u32,
}

/// The host's facts about a batch as a whole. All zero: nothing is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct BatchHeader {
    /// The 128-bit hash of the key that the batch carries, low word first; zero without a key. Clear both if you change
    /// the structure of a batch.
    pub signature: [u64; 2],
    /// How often batches of this structure came before in this context, as far as that is remembered.
    pub seen: u32,
    /// How much planning may cost: 0 leaves it to each component, 1 asks for the least, higher ones for more.
    pub level: u32,
    /// The slot numbers of bases are smaller than this.
    pub slot_count: u32,
    /// Zero.
    pub reserved: u32,
}

/// A kernel of the partition: ranges into the batch's `block_instrs`, `contracted` and `renames`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Block {
    /// First entry in `block_instrs`; the instructions of a block are in a legal order of execution.
    pub instrs: u32,
    /// Number of instructions.
    pub instr_count: u32,
    /// First entry in `contracted`.
    pub contracted: u32,
    /// Bases (indices) whose data never leaves the block and needs no memory.
    pub contracted_count: u32,
    /// First entry in `renames`.
    pub renames: u32,
    /// Number of renames.
    pub rename_count: u32,
}

/// The block writes a fresh buffer of `base` while its reads see the old one; afterwards the fresh one replaces it.
/// Elements that the block's writes leave uncovered are copied over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Rename {
    /// The base (index) that gets a fresh buffer.
    pub base: u32,
    /// First entry in `rename_views`: views of `base` that must be copied from the old buffer.
    pub uncovered: u32,
    /// Number of uncovered views.
    pub uncovered_count: u32,
    /// A base (index) that the program still holds and whose whole content equals `alias_view` of the fresh buffer, so
    /// that it needs no memory of its own until one of them changes; [`NO_BASE`] if none.
    pub alias: u32,
    /// The view (index) of `base` that `alias` equals, in C order.
    pub alias_view: u32,
}

/// Calls `callback!(tables…)` with the names of the tables of a batch, in the order that dump files have them.
#[macro_export]
macro_rules! for_each_table {
    ($callback:ident) => {
        $callback!(
            bases,
            views,
            dims,
            instrs,
            constants,
            origins,
            extensions,
            strings,
            blocks,
            block_instrs,
            contracted,
            renames,
            rename_views,
            attributes,
            key,
            slots
        )
    };
}

/// The tables of a batch, owned.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    /// Bases.
    pub bases: Vec<Base>,
    /// Interned views: equal views are one entry.
    pub views: Vec<ViewRec>,
    /// Extents and strides of the views.
    pub dims: Vec<i64>,
    /// Instructions in program order.
    pub instrs: Vec<Instr>,
    /// Constants.
    pub constants: Vec<Constant>,
    /// Source locations.
    pub origins: Vec<Origin>,
    /// Extension methods in use.
    pub extensions: Vec<Extension>,
    /// File and method names, UTF-8.
    pub strings: Vec<u8>,
    /// The kernel partition, in a legal order of execution; empty before the fuser.
    pub blocks: Vec<Block>,
    /// Instruction indices of the blocks.
    pub block_instrs: Vec<u32>,
    /// Contracted bases of the blocks.
    pub contracted: Vec<u32>,
    /// Renames of the blocks.
    pub renames: Vec<Rename>,
    /// Uncovered views of the renames.
    pub rename_views: Vec<u32>,
    /// Attributes of extension methods.
    pub attributes: Vec<Attribute>,
    /// The key of the structure, see [`structure`](crate::structure), made once where the batch is recorded; empty if it was
    /// not. Equal keys mean equal structure.
    pub key: Vec<u64>,
    /// For each base that lives on a small number, which it keeps while it lives and another one gets after it, so that the
    /// batches of a loop are equal. A base that is born in the batch may have the number of one that dies in it. [`NO_SLOT`]
    /// for bases of this batch alone. Empty if there are none.
    pub slots: Vec<u32>,
    /// Facts about the whole batch.
    pub header: BatchHeader,
}

/// The tables of a batch, borrowed.
#[derive(Clone, Copy, Debug)]
pub struct BatchRef<'a> {
    /// See [`Batch::bases`].
    pub bases: &'a [Base],
    /// See [`Batch::views`].
    pub views: &'a [ViewRec],
    /// See [`Batch::dims`].
    pub dims: &'a [i64],
    /// See [`Batch::instrs`].
    pub instrs: &'a [Instr],
    /// See [`Batch::constants`].
    pub constants: &'a [Constant],
    /// See [`Batch::origins`].
    pub origins: &'a [Origin],
    /// See [`Batch::extensions`].
    pub extensions: &'a [Extension],
    /// See [`Batch::strings`].
    pub strings: &'a [u8],
    /// See [`Batch::blocks`].
    pub blocks: &'a [Block],
    /// See [`Batch::block_instrs`].
    pub block_instrs: &'a [u32],
    /// See [`Batch::contracted`].
    pub contracted: &'a [u32],
    /// See [`Batch::renames`].
    pub renames: &'a [Rename],
    /// See [`Batch::rename_views`].
    pub rename_views: &'a [u32],
    /// See [`Batch::attributes`].
    pub attributes: &'a [Attribute],
    /// See [`Batch::key`].
    pub key: &'a [u64],
    /// See [`Batch::slots`].
    pub slots: &'a [u32],
    /// See [`Batch::header`].
    pub header: BatchHeader,
}

impl Batch {
    /// Borrows the tables.
    pub fn as_ref(&self) -> BatchRef<'_> {
        macro_rules! borrow {
            ($($table:ident),*) => { BatchRef { $($table: &self.$table,)* header: self.header } };
        }
        for_each_table!(borrow)
    }

    /// Appends a base and returns its index.
    pub fn push_base(&mut self, base: Base) -> u32 {
        self.bases.push(base);
        (self.bases.len() - 1) as u32
    }

    /// Appends a view in canonical form without looking for an equal one; see [`Batch::intern_view`].
    pub fn push_view(&mut self, base: u32, view: &View) -> u32 {
        let view = view.canonical();
        let dims = self.dims.len() as u32;
        self.dims.extend_from_slice(view.shape());
        self.dims.extend_from_slice(view.stride());
        let rank = view.rank() as u32;
        self.views.push(ViewRec { base, rank, start: view.start(), len: view.len(), dims, reserved: 0 });
        (self.views.len() - 1) as u32
    }

    /// The index of this view, appended if no equal one is there (by linear search; the recorder has a hash table).
    pub fn intern_view(&mut self, base: u32, view: &View) -> u32 {
        let view = view.canonical();
        let batch = self.as_ref();
        let equal = |&index: &usize| {
            let index = index as u32;
            let record = &batch.views[index as usize];
            record.base == base
                && record.start == view.start()
                && batch.shape(index) == view.shape()
                && batch.stride(index) == view.stride()
        };
        match (0..self.views.len()).find(equal) {
            Some(index) => index as u32,
            None => self.push_view(base, &view),
        }
    }

    /// Appends a constant and returns its index.
    pub fn push_constant(&mut self, constant: Constant) -> u32 {
        self.constants.push(constant);
        (self.constants.len() - 1) as u32
    }

    /// Appends an instruction and returns its index.
    pub fn push_instr(&mut self, instr: Instr) -> u32 {
        self.instrs.push(instr);
        (self.instrs.len() - 1) as u32
    }

    /// Appends a string to the pool and returns (offset, bytes).
    pub fn push_string(&mut self, text: &str) -> (u32, u32) {
        let offset = self.strings.len() as u32;
        self.strings.extend_from_slice(text.as_bytes());
        (offset, text.len() as u32)
    }

    /// Gives an extension method appended last an attribute.
    pub fn push_attribute(&mut self, name: &str, value: i64) {
        let (name, name_len) = self.push_string(name);
        if let Some(instr) = self.instrs.last_mut() {
            if instr.param == 0 {
                instr.attributes = self.attributes.len() as u32;
            }
            instr.param += 1;
            self.attributes.push(Attribute { value, name, name_len });
        }
    }

    /// Forgets what is known of the batch as a whole, as its structure has changed.
    pub fn forget_structure(&mut self) {
        self.header = BatchHeader { level: self.header.level, ..BatchHeader::default() };
        self.key.clear();
        self.slots.clear();
    }

    /// Appends a block of the partition with these instructions, contracted bases and no renames.
    pub fn push_block(&mut self, instrs: &[u32], contracted: &[u32]) {
        self.blocks.push(Block {
            instrs: self.block_instrs.len() as u32,
            instr_count: instrs.len() as u32,
            contracted: self.contracted.len() as u32,
            contracted_count: contracted.len() as u32,
            renames: self.renames.len() as u32,
            rename_count: 0,
        });
        self.block_instrs.extend_from_slice(instrs);
        self.contracted.extend_from_slice(contracted);
    }

    /// Adds a rename to the block appended last.
    pub fn push_rename(&mut self, base: u32, uncovered: &[u32], alias: Option<(u32, u32)>) {
        let (alias, alias_view) = alias.unwrap_or((NO_BASE, 0));
        let (first, count) = (self.rename_views.len() as u32, uncovered.len() as u32);
        self.renames.push(Rename { base, uncovered: first, uncovered_count: count, alias, alias_view });
        self.rename_views.extend_from_slice(uncovered);
        if let Some(block) = self.blocks.last_mut() {
            block.rename_count += 1;
        }
    }

    /// Empties all tables, keeping their memory.
    pub fn clear(&mut self) {
        macro_rules! clear {
            ($($table:ident),*) => {{
                let Batch { $($table,)* header } = self;
                $($table.clear();)*
                *header = BatchHeader::default();
            }};
        }
        for_each_table!(clear);
    }
}
