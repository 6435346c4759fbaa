//! The program `minimatlab`: files, the prompt with its history, and profiling.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn libraries() -> PathBuf {
    std::env::var_os("BH_TEST_LIBRARIES").map_or_else(
        || Path::new(env!("CARGO_BIN_EXE_minimatlab")).parent().map(Path::to_path_buf).unwrap_or_default(),
        PathBuf::from,
    )
}

/// A folder for a test, as the home of its programs.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("matlab").join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn command(program: &str, home: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(home).env("HOME", home).env("BH_LIBRARY_PATH", libraries()).env("TERM", "xterm");
    command.env_remove("BH_CONFIG").env_remove("BH_STACK");
    command
}

/// Runs a command with an input; returns its output and success.
fn output(mut command: Command, input: &str) -> (bool, String) {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    let text = [stdout, stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    (status.success(), text)
}

fn matlab(home: &Path, arguments: &[&str], input: &str) -> (bool, String) {
    let mut command = command(env!("CARGO_BIN_EXE_minimatlab"), home);
    command.args(arguments);
    output(command, input)
}

#[test]
fn programs_run_and_errors_show_their_place() {
    let home = folder("programs");
    std::fs::write(home.join("good.m"), "x = ones(3, 4) * 2;\nprintf('%g\\n', sum(sum(x)));\n").unwrap();
    assert_eq!(matlab(&home, &["good.m"], ""), (true, "24\n".to_owned()));
    std::fs::write(home.join("bad.m"), "x = 1:3;\ny = x(5) + 1\n").unwrap();
    let (good, text) = matlab(&home, &["bad.m"], "");
    assert!(
        !good && text.starts_with("bad.m:2:5: error: ") && text.ends_with("    y = x(5) + 1\n        ^\n"),
        "{text}"
    );
    let (good, text) = matlab(&home, &["missing.m"], "");
    assert!(!good && text.contains("'missing.m' cannot be read"), "{text}");
}

#[test]
fn pictures_are_written() {
    let home = folder("pictures");
    let program = "x = 0:0.1:10;\nplot(x, sin(x), 'r', x, cos(x), 'picture.svg')\nprint('picture.png')\n";
    std::fs::write(home.join("plot.m"), program).unwrap();
    assert_eq!(matlab(&home, &["plot.m"], ""), (true, String::new()));
    let svg = std::fs::read_to_string(home.join("picture.svg")).unwrap();
    assert_eq!(svg.matches("<polyline").count(), 2, "{svg}");
    let png = std::fs::read(home.join("picture.png")).unwrap();
    assert!(png.starts_with(b"\x89PNG\r\n\x1a\n") && png.len() > 2000, "{} bytes", png.len());
}

#[test]
fn a_pipe_is_a_prompt() {
    let home = folder("pipe");
    let (good, text) = matlab(&home, &[], "x = 2;\nfor k = 1:3\n  x = x * k;\nend\nx\ny = [1,\n2]\nz(\nx + 1\n");
    assert!(good, "{text}");
    assert!(text.contains("x = 12\n") && text.contains("y =\n\n   1\n   2\n"), "{text}");
    assert!(text.contains("prompt:1:2: error") && text.contains("ans = 13\n"), "{text}");
    let (good, _) = matlab(&home, &[], "y = missing\n");
    assert!(!good);
}

#[test]
fn the_prompt_of_a_terminal_has_a_history() {
    let home = folder("terminal");
    // Recalls the previous line with the up key, changes it, and exits.
    let keys = ["x = 41\r", "\x1b[A\x7f2\r", "x\r", "exit\r"];
    let mut terminal = command("script", &home);
    terminal.args(["-qec", env!("CARGO_BIN_EXE_minimatlab"), "/dev/null"]);
    terminal.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = terminal.spawn().expect("script (bsdutils) gives programs a terminal");
    let (mut input, mut shown) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut text = String::new();
    for key in keys {
        // Line by line, as by a person: the terminal echoes input that arrives before the prompt is ready. Each key
        // prints the prompt again.
        let (mut line, mut ended) = (String::new(), text.is_empty());
        while !(ended && line.contains(">> ")) {
            let mut byte = [0];
            shown.read_exact(&mut byte).unwrap();
            line.push(byte[0] as char);
            if byte == *b"\n" {
                text += &std::mem::take(&mut line);
                ended = true;
            }
        }
        text += &line;
        input.write_all(key.as_bytes()).unwrap();
        input.flush().unwrap();
    }
    shown.read_to_string(&mut text).unwrap();
    assert!(child.wait().unwrap().success(), "{text}");
    assert!(text.contains("x = 42"), "{text}");
    let history = std::fs::read_to_string(home.join(".bh_matlab_history")).unwrap();
    let lines: Vec<&str> = history.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(lines, ["x = 41", "x = 42", "x"]);
}

#[test]
fn the_profile_shows_where_the_time_went() {
    let home = folder("profile");
    std::fs::write(home.join("work.m"), "x = rand(400, 400);\ny = exp(x) + x;\nprintf('%d\\n', sum(sum(y)) > 0);\n")
        .unwrap();
    let program = env!("CARGO_BIN_EXE_minimatlab");
    let mut profiler = command(Path::new(program).with_file_name("bh").to_str().unwrap(), &home);
    profiler.args(["run", "--profile", "--", program, "work.m"]);
    let (good, text) = output(profiler, "");
    assert!(good && text.starts_with("1\n"), "{text}");
    assert!(text.contains("wall clock") && text.contains("fuser.kernels"), "{text}");
}
