//! Methods that ranks call themselves, under opcodes that programs do not use.

use bh_bytecode::Opcode;

/// Q and R.
pub const QR: Opcode = Opcode(u16::MAX - 1);
/// A matrix product.
pub const PRODUCT: Opcode = Opcode(u16::MAX - 2);
/// L and U of some columns, and the order of rows.
pub const PANEL: Opcode = Opcode(u16::MAX - 3);
/// The solution of a linear system.
pub const SOLVE: Opcode = Opcode(u16::MAX - 4);
/// The factor of a positive definite matrix.
pub const CHOLESKY: Opcode = Opcode(u16::MAX - 5);

/// All of them, by the stacks' names.
pub const ALL: [(Opcode, &str); 5] =
    [(QR, "qr"), (PRODUCT, "matmul"), (PANEL, "lu_panel"), (SOLVE, "solve"), (CHOLESKY, "cholesky")];
