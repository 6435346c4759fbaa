//! Shows what kernels become, for people who look for a faster way: `show gravity|series|stencil|cube|prices|waves [text] [fast]
//! [avx2|avx512|neon]`. Without a level, it is this machine's. LLVM's language can be had at the levels of other machines, too, for
//! `llc-19 -O1 -mtriple=aarch64-linux-gnu`.

mod bodies;

use bh_jit_abi::Level;
use bh_vector::simd::Isa;

/// The level that an argument names, or this machine's.
fn level(arguments: &[String]) -> Level {
    let named = arguments.iter().find_map(|argument| Isa::from_name(argument));
    match named.unwrap_or_else(Isa::detect) {
        Isa::Neon => Level::Neon,
        Isa::Avx512 => Level::Avx512,
        _ => Level::Avx2,
    }
}

fn main() -> Result<(), String> {
    let arguments: Vec<String> = std::env::args().collect();
    let mut body = match arguments.get(1).map(String::as_str) {
        Some("gravity") => bodies::gravity(),
        Some("series") => bodies::series(),
        Some("stencil") => bodies::stencil(),
        Some("cube") => bodies::cube(),
        Some("prices") => bodies::prices(),
        Some("waves") => bodies::waves(),
        _ => return Err("usage: show gravity|series|stencil|cube|prices|waves [text] [fast] [avx2|avx512|neon]".into()),
    };
    let has = |name: &str| arguments.iter().any(|argument| argument == name);
    body.0.level = level(&arguments);
    body.0.fast_math = has("fast");
    if has("text") {
        print!("{}", bh_ve_cpu_jit::text(&body.0)?);
        return Ok(());
    }
    print!("{}", bh_ve_cpu_jit::assembly(&body.0)?);
    let begin = std::time::Instant::now();
    bh_ve_cpu_jit::compile(&body.0)?;
    eprintln!("compiled in {:.1} ms", begin.elapsed().as_secs_f64() * 1e3);
    Ok(())
}
