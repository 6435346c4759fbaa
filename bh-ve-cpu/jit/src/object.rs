//! LLVM: from the module of a kernel to an object file.

use bh_jit_abi::Level;
use inkwell::OptimizationLevel;
use inkwell::module::Module;
use inkwell::targets::{CodeModel, FileType, RelocMode, Target, TargetMachine, TargetTriple};

/// The target of a level's code: the system, the processor, and instructions beyond that processor's. All systems use one format of
/// objects, as the engine places the code itself.
fn target(level: Level) -> (&'static str, &'static str, &'static str) {
    match level {
        Level::Avx2 => ("x86_64-unknown-linux-gnu", "x86-64", "+avx2,+fma"),
        Level::Avx512 => ("x86_64-unknown-linux-gnu", "x86-64", "+avx512f,+avx512dq,+avx512bw,+avx512vl,+avx2,+fma"),
        Level::Neon => ("aarch64-unknown-linux-gnu", "generic", "+neon"),
    }
}

fn machine(level: Level) -> Result<TargetMachine, String> {
    let (system, processor, features) = target(level);
    let triple = TargetTriple::create(system);
    let target = Target::from_triple(&triple).map_err(|error| error.to_string())?;
    target
        .create_target_machine(&triple, processor, features, OptimizationLevel::Less, RelocMode::PIC, CodeModel::Small)
        .ok_or_else(|| format!("LLVM has no code generator for {system}"))
}

/// Registers the code generator of the architecture that this library is built for. inkwell's own function would also link LLVM's
/// assembler and disassembler, which nothing here calls, and which are a tenth of the library.
fn initialize() {
    #[cfg(target_arch = "aarch64")]
    use inkwell::llvm_sys::target::{
        LLVMInitializeAArch64AsmPrinter as printer, LLVMInitializeAArch64Target as target,
        LLVMInitializeAArch64TargetInfo as info, LLVMInitializeAArch64TargetMC as machine_code,
    };
    #[cfg(target_arch = "x86_64")]
    use inkwell::llvm_sys::target::{
        LLVMInitializeX86AsmPrinter as printer, LLVMInitializeX86Target as target, LLVMInitializeX86TargetInfo as info,
        LLVMInitializeX86TargetMC as machine_code,
    };
    // SAFETY: they take nothing, and fill LLVM's registry of targets; the only caller calls once, before anything reads it.
    unsafe {
        info();
        target();
        machine_code();
        printer();
    }
}

/// Compiles a module to an object file, or to assembly language for people.
pub(crate) fn compile(module: &Module, level: Level, file: FileType) -> Result<Vec<u8>, String> {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(initialize);
    let machine = machine(level)?;
    module.set_triple(&machine.get_triple());
    module.set_data_layout(&machine.get_target_data().get_data_layout());
    let object = machine.write_to_memory_buffer(module, file).map_err(|error| error.to_string())?;
    Ok(object.as_slice().to_vec())
}
