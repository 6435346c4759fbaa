//! Computes the page's data from a program's files.

use bh_report::{Run, data, write};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// A kernel that ran twice in blocks and once compiled, described by its last event; a helper, a device and a second
/// rank.
const TRACE: &str = r#"{"traceEvents":[
{"name":"sqrt, add","cat":"ve-cpu","ph":"X","pid":1,"tid":7,"ts":10.0,"dur":1000.0,"args":{"kernel":0,"how":"in blocks"}},
{"name":"sqrt, add","cat":"ve-cpu","ph":"X","pid":1,"tid":7,"ts":2000.0,"dur":500.0,"args":{"kernel":0,"how":"compiled"}},
{"name":"helps","cat":"ve-cpu","ph":"X","pid":1,"tid":8,"ts":20.0,"dur":900.0},
{"name":"sqrt, add","cat":"ve-cpu","ph":"X","pid":1,"tid":7,"ts":3000.0,"dur":1500.0,"args":{"kernel":0,"how":"in blocks",
 "operations":"sqrt, add","lines":["PROGRAM:2"],"elements":100,"work":200,"bytes":1600,"code":"for [100]</script>"}},
{"name":"execute","cat":"ve-cpu","ph":"X","pid":1,"tid":7,"ts":5.0,"dur":5000.0},
{"name":"upload","cat":"ve-opencl","ph":"X","pid":1,"tid":7,"ts":6000.0,"dur":10.0,"args":{"bytes":4096}},
{"name":"upload","cat":"ve-opencl","ph":"X","pid":1,"tid":7,"ts":6020.0,"dur":10.0,"args":{"bytes":4096}},
{"name":"multiply","cat":"ve-opencl","ph":"X","pid":1,"tid":4194304,"ts":7000.0,"dur":100.0,"args":{"kernel":0,
 "how":"on the device","operations":"multiply","lines":[],"elements":10,"work":10,"bytes":160,"code":""}},
{"name":"multiply","cat":"ve-opencl","ph":"X","pid":1,"tid":4194304,"ts":7200.0,"dur":100.0,"args":{"kernel":0,"more":true}},
{"name":"compile","cat":"ve-opencl","ph":"X","pid":1,"tid":7,"ts":6500.0,"dur":10.0,"args":{"bytes":14,"code":"kernel void bh"}},
{"name":"bad number","cat":"recorder","ph":"X","pid":1,"tid":7,"ts":8000.0,"dur":1.0,"args":{"shape":[2,3],"plane":[],
 "high":2,"wide":3,"means":[1.0,2.0,null,1.0,1.0,1.0],"bad":[0,0,1,0,0,0],"count":1,"what":"PROGRAM:2: sqrt"}},
{"name":"memory","ph":"C","pid":1,"ts":1.0,"args":{"bytes":1048576}},
{"name":"memory","ph":"C","pid":1,"ts":9000.0,"args":{"bytes":0}}
],"otherData":{"dropped":"3"}}"#;

