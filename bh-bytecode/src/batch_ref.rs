//! Queries about the tables of a borrowed batch.

use crate::batch::{Attribute, Base, Batch, BatchRef, Block, Instr, Operand, Rename};
use crate::dtype::DType;
use crate::for_each_table;
use crate::opcode::Opcode;
use crate::view::View;

impl<'a> BatchRef<'a> {
    /// Copies the tables.
    pub fn to_owned(&self) -> Batch {
        macro_rules! copy {
            ($($table:ident),*) => { Batch { $($table: self.$table.to_vec(),)* header: self.header } };
        }
        for_each_table!(copy)
    }

    /// The extents of a view.
    #[inline]
    pub fn shape(&self, view: u32) -> &'a [i64] {
        let record = &self.views[view as usize];
        &self.dims[record.dims as usize..][..record.rank as usize]
    }

    /// The strides of a view, in elements.
    #[inline]
    pub fn stride(&self, view: u32) -> &'a [i64] {
        let record = &self.views[view as usize];
        &self.dims[record.dims as usize + record.rank as usize..][..record.rank as usize]
    }

    /// A view as a value. Validated batches hold only legal views.
    pub fn view(&self, view: u32) -> View {
        let record = &self.views[view as usize];
        View::new(record.start, self.shape(view), self.stride(view)).expect("views are checked where batches enter")
    }

    /// The base of a view; `None` for an index view.
    #[inline]
    pub fn base_of(&self, view: u32) -> Option<&'a Base> {
        self.bases.get(self.views[view as usize].base as usize)
    }

    /// The element type of an operand; `None` for an index view.
    #[inline]
    pub fn dtype(&self, operand: Operand) -> Option<DType> {
        match operand.as_view() {
            Some(view) => self.base_of(view).map(Base::dtype),
            None => self.constants.get(operand.as_constant()? as usize).and_then(|c| DType::from_code(c.dtype)),
        }
    }

    /// The instruction indices of a block.
    #[inline]
    pub fn block_instrs(&self, block: &Block) -> &'a [u32] {
        &self.block_instrs[block.instrs as usize..][..block.instr_count as usize]
    }

    /// The contracted bases (indices) of a block.
    #[inline]
    pub fn contracted(&self, block: &Block) -> &'a [u32] {
        &self.contracted[block.contracted as usize..][..block.contracted_count as usize]
    }

    /// The renames of a block.
    #[inline]
    pub fn renames(&self, block: &Block) -> &'a [Rename] {
        &self.renames[block.renames as usize..][..block.rename_count as usize]
    }

    /// The views that a rename leaves uncovered.
    #[inline]
    pub fn uncovered(&self, rename: &Rename) -> &'a [u32] {
        &self.rename_views[rename.uncovered as usize..][..rename.uncovered_count as usize]
    }

    /// The file and line where an instruction was recorded, if known.
    pub fn origin(&self, instr: &Instr) -> Option<(&'a str, u32)> {
        let origin = self.origins.get((instr.origin as usize).checked_sub(1)?)?;
        Some((self.string(origin.file, origin.file_len)?, origin.line))
    }

    /// The name of the extension method with this opcode.
    pub fn extension_name(&self, opcode: Opcode) -> Option<&'a str> {
        let extension = self.extensions.iter().find(|extension| extension.opcode == opcode)?;
        self.string(extension.name, extension.name_len)
    }

    /// The name of an operation as people see it, of extension methods too.
    pub fn operation_name(&self, opcode: Opcode) -> &'a str {
        self.extension_name(opcode).map_or(opcode.name(), crate::methods::shown)
    }

    /// The attributes of a use of an extension method; empty for other instructions.
    pub fn attributes(&self, instr: &Instr) -> &'a [Attribute] {
        let count = if instr.opcode.is_extension() { usize::from(instr.param) } else { 0 };
        self.attributes.get(instr.attributes as usize..).and_then(|rest| rest.get(..count)).unwrap_or_default()
    }

    /// The value of an attribute of a use of an extension method.
    pub fn attribute(&self, instr: &Instr, name: &str) -> Option<i64> {
        let found = self.attributes(instr).iter().find(|attribute| self.attribute_name(attribute) == Some(name))?;
        Some(found.value)
    }

    /// The name of an attribute.
    pub fn attribute_name(&self, attribute: &Attribute) -> Option<&'a str> {
        self.string(attribute.name, attribute.name_len)
    }

    fn string(&self, offset: u32, len: u32) -> Option<&'a str> {
        std::str::from_utf8(self.strings.get(offset as usize..)?.get(..len as usize)?).ok()
    }
}
