//! Runs the program that is named.
fn main() {
    let file = std::env::args().nth(1).unwrap_or_default();
    match bh_minimatlab::run_file(std::path::Path::new(&file), None) {
        Ok(true) => {}
        Ok(false) => std::process::exit(1),
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(2);
        }
    }
}
