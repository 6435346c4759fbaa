//! LLVM: from the module of a kernel to an object file.

use bh_jit_abi::Level;
use inkwell::OptimizationLevel;
use inkwell::module::Module;
use inkwell::targets::{CodeModel, FileType, InitializationConfig, RelocMode, Target, TargetMachine, TargetTriple};

/// The instructions that a level may use.
fn features(level: Level) -> &'static str {
    match level {
        Level::Avx2 => "+avx2,+fma",
        Level::Avx512 => "+avx512f,+avx512dq,+avx512bw,+avx512vl,+avx2,+fma",
    }
}

fn machine(level: Level) -> Result<TargetMachine, String> {
    // One object format, whatever the system: the engine places the code itself.
    let triple = TargetTriple::create("x86_64-unknown-linux-gnu");
    let target = Target::from_triple(&triple).map_err(|error| error.to_string())?;
    target
        .create_target_machine(
            &triple,
            "x86-64",
            features(level),
            OptimizationLevel::Less,
            RelocMode::PIC,
            CodeModel::Small,
        )
        .ok_or_else(|| "LLVM has no code generator for x86-64".to_owned())
}

/// Compiles a module to an object file, or to assembly language for people.
pub(crate) fn compile(module: &Module, level: Level, file: FileType) -> Result<Vec<u8>, String> {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| Target::initialize_x86(&InitializationConfig::default()));
    let machine = machine(level)?;
    module.set_triple(&machine.get_triple());
    module.set_data_layout(&machine.get_target_data().get_data_layout());
    let object = machine.write_to_memory_buffer(module, file).map_err(|error| error.to_string())?;
    Ok(object.as_slice().to_vec())
}