fn left(name: &str) -> PathBuf {
    let directory = std::env::temp_dir().join(format!("bh-report-{name}-{}", std::process::id()));
    fs::create_dir_all(directory.join("partitions")).unwrap();
    let program = directory.join("program.py");
    fs::write(&program, "import bh as np\ny = np.sqrt(x) + 1\n").unwrap();
    let write = |name: &str, text: &str| fs::write(directory.join(name), text).unwrap();
    write("statistics.json", r#"{"filter.batches":40,"ve-opencl.refused_blocks":2,"memory.refused":0}"#);
    write("statistics.json.rank1", r#"{"filter.batches":0}"#);
    write("trace.json", &TRACE.replace("PROGRAM", &program.display().to_string()));
    write("trace.json.rank1", r#"{"traceEvents":[{"name":"execute","cat":"node","tid":1,"ts":1,"dur":2}]}"#);
    write("partitions/partition-0000.txt", "2 kernels for 5 operations; 10 bytes instead of 20\nkernel 0\n");
    write("doctor.json", r#"[{"kind":"element loop","file":"a.py","line":3,"count":99,"advice":"work on slices"}]"#);
    let row = |line: u64, element: f64| {
        json!({ "file": program, "line": line, "operation": "sqrt", "element": element,
        "array": 9.0, "most": 15.9, "runs": 1 })
    };
    write("digits.json", &json!([row(2, 12.0), row(2, 3.5)]).to_string());
    directory
}

fn run() -> Run {
    Run { program: "python a.py".into(), seconds: 2.0, failure: None, running: false }
}

#[test]
fn kernels_are_summed_with_their_lines_and_their_code() {
    let directory = left("kernels");
    let data = data(&directory, &run()).unwrap();
    let kernel = &data["kernels"][0];
    assert_eq!((&kernel["label"], &kernel["count"]), (&json!("sqrt, add"), &json!(3)));
    assert!((kernel["seconds"].as_f64().unwrap() - 3e-3).abs() < 1e-9);
    assert_eq!((&kernel["work"], &kernel["bytes"]), (&json!(600.0), &json!(4800.0)));
    assert_eq!(kernel["how"], "in blocks; then compiled");
    assert_eq!(kernel["lines"][0]["text"], "y = np.sqrt(x) + 1");
    assert_eq!(kernel["code"], "for [100]</script>");
    let device = &data["kernels"][1];
    assert_eq!((&device["device"], &device["count"], &device["bytes"]), (&json!(true), &json!(1), &json!(160.0)));
    assert_eq!(data["programs"], json!(["kernel void bh"]));
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn the_timeline_has_a_row_for_each_thread_device_and_rank_and_what_lies_within_is_deeper() {
    let directory = left("timeline");
    let data = data(&directory, &run()).unwrap();
    let rows = data["timeline"]["rows"].as_array().unwrap();
    let labels: Vec<_> = rows.iter().map(|row| row["label"].as_str().unwrap()).collect();
    assert_eq!(labels, ["rank 0, thread 1", "rank 0, thread 2", "rank 0, device 0", "rank 1, thread 4"]);
    let depths: Vec<_> = rows[0]["events"].as_array().unwrap().iter().map(|event| event[2].as_u64().unwrap()).collect();
    assert_eq!(depths, [0, 1, 1, 1, 0, 0, 0, 0]);
    assert_eq!(data["memory"], json!([[0, 1.0, 1 << 20], [0, 9000.0, 0]]));
    let transfer = &data["transfers"][0];
    assert_eq!(
        (&transfer["kind"], &transfer["count"], &transfer["bytes"]),
        (&json!("upload"), &json!(2), &json!(8192))
    );
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn the_first_bad_number_and_the_digits_of_lines_are_shown() {
    let directory = left("numbers");
    let data = data(&directory, &run()).unwrap();
    assert_eq!((&data["bad"]["shape"], &data["bad"]["bad"][2]), (&json!([2, 3]), &json!(1)));
    let lines = data["digits"][0]["lines"].as_array().unwrap();
    assert_eq!((&lines[0]["text"], &lines[0]["digits"]), (&json!("import bh as np"), &Value::Null));
    assert_eq!((&lines[1]["text"], &lines[1]["digits"]), (&json!("y = np.sqrt(x) + 1"), &json!(3.5)));
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn findings_say_what_and_where_and_fusion_why() {
    let directory = left("findings");
    let data = data(&directory, &run()).unwrap();
    let found: Vec<_> = data["findings"].as_array().unwrap().iter().map(|it| it["what"].as_str().unwrap()).collect();
    let expected = ["element loop, 99 times", "2 kernels were refused by an engine", "3 events are missing"];
    assert_eq!(found, expected);
    assert_eq!(data["findings"][0]["place"], "a.py:3");
    let batch = &data["fusion"]["batches"][0];
    assert_eq!((&batch["kernels"], &batch["operations"]), (&json!(2), &json!(5)));
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn the_page_is_whole_and_its_data_cannot_end_the_script() {
    let directory = left("page");
    let page = directory.join("page.html");
    write(&directory, &page, &run()).unwrap();
    let text = fs::read_to_string(page).unwrap();
    assert_eq!(text.matches("</script>").count(), 1);
    assert!(!text.contains("http://") && !text.contains("https://") && !text.contains("/*begin*/"));
    let (_, data) = text.rsplit_once("show(").unwrap();
    let data: Value = serde_json::from_str(data.split_once(");\n</script>").unwrap().0).unwrap();
    assert_eq!(data["program"], "python a.py");
    let roof = &data["roof"];
    assert!(roof["bytes"].as_f64().unwrap() > 1e8 && roof["operations"].as_f64().unwrap() > 1e8, "{roof}");
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_program_that_left_nothing_is_an_error() {
    let error = data(Path::new("/nonexistent"), &run()).unwrap_err();
    assert!(error.contains("the program left no statistics"), "{error}");
}
