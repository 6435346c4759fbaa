//! Extension methods on the device: matrix products, and kernels of the user.
//!
//! A user's kernel is a file of OpenCL C with a kernel of the method's name. Its arguments are one buffer for each operand,
//! outputs first, and then `__global const long *views`, which has [`RECORD`] numbers for each operand: elements, offset of
//! the first one in its buffer, dimensions, 16 extents, 16 strides. It runs with one item, or some more, for each element
//! of the first output.

use crate::code::{self, Code, Place, Target, Variant};
use bh_bytecode::{BatchRef, MAX_RANK, Opcode};
use bh_core::abi::status;
use bh_core::{Error, Result};
use bh_kernel::BufferRef;

/// Numbers that describe an operand.
const RECORD: usize = 3 + 2 * MAX_RANK;

/// The methods that the device knows.
#[derive(Default)]
pub(crate) struct Methods {
    user: Vec<User>,
    /// Names of methods that users load into other components.
    elsewhere: Vec<String>,
    known: Vec<(Opcode, Known)>,
}

struct User {
    name: String,
    text: String,
}

#[derive(Clone, Copy)]
enum Known {
    Product,
    User(usize),
}

impl Methods {
    /// Loads a user's kernel from a file.
    pub(crate) fn load(&mut self, name: &str, file: &str) -> Result<()> {
        let text = std::fs::read_to_string(file).map_err(|why| {
            Error::new(status::FILE, format!("extension method '{name}': '{file}' cannot be read: {why}"))
        })?;
        if !text.contains("__kernel") || !text.contains(name) {
            let text = format!("extension method '{name}': '{file}' has no kernel of this name");
            return Err(Error::new(status::FILE, text));
        }
        // Kernels are found by one name.
        let text = format!("#pragma OPENCL FP_CONTRACT OFF\n#define {name} bh\n{text}\n");
        self.user.push(User { name: name.into(), text });
        Ok(())
    }

    /// The user has loaded a method of this name into another component, which is meant then.
    pub(crate) fn leave(&mut self, name: &str) {
        self.elsewhere.push(name.into());
    }

    /// Learns the opcode of a method; false if there is none of this name.
    pub(crate) fn announce(&mut self, name: &str, opcode: Opcode) -> bool {
        let user = self.user.iter().rposition(|method| method.name == name).map(Known::User);
        let own = (name == "matmul" && !self.elsewhere.iter().any(|other| other == name)).then_some(Known::Product);
        self.known.retain(|(number, _)| *number != opcode);
        self.known.extend(user.or(own).map(|known| (opcode, known)));
        user.or(own).is_some()
    }

    fn known(&self, batch: &BatchRef<'_>, instr: u32) -> Option<Known> {
        let opcode = batch.instrs[instr as usize].opcode;
        self.known.iter().find(|(number, _)| *number == opcode).map(|(_, known)| *known)
    }

    /// Can the device run this call?
    pub(crate) fn takes(&self, batch: &BatchRef<'_>, instr: u32) -> bool {
        match self.known(batch, instr) {
            Some(Known::Product) => code::is_product(batch, instr),
            Some(Known::User(_)) => {
                batch.instrs[instr as usize].operands().iter().all(|operand| operand.as_view().is_some())
            }
            None => false,
        }
    }

    /// The kernels of a call; `scratch` gets the bytes of memory between them.
    pub(crate) fn codes(
        &self,
        batch: &BatchRef<'_>,
        instr: u32,
        target: &Target,
        variant: Variant,
        scratch: &mut Vec<usize>,
    ) -> Vec<Code> {
        match self.known(batch, instr) {
            Some(Known::Product) => code::product(batch, instr, target, variant, scratch),
            Some(Known::User(at)) => vec![call(batch, instr, target, &self.user[at].text)],
            None => Vec::new(),
        }
    }
}

/// A call of a user's kernel.
fn call(batch: &BatchRef<'_>, instr: u32, target: &Target, text: &str) -> Code {
    let views = batch.instrs[instr as usize].operands().iter().filter_map(|operand| operand.as_view());
    let (mut places, mut numbers, mut items) = (Vec::new(), Vec::new(), 1);
    for (number, view) in views.enumerate() {
        let record = &batch.views[view as usize];
        places.push(Place::Of(BufferRef::Base(record.base)));
        let (shape, stride) = (batch.shape(view), batch.stride(view));
        let mut described = vec![record.len, record.start, shape.len() as i64];
        described.extend_from_slice(shape);
        described.resize(3 + MAX_RANK, 1);
        described.extend_from_slice(stride);
        described.resize(RECORD, 0);
        numbers.extend(described);
        if number == 0 {
            items = record.len.max(1);
        }
    }
    Code {
        text: text.to_owned(),
        places,
        constants: Vec::new(),
        numbers,
        wide: true,
        packed: true,
        groups: (items as u64).div_ceil(target.group as u64) as usize,
        group: target.group,
        failing: Vec::new(),
    }
}
