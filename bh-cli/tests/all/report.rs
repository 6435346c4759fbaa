//! `bh run --report`: a page with the kernels of a program, its lines and its fusion.

use std::path::{Path, PathBuf};
use std::process::Command;

#[test]
fn a_program_of_another_process_gets_its_page() {
    let program = env!("CARGO_BIN_EXE_bh");
    let minimatlab = Path::new(program).with_file_name("minimatlab");
    let built = || Path::new(program).parent().map(Path::to_path_buf).unwrap_or_default();
    let libraries = std::env::var_os("BH_TEST_LIBRARIES").map_or_else(built, PathBuf::from);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("report");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("main.m"), "x = ones(300, 400) * 2;\ny = exp(x) + 1;\nprintf('%g\\n', sum(sum(y)));\n")
        .unwrap();
    let mut command = Command::new(program);
    command.args(["run", "--profile", "--report", "page.html", "--live", "--", minimatlab.to_str().unwrap(), "main.m"]);
    command.current_dir(&folder).env("HOME", &folder).env("BH_LIBRARY_PATH", libraries);
    let output = command.env_remove("BH_CONFIG").env_remove("BH_STACK").output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.contains("report: page.html"), "{errors}");
    assert!(errors.contains("fuser.kernels"), "{errors}");
    assert!(!errors.lines().any(|line| line.ends_with(" 0")), "a counter without a count: {errors}");
    assert!(errors.starts_with("watch: http://127.0.0.1:"), "nobody watches, so nobody is waited for: {errors}");
    let page = std::fs::read_to_string(folder.join("page.html")).unwrap();
    let (_, data) = page.rsplit_once("show(").unwrap();
    let data: serde_json::Value = serde_json::from_str(data.split_once(");\n</script>").unwrap().0).unwrap();
    let kernels = data["kernels"].as_array().unwrap();
    let exp = kernels.iter().find(|kernel| kernel["operations"].as_str().unwrap().contains("exp")).unwrap();
    assert_eq!(
        exp["lines"].as_array().unwrap().iter().filter(|it| it["text"] == "y = exp(x) + 1;").count(),
        1,
        "{exp}"
    );
    assert!(data["fusion"]["batches"][0]["text"].as_str().unwrap().contains("exp"), "{}", data["fusion"]);
}

#[test]
fn report_and_trace_exclude_each_other() {
    let output = Command::new(env!("CARGO_BIN_EXE_bh"))
        .args(["run", "--report", "a.html", "--trace", "b.json", "--", "true"])
        .output()
        .unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("--trace"), "{output:?}");
}
